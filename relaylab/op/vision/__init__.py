"""`relay.vision`: operators of object detection."""

from relaylab.op.vision.anchors import multibox_prior, multibox_transform_loc
from relaylab.op.vision.boxes import all_class_non_max_suppression, get_valid_counts, non_max_suppression
from relaylab.op.vision.proposals import proposal
from relaylab.op.vision.regions import roi_align, roi_pool, yolo_reorg

__all__ = [
    "all_class_non_max_suppression", "get_valid_counts", "multibox_prior", "multibox_transform_loc",
    "non_max_suppression", "proposal", "roi_align", "roi_pool", "yolo_reorg",
]  # fmt: skip
