"""Converters of the domain ai.onnx.ml: models that are no networks."""
