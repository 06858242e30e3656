"""Automatic differentiation: a rule for each operator, and the pass."""
