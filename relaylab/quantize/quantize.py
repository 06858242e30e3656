"""Automatic quantization of trained programs: `quantize`, its parts, and the statistics of a data set.

Choices: docs/choices.md, Passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from relaylab.codegen.build import build
from relaylab.codegen.executors import create_executor
from relaylab.ir import FunctionWithFields, IRModule, Tuple
from relaylab.ir.types import is_dynamic
from relaylab.quantize.config import QConfig, current_qconfig, kind2str, qconfig
from relaylab.runtime.ndarray import as_numpy
from relaylab.support.errors import RelayTypeError, RelayValueError, kind_of
from relaylab.transform.bind import BindParams
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.decorators import module_pass
from relaylab.transform.engine.infer_type import InferType
from relaylab.transform.engine.manager import PASSES, Pass, Sequential
from relaylab.transform.quantized.partition_conversions import PartitionConversions
from relaylab.transform.quantized.quantize_annotate import (
    AnnotateRule,
    QAnnotateKind,
    QuantizeContext,
    annotate_rule,
    quantize_context,
)
from relaylab.transform.quantized.quantize_calibrate import watched
from relaylab.transform.quantized.quantize_partition import PartitionRule, partition_rule
from relaylab.transform.quantized.thresholds import by_divergence, by_percentile
from relaylab.transform.simplify.canonicalize_ops import CanonicalizeOps
from relaylab.transform.simplify.fold_constant import FoldConstant
from relaylab.transform.simplify.fold_scale_axis import FoldScaleAxis
from relaylab.transform.simplify.simplify_inference import SimplifyInference

__all__ = [
    "QAnnotateKind", "QConfig", "QuantizeContext", "annotate", "calibrate", "collect_stats", "current_qconfig",
    "kind2str", "partition", "prerequisite_optimize", "qconfig", "quantize", "quantize_context", "realize",
    "register_annotate_function", "register_partition_function",
]  # fmt: skip

Dataset = Iterable[Mapping[str, object]]
"""Batches: the inputs of a program by name."""
MEASURES: dict[str, Callable[[np.ndarray], float]] = {"kl_divergence": by_divergence, "percentile": by_percentile}


def _configured(name: str, **more: object) -> Pass:
    """A pass with the options that the present configuration has for it."""
    config = current_qconfig()
    options: dict[str, object] = {
        o.name: getattr(config, o.name) for o in PASSES[name].options if hasattr(config, o.name)
    }
    if options.get("skip_conv_layers", ()) is None:
        options["skip_conv_layers"] = ()
    return PASSES[name].factory(**options, **more)


def partition() -> Pass:
    """QuantizePartition with the present options."""
    return _configured("QuantizePartition")


def annotate() -> Pass:
    """QuantizeAnnotate with the present options."""
    return _configured("QuantizeAnnotate")


def realize() -> Pass:
    """QuantizeRealize with the present options."""
    return _configured("QuantizeRealize")


def calibrate(dataset: Dataset | None = None) -> Pass:
    """QuantizeCalibrate with the present options; where these ask for it, thresholds are measured on `dataset`.

    Its batches are dicts of arrays by the names of inputs; `RelayValueError` if they are needed and missing.
    """
    mode, chunk = current_qconfig().calibrate_mode, current_qconfig().calibrate_chunk_by
    if mode not in MEASURES:
        return _configured("QuantizeCalibrate")

    def run(mod: IRModule, ctx: PassContext) -> IRModule:
        if dataset is None:
            text = f"calibrate_mode {mode!r} needs a data set"
            help = 'quantize(mod, params, dataset=[{"data": array}, ...]), or calibrate_mode="global_scale"'
            raise RelayValueError(text, code="quantize.dataset", help=help)
        thresholds = [MEASURES[mode](values) or 1.0 for chunk in collect_stats(mod, dataset, chunk) for values in chunk]
        return _configured("QuantizeCalibrate", thresholds=thresholds)(mod)

    return module_pass(run, opt_level=1, name="QuantizeCalibrate")


def collect_stats(mod: IRModule, dataset: Dataset, chunk_by: int = -1) -> Iterator[list[np.ndarray]]:
    """The values that an annotated program is to quantize (weights excepted), computed in floats on a data set.

    Gives one list after the other, of `chunk_by` arrays (-1: all), each of rank 1, in the order of computation; the
    data set is run through once for each list.
    """
    main = watched(mod["main"])
    fields = main.body.fields if isinstance(main.body, Tuple) else ()
    size = chunk_by if chunk_by > 0 else max(len(fields), 1)
    batches = dataset if size >= len(fields) else list(dataset)
    for start in range(0, len(fields), size):
        part = FunctionWithFields(main, body=Tuple(fields[start : start + size]))
        yield _run_on(IRModule.from_expr(part), batches)


def _run_on(mod: IRModule, batches: Dataset) -> list[np.ndarray]:
    """The results of a program that gives a tuple, each joined over all batches."""
    mod = InferType()(mod)
    dynamic = any(is_dynamic(t) for t in (*(p.inferred for p in mod["main"].params), mod["main"].ret_type) if t)
    run = create_executor("vm", mod).evaluate() if dynamic else build(mod, target="llvm").run
    parts: list[list[np.ndarray]] = []
    for batch in batches:
        if not isinstance(batch, Mapping):
            text = f"a batch of a data set is a dict of arrays by name, not {kind_of(batch)}"
            raise RelayTypeError(text, code="quantize.dataset", help='[{"data": array}, ...]')
        found = run(**{str(k): v for k, v in batch.items()})
        parts.append([as_numpy(v).reshape(-1) for v in (found if isinstance(found, Sequence) else [found])])
    if not parts:
        raise RelayValueError("the data set has no batches", code="quantize.dataset")
    return [np.concatenate(values) for values in zip(*parts)]


def prerequisite_optimize(mod: IRModule, params: Mapping[str, object] | None = None) -> IRModule:
    """The program that is quantized: for inference, with its weights, scales folded into them, bias as addition."""
    passes = [SimplifyInference(), FoldConstant(), FoldScaleAxis(), CanonicalizeOps(), FoldConstant()]
    with PassContext(opt_level=3):
        return Sequential([BindParams(params), *passes] if params else passes)(mod)


def quantize(mod: IRModule, params: Mapping[str, object] | None = None, dataset: Dataset | None = None) -> IRModule:
    """A program that computes its convolutions (and, if asked, dense layers) on small integers.

    `params` are the weights by name; `dataset` gives batches of inputs by name, for the calibration modes that measure.
    How it is done is said by `qconfig`. Only the function `main` of `mod` is computed anew, and only what has a rule;
    the rest stays in floats. Raises RelayValueError for programs and data sets that do not fit.
    """
    config = current_qconfig()
    mod = prerequisite_optimize(mod, params)
    passes = [partition(), annotate(), calibrate(dataset), InferType()]
    passes += [] if config.do_simulation else [realize()]
    required = ["QuantizeAnnotate", "QuantizeCalibrate", "QuantizeRealize"]
    with PassContext(opt_level=3, required_pass=required):
        mod = Sequential([*passes, FoldConstant()])(mod)
    if config.partition_conversions == "disabled":
        return mod
    dtypes = {config.dtype_input, config.dtype_weight, config.dtype_activation}
    return PartitionConversions(sorted(dtypes), config.partition_conversions == "fully_integral")(mod)


def register_annotate_function(
    op_name: str, frewrite: AnnotateRule | None = None, level: int = 10
) -> AnnotateRule | Callable[[AnnotateRule], AnnotateRule]:
    """Say how QuantizeAnnotate treats an operator, with `frewrite(call, args, context)`; usable as a decorator.

    An argument that is quantized is a `QAnnotateExpr`. The function gives such a one, an expression, or None to leave
    the call in floats. Who registers last is asked; `level` is taken for TVM's sake.
    """
    return annotate_rule(op_name) if frewrite is None else annotate_rule(op_name)(frewrite)


def register_partition_function(
    op_name: str, frewrite: PartitionRule | None = None, level: int = 10
) -> PartitionRule | Callable[[PartitionRule], PartitionRule]:
    """Say how QuantizePartition treats an operator, with `frewrite(call, args, dtype)`; usable as a decorator.

    An argument that belongs to a part is a `QPartitionExpr`. Who registers last is asked; `level` is as above.
    """
    return partition_rule(op_name) if frewrite is None else partition_rule(op_name)(frewrite)
