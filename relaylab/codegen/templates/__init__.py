"""Templates of the contractions: from a static spec to native kernels.

Convolutions have a `ConvSpec`, matrix products a `GemmSpec`; both come down to contractions in one shape, `Problem`.
Each way to compute a spec is a family, an object that is declared in its own file, in a table: `CONVOLUTIONS` and
`TRANSPOSED` hold the ways to compute a convolution, `PRODUCTS` those to compute a contraction. The modules that are
imported here declare the house's own.

    family = CONVOLUTIONS.choose(spec, target)
    made = family.build(spec, target, Epilogue(emit, ("bias0", "res0"), bias="bias0"))
    made.kernels[0].operands   # ("in0", "weight0", "out0", "bias0", "res0"), then "scratch" when kernel.scratch
    weights = family.pack(spec, target, weight_array)

Convolutions read zeros around their data, `family.reads(spec)` of them. Scratch is `kernel.scratch` bytes per thread:
the operand points to the area of thread 0.
"""

from __future__ import annotations

from relaylab.codegen.templates.byte_tiles import BYTE_TILES
from relaylab.codegen.templates.conv import DIRECT
from relaylab.codegen.templates.conv_transpose import FLIPPED, PHASES
from relaylab.codegen.templates.convolution_family import CONVOLUTIONS, TRANSPOSED, ConvolutionFamily, ConvSpec
from relaylab.codegen.templates.depthwise import DEPTHWISE
from relaylab.codegen.templates.dots import DOTS
from relaylab.codegen.templates.epilogue import Epilogue
from relaylab.codegen.templates.gemm import GemmSpec, gemm, gemm_kernels, pack_gemm, supports_gemm
from relaylab.codegen.templates.product_family import PRODUCTS, ProductFamily
from relaylab.codegen.templates.strassen_kernel import STRASSEN
from relaylab.codegen.templates.tile_loops import TILES
from relaylab.codegen.templates.winograd_kernel import MINIMAL

__all__ = [
    "BYTE_TILES", "CONVOLUTIONS", "DEPTHWISE", "DIRECT", "DOTS", "FLIPPED", "MINIMAL", "PHASES", "PRODUCTS", "STRASSEN",
    "TILES", "TRANSPOSED", "ConvSpec", "ConvolutionFamily", "Epilogue", "GemmSpec", "ProductFamily", "gemm",
    "gemm_kernels", "pack_gemm", "supports_gemm",
]  # fmt: skip
