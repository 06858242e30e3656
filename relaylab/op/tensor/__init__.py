"""Operators on tensors of any meaning: elementwise, creation, shapes, selection, reduction."""
