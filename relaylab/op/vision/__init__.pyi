"""`relay.vision`: operators of object detection."""
# Made from the declarations by `python docs/generate.py reference`.
from collections.abc import Iterator, Sequence
from typing import Any

from relaylab.ir.expr import Call, Constant, Expr, TupleWrapper
from relaylab.ir.op import Op
from relaylab.op.accepted import Arg, Dims, Dtype, Floats, Ints, Pairs
def all_class_non_max_suppression(boxes: Arg, scores: Arg, max_output_boxes_per_class: Arg | float = -1, iou_threshold: Arg | float = -1.0, score_threshold: Arg | float = -1.0, output_format: str = 'onnx') -> TupleWrapper:
    """Non-maximum suppression per class, for boxes (B, N, 4) and scores (B, C, N). "onnx": a tuple of (batch,
    class, box) rows, the rest 0, and their number. "tensorflow": per batch (class, box) rows and scores by falling
    score, and numbers.

    boxes: two corners of each box, in any order; shape (B, N, 4); dtype floats
    scores: the score of each box in each class; shape (B, C, N); dtype floats
    max_output_boxes_per_class: how many boxes a class keeps at most; below 1: any; shape (); dtype integers
    iou_threshold: the intersection over union from which on a box removes another; shape (); dtype floats
    score_threshold: the score that boxes must exceed; shape (); dtype floats
    output_format: onnx or tensorflow
    Result: onnx: a tuple of (B * C * N, 3) and (1,) of int64; tensorflow: a tuple of (B, C * N, 2) of int64, (B, C * N) of float32 and (B,) of int64
    """
def get_valid_counts(data: Arg, score_threshold: Arg, id_index: int = 0, score_index: int = 1) -> TupleWrapper:
    """Of (B, N, K) rows those with a score above the threshold (and, if `id_index` >= 0, a class >= 0), moved to
    the front: a tuple of their count, the rows (the rest -1), and their former indices (the rest -1).

    data: rows with a score and perhaps a class; shape (B, N, K); dtype floats
    score_threshold: the score that valid rows exceed: a number, or an expression of shape ()
    id_index: the column of the class; below 0: rows have none
    score_index: the column of the score
    Result: a tuple: (B,) of int32, the counts; (B, N, K) of the dtype of data, the rows; (B, N) of int32, the indices
    """
def multibox_prior(data: Arg, sizes: Floats = (1.0,), ratios: Floats = (1.0,), steps: Floats = (-1.0, -1.0), offsets: Floats = (0.5, 0.5), clip: bool = False) -> Call:
    """Anchor boxes (1, H * W * boxes, 4) for a feature map (N, C, H, W): for each cell one per size, and one per
    further ratio with the first size. Corners are fractions of the image.

    data: the feature map, of which only the extents count; shape (N, C, H, W); dtype floats
    sizes: heights of the boxes, as fractions of the image
    ratios: widths over heights; the first one goes with the sizes and is taken for 1
    steps: distance of cells down and across, as fractions; not above 0: 1 / H and 1 / W
    offsets: where in its cell a box has its middle, down and across, in steps
    clip: whether corners are limited to 0 .. 1
    Result: (1, H * W * (sizes + ratios - 1), 4), of the dtype of data: x1, y1, x2, y2
    """
def multibox_transform_loc(cls_prob: Arg, loc_pred: Arg, anchor: Arg, clip: bool = True, threshold: float = 0.01, variances: Floats = (0.1, 0.1, 0.2, 0.2)) -> TupleWrapper:
    """Boxes from class probabilities (B, classes, A), offsets (B, 4 A) and anchors (1, A, 4): a tuple of (B, A, 6) rows
    (class, score, corners), valid ones first and the rest -1, and the count of valid ones.

    cls_prob: the probability of each class; class 0 is the background; shape (B, classes, A); dtype floats
    loc_pred: how each anchor is moved and scaled: x, y, width, height; shape (B, 4 A); dtype any
    anchor: the anchors' corners x1, y1, x2, y2; shape (1, A, 4); dtype any
    clip: whether corners are limited to 0 .. 1
    threshold: the least probability of a valid box
    variances: factors of the four numbers of `loc_pred`
    Result: a tuple: (B, A, 6) rows of the dtype of cls_prob, each class, score, x1, y1, x2, y2, or -1; (B,) of int32, how many are valid
    """
