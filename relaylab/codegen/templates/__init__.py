"""Templates of the contractions: from a static spec to a native kernel.

Each kind has a frozen spec, a function that says why it declines a spec (`supports_*`, empty when it does not), the
kernel itself, and a packer that lays constant weights out as that kernel reads them.
"""

from __future__ import annotations

from relaylab.codegen.templates.gemm import GemmSpec, gemm, pack_gemm, supports_gemm
from relaylab.codegen.templates.site import Epilogue, Site

__all__ = ["Epilogue", "GemmSpec", "Site", "gemm", "pack_gemm", "supports_gemm"]
