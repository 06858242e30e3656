"""Characters that only look like those of the text format: an input method or a web page put them there."""

from __future__ import annotations

_PLAIN = {
    **{chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},  # full width
    **dict(zip("、。【】〈〉《》“”„−–—×", ',.[]<><>"""---*')),
    **dict(zip("АВЕКМНОРСТХаеорсухіјѕ", "ABEKMHOPCTXaeopcyxijs")),  # Cyrillic
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧο", "ABEZHIKMNOPTYXo")),  # Greek
}
_TABLE = str.maketrans(_PLAIN)
_SAYS = {
    "&&": "logical_and(a, b)", "&": "bitwise_and(a, b)", "||": "logical_or(a, b)", "|": "bitwise_or(a, b)",
    "^": "bitwise_xor(a, b)", "~": "bitwise_not(a)", "\\": "divide(a, b)",
    "→": "->", "⇒": "=>", "≤": "<=", "≥": ">=", "≠": "!=", "÷": "/", "·": "*",
}  # fmt: skip


def is_look_alike(char: str) -> bool:
    """Whether `plain` writes another character in its place."""
    return char in _PLAIN


def plain(text: str) -> str:
    """The text with what it looks like; every character keeps its place."""
    return text.translate(_TABLE)


def why(found: str) -> str:
    """What is wrong with a word that has such characters."""
    char = next(char for char in found if is_look_alike(char))
    where = (
        f"`{found}` has the character U+{ord(char):04X}, which" if len(found) > 1 else f"`{char}` (U+{ord(char):04X})"
    )
    return f"{where} only looks like `{_PLAIN[char]}`"


def remedy(found: str) -> str:
    """What to do with characters that are not part of the format."""
    if found in _SAYS:
        return f"write `{_SAYS[found]}`"
    if found.isspace():
        return "write a space"
    if found.isalpha():
        return "names have the letters A to Z and a to z, digits and _"
    return "remove it"
