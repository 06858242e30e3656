"""Scenes to files: SVG, PDF, PNG, HTML, Dot, text, and plotters of other packages."""
