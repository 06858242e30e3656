"""Where a pass is defined, and the Python that makes it again: an import, or the code of the cell it was written in."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import cast

from relaylab.support.quoting import is_name, python_comment, python_name
from relaylab.transform import FunctionPass, Pass, Sequential
from relaylab.transform.engine.options import literal, title

PUBLIC = "relaylab.transform"
Defined = ast.FunctionDef | ast.ClassDef
Imports = ast.Import | ast.ImportFrom
Maker = FunctionType | type


@dataclass(frozen=True)
class PassDefinition:
    """How Python makes a pass: the statements and comments that must stand above, and the expression."""

    above: tuple[str, ...]
    text: str
    is_ours: bool = False
    """Whether the pass is one of relaylab's, which the command knows too."""

    @property
    def is_whole(self) -> bool:
        """Whether this is all that Python needs: comments stand for what no text makes."""
        return not any(code.startswith("#") for code in self.above)


def definition_of(made: Pass) -> PassDefinition:
    """The Python that makes a pass. What no text stands for is left as a name, and a comment says so."""
    record = made.record
    if record is None or not is_name(record.name):
        return _of_sequence(made) if isinstance(made, Sequential) else _of_function(made)
    left: dict[str, object] = {}

    def name_of(value: object) -> str:
        name = python_name(title(value))
        left[name] = value
        return name

    text = record.written(lambda value: literal(value, name_of))
    notes = tuple(python_comment(f"{n}: an object that {record.name} was made with") for n in left)
    if record.maker.__module__.startswith(f"{PUBLIC}."):
        return PassDefinition(notes, f"relay.transform.{text}", not left)
    return PassDefinition((*notes, *_named(cast(Maker, record.maker), record.name)[0]), text)


def preamble(made: Iterable[PassDefinition]) -> str:
    """What must stand above these passes, each statement once: imports and comments, then the code."""
    above = list(dict.fromkeys(code for d in made for code in d.above))
    lines = [code for code in above if code.startswith(("import ", "from ", "#"))]
    return "".join(f"{line}\n" for line in lines) + "".join(f"\n\n{code}\n" for code in above if code not in lines)


def _of_sequence(made: Sequential) -> PassDefinition:
    parts = [definition_of(p) for p in made.passes]
    above = tuple(dict.fromkeys(code for p in parts for code in p.above))
    about = f"opt_level={made.info.opt_level}, name={made.info.name!r}, required={list(made.info.required)}"
    return PassDefinition(above, f"relay.transform.Sequential([{', '.join(p.text for p in parts)}], {about})")


def _of_function(made: Pass) -> PassDefinition:
    """A pass made of a function: by a decorator above it, or by hand."""
    function = getattr(made, "pass_func", None)
    if not isinstance(function, FunctionType) or not is_name(function.__name__):
        name = python_name(made.info.name, "unknown")
        return PassDefinition((python_comment(f"{name}: a pass whose code is not known"),), name)
    above, decorated = _named(function, function.__name__)
    if decorated:
        return PassDefinition(above, function.__name__)
    kind = "function_pass" if isinstance(made, FunctionPass) else "module_pass"
    about = f"opt_level={made.info.opt_level}, name={made.info.name!r}, required={list(made.info.required)}"
    return PassDefinition(above, f"relay.transform.{kind}({function.__name__}, {about})")


@dataclass(frozen=True)
class SourceCode:
    """The Python that defines a function or class, the file (or cell) that it is in, and its first line there."""

    text: str
    file: str
    line: int


def code_of(maker: object) -> SourceCode | None:
    """The Python that defines a function or class; None if it is not known."""
    if not isinstance(maker, FunctionType | type) or (found := _found(maker)) is None:
        return None
    source, node, _ = found
    function = _function(maker)
    return SourceCode(_text(source, node), function.__code__.co_filename if function else "", _first(node))


# ---- names and code


def _named(maker: Maker, name: str) -> tuple[tuple[str, ...], bool]:
    """What must stand above for a name to be known, and whether it then means what decorators made of it."""
    module = sys.modules.get(maker.__module__)
    if _is_importable(module) and (known := getattr(module, name, None)) is not None and _is_outer(maker):
        return (f"from {maker.__module__} import {name}",), known is not maker
    if (found := _found(maker)) is None:
        return (python_comment(f"{name}: its code is not known"),), True
    source, node, outer = found
    chosen = _needed(outer, node) if node in outer else [node]
    imports = [n for n in chosen if isinstance(n, Imports)]
    code = [_text(source, n) for n in chosen if n not in imports]
    read = {name for n in chosen for name in _read(n)}
    lines = [_only(n, read) for n in imports] + _missing(chosen, read, _function(maker))
    return (*filter(None, lines), *code), bool(node.decorator_list)


