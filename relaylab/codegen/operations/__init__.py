"""From operations to jobs, kernels and the plan that the runtime follows."""
