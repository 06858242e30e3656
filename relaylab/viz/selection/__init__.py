"""Parts of a view: queries, folding, repeats, paths, extracts."""
