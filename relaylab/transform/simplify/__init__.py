"""Passes that make programs smaller or cheaper and keep what they compute."""
