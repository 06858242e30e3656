"""Law: which operators have no gradient, loop form, layout rule or count of multiplications, each with the reason.

Facts that only one pass needs stand in tables of that pass (gradients, layouts), not in the operator's class; here they
are held against the table of all operators. A group is chosen by names (with `*`) or by `@PATTERN`, the fusion pattern.
An operator that gains a facet leaves its group; a new operator without one must say why.
"""

from __future__ import annotations

from fnmatch import fnmatchcase

import pytest

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab.ir import OPERATORS
from relaylab.op.base import Operator
from relaylab.transform.gradients.rules import GRADIENTS
from relaylab.transform.layouts.layout_rules import rule_for

WAIVERS: dict[str, dict[str, str]] = {
    "gradient": {
        "integers or truth values: nothing to differentiate": """
            all any argmax argmin argsort argwhere bitwise_* fixed_point_multiply gcd invert_permutation isfinite
            isinf
            isnan left_shift right_shift logical_* nn.bit* searchsorted sparse_reshape unique unravel_index
            random.multinomial random.threefry_*""",
        "a step function: zero almost everywhere": "reinterpret",
        "of the quantized dialect, whose results are rounded: train first, then quantize": """
            qnn.* relay.op.annotation.simulated_quantize""",
        "it stands for a decision of the compiler, made after gradients were taken": """
            annotation.* on_device device_copy call_lowered debug memory.* vm.invoke_tvm_op vm.reshape_tensor
            vm.shape_func fast_* nn.fast_softmax nn.contrib_* auto_scheduler_layout_transform""",
        "a shape known only at run time: gradients are of static programs": "dyn.*",
        "choices between boxes: not differentiable": """
            vision.all_class_non_max_suppression vision.get_valid_counts vision.multibox_prior
            vision.non_max_suppression vision.proposal""",
        "what a size that data decides is taken from, behind gradients": "padded_*",
        "of matrices that are taken apart: not built yet": "cholesky lu one_sided_svd qr solve_triangular",
        "of inference: SimplifyInference rewrites it by operators that have one": """
            nn.batch_norm nn.dropout nn.group_norm nn.instance_norm nn.layer_norm nn.l2_normalize""",
    },
    "layouts": {
        "a convolution: ConvertLayout gives it the wanted layout by its attributes": """
            nn.conv1d nn.conv2d nn.conv3d nn.conv1d_transpose nn.conv2d_transpose nn.conv3d_transpose
            nn.deformable_conv2d""",
        "made by layout passes themselves": "nn.contrib_* *layout_transform",
        "its weight is laid out in words of bits": "nn.bit*",
        "it makes, joins, cuts or orders axes, so that the letters of a layout are lost": """
            broadcast_to broadcast_to_like collapse_sum_* contrib_reverse_reshape expand_dims nn.batch_flatten reshape
            reshape_like reverse_sequence sliding_window stack tile reverse""",
        "its tensors are no images: matrices, vectors, boxes, numbers": """
            arange einsum full full_like image.affine_grid meshgrid ndarray_size nn.attention nn.batch_matmul
            nn.cross_entropy* nn.dense nn.fifo_buffer nn.grouped_matmul nn.internal.* nn.matmul nn.nll_loss nn.sparse_*
            one_hot ones random.* shape_of sparse_* padded_sparse_* stft vision.* zeros *argwhere unique unravel_index
            invert_permutation searchsorted sort argsort trilu matrix_set_diag cholesky gcd lu one_sided_svd qr
            solve_triangular""",
        "of the quantized dialect: rewritten by ordinary operators first": "qnn.*",
        "a shape known only at run time": "dyn.*",
        "it stands for a decision of the compiler, made after layouts were chosen": """
            annotation.* call_lowered debug device_copy memory.* nn.fast_softmax on_device vm.*""",
        "the gradient of an operator is taken in its own layout": "nn.*_grad nn.conv2d_backward_weight",
        "it normalises the axes behind its own together: in another order they are others": "nn.group_norm",
        "it knows only one layout": "nn.correlation",
        "the reference takes the layout back before it too": "nn.bias_add nn.softmax nn.log_softmax",
        "not built yet": """
            adv_index gather gather_nd image.crop_and_resize image.dilation2d image.grid_sample
            nn.batch_to_space_nd nn.depth_to_space nn.dilate nn.mirror_pad
            nn.space_to_batch_nd nn.space_to_depth reinterpret scatter scatter_add scatter_nd sequence_mask
            strided_set variance""",
    },
    "macs": {
        "a few operations per element": "@ELEMWISE @BROADCAST",
        "elements are moved, chosen or made; only a few are computed with": """
            @INJECTIVE nn.contrib_conv2d_gemm_weight_transform""",
        "sums or extremes, but no products": """
            @COMM_REDUCE nn.*_pool* nn.global_* nn.softmax nn.log_softmax nn.fast_softmax nn.nll_loss
            image.dilation2d vision.roi_* one_hot dyn.one_hot""",
        "normalisation: a few operations per element, beside a reduction": """
            nn.batch_norm nn.group_norm nn.instance_norm nn.layer_norm nn.l2_normalize nn.lrn""",
        "how many products there are depends on the data": "nn.sparse_* nn.internal.*",
        "never fused, and it sums no products": """
            @OPAQUE nn.cross_entropy*""",
    },
}


