"""Types to text, with names for type parameters that do not collide; `_` for what only sharing makes long."""

from __future__ import annotations

from collections.abc import Iterable

from relaylab.ir.types import LONGEST, FuncType, TensorType, Type, TypeVar, text_parts, type_leaves
from relaylab.text.reading.size_names import SizeNames
from relaylab.text.writing.naming import type_var_name


class TypeText:
    """Prints the types of one program."""

    def __init__(self, sizes: SizeNames):
        self.sizes = sizes
        self._names: dict[TypeVar, str] = {}
        self._taken: set[str] = set()
        self._texts: dict[int, tuple[Type, str]] = {}

    def reserve(self, names: Iterable[str]) -> None:
        """Names that no type parameter may get: those of the module's data types."""
        self._taken.update(names)

    def declare(self, params: Iterable[TypeVar]) -> list[TypeVar]:
        """Give type parameters names that are different from all others in scope; those that had none before."""
        new = [p for p in params if p not in self._names]
        for param in new:
            hint, number = type_var_name(param.name_hint), 0
            name = hint
            while name in self._taken:
                number += 1
                name = f"{hint}{number}"
            self._taken.add(name)
            self._names[param] = name
        return new

    def forget(self, params: Iterable[TypeVar]) -> None:
        """Free the names of parameters whose scope has ended."""
        for param in params:
            self._taken.discard(self._names.pop(param))
            self._texts.clear()  # they may hold the name that is free now

    def params(self, params: Iterable[TypeVar]) -> str:
        """`[A, B]` for declared type parameters, or nothing."""
        names = [self._names[p] for p in params]
        return f"[{', '.join(names)}]" if names else ""

    def text(self, t: Type) -> str:
        """The text of a type."""
        known = self._texts.get(id(t))
        if known is None:
            known = self._texts[id(t)] = (t, self._build(t))  # with `t`: its id stays its own as long as it lives
        return known[1]

    def _build(self, t: Type) -> str:
        if isinstance(t, TensorType):
            return self._tensor(t)
        out: list[str] = []
        stack: list[str | Type] = [t]
        declared: list[TypeVar] = []
        longest = LONGEST
        while stack:
            if len(out) >= longest and len(out) >= (longest := _longest(t)):
                break
            part = stack.pop()
            if isinstance(part, str):
                out.append(part)
                continue
            if isinstance(part, FuncType):
                declared += self.declare(part.type_params)
            stack.extend(reversed(self._parts(part)))
        text = "_" if stack else "".join(out)
        self.forget(declared)
        return text

    def _parts(self, t: Type) -> list[str | Type]:
        """The strings and types that a type's text consists of."""
        match t:
            case TensorType():
                return [self._tensor(t)]
            case TypeVar():
                return [self._names.get(t) or t.name_hint]
            case FuncType():
                return text_parts(t, self.params(t.type_params))
            case _:
                return text_parts(t)

    def _tensor(self, t: TensorType) -> str:
        if not t.shape:
            return t.dtype
        return f"Tensor[({', '.join(map(self.sizes.text, t.shape))}), {t.dtype}]"


def _longest(t: Type) -> int:
    """Of how many parts the text of a long type may consist: a few for each that it holds in memory."""
    return max(LONGEST, 8 * sum(len(text_parts(part)) for part in type_leaves(t)))
