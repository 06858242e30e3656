"""What the virtual machine does, as a listing: one line for each value, in the order in which they are computed."""

from __future__ import annotations

from collections.abc import Mapping

from relaylab.ir.adt import Constructor, Match
from relaylab.ir.base import Expr
from relaylab.ir.expr import Call, Constant, Function, GlobalVar, If, Let, Tuple, TupleGetItem, Var
from relaylab.ir.module import IRModule
from relaylab.ir.op import Op
from relaylab.ir.visit import children, walk
from relaylab.support.words import counted


def listing(mod: IRModule, kernels: Mapping[Function, str]) -> str:
    """The functions of an executable, each a list of instructions on numbered registers; `kernels` names native code.

    Control flow is written as in the program: the instructions of both branches stand before the `if` that picks one.
    """
    return "\n\n".join(_function(gv.name_hint, func, kernels) for gv, func in mod.functions.items())


class _Names:
    """What values are called: registers, which variables that a `let` binds share with what they stand for."""

    def __init__(self, func: Function, kernels: Mapping[Function, str]):
        self.registers: dict[Expr, str] = {p: f"${k}" for k, p in enumerate(func.params)}
        self.nodes = list(walk((func.body,), lambda n: () if isinstance(n, Function) else children(n)))
        self.alias: dict[Expr, Expr] = {n.var: n.value for n in self.nodes if isinstance(n, Let)}
        self.alias |= {n: n.body for n in self.nodes if isinstance(n, Let)}
        self.kernels = kernels

    def stands_for(self, node: Expr) -> Expr:
        """What a variable or a `let` stands for."""
        while node in self.alias:
            node = self.alias[node]
        return node

    def kernel(self, callee: Expr) -> str | None:
        """The native code of what is called, if it has any."""
        func = self.stands_for(callee)
        return self.kernels.get(func) if isinstance(func, Function) else None

    def __call__(self, *nodes: Expr) -> str:
        return ", ".join(map(self._one, nodes))

    def _one(self, node: Expr) -> str:
        node = self.stands_for(node)
        if isinstance(node, Op):
            return node.name
        sign = "@" if isinstance(node, GlobalVar) else "%"
        return self.registers.get(node) or f"{sign}{getattr(node, 'name_hint', '?')}"


def _function(name: str, func: Function, kernels: Mapping[Function, str]) -> str:
    names = _Names(func, kernels)
    lines: list[str] = []
    for node in names.nodes:
        held = isinstance(node, (Var, Op, GlobalVar, Constructor))
        if held or node in names.alias or (isinstance(node, Function) and node in kernels):
            continue
        text = _instruction(node, names)
        names.registers[node] = f"${len(names.registers)}"
        lines.append(f"  {len(lines)}: {names.registers[node]} = {text}")
    lines.append(f"  {len(lines)}: ret {names(func.body)}")
    params = ", ".join(p.name_hint for p in func.params)
    return "\n".join([f"VM Function: {name}({params})", f"# reg file size = {len(names.registers)}", *lines])


def _instruction(node: Expr, names: _Names) -> str:
    match node:
        case Constant():
            return f"load_const {node.type}"
        case Call() if kernel := names.kernel(node.op):
            return f"invoke_packed {kernel}({names(*node.args)})"
        case Call(op=Constructor() as made):
            return f"alloc_adt {made.name_hint}[{made.tag}]({names(*node.args)})"
        case Call(op=Function() | Op()):
            return f"evaluate {names(node.op)}({names(*node.args)})"
        case Call():
            return f"invoke {names(node.op)}({names(*node.args)})"
        case Function():
            return f"alloc_closure of {counted(len(node.params), 'parameter')}"
        case Tuple():
            return f"alloc_tuple ({names(*node.fields)})"
        case TupleGetItem():
            return f"get_field {names(node.tuple_value)}[{node.index}]"
        case If():
            return f"if {names(node.cond)} then {names(node.true_branch)} else {names(node.false_branch)}"
        case Match():
            return f"match {names(node.data)}: {names(*(c.rhs for c in node.clauses))}"
        case _:
            return f"{type(node).__name__} {names(*children(node))}"
