"""Operators whose extents may be open: their samples over a named size, one form for all, next to the interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from codegen.operator_programs import argument, replaced, tensors
from op.op_cases import array_of, arrays_of, cases
from test_specializations import forms

from relaylab import relay
from relaylab.codegen.vm import VirtualMachine
from relaylab.ir import OPERATORS, Call, Function, IRModule, TensorType, TupleType
from relaylab.ir.dims import SizeVar
from relaylab.op.base import Sample
from relaylab.support.errors import RelayError

OPEN = (
    "adv_index argmax argmin broadcast_to broadcast_to_like cast_like collapse_sum_like collapse_sum_to "
    "concatenate einsum gather gather_nd image.crop_and_resize image.grid_sample meshgrid nn.batch_norm "
    "nn.batch_to_space_nd nn.bias_add nn.dense nn.depth_to_space nn.group_norm nn.instance_norm "
    "nn.l2_normalize nn.layer_norm nn.log_softmax nn.matmul nn.prelu nn.softmax nn.space_to_batch_nd "
    "nn.space_to_depth one_hot repeat reverse reverse_sequence sequence_mask slice_like "
    "sliding_window split squeeze stack stft take tile transpose trilu where cumsum topk sort "
    "image.dilation2d matrix_set_diag nn.avg_pool2d_grad nn.contrib_conv2d_NCHWc nn.contrib_dense_pack nn.correlation "
    "nn.cross_entropy nn.cross_entropy_with_logits nn.fifo_buffer nn.lrn nn.nll_loss "
    "vision.multibox_prior vision.multibox_transform_loc vision.yolo_reorg"
).split()
Group = list[tuple[tuple[int, ...], int]]
"""Axes that are open, by where their tensor is."""


def types_of(args: tuple) -> tuple:
    plain = lambda a: a if isinstance(a, TensorType) else TensorType(np.shape(a), np.asarray(a).dtype.name)
    return tuple(types_of(a) if isinstance(a, tuple) else plain(a) for a in args)


def nested(t):
    return TupleType([nested(f) for f in t]) if isinstance(t, tuple) else t


def with_extent(args: tuple, group: Group, extent: object) -> tuple:
    for path, axis in group:
        t = dict(tensors(args))[path]
        args = replaced(args, path, TensorType([*t.shape[:axis], extent, *t.shape[axis + 1 :]], t.dtype))
    return args


def groups(types: tuple) -> Iterator[Group]:
    """Each axis alone, and all of one extent together."""
    axes = [(path, axis, int(n)) for path, t in tensors(types) for axis, n in enumerate(t.shape)]
    yield from ([axis[:2]] for axis in axes)
    for n in dict.fromkeys(n for *_, n in axes if n > 1):
        alike = [axis[:2] for axis in axes if axis[2] == n]
        if len(alike) > 1:
            yield alike


def flat(value: object) -> list:
    return [x for part in value for x in flat(part)] if isinstance(value, (list, tuple)) else [value]


def given(case: Sample, group: Group) -> Iterator[list]:
    """Arrays of the sample, and of other extents where all of the open tensors are drawn."""
    yield arrays_of(case)
    found = dict(tensors(case.args))
    if all(isinstance(found[path], TensorType) for path, _ in group):
        (path, axis), *_ = group
        for extent in (int(found[path].shape[axis]) * 2, 1, 0):
            rng = np.random.default_rng(extent)
            args = with_extent(case.args, group, extent)
            yield [array_of(a, rng, case.low, case.high) for a in args]


@pytest.mark.parametrize("name", OPEN)
def test_one_form_for_all_extents(name):
    kept = 0
    for _, _, case in (c for c in cases() if c[0] == name):
        record = OPERATORS[name].definition(**case.attrs)
        types = types_of(case.args)
        if any(t.dtype not in ("float32", "int32", "int64", "bool") for _, t in tensors(types)):
            continue
        for group in groups(types):
            params: list = []
            args = [argument(nested(t), params) for t in with_extent(types, group, SizeVar("n"))]
            mod = IRModule.from_expr(Function(params, Call(record.op, args, record if record.fields else None)))
            try:
                vm = VirtualMachine(relay.vm.compile(mod, "llvm"))
            except RelayError:
                continue  # a size stands where the operator wants a number
            kept += same(vm, relay.create_executor("debug", mod=mod).evaluate(), case, group)
    assert kept


def same(vm, interpreted, case: Sample, group: Group) -> int:
    """How many inputs the form for all sizes took; what it gives is what the interpreter gives."""
    taken = 0
    for arrays in given(case, group):
        leaves = flat(arrays)
        try:
            wanted = flat(interpreted(*leaves))
        except RelayError:
            continue
        try:
            got = flat(vm.invoke("main", *leaves))
        except RelayError:  # the sizes disagree, which the interpreter does not look at
            assert forms(vm) is None or forms(vm).beyond
            continue
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-5, err_msg=f"{case} {group}")
        if forms(vm) is not None and not forms(vm).beyond:
            taken += 1
            assert forms(vm).open is not None, (case, group, forms(vm).closed)
    return taken
