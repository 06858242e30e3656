"""Scenes: shapes, colours and the widths of texts."""
