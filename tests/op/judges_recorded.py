"""Judges that are numbers: what torch gave for the samples of some operators, and examples of other projects' manuals.

`python tests/op/judges_recorded.py` writes tests/data/judges.json.gz anew (with torch), where a sample was changed.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import judges_onnx  # noqa: F401  (judges what is not recorded)
import numpy as np
from judges import JUDGES, Judge, judge

FILE = Path(__file__).parent.parent / "data" / "judges.json.gz"
Torch = Callable[..., Any]


def torch_functions() -> dict[str, Torch]:
    """torch's functions by operator; tensors of float64."""
    return pools() | pool_gradients() | convolutions() | normalisers()


def pools() -> dict[str, Torch]:
    import torch.nn.functional as F

    def adaptive(a: Any, x: Any) -> Any:
        kind, n = ("avg" if "avg" in type(a).op_name else "max"), x.ndim - 2
        size = tuple(a.output_size) or tuple(x.shape[2:])
        if a.layout[1] != "C" or not a.layout.isalpha():
            return None
        return getattr(F, f"adaptive_{kind}_pool{n}d")(x, size * (n if len(size) == 1 else 1))

    def pool(a: Any, x: Any) -> Any:
        n = x.ndim - 2
        give = lambda v: tuple(v) * (n // len(v))
        pads = [*a.padding] * (2 * n // len(a.padding))
        if pads[:n] != pads[n:] or a.layout[1] != "C" or not a.layout.isalpha() or any(d != 1 for d in a.dilation):
            return None
        how = {"stride": give(a.strides), "padding": tuple(pads[:n]), "ceil_mode": bool(a.ceil_mode)}
        if a.out_layout not in ("", a.layout) or (a.ceil_mode and hangs_over(a, x, n)):
            return None  # torch leaves out windows that begin behind the data
        if "avg" in type(a).op_name:
            return getattr(F, f"avg_pool{n}d")(x, give(a.pool_size), count_include_pad=a.count_include_pad, **how)
        return getattr(F, f"max_pool{n}d")(x, give(a.pool_size), **how)

    kinds = [(kind, n) for kind in ("avg", "max") for n in (1, 2, 3)]
    return {f"nn.adaptive_{k}_pool{n}d": adaptive for k, n in kinds} | {f"nn.{k}_pool{n}d": pool for k, n in kinds}


def hangs_over(a: Any, x: Any, n: int) -> bool:
    sizes = zip(x.shape[2:], list(a.strides) * n, list(a.pool_size) * n, list(a.padding) * n)
    return any((-(-(m + 2 * p - k) // s)) * s >= m + p for m, s, k, p in sizes)


def pool_gradients() -> dict[str, Torch]:
    import torch
    import torch.nn.functional as F

    def pool_grad(a: Any, g: Any, x: Any) -> Any:
        pads = [*a.padding] * (4 // len(a.padding))
        if pads[:2] != pads[2:] or a.ceil_mode or a.layout != "NCHW":
            return None
        x = x.clone().requires_grad_()
        if "avg" in type(a).op_name:
            y = F.avg_pool2d(x, tuple(a.pool_size), tuple(a.strides), tuple(pads[:2]), False, a.count_include_pad)
        else:
            padded = F.pad(x, (pads[1], pads[1], pads[0], pads[0]), value=float(np.finfo("float32").min))
            y = F.max_pool2d(padded, tuple(a.pool_size), tuple(a.strides))
        return torch.autograd.grad(y, x, g)[0]

    return {f"nn.{kind}_pool2d_grad": pool_grad for kind in ("avg", "max")}


def convolutions() -> dict[str, Torch]:
    import torch
    import torch.nn.functional as F

    def weight(a: Any, g: Any, x: Any) -> Any:
        if a.data_layout != "NCHW" or a.kernel_size is None:
            return None
        size = (g.shape[1], x.shape[1] // a.groups, *a.kernel_size)
        pads = [*a.padding] * (4 // len(a.padding))
        how = {
            "stride": tuple(a.strides),
            "padding": tuple(pads[:2]),
            "dilation": tuple(a.dilation),
            "groups": a.groups,
        }
        return torch.nn.grad.conv2d_weight(x, size, g, **how)

    def transposed(a: Any, x: Any, w: Any) -> Any:
        n = x.ndim - 2
        pads = [*a.padding] * (2 * n // len(a.padding))
        if a.data_layout[1] != "C" or pads[:n] != pads[n:] or w.shape[0] != x.shape[1]:
            return None
        give = lambda v: tuple(v) * (n // len(v))
        f = getattr(F, f"conv_transpose{n}d")
        return f(x, w, None, give(a.strides), tuple(pads[:n]), give(a.output_padding), a.groups, give(a.dilation))

    return {"nn.conv2d_backward_weight": weight} | {f"nn.conv{n}d_transpose": transposed for n in (1, 2)}


def normalisers() -> dict[str, Torch]:
    import torch
    import torch.nn.functional as F

    def of_sums(x: Any, t: Any) -> Any:
        """torch normalises what it is given; that is taken off again."""
        return F.cross_entropy(x, t) - (t.sum(1) * torch.logsumexp(x, 1)).mean()

    return {
        "nn.cross_entropy": lambda a, x, t: of_sums(torch.log(x), t),
        "nn.cross_entropy_with_logits": lambda a, x, t: of_sums(x, t),
        "nn.l2_normalize": lambda a, x: (
            F.normalize(x, dim=tuple(a.axis), eps=a.eps**0.5) if a.axis and len(a.axis) == 1 else None
        ),
    }


def key(a: Any, xs: tuple) -> str:
    """The attributes of a sample and what its arrays are."""
    return json.dumps([repr(a), *(f"{x.dtype}{x.shape}{float(np.sum(x, dtype='float64')):.6g}" for x in xs)])


def write() -> None:
    import torch
    from judged_variants import VARIANTS
    from op_cases import arrays_of

    from relaylab.ir import OPERATORS

    found: dict[str, dict[str, Any]] = {}
    for name, function in torch_functions().items():
        for case in [*OPERATORS[name].definition.samples(), *VARIANTS.get(name, [])]:
            record, args = OPERATORS[name].definition(**case.attrs), arrays_of(case)
            wide = [x.astype("float64") for x in args]
            result = function(record, *(torch.tensor(x) for x in wide))
            if result is not None:
                y = result.detach().numpy()
                numbers = [float(f"{v:.8g}") for v in y.ravel()]
                found.setdefault(name, {})[key(record, tuple(wide))] = {"shape": y.shape, "numbers": numbers}
    data = {"source": f"torch {torch.__version__.split('+')[0]}, float64", "operators": found}
    FILE.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))


def recorded(given: dict[str, dict], other: Judge | None) -> Judge:
    """A judge that looks a sample up, and asks the other one for those that are not there."""

    def look(a: Any, *xs: np.ndarray) -> Any:
        found = given.get(key(a, xs))
        if found is None:
            return other(a, *xs) if other else NotImplemented
        return np.array(found["numbers"]).reshape(found["shape"])

    return look


if FILE.exists() and __name__ != "__main__":
    for _name, _given in json.loads(gzip.decompress(FILE.read_bytes()))["operators"].items():
        judge(_name)(recorded(_given, JUDGES.get(_name)))


# ---- examples of manuals: the sample's arrays are those of the example

# tf.nn.space_to_batch, block_shape [2, 2]: [[[[1], [2], [3], [4]], [[5], ...], ...]]] of (1, 4, 4, 1)
GRID = np.arange(1, 17.0).reshape(1, 4, 4, 1)
BLOCKS = np.array([[[1, 3], [9, 11]], [[2, 4], [10, 12]], [[5, 7], [13, 15]], [[6, 8], [14, 16]]], "float64")[..., None]
# mxnet.npx.sequence_mask
BATCHES = np.arange(1, 19.0).reshape(3, 2, 3)
MASKED = np.array([[[1, 2, 3], [4, 5, 6]], [[-1, -1, -1], [10, 11, 12]], [[-1, -1, -1], [16, 17, 18]]], "float64")
EXAMPLES = {
    "nn.space_to_batch_nd": ({"block_shape": (2, 2), "paddings": ((0, 0), (0, 0))}, (GRID,), BLOCKS),
    "nn.batch_to_space_nd": ({"block_shape": (2, 2), "crops": ((0, 0), (0, 0))}, (BLOCKS,), GRID),
    "sequence_mask": ({"mask_value": -1.0}, (BATCHES, np.array([1.0, 3.0])), MASKED),
}


if __name__ == "__main__":
    write()
