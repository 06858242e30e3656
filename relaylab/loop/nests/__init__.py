"""Regions that become loops in ways of their own."""
