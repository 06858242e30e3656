"""The public face under the name `tvm`, so that Relay programs written for TVM 0.8 to 0.10 run unmodified."""

from relaylab.compat.install import install_as_tvm, uninstall_tvm

__all__ = ["install_as_tvm", "uninstall_tvm"]
