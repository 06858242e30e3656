"""Programs in which data decides sizes: cut where sizes are found, each part compiled for all sizes."""
