"""Values of options, for the command and the magics alike."""

from __future__ import annotations

import argparse


def natural(text: str) -> int:
    """A whole number, zero or above. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number, zero or above")
    return int(text)


def positive(text: str) -> int:
    """A whole number above zero. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise argparse.ArgumentTypeError(f"{text} is not a whole number above zero")
    return int(text)
