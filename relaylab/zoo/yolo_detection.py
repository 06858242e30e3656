"""From the output of a YOLO network to boxes: decoding, non-maximum suppression, drawing. Plain numpy."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylab.zoo.darknet import fitted

Box = namedtuple("Box", ["x", "y", "w", "h"])


def _decode(layer: dict[str, Any], in_shape: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Boxes (n, 4), objectness (n,) and class scores (n, classes) of one output layer.

    `layer` has `output` (anchors * (5 + classes), h, w) and `biases`; a "Yolo" layer has a `mask` of anchors.
    """
    out, biases = np.asarray(layer["output"]), np.asarray(layer["biases"], "float32").reshape(-1, 2)
    mask = layer.get("mask")
    anchors = biases[np.asarray(mask, int)] if mask is not None else biases
    h, w = out.shape[-2:]
    cells = out.reshape(len(anchors), -1, h, w)
    rows, cols = np.mgrid[0:h, 0:w]
    x, y = (cells[:, 0] + cols) / w, (cells[:, 1] + rows) / h
    per = in_shape if layer.get("type", "Yolo") == "Yolo" else (w, h)
    bw = np.exp(cells[:, 2]) * anchors[:, 0, None, None] / per[0]
    bh = np.exp(cells[:, 3]) * anchors[:, 1, None, None] / per[1]
    boxes = np.stack([x, y, bw, bh], -1).reshape(-1, 4)
    return boxes, cells[:, 4].reshape(-1), np.moveaxis(cells[:, 5:], 1, -1).reshape(len(boxes), -1)


def _unletterbox(boxes: np.ndarray, in_shape: Sequence[int], im_shape: Sequence[int]) -> np.ndarray:
    """Boxes relative to the image instead of to the letter-boxed input."""
    fit = np.divide(fitted(*im_shape, *in_shape), in_shape)
    boxes = boxes.copy()
    boxes[:, :2] = (boxes[:, :2] - (1 - fit) / 2) / fit
    boxes[:, 2:] = boxes[:, 2:] / fit
    return boxes


def fill_network_boxes(
    in_shape: Sequence[int], im_shape: Sequence[int], thresh: float, relative: int, tvm_out: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Detections over `thresh`: dictionaries with `bbox`, `classes`, `objectness`, `prob`.

    `in_shape` and `im_shape` are (width, height) of the network's input and of the image, as programs for TVM say them.
    """
    found = []
    for layer in tvm_out:
        boxes, objectness, scores = _decode(layer, in_shape)
        boxes = _unletterbox(boxes, in_shape, im_shape)
        if not relative:
            boxes = boxes * np.array([*im_shape, *im_shape])
        for k in np.flatnonzero(objectness > thresh):
            prob = objectness[k] * scores[k]
            found.append(
                {
                    "bbox": Box(*map(float, boxes[k])),
                    "classes": scores.shape[1],
                    "objectness": float(objectness[k]),
                    "prob": np.where(prob > thresh, prob, 0),
                }
            )
    return found


def box_iou(a: Box, b: Box) -> float:
    """Intersection over union of two boxes given by centre and size."""
    overlap_w = min(a.x + a.w / 2, b.x + b.w / 2) - max(a.x - a.w / 2, b.x - b.w / 2)
    overlap_h = min(a.y + a.h / 2, b.y + b.h / 2) - max(a.y - a.h / 2, b.y - b.h / 2)
    if overlap_w <= 0 or overlap_h <= 0:
        return 0.0
    both = overlap_w * overlap_h
    return both / (a.w * a.h + b.w * b.h - both)


def nms_comparator(a: dict[str, Any], b: dict[str, Any]) -> float:
    """What sorts two detections by the probability of class `sort_class`, or by their objectness if that is below 0."""
    kind = b.get("sort_class", -1)
    difference = a["prob"][kind] - b["prob"][kind] if kind >= 0 else a["objectness"] - b["objectness"]
    return float(np.sign(difference))


def do_nms_sort(dets: list[dict[str, Any]], classes: int, thresh: float) -> None:
    """Set to zero, class by class, the probability of a box that overlaps a likelier one by more than `thresh`."""
    for c in range(classes):
        order = sorted((d for d in dets if d["prob"][c] > 0), key=lambda d: d["prob"][c], reverse=True)
        for i, best in enumerate(order):
            if best["prob"][c] == 0:
                continue
            for other in order[i + 1 :]:
                if box_iou(best["bbox"], other["bbox"]) > thresh:
                    other["prob"][c] = 0


def get_detections(
    image: np.ndarray, det: dict[str, Any], thresh: float, names: Sequence[str], classes: int
) -> tuple[list[str], tuple[int, int, int, int] | None]:
    """Labels of one detection and its box in pixels (left, top, right, bottom); no box if nothing is over `thresh`."""
    labels = [f"{names[c]} {det['prob'][c]:.4f}" for c in range(classes) if det["prob"][c] > thresh]
    if not labels:
        return labels, None
    _, height, width = image.shape
    b = det["bbox"]
    edges = (b.x - b.w / 2) * width, (b.y - b.h / 2) * height, (b.x + b.w / 2) * width, (b.y + b.h / 2) * height
    limits = width - 1, height - 1, width - 1, height - 1
    left, top, right, bottom = (int(min(max(e, 0), limit)) for e, limit in zip(edges, limits))
    return labels, (left, top, right, bottom)


def draw_detections(
    font_path: str | None,
    image: np.ndarray,
    dets: Sequence[dict[str, Any]],
    thresh: float,
    names: Sequence[str],
    classes: int,
) -> None:
    """Draw the frames of the detections into `image` (3, H, W), in place; one colour a class."""
    for det in dets:
        labels, box = get_detections(image, det, thresh, names, classes)
        if box is None:
            continue
        best = int(np.argmax(det["prob"]))
        colour = np.array([(best * 37 % 255) / 255, (best * 91 % 255) / 255, (best * 173 % 255) / 255], image.dtype)
        left, top, right, bottom = box
        line = max(1, int(image.shape[1] * 0.006))
        for rows, cols in (
            (slice(top, top + line), slice(left, right + 1)),
            (slice(max(bottom - line, 0), bottom + 1), slice(left, right + 1)),
            (slice(top, bottom + 1), slice(left, left + line)),
            (slice(top, bottom + 1), slice(max(right - line, 0), right + 1)),
        ):
            image[:, rows, cols] = colour[:, None, None]


def show_detections(
    image: np.ndarray, dets: Sequence[dict[str, Any]], thresh: float, names: Sequence[str], classes: int
) -> list[str]:
    """Print and return one line per detection: its labels and its box."""
    lines = []
    for det in dets:
        labels, box = get_detections(image, det, thresh, names, classes)
        if box is not None:
            lines.append(f"{', '.join(labels)}  left {box[0]} top {box[1]} right {box[2]} bottom {box[3]}")
    print("\n".join(lines))
    return lines
