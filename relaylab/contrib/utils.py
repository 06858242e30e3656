"""contrib.utils: temporary folders."""

from relaylab.runtime.utils import TempDirectory, tempdir

__all__ = ["TempDirectory", "tempdir"]
