"""A function for each ATen operator, one file a family."""
