"""Programs to text and back: parser, printer with a source map, the standard library.

Importing this room makes programs printable (`str(mod)`, `mod.astext()`) and lets modules read text.
"""

from relaylab.ir.expr import printing as _printing
from relaylab.ir.module import library as _library
from relaylab.text.check import SpanCheck, check_spans, missing_spans
from relaylab.text.expressions import ParseWarning
from relaylab.text.library import import_text
from relaylab.text.parser import fromtext, parse, parse_expr, read_module
from relaylab.text.prelude import Prelude
from relaylab.text.printing import print_with_map, text

_printing.text = text
_library.import_text = import_text

__all__ = [
    "ParseWarning",
    "Prelude",
    "SpanCheck",
    "check_spans",
    "fromtext",
    "import_text",
    "missing_spans",
    "parse",
    "parse_expr",
    "print_with_map",
    "read_module",
    "text",
]
