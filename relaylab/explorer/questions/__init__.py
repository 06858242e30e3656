"""The questions of the explorer, by what they are about: importing this folder fills the table `question.QUESTIONS`."""

from relaylab.explorer.questions import branches, figures, kernels, nodes, numbers, parts, passes, pictures

__all__ = ["branches", "figures", "kernels", "nodes", "numbers", "parts", "passes", "pictures"]
