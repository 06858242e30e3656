"""Operators on weights that were prepared before: transformed by Winograd, laid out in tiles, split into bits."""
