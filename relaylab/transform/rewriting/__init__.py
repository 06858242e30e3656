"""Rewrite rules as data, and why one did not fire."""
