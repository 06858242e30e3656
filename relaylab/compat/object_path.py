"""Ways from a program to a part of it, such as `<root>.body.args[0]`, and the pair at which two programs differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import cast

from relaylab.ir import IRModule
from relaylab.ir.attrs import Attrs, DictAttrs
from relaylab.ir.equal import get_first_structural_mismatch as first_mismatch
from relaylab.ir.node import Node
from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError

__all__ = [
    "ArrayIndexPath", "AttributeAccessPath", "MapValuePath", "MissingArrayElementPath", "MissingMapEntryPath",
    "ObjectPath", "ObjectPathPair", "RootPath", "UnknownAttributeAccessPath", "get_first_structural_mismatch",
]  # fmt: skip


@checked
class ObjectPath:
    """A way from an object to a part of it; the empty one is `ObjectPath.root()`. Equal if they take the same steps."""

    shown = ""

    def __init__(self, parent: ObjectPath | None = None, step: object = None):
        self.parent, self.step = parent, step

    @staticmethod
    def root(root_name: str | None = None) -> ObjectPath:
        """The way to the object itself."""
        return RootPath(None, root_name)

    def attr(self, attr_key: str | None) -> ObjectPath:
        """On to an attribute; None for one that has no name."""
        return UnknownAttributeAccessPath(self) if attr_key is None else AttributeAccessPath(self, attr_key)

    def array_index(self, index: int) -> ObjectPath:
        """On to an element of a list."""
        return ArrayIndexPath(self, int(index))

    def missing_array_element(self, index: int) -> ObjectPath:
        """On to where another list has an element and this one has none."""
        return MissingArrayElementPath(self, int(index))

    def map_value(self, key: object) -> ObjectPath:
        """On to a value of a map."""
        return MapValuePath(self, key)

    def missing_map_entry(self) -> ObjectPath:
        """On to where another map has an entry and this one has none."""
        return MissingMapEntryPath(self)

    def steps(self) -> list[ObjectPath]:
        """The ways along it, from the root to itself."""
        out: list[ObjectPath] = []
        path: ObjectPath | None = self
        while path is not None:
            out.append(path)
            path = path.parent
        return out[::-1]

    def __len__(self) -> int:
        return len(self.steps())

    @property
    def length(self) -> int:
        """How many steps it has, the root included."""
        return len(self)

    def get_prefix(self, length: int) -> ObjectPath:
        """Its first `length` steps; RelayValueError for none or more than there are."""
        if not 1 <= length <= len(self):
            raise RelayValueError(f"a prefix of {length} of {len(self)} steps", code="path.length")
        return self.steps()[length - 1]

    def is_prefix_of(self, other: ObjectPath) -> bool:
        """Whether the other way begins with this one."""
        return len(self) <= len(other) and other.get_prefix(len(self)) == self

    def _key(self) -> list[tuple[type, object]]:
        return [(type(p), p.step) for p in self.steps()]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectPath) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(tuple((kind.__name__, repr(step)) for kind, step in self._key()))

    def __str__(self) -> str:
        return "".join(p.shown.format("root" if p.step is None else p.step) for p in self.steps())

    __repr__ = __str__


class RootPath(ObjectPath):
    """The way to the object itself."""

    shown = "<{0}>"


class AttributeAccessPath(ObjectPath):
    """The way to an attribute."""

    shown = ".{0}"

    @property
    def attr_key(self) -> str:
        """The name of the attribute."""
        return str(self.step)


class UnknownAttributeAccessPath(ObjectPath):
    """The way to an attribute that has no name."""

    shown = ".<unknown attribute>"


class ArrayIndexPath(ObjectPath):
    """The way to an element of a list."""

    shown = "[{0}]"

    @property
    def index(self) -> int:
        """The number of the element."""
        return cast(int, self.step)


class MissingArrayElementPath(ArrayIndexPath):
    """The way to an element that a list lacks."""

    shown = "[<missing element #{0}>]"


class MapValuePath(ObjectPath):
    """The way to a value of a map."""

    @property
    def shown(self) -> str:
        return '["{0}"]' if isinstance(self.step, str) else "[{0}]"

    @property
    def key(self) -> object:
        """The key of the value."""
        return self.step


class MissingMapEntryPath(ObjectPath):
    """The way to an entry that a map lacks."""

    shown = "[<missing entry>]"


class ObjectPathPair(tuple[ObjectPath, ObjectPath]):
    """The ways to two parts of two objects."""

    @property
    def lhs_path(self) -> ObjectPath:
        """The way in the left object."""
        return self[0]

    @property
    def rhs_path(self) -> ObjectPath:
        """The way in the right object."""
        return self[1]


def _parts(value: object, path: ObjectPath) -> Iterator[tuple[object, ObjectPath]]:
    """What an object directly consists of, each with the way to it."""
    if isinstance(value, IRModule):
        for gv, func in value.functions.items():
            yield func, path.attr("functions").map_value(gv.name_hint)
        for gtv, data in value.type_definitions.items():
            yield data, path.attr("type_definitions").map_value(gtv.name_hint)
    elif isinstance(value, (Attrs, DictAttrs)):
        for name, part in value.items():
            yield part, path.attr(name)
    elif isinstance(value, (tuple, list)):
        for index, part in enumerate(cast("tuple[object, ...]", value)):
            yield part, path.array_index(index)
    elif isinstance(value, Mapping):
        for key, part in cast("Mapping[object, object]", value).items():
            yield part, path.map_value(key)
    elif isinstance(value, Node):
        names = getattr(type(value), "_fields", ())
        yield from ((getattr(value, name), path.attr(name)) for name in names if name[0] != "_")


def path_to(root: object, part: object) -> ObjectPath:
    """The first way from an object to a part of it; the root if there is none."""
    stack: list[tuple[object, ObjectPath]] = [(root, ObjectPath.root())]
    seen: set[int] = set()
    while stack:
        value, path = stack.pop()
        if value is part:
            return path
        if id(value) not in seen:
            seen.add(id(value))
            stack.extend(reversed(list(_parts(value, path))))
    return ObjectPath.root()


def get_first_structural_mismatch(lhs: object, rhs: object, map_free_vars: bool = False) -> ObjectPathPair | None:
    """The ways to the first parts in which two programs differ; None if they are equal."""
    found = first_mismatch(lhs, rhs, map_free_vars)
    return None if found is None else ObjectPathPair((path_to(lhs, found.lhs), path_to(rhs, found.rhs)))
