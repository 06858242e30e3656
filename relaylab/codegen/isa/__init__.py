"""Facts about CPUs: targets, their features, register files and caches."""
