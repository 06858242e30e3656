"""Makes `net.hlo.txt`, what XLA compiles of the network in `net.relay` written in JAX. Needs jax alone."""

from __future__ import annotations

from pathlib import Path

import jax
from jax import lax, nn

HERE = Path(__file__).parent


def main() -> None:
    """Write what XLA makes of `Net`, its parameters given as arguments, in JAX."""

    def net(x, weight, bias, gamma, beta, dense, offset, mean, var):
        channels = lambda v: v[None, :, None, None]
        conv = lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))
        scale = gamma * lax.rsqrt(var + 1e-5)
        y = nn.relu((conv + channels(bias) - channels(mean)) * channels(scale) + channels(beta))
        z = (y * nn.sigmoid(y)).mean((2, 3)) @ dense.T + offset
        return nn.softmax(z * 0.5 * (1 + lax.erf(z * 0.70710677)))

    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    shapes = ((1, 3, 8, 8), (8, 3, 3, 3), (8,), (8,), (8,), (4, 8), (4,), (8,), (8,))
    text = jax.jit(net).lower(*(jax.ShapeDtypeStruct(s, "float32") for s in shapes)).compile().as_text()
    (HERE / "net.hlo.txt").write_text(text)


if __name__ == "__main__":
    main()
