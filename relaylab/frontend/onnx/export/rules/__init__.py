"""How Relay operators are said in ONNX: one rule per operator, from a typed call to nodes. A new file is named here."""

from relaylab.frontend.onnx.export.rules import arithmetic as arithmetic
from relaylab.frontend.onnx.export.rules import arrangement as arrangement
from relaylab.frontend.onnx.export.rules import images as images
from relaylab.frontend.onnx.export.rules import indexing as indexing
from relaylab.frontend.onnx.export.rules import norms as norms
from relaylab.frontend.onnx.export.rules import products as products
from relaylab.frontend.onnx.export.rules import quantized as quantized
from relaylab.frontend.onnx.export.rules import reductions as reductions
from relaylab.frontend.onnx.export.rules import sorting as sorting
from relaylab.frontend.onnx.export.rules import windows as windows
from relaylab.frontend.onnx.export.rules.base import RULES

__all__ = ["RULES"]
