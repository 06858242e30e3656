"""Templates of the contractions: from a static spec to a native kernel.

Each kind has a frozen spec, a function that says why it declines a spec (`supports_*`, empty when it does not), the
kernel itself, and a packer that lays constant weights out as that kernel reads them (flat, for a 64-byte aligned
buffer). Convolutions read zeros around their data: `needed_halo` and `needed_transpose_halo` say how far.

    kernel = conv(spec, target, Epilogue(emit, ("bias0", "res0"), bias="bias0"))
    kernel.operands            # ("in0", "weight0", "out0", "bias0", "res0"), then "scratch" when kernel.scratch
    weights = pack_conv_weight(spec, target, weight_array)

Scratch is `kernel.scratch` bytes per thread: the operand points to the area of thread 0. `choose_winograd` says which
algorithm a 3x3 convolution should take; with `minimal` in a spec, `gemm` and `conv` take Strassen's for large products.
"""

from __future__ import annotations

from relaylab.codegen.templates.choose import choose_winograd
from relaylab.codegen.templates.conv import ConvSpec, conv, needed_halo, pack_conv_weight, supports_conv
from relaylab.codegen.templates.conv_transpose import (
    conv_transpose,
    needed_transpose_halo,
    pack_conv_transpose,
    supports_conv_transpose,
)
from relaylab.codegen.templates.depthwise import depthwise, pack_depthwise, supports_depthwise
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.gemm import GemmSpec, gemm, pack_gemm, supports_gemm
from relaylab.codegen.templates.winograd import (
    needed_winograd_halo,
    pack_winograd,
    supports_winograd,
    winograd_workspace,
)
from relaylab.codegen.templates.winograd_kernel import winograd

__all__ = [
    "ConvSpec", "Epilogue", "GemmSpec", "choose_winograd", "conv", "conv_transpose", "depthwise", "gemm",
    "needed_halo", "needed_transpose_halo", "needed_winograd_halo", "pack_conv_transpose", "pack_conv_weight",
    "pack_depthwise", "pack_gemm", "pack_winograd", "supports_conv", "supports_conv_transpose", "supports_depthwise",
    "supports_gemm", "supports_winograd", "winograd", "winograd_workspace",
]  # fmt: skip
