"""PartitionConversions: a quantized program in three parts: floats to integers, integers, integers to floats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, FunctionWithFields, GlobalVar, Let, Tuple, TupleGetItem, Var
from relaylab.ir.leaves import var
from relaylab.ir.module import IRModule
from relaylab.ir.op import is_call_to, op_name
from relaylab.ir.trail import derived
from relaylab.ir.types import TensorType
from relaylab.ir.visit import children, rewrite, walk
from relaylab.support.errors import RelayValueError
from relaylab.transform.engine.context import PassContext
from relaylab.transform.engine.declare import pass_
from relaylab.transform.engine.infer_type import type_of
from relaylab.transform.engine.manager import ModulePass, create
from relaylab.transform.engine.renewal import copied, fresh

CONVERSIONS = ("multiply", "round", "clip", "cast", "qnn.quantize", "qnn.dequantize")
PARTS = ("quantize_inputs", "quantized_main", "dequantize_outputs")


def _converted(node: Expr) -> Expr | None:
    """What a conversion converts; None for other nodes."""
    if not is_call_to(node, *CONVERSIONS):
        return None
    rest = [a for a in node.args if not isinstance(a, Constant)]
    return rest[0] if len(rest) == 1 else None


def _dtype(node: Expr) -> str:
    found = type_of(node)
    return found.dtype if isinstance(found, TensorType) else ""


def _first_integers(func: Function, dtypes: Sequence[str]) -> list[Expr]:
    """Where parameters, by conversions alone, first have one of the data types."""
    converted: set[Expr] = set(func.params)
    found: list[Expr] = []
    for node in walk((func.body,)):
        source = _converted(node)
        if source in converted and _dtype(source) not in dtypes:
            converted.add(node)
            found += [node] if _dtype(node) in dtypes else []
    return found


def _last_integers(result: Expr, dtypes: Sequence[str]) -> Expr:
    """What a result is converted from; the result itself if these are no integers."""
    node: Expr | None = result
    while node is not None and _dtype(node) not in dtypes:
        node = _converted(node)
    return result if node is None else node


def _typed_var(name: str, like: Expr) -> Var:
    return copied(var(name, type_annotation=type_of(like)), like)


def _check_integral(nodes: Iterable[Expr]) -> None:
    for node in nodes:
        if isinstance(node, Call) and _dtype(node).startswith(("float", "bfloat")):
            text = f"{op_name(node) or 'a call'} of the quantized program computes on floats ({type_of(node)})"
            help = (
                'partition_conversions="enabled" allows it; skip_conv_layers=[] and skip_dense_layer=False leave less'
            )
            raise RelayValueError(text, code="quantize.not-integral", help=help)


def _replaced(exprs: Sequence[Expr], binds: Mapping[Any, Expr]) -> list[Expr]:
    """Expressions with others in the places of some nodes; what they share they share afterwards."""
    memo: dict[Expr, Expr] = dict(binds)
    return [rewrite(expr, lambda new, old: new, memo=memo) for expr in exprs]


@pass_(level=0, requires=("InferType",))
class PartitionConversions(ModulePass):
    """Makes functions of what converts the inputs of a quantized `main` to integers, and its results from them.

    `main` then calls @quantize_inputs, @quantized_main and @dequantize_outputs; they compute what it computed.
    """

    dtypes: Annotated[Sequence[str], "The data types of quantized values."] = ("int8", "int32")
    fully_integral: Annotated[bool, "Anything else that computes on floats is an error."] = False

    def run(self, mod: IRModule, ctx: PassContext) -> IRModule:
        if any(gv.name_hint in PARTS for gv in mod.functions):
            return mod
        mod = create("InferType")(mod)  # called directly, on what has no types yet
        gv = mod.get_global_var("main")
        main = mod[gv]
        cuts = dict.fromkeys(_first_integers(main, self.dtypes))
        results = list(main.body.fields) if isinstance(main.body, Tuple) else [main.body]
        last = list(dict.fromkeys(_last_integers(r, self.dtypes) for r in results))
        between = dict.fromkeys(walk(last, lambda n: () if n in cuts else children(n)))
        if self.fully_integral:
            _check_integral(n for n in between if n not in cuts)
        cuts = {n: None for n in between if n in cuts}
        kept = [p for p in main.params if p in between]
        entries = {n: _typed_var(f"quantized_{k}", n) for k, n in enumerate([*cuts, *kept])}
        exits = {n: _typed_var(f"result_{k}", n) for k, n in enumerate(last)}
        given = {p: fresh(p) for p in main.params}
        joined = lambda fields: copied(Tuple(fields), main.body)
        outer = _replaced(results, exits)
        parts = (
            Function(list(given.values()), _replaced([joined([*cuts, *kept])], given)[0]),
            Function(list(entries.values()), _replaced([joined(last)], entries)[0]),
            Function(list(exits.values()), Tuple(outer) if isinstance(main.body, Tuple) else outer[0]),
        )
        names = [GlobalVar(name) for name in PARTS]
        quantized, computed = var("quantized"), var("computed")
        fields = lambda v, of: [TupleGetItem(v, k) for k in range(len(of))]
        end = Call(names[2], fields(computed, last))
        body = Let(
            quantized, Call(names[0], main.params), Let(computed, Call(names[1], fields(quantized, entries)), end)
        )
        functions = dict(zip(names, (derived(f, main) for f in parts)))
        main = derived(FunctionWithFields(main, body=body), main)
        return create("InferType")(mod.with_functions({**mod.functions, **functions, gv: main}))
