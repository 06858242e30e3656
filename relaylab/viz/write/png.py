"""Scene to PNG, through our own PDF and the PDFium renderer (optional extra `png`, package pypdfium2)."""

from __future__ import annotations

import struct
import zlib
from typing import cast

from relaylab.support.errors import RelayError
from relaylab.viz.draw.pages import MAX_UNITS
from relaylab.viz.scene.scene import Scene
from relaylab.viz.write.pdf import pdf

MAX_PIXELS = 60_000_000
"""Larger pictures are scaled down to this size."""


def png(scene: Scene, *, scale: float = 2.0) -> bytes:
    """The picture as PNG with `scale` pixels a point; raises `RelayError` where pypdfium2 is absent."""
    try:
        import pypdfium2
    except ImportError:
        raise RelayError(
            "PNG pictures need the package pypdfium2, which is not installed",
            code="viz.no-png",
            help='pip install "relaylab[png]", or save as .svg, .pdf or .html',
        ) from None
    unit = max(1.0, scene.width / MAX_UNITS, scene.height / MAX_UNITS)
    scale = min(scale, (MAX_PIXELS / (scene.width * scene.height)) ** 0.5)
    document = pypdfium2.PdfDocument(pdf([scene]))
    try:
        bitmap = document[0].render(scale=cast("int", scale * unit), rev_byteorder=True)  # it takes fractions as well
        return _encode(bitmap.width, bitmap.height, bitmap.n_channels, bitmap.stride, bytes(bitmap.buffer))
    finally:
        document.close()


def _encode(width: int, height: int, channels: int, stride: int, pixels: bytes) -> bytes:
    """PNG (W3C recommendation, second edition) with no row filters; `pixels` are RGB or RGBA rows."""
    rows = b"".join(b"\0" + pixels[y * stride : y * stride + width * channels] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 6 if channels == 4 else 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
