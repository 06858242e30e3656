"""The single rewrites of a pass, each told whole."""

from relaylab.study.rewriting.rewrites import Rewrite, Rewrites, rewrites

__all__ = ["Rewrite", "Rewrites", "rewrites"]