def _only(node: ast.Import | ast.ImportFrom, read: set[str]) -> str:
    """An import, of the names that are read."""
    names = [a for a in node.names if (a.asname or a.name).split(".")[0] in read - {"relay"}]
    return ast.unparse(_with(node, names)) if names else ""


def _with(node: ast.Import | ast.ImportFrom, names: list[ast.alias]) -> ast.stmt:
    return ast.ImportFrom(node.module, names, node.level) if isinstance(node, ast.ImportFrom) else ast.Import(names)


def _is_importable(module: ModuleType | None) -> bool:
    return module is not None and module.__name__ != "__main__" and getattr(module, "__file__", None) is not None


def _is_outer(maker: Maker) -> bool:
    return "<locals>" not in maker.__qualname__


def _function(maker: Maker) -> FunctionType | None:
    """A function whose code stands in the definition: itself, or a method."""
    if isinstance(maker, FunctionType):
        return maker
    return next((m for m in vars(maker).values() if isinstance(m, FunctionType)), None)


def _found(maker: Maker) -> tuple[str, Defined, Sequence[ast.stmt]] | None:
    """The source, the definition in it, and the outer statements of the file or cell; None if they are not known."""
    function = _function(maker)
    if function is None:
        return None
    source, line = "".join(linecache.getlines(function.__code__.co_filename)), function.__code__.co_firstlineno
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    around = [n for n in ast.walk(tree) if isinstance(n, Defined) and _first(n) <= line <= (n.end_lineno or 0)]
    named = [n for n in around if n.name == maker.__name__]
    return (source, max(named, key=_first), tree.body) if named else None


def _first(node: ast.stmt) -> int:
    """The line that a statement begins at, with its decorators."""
    return min((d.lineno for d in getattr(node, "decorator_list", ())), default=node.lineno)


def _text(source: str, node: ast.stmt) -> str:
    return textwrap.dedent("\n".join(source.splitlines()[_first(node) - 1 : node.end_lineno]))


def _needed(outer: Sequence[ast.stmt], node: ast.stmt) -> list[ast.stmt]:
    """A statement with those of its file or cell that it needs, in their order."""
    chosen, todo = {node}, [node]
    while todo:
        read = _read(todo.pop())
        new = [n for n in outer if n not in chosen and _bound(n) & read]
        chosen.update(new)
        todo += new
    return [n for n in outer if n in chosen and not (isinstance(n, ast.ImportFrom) and n.module == "__future__")]


def _read(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def _bound(node: ast.AST) -> set[str]:
    """The names that a statement gives something to."""
    if isinstance(node, Defined):
        return {node.name}
    if isinstance(node, Imports):
        return {(a.asname or a.name).split(".")[0] for a in node.names}
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _missing(chosen: Sequence[ast.stmt], read: set[str], function: FunctionType | None) -> list[str]:
    """For names that the code reads and does not define: their imports, comments on those that cannot be imported."""
    known = {name for statement in chosen for n in ast.walk(statement) for name in _everywhere(n)} | {"relay"}
    values = function.__globals__ if function is not None else {}
    return [_import(name, values.get(name)) for name in sorted(read - known - vars(builtins).keys())]


def _everywhere(node: ast.AST) -> set[str]:
    """The names that one node binds, inside functions too."""
    if isinstance(node, ast.arg):
        return {node.arg}
    return _bound(node) if isinstance(node, Defined | Imports | ast.Name) else set()


def _import(name: str, value: object) -> str:
    if isinstance(value, ModuleType):
        return f"import {value.__name__}" + ("" if value.__name__ == name else f" as {name}")
    module, own = getattr(value, "__module__", None), getattr(value, "__name__", "")
    home = sys.modules.get(module) if isinstance(module, str) else None
    if home is not None and _is_importable(home) and getattr(home, own, None) is value:
        return f"from {module} import {own}" + ("" if own == name else f" as {name}")
    return python_comment(f"`{name}` is defined elsewhere")
