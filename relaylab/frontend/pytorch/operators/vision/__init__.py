"""Images of other sizes, and the operators of torchvision."""
