"""Other formats: `from_onnx` and `from_pytorch` read, `to_onnx` writes."""

from relaylab.frontend.onnx import from_onnx
from relaylab.frontend.onnx.export import to_onnx
from relaylab.frontend.pytorch import from_pytorch

__all__ = ["from_onnx", "from_pytorch", "to_onnx"]
