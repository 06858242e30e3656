"""Regions of programs for external compilers."""
