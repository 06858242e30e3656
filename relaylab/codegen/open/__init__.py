"""Programs with sizes that only a run tells: one compiled form for all of them."""
