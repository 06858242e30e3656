"""Numbers over pictures: overlays, heat maps, memory, rooflines, the table of operators."""
