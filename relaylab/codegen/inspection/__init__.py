"""What a kernel looked like on its way down, and why."""
