"""What names mean while a text is read: variables by lexical scope, and everything that a module defines."""

from __future__ import annotations

from typing import Generic
from typing import TypeVar as TypeVar_

from relaylab.ir.adt import Constructor
from relaylab.ir.dims import SizeVar
from relaylab.ir.expr import Expr, GlobalVar, Var
from relaylab.ir.module import IRModule
from relaylab.ir.types import GlobalTypeVar, TypeVar
from relaylab.support.source import Span

T = TypeVar_("T")


class NameScope(Generic[T]):
    """Names bound lexically: `bind` shadows, `close` undoes what was bound since `open`."""

    def __init__(self) -> None:
        self.known: dict[str, T] = {}
        self._undo: list[tuple[str, T | None]] = []

    def open(self) -> int:
        """A mark to give to `close`."""
        return len(self._undo)

    def close(self, mark: int) -> None:
        while len(self._undo) > mark:
            name, before = self._undo.pop()
            if before is None:
                del self.known[name]
            else:
                self.known[name] = before

    def bound_twice(self, mark: int) -> list[T]:
        """What took a name that was bound since `open` gave the mark."""
        seen: set[str] = set()
        return [self.known[name] for name, _ in self._undo[mark:] if name in seen or seen.add(name)]

    def bind(self, name: str, value: T) -> None:
        self._undo.append((name, self.known.get(name)))
        self.known[name] = value


Waiting = tuple[Var, "Waiting"] | None


class Names:
    """Everything that a name can mean in one source."""

    def __init__(self) -> None:
        self.variables: NameScope[Var] = NameScope()
        self.types: NameScope[TypeVar] = NameScope()
        self.free: dict[str, Var] = {}
        self.waiting: Waiting = None
        """The variables whose values are being read: functions may refer to them, what is computed at once may not."""
        self.graph: dict[str, tuple[Expr, Span]] = {}
        self.own: set[str] = set()
        """The numbers that the definition which is being read has bound itself."""
        self.sizes: dict[str, SizeVar] = {}
        """Sizes, which have one name in all of the source."""
        self.constructors: dict[str, Constructor] = {}
        self.globals: dict[str, GlobalVar] = {}
        self.global_types: dict[str, GlobalTypeVar] = {}
        self.used_globals: dict[str, int] = {}
        """The functions that are referred to, with the first token that does."""
        self.used_types: dict[str, int] = {}

    @classmethod
    def of(cls, mod: IRModule) -> Names:
        """The names that a module defines."""
        names = cls()
        names.globals = {gv.name_hint: gv for gv in mod.functions}
        for header, data in mod.type_definitions.items():
            names.global_types[header.name_hint] = header
            names.constructors.update((c.name_hint, c) for c in data.constructors)
        return names

    def bind_waiting(self) -> Waiting:
        """Bind them, for a function; what to put back behind it."""
        waiting = before = self.waiting
        while waiting is not None:
            var, waiting = waiting
            if self.variable(f"%{var.name_hint}") is None:
                self.variables.bind(f"%{var.name_hint}", var)
        self.waiting = None
        return before

    def begin_definition(self) -> None:
        """Forget the variables and the types of the definition before; its numbers may be bound again."""
        self.variables.close(0)
        self.types.close(0)
        self.waiting = None
        self.own.clear()

    def variable(self, name: str) -> Var | None:
        """The variable `name` (with its `%`), bound or declared free."""
        return self.variables.known.get(name, self.free.get(name))

    def global_var(self, name: str, token: int, span: Span) -> GlobalVar:
        """The one global variable of that name."""
        self.used_globals.setdefault(name, token)
        if name not in self.globals:
            self.globals[name] = GlobalVar(name, span=span)
        return self.globals[name]

    def define_global(self, name: str, span: Span) -> GlobalVar:
        """The global variable of a function that is being defined."""
        return self.globals.setdefault(name, GlobalVar(name, span=span))

    def global_type(self, name: str, token: int) -> GlobalTypeVar:
        """The one data type of that name."""
        self.used_types.setdefault(name, token)
        return self.global_types.setdefault(name, GlobalTypeVar(name))