def lacking(facet: str) -> set[str]:
    """The operators without a facet."""
    has = {
        "gradient": lambda op: op.name in GRADIENTS,
        "layouts": lambda op: rule_for(op) is not None,
        "macs": lambda op: op.definition.macs is not Operator.macs,
    }[facet]
    return {name for name, op in OPERATORS.items() if not has(op) and op.definition.__module__.startswith("relaylab.")}


def chosen(facet: str, name: str) -> list[str]:
    """The reasons given for an operator: those of groups that name it, else those of its fusion pattern."""
    groups = {why: names.split() for why, names in WAIVERS[facet].items()}
    named = [why for why, names in groups.items() if any(fnmatchcase(name, n) for n in names if n[0] != "@")]
    pattern = f"@{OPERATORS[name].definition.pattern.name}"
    return named or [why for why, names in groups.items() if pattern in names]


@pytest.mark.parametrize("facet", WAIVERS)
def test_every_missing_facet_has_one_reason(facet):
    reasons = {name: chosen(facet, name) for name in sorted(lacking(facet))}
    assert {name: why for name, why in reasons.items() if len(why) != 1} == {}


@pytest.mark.parametrize("facet", WAIVERS)
def test_no_reason_is_left_over(facet):
    missing = lacking(facet)
    for why, names in WAIVERS[facet].items():
        for n in names.split():
            found = {m for m in OPERATORS if (fnmatchcase(m, n) if n[0] != "@" else f"@{pattern_of(m)}" == n)}
            assert found & missing, f"{facet}: {why}: {n}"
            assert "*" in n or n[0] == "@" or found <= missing, f"{facet}: {why}: {n} has one"


def pattern_of(name: str) -> str:
    return OPERATORS[name].definition.pattern.name


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_an_operator_without_loops_says_why(name):
    definition = OPERATORS[name].definition
    has = (definition.lower is not Operator.lower, definition.is_procedure())
    assert has.count(True) == (0 if "lower" in definition.waivers else 1)


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_a_type_rule_is_not_hidden_by_an_inherited_relation(name: str) -> None:
    mro = OPERATORS[name].definition.__mro__
    relation = next(c for c in mro if "relation" in c.__dict__)
    rule = next(c for c in mro if "result_type" in c.__dict__)
    inherited = relation.__dict__["relation"] is not Operator.relation
    assert not inherited or rule is Operator or mro.index(relation) < mro.index(rule)