def non_max_suppression(data: Arg, valid_count: Arg, indices: Arg, max_output_size: Arg | float = -1, iou_threshold: Arg | float = 0.5, force_suppress: bool = False, top_k: int = -1, coord_start: int = 2, score_index: int = 1, id_index: int = 0, return_indices: bool = True, invalid_to_bottom: bool = False) -> Any:
    """Of (B, N, K) rows the best that do not overlap a better one (of the same class, unless `force_suppress`).
    Gives the former indices and their count, or (without `return_indices`) the rows, of which removed ones are -1.

    data: rows with a score, two corners and perhaps a class; shape (B, N, K); dtype floats
    valid_count: how many rows at the front of each batch count; shape (B,); dtype integers
    indices: the indices that the rows had before, which are given back; shape (B, N); dtype integers
    max_output_size: how many rows each batch keeps at most; below 1: any number; shape (); dtype integers
    iou_threshold: the intersection over union from which on a box removes another; shape (); dtype floats
    force_suppress: whether boxes also remove those of other classes
    top_k: how many of the best rows are looked at; below 1: all
    coord_start: the first of the four columns with the corners
    score_index: the column of the score
    id_index: the column of the class; below 0: rows have none
    return_indices: whether indices and their count are given, or else rows
    invalid_to_bottom: whether rows that stay move to the front (without `return_indices`)
    Result: a tuple of (B, N) and (B, 1) of int32: the indices, the rest -1, and their count; without `return_indices` (B, N, K), of the dtype of data
    """
def proposal(cls_prob: Arg, bbox_pred: Arg, im_info: Arg, scales: Floats, ratios: Floats, feature_stride: int, threshold: float, rpn_pre_nms_top_n: int, rpn_post_nms_top_n: int, rpn_min_size: int, iou_loss: bool) -> Call:
    """Region proposals of a region proposal network: the best of its boxes that do not overlap a better one.

    cls_prob: scores of A anchors per cell: A of the background, then A of objects; shape (B, 2 A, H, W); dtype floats
    bbox_pred: how each anchor is moved and scaled: x, y, width, height; shape (B, 4 A, H, W); dtype any
    im_info: height and width of each image, beyond which cells score -1, and the scale of `rpn_min_size`; shape (B, 3); dtype any
    scales: sizes of the anchors, in multiples of `feature_stride`
    ratios: heights of the anchors over their widths; A is scales times ratios
    feature_stride: the distance of two cells in pixels of the image
    threshold: the intersection over union from which on a box removes another
    rpn_pre_nms_top_n: how many of the best boxes are looked at; below 1: all
    rpn_post_nms_top_n: how many boxes each image gets; if too few stay they are repeated
    rpn_min_size: the height and width below which a box scores -1 and grows by half of it on every side
    iou_loss: whether `bbox_pred` moves the corners of anchors, unscaled
    Result: (B * rpn_post_nms_top_n, 5), of the dtype of cls_prob: batch, x1, y1, x2, y2
    """
def roi_align(data: Arg, rois: Arg, pooled_size: Ints, spatial_scale: float, sample_ratio: int = -1, layout: str = 'NCHW', mode: str = 'avg', aligned: bool = False) -> Call:
    """The mean (or maximum) of bilinear samples in each cell of a grid over each region.

    data: the feature maps, laid out as `layout`; shape (N, C, H, W); dtype any
    rois: the regions: image (limited to those there are), x1, y1, x2, y2, in pixels before `spatial_scale`; shape (R, 5); dtype any
    pooled_size: the height and width of the grid that is laid over each region; one number: both
    spatial_scale: what the corners of regions are multiplied with
    sample_ratio: samples per cell along each axis; below 1: as many as the cell has pixels, rounded up (4096 at most)
    layout: the axes of data and result
    mode: avg or max
    aligned: pixels have their centres at halves, and regions may be smaller than a pixel (ONNX: half_pixel)
    Result: (R, C, *pooled_size) laid out as `layout`, of the dtype of data
    """
def roi_pool(data: Arg, rois: Arg, pooled_size: Ints, spatial_scale: float, layout: str = 'NCHW') -> Call:
    """The maximum over each cell of a grid of `pooled_size` laid over each region.

    data: the feature maps, laid out as `layout`; shape (N, C, H, W); dtype any
    rois: the regions: image (limited to those there are), x1, y1, x2, y2, in pixels before `spatial_scale`; shape (R, 5); dtype any
    pooled_size: the height and width of the grid that is laid over each region; one number: both
    spatial_scale: what the corners of regions are multiplied with
    layout: the axes of data and result
    Result: (R, C, *pooled_size) laid out as `layout`, of the dtype of data
    """
def yolo_reorg(data: Arg, stride: int) -> Call:
    """Darknet's reorganisation of (N, C, H, W) to (N, C stride^2, H / stride, W / stride).

    data: the feature maps; shape (N, C, H, W); dtype any
    stride: by how much height and width shrink
    Result: (N, C * stride^2, H / stride, W / stride), of the dtype of data
    """
