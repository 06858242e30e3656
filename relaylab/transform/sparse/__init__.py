"""Weights that are mostly zeros, stored without them."""
