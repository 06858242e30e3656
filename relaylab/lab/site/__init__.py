"""A site of files: every network with every step of its pipeline, the lessons with their pictures, a search.

It is read from a file system as from a server: pages load scripts and styles that they share from the files beside
them, and never fetch anything.
"""

from relaylab.lab.site.build import Built, build

__all__ = ["Built", "build"]
