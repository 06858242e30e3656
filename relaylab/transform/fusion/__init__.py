"""Operators into kernels, and out again."""
