"""Programs with control flow as instructions: loops over tensors, and functions with frames and a heap."""
