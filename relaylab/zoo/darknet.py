"""Names that programs around Darknet use: layer kinds, activations, and loading an image."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

import numpy as np

from relaylab.support.errors import RelayValueError


class LAYERTYPE(Enum):
    """The kinds of layers of Darknet, by its numbers."""

    CONVOLUTIONAL = 0
    DECONVOLUTIONAL = 1
    CONNECTED = 2
    MAXPOOL = 3
    SOFTMAX = 4
    DETECTION = 5
    DROPOUT = 6
    CROP = 7
    ROUTE = 8
    COST = 9
    NORMALIZATION = 10
    AVGPOOL = 11
    LOCAL = 12
    SHORTCUT = 13
    ACTIVE = 14
    RNN = 15
    GRU = 16
    LSTM = 17
    CRNN = 18
    BATCHNORM = 19
    NETWORK = 20
    XNOR = 21
    REGION = 22
    YOLO = 23
    REORG = 24
    UPSAMPLE = 25
    LOGXENT = 26
    L2NORM = 27
    BLANK = 28


class ACTIVATION(Enum):
    """The activations of Darknet, by its numbers."""

    LOGISTIC = 0
    RELU = 1
    RELIE = 2
    LINEAR = 3
    RAMP = 4
    TANH = 5
    PLSE = 6
    LEAKY = 7
    ELU = 8
    LOGGY = 9
    STAIR = 10
    HARDTAN = 11
    LHTAN = 12


def load_image(image: str | Path, resize_width: int, resize_height: int) -> np.ndarray:
    """An image file (.npy with (H, W, 3) uint8 values) as float32 (3, H, W) in [0, 1], letter-boxed to the size."""
    return letterbox(convert_image(_pixels(image)), resize_width, resize_height)


def _pixels(image: str | Path) -> np.ndarray:
    path = Path(image)
    if path.suffix != ".npy":
        raise RelayValueError(
            f"{path.name}: only .npy images are read", code="zoo.image", help="save the pixels with numpy.save"
        )
    return np.load(path, allow_pickle=False)


def convert_image(image: np.ndarray) -> np.ndarray:
    """(H, W, 3) pixels in 0..255 as float32 (3, H, W) in [0, 1]."""
    return np.transpose(np.asarray(image, "float32") / np.float32(255), (2, 0, 1))


def load_image_color(test_image: str | Path) -> np.ndarray:
    """An image file (.npy with (H, W, 3) uint8 values) as float32 (3, H, W) in [0, 1], at its own size."""
    return convert_image(_pixels(test_image))


def fitted(w: int, h: int, width: int, height: int) -> tuple[int, int]:
    """The largest size of the proportions w : h within width x height, in whole pixels."""
    return (width, max(1, h * width // w)) if width * h < height * w else (max(1, w * height // h), height)


def letterbox(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """(C, H, W) scaled to fit into (C, height, width) with its proportions kept; the rest is 0.5."""
    _, h, w = image.shape
    new_w, new_h = fitted(w, h, width, height)
    out = np.full((image.shape[0], height, width), 0.5, image.dtype)
    top, left = (height - new_h) // 2, (width - new_w) // 2
    out[:, top : top + new_h, left : left + new_w] = resize(image, new_w, new_h)
    return out


def resize(image: np.ndarray, width: int, height: int) -> np.ndarray:
    """(C, H, W) resampled bilinearly with aligned corners."""
    _, h, w = image.shape
    rows = np.linspace(0, h - 1, height)
    cols = np.linspace(0, w - 1, width)
    r0, c0 = np.floor(rows).astype(int), np.floor(cols).astype(int)
    r1, c1 = np.minimum(r0 + 1, h - 1), np.minimum(c0 + 1, w - 1)
    fr, fc = (rows - r0)[:, None], (cols - c0)[None, :]
    top = image[:, r0][:, :, c0] * (1 - fc) + image[:, r0][:, :, c1] * fc
    bottom = image[:, r1][:, :, c0] * (1 - fc) + image[:, r1][:, :, c1] * fc
    return (top * (1 - fr) + bottom * fr).astype(image.dtype)
