"""From a network's output back to the boxes of an image: what lies in a known place is found there."""

from __future__ import annotations

import numpy as np
import pytest

from relaylab.zoo import darknet, yolo_detection

NET, IMAGE = (64, 32), (90, 60)
"""Width and height: the image is scaled to 48 x 32, and 8 columns at each side are grey."""
ANCHORS, GRID = [10.0, 20.0, 30.0, 15.0], (8, 4)


def output(kind: str, box: tuple[float, ...]) -> dict:
    """One layer that says of class 1 that it is in a box (x, y, w, h) of the image's pixels, by the second anchor."""
    scale = 48 / 90
    x, y, w, h = (8 + box[0] * scale) / 64, box[1] * scale / 32, box[2] * scale, box[3] * scale
    column, row = int(x * GRID[0]), int(y * GRID[1])
    per = (1, 1) if kind == "Yolo" else (NET[0] / GRID[0], NET[1] / GRID[1])
    cells = np.zeros((2, 7, GRID[1], GRID[0]))
    sizes = np.log(w / per[0] / ANCHORS[2]), np.log(h / per[1] / ANCHORS[3])
    cells[1, :, row, column] = x * GRID[0] - column, y * GRID[1] - row, *sizes, 0.9, 0.1, 0.8
    return {"type": kind, "output": cells, "biases": ANCHORS, "classes": 2} | (
        {"mask": [0, 1]} if kind == "Yolo" else {}
    )


@pytest.mark.parametrize("kind", ["Yolo", "Region"])
@pytest.mark.parametrize("box", [(45.0, 30.0, 20.0, 10.0), (12.0, 50.0, 9.0, 18.0), (80.0, 7.0, 16.0, 12.0)])
def test_a_box_is_found_where_it_is(kind: str, box: tuple[float, ...]) -> None:
    (pixels,) = yolo_detection.fill_network_boxes(NET, IMAGE, 0.5, 0, [output(kind, box)])
    np.testing.assert_allclose(pixels["bbox"], box, rtol=1e-6)
    (found,) = yolo_detection.fill_network_boxes(NET, IMAGE, 0.5, 1, [output(kind, box)])
    np.testing.assert_allclose(found["bbox"], np.divide(box, IMAGE * 2), rtol=1e-6)
    np.testing.assert_allclose(found["prob"], [0, 0.72])
    labels, edges = yolo_detection.get_detections(np.zeros((3, 60, 90)), found, 0.5, ["cat", "dog"], 2)
    x, y, w, h = box
    assert (
        labels == ["dog 0.7200"] and np.abs(np.subtract(edges, (x - w / 2, y - h / 2, x + w / 2, y + h / 2))).max() <= 1
    )


def test_of_two_boxes_that_overlap_the_likelier_one_stays() -> None:
    apart = [
        output("Yolo", box) for box in ((30.0, 30.0, 20.0, 20.0), (31.0, 30.0, 20.0, 20.0), (70.0, 30.0, 9.0, 9.0))
    ]
    apart[0]["output"][1, 6] *= 0.9
    found = yolo_detection.fill_network_boxes(NET, IMAGE, 0.5, 1, apart)
    yolo_detection.do_nms_sort(found, 2, 0.45)
    assert [float(d["prob"][1]) > 0 for d in found] == [False, True, True]


@pytest.mark.parametrize("size", [(90, 12), (10, 47), (90, 60), (7, 300), (300, 7), (1, 1), (1000, 1)])
def test_an_image_fills_one_side_of_its_letter_box(size: tuple[int, int]) -> None:
    width, height = size
    box = darknet.letterbox(np.zeros((3, height, width), "float32"), 416, 96)
    filled = (box == 0).all(0)
    rows, columns = filled.any(1).sum(), filled.any(0).sum()
    assert box.shape == (3, 96, 416) and (rows == 96 or columns == 416)
    assert abs(columns * height - rows * width) <= max(width, height) or 1 in (rows, columns)
