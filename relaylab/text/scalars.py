"""Numbers and strings in both directions: what is printed reads back as the same bits."""

from __future__ import annotations

import math
import re

import numpy as np

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)(?:([fi])([0-9]*))?")
MOST_DIGITS = 40
"""How many digits of a whole number are read: more than any has that fits."""
_INT_RANGE = {16: np.iinfo(np.int16), 32: np.iinfo(np.int32), 64: np.iinfo(np.int64)}
_FLOAT = {"16": np.float16, "32": np.float32, "64": np.float64}
_SPECIAL = {f"{word}f{width}": (word, width or "32") for word in ("inf", "nan") for width in ("", "16", "32", "64")}


class BadNumber(ValueError):
    """A number that is not one; the arguments are the code, the message and the help."""


def parse_number(text: str, negative: bool = False) -> tuple[int | float, str]:
    """The value and the data type of a number: `3` is int32 (int64 if it is large), `3i64`, `3f` is float32, `3f16`."""
    if len(text) < 10 and text.isascii() and text.isdigit():  # an extent, as nearly all numbers are
        return (-int(text) if negative else int(text)), "int32"
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise BadNumber("parse.bad-number", f"`{text}` is not a number", "numbers look like 3, 3i64, 1.5f or 1e-05f")
    digits, suffix, width = found.groups()
    if suffix == "f":
        return _float(digits, width, negative)
    if not digits.isdigit():
        raise BadNumber("parse.float-suffix", f"the number `{text}` needs a suffix", f"write {digits}f for a float32")
    return _int(whole(digits), width, negative)


def whole(digits: str) -> int:
    """The number that decimal digits write; no int64 or index has so many that Python would refuse them."""
    digits = digits.lstrip("0") or "0"
    if len(digits) > MOST_DIGITS:
        message = f"{digits[:MOST_DIGITS]}… ({len(digits)} digits) does not fit into int64"
        raise BadNumber("parse.number-range", message, "the largest integers are int64")
    return int(digits)


def _float(digits: str, width: str, negative: bool) -> tuple[float, str]:
    if width not in ("", "16", "32", "64"):
        raise BadNumber("parse.number-width", f"there is no float{width}", "the suffixes are f, f16, f32 and f64")
    value = float(digits)
    with np.errstate(over="ignore"):
        if np.isinf(_FLOAT[width or "32"](value)):
            text = f"{digits[:MOST_DIGITS]}{'…' * (len(digits) > MOST_DIGITS)} does not fit into float{width or 32}"
            raise BadNumber("parse.number-range", text, "infinity is written inff")
    return -value if negative else value, f"float{width or 32}"


def _int(value: int, width: str | None, negative: bool) -> tuple[int, str]:
    if width not in (None, "", "16", "32", "64"):
        raise BadNumber("parse.number-width", f"there is no literal of type int{width}", "use i16, i32 or i64")
    value = -value if negative else value
    bits = int(width) if width else 32
    if not width and not _fits(value, 32):
        bits = 64
    if not _fits(value, bits):
        raise BadNumber("parse.number-range", f"{value} does not fit into int{bits}", "the largest integers are int64")
    return value, f"int{bits}"


def _fits(value: int, bits: int) -> bool:
    return _INT_RANGE[bits].min <= value <= _INT_RANGE[bits].max


def special_number(word: str, negative: bool = False, plain: bool = False) -> tuple[float, str] | None:
    """The value and the data type of `inff`, `nanf64` …, and of a `plain` `inf`; None for any other word."""
    word = f"{word}f" if plain and word in ("inf", "nan") else word
    if word not in _SPECIAL:
        return None
    name, width = _SPECIAL[word]
    value = math.inf if name == "inf" else math.nan
    return (-value if negative else value), f"float{width}"


def scalar_array(value: float, dtype: str) -> np.ndarray:
    """The rank-0 array that a literal stands for."""
    with np.errstate(over="ignore"):
        return np.asarray(value, dtype=dtype)


def float_text(value: float, width: int = 64) -> str:
    """The shortest decimal of at least six digits' precision that reads back as `value`, without suffix."""
    if math.isnan(value):
        return "-nan" if math.copysign(1.0, value) < 0 else "nan"
    if math.isinf(value):
        return "-inf" if value < 0 else "inf"
    kind = _FLOAT[str(width)]
    wanted = kind(value)
    for digits in range(6, 18):  # six is what C++ streams print; 17 give every float64 back
        text = f"{value:.{digits}g}"
        with np.errstate(over="ignore"):
            if kind(float(text)) == wanted:
                return text
    return repr(value)


def attribute_float(value: float) -> str:
    """The literal for a float attribute: a double that prints as a float32, as in Relay, where it lies in its range."""
    with np.errstate(over="ignore"):
        return float_text(value) + ("f64" if math.isfinite(value) and np.isinf(np.float32(value)) else "f")


_SUFFIX = {"int16": "i16", "int32": "", "int64": "i64", "float16": "f16", "float32": "f", "float64": "f64"}


def scalar_text(array: np.ndarray) -> str | None:
    """The literal for a rank-0 array; None if its type has none, or if no literal has the same bits."""
    dtype = array.dtype.name
    if dtype == "bool":
        return str(bool(array))
    if dtype not in _SUFFIX:
        return None
    if dtype.startswith("int"):
        return f"{int(array)}{_SUFFIX[dtype]}"
    text = float_text(float(array), array.dtype.itemsize * 8) + _SUFFIX[dtype]
    return text if "nan" not in text or _same_nan(text, array) else None


def _same_nan(text: str, array: np.ndarray) -> bool:
    read = special_number(text.lstrip("-"), text.startswith("-"))
    return read is not None and scalar_array(*read).tobytes() == array.tobytes()


# ---- strings

_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\"}
_UNESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]')
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def quote(text: str) -> str:
    """`text` as a string literal."""
    return f'"{_TO_ESCAPE.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04x}"


def unquote(literal: str) -> str:
    """The text of a string literal; a backslash before any other character stands for itself."""
    body = literal[1:-1]
    return _UNESCAPE.sub(_escaped, body) if "\\" in body else body


def _escaped(found: re.Match[str]) -> str:
    what = found[1]
    if what in _ESCAPES:
        return _ESCAPES[what]
    if len(what) == 1:
        return "\\" + what
    code = int(what[1:], 16)
    return chr(code) if code <= 0x10FFFF else found[0]
