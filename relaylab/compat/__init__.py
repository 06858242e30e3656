"""The public modules as one table, and the same tree under the name `tvm`: programs written for TVM 0.8 to 0.10 run."""

from relaylab.compat.install import install_as_tvm, uninstall_tvm

__all__ = ["install_as_tvm", "uninstall_tvm"]
