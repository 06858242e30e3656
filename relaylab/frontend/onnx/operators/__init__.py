"""A function for each ONNX operator, one file a family."""
