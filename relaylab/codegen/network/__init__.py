"""A fused program as the back end sees it: tensors, and operations in order."""
