"""Support: source text and places, errors, tables. Standard library only."""
