"""relay.testing.yolo_detection: see relaylab.zoo.yolo_detection."""

from relaylab.zoo.yolo_detection import *  # noqa: F403
