"""Support: source text and places, errors, tables. Standard library only, but for the one data type in `dtypes`."""
