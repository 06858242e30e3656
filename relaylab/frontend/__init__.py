"""Importers of other formats: `from_onnx`."""

from relaylab.frontend.onnx import from_onnx

__all__ = ["from_onnx"]
