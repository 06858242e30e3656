"""An annotator as TVM's tests of partitioning use it."""

from __future__ import annotations

from relaylab.ir import Call, Expr, ExprMutator, Var, op_name
from relaylab.transform.engine.build import call

COMPILER = "ccompiler"


class CcompilerAnnotator(ExprMutator):
    """Draws the border of a region for `ccompiler` around `multiply(subtract(add(a, b), …), …)`.

    The region opens at the arguments of the first add, and where the other two read a variable; it closes behind the
    multiply. What is outside, and a multiply without an add below it, has no border.
    """

    def __init__(self) -> None:
        super().__init__()
        self.inside = self.opened = False

    def visit_call(self, call: Call) -> Expr:
        name = op_name(call)
        if name == "multiply":
            return self._closed(call)
        if not self.inside or self.opened or name not in ("add", "subtract"):
            return super().visit_call(call)
        if name == "subtract":
            return self._of_variables(call)
        args = [_border("begin", self.visit(a)) for a in call.args]
        self.opened = True
        return Call(call.op, args, call.attrs, span=call.span)

    def _closed(self, call: Call) -> Expr:
        self.inside, self.opened = True, False
        made = self._of_variables(call)
        opened, self.inside, self.opened = self.opened, False, False
        return _border("end", made) if opened else made

    def _of_variables(self, call: Call) -> Call:
        args = [_border("begin", new) if isinstance(new, Var) else new for new in map(self.visit, call.args)]
        return Call(call.op, args, call.attrs, span=call.span)


def _border(kind: str, value: Expr) -> Call:
    return call(f"annotation.compiler_{kind}", value, compiler=COMPILER)
