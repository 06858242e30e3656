"""What differs between two views, or two texts."""
