"""Programs to text and back: parser, printer with a source map, the standard library.

Importing this room makes programs printable (`str(mod)`, `mod.astext()`) and lets modules read text.
"""

from relaylab.ir.display import node_text as _node_text
from relaylab.ir.module import import_text as _import_text
from relaylab.text.check import SpanCheck, check_spans, missing_spans
from relaylab.text.library import import_text
from relaylab.text.prelude import Prelude
from relaylab.text.reading.expressions import ParseWarning
from relaylab.text.reading.parser import fromtext, parse, parse_expr, read_module
from relaylab.text.writing.printing import print_with_map, text, text_to_edit

_node_text.register(text)
_import_text.register(import_text)

__all__ = [
    "ParseWarning", "Prelude", "SpanCheck", "check_spans", "fromtext", "import_text", "missing_spans", "parse",
    "parse_expr", "print_with_map", "read_module", "text", "text_to_edit",
]  # fmt: skip
