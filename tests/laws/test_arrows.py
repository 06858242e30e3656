"""Law 1: who may import whom. Read from the source, so that an import inside a function counts too."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from relaylab.compat.table import FACES as PUBLIC
from relaylab.compat.table import SAME

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2] / "relaylab"

BELOW: dict[str, set[str]] = {
    "support": set(),
    "ir": {"support"},
    "loop": {"support"},
    "runtime": {"support"},
    "text": {"ir", "support"},
    "op": {"ir", "loop", "support"},
    "interp": {"op", "ir", "support"},
    "analysis": {"interp", "op", "ir", "support"},
    "transform": {"analysis", "interp", "op", "ir", "support"},
    "frontend": {"op", "analysis", "transform", "interp", "ir", "runtime", "support"},
    "zoo": {"op", "analysis", "transform", "interp", "ir", "runtime", "support"},
    "codegen": {"transform", "analysis", "op", "loop", "runtime", "ir", "interp", "support"},
    "viz": {"transform", "analysis", "text", "loop", "codegen", "ir", "op", "runtime", "support"},
}
ENGINE = {"support", "ir", "loop", "runtime", "text", "op", "interp", "analysis", "transform", "codegen"}
# the rooms on top: the public faces, the studies, the explorer, the notebook, the command
BELOW |= {
    "compat": ENGINE,
    "quantize": ENGINE,
    "tune": ENGINE,
    "relay": ENGINE | {"compat", "frontend", "zoo", "viz"},
    "bench": ENGINE | {"relay", "frontend", "viz", "zoo"},
    "study": ENGINE | {"relay", "tune", "frontend", "viz", "zoo"},
    "course": ENGINE | {"relay", "study", "viz"},
    "explorer": ENGINE | {"study", "viz"},
    "lab": ENGINE | {"relay", "study", "course", "explorer", "viz", "zoo"},
    "cli": ENGINE | {"relay", "compat", "study", "tune", "explorer", "lab", "viz", "zoo"},
}
# rooms that may run code which a user gave them
FACES = {"lab", "cli", "compat", "quantize", "relay", "bench", "study", "explorer", "course"}
LOADERS = {"__init__", "__main__"}

# rooms within rooms, lowest first: each may use those before it (and what stands on top of its room, without circles)
FLOORS: dict[str, tuple[str, ...]] = {
    "text": ("reading", "writing"),
    "op": ("tensor", "nn", "qnn", "image", "vision", "dyn", "random", "vm"),
    "transform": (
        "engine",
        "pattern",
        "rewriting",
        "fusion",
        "layouts",
        "simplify",
        "normal_forms",
        "gradients",
        "partition",
        "quantized",
        "sparse",
    ),
    "frontend": ("onnx", "pytorch"),
    "codegen": (
        "kernels",
        "isa",
        "llvm",
        "loops",
        "templates",
        "network",
        "operations",
        "native",
        "open",
        "flow",
        "inspection",
    ),
    "viz": ("scene", "graph", "layout", "draw", "selection", "write", "figures", "diffs", "relay_viz"),
}

# files that import relaylab inside functions, each with its reason
LATE = {
    "__init__.py": "the parts load when they are first used, so that `import relaylab` is quick",
    "cli": "a command loads what it needs: `relaylab --help` is quick",
    "compat/face.py": "what explains a missing name loads when one is missing, so that `import relaylab` is quick",
    "compat/elsewhere.py": "as compat/face.py",
    "compat/finder.py": "as compat/face.py",
    "compat/install.py": "devices load when programs for TVM are asked for, so that `import relaylab` is quick",
    "relay/__init__.py": "pictures load when the first one is drawn",
    "bench/peers.py": "a process imports the one engine that it measures, and nothing else",
    "lab/magics.py": "anywidget is loaded when the explorer is asked for",
    "lab/__init__.py": "loading the extension must not load IPython before it is asked to",
}


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@dataclass
class Source:
    """What the laws ask of a file; its tree is not kept, all trees together are large."""

    imports: list[ast.Import | ast.ImportFrom]
    typing: set[ast.AST]
    """The imports for type checkers only."""
    late: set[ast.AST]
    """The imports inside functions."""
    called: list[tuple[str, int]]
    """Plain names that are called, and the lines."""


@cache
def source(path: Path) -> Source:
    found = Source([], set(), set(), [])
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.imports.append(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            found.called.append((node.func.id, node.lineno))
        elif isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            found.typing |= imports_in(node)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.late |= imports_in(node)
    return found


def imports_in(tree: ast.AST) -> set[ast.AST]:
    return {n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))}


def imported_names(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or ""]


def imported_rooms(path: Path) -> set[str]:
    rooms: set[str] = set()
    for node in source(path).imports:
        names = imported_names(node)
        if isinstance(node, ast.ImportFrom):
            if node.level:
                pytest.fail(f"{path}: imports are absolute")
            if node.module == "relaylab":
                names = [f"relaylab.{a.name}" for a in node.names]
        rooms |= {n.split(".")[1] for n in names if n.startswith("relaylab.")} - {"__version__"}
    return rooms


FILES = sorted(p for p in ROOT.rglob("*.py"))


@pytest.mark.parametrize(
    "path", [p for p in FILES if room_of(p) not in LOADERS], ids=lambda p: str(p.relative_to(ROOT))
)
def test_arrow(path: Path) -> None:
    room = room_of(path)
    assert room in BELOW, f"{room} is not a room of the house"
    wrong = imported_rooms(path) - BELOW[room] - {room}
    assert not wrong, f"{path.relative_to(ROOT)} may not import {sorted(wrong)}"


def modules_of(room: str) -> dict[str, Path]:
    """The modules of a room, by their dotted names."""
    return {
        ".".join(p.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): p
        for p in (ROOT / room).rglob("*.py")
    }


def imported_modules(path: Path, known: Mapping[str, Path]) -> set[str]:
    """The modules among `known` that a file imports, except for type checkers only."""
    found = source(path)
    froms = [n for n in found.imports if isinstance(n, ast.ImportFrom) and n.module and n not in found.typing]
    names = {
        f"{n.module}.{a.name}" if f"{n.module}.{a.name}" in known else n.module or "" for n in froms for a in n.names
    }
    return names & known.keys()


def floor_of(module: str, path: Path) -> str:
    """The room within its room that a module is in; a file on top of its room is a room of its own."""
    parts = module.split(".")
    return parts[2] if len(parts) > 3 or path.name == "__init__.py" else f"{parts[2]}.py"


@pytest.mark.parametrize("room", FLOORS)
def test_arrows_within_a_room(room: str) -> None:
    """Floors use only what is below them, and there is no circle, files on top of the room included."""
    known = modules_of(room)
    face = f"relaylab.{room}"
    arrows: dict[str, set[str]] = {}
    for module, path in known.items():
        if module != face:
            here = floor_of(module, path)
            arrows.setdefault(here, set()).update(
                floor_of(m, known[m]) for m in imported_modules(path, known) if m != face
            )
    floors = FLOORS[room]
    assert {name for name in arrows if not name.endswith(".py")} == set(floors)
    for name in floors:
        up = arrows[name] & set(floors[floors.index(name) + 1 :])
        assert not up, f"{room}/{name} may not import {sorted(up)}"
    TopologicalSorter({a: b - {a} for a, b in arrows.items()}).prepare()  # raises CycleError


def test_folders_are_no_crowds() -> None:
    crowded = {
        str(folder.relative_to(ROOT)): n
        for folder in [ROOT, *(p for p in ROOT.rglob("*") if p.is_dir())]
        if (n := sum(p.suffix in (".py", ".js", ".css") for p in folder.iterdir())) > 24
    }
    assert not crowded


def test_ipython_and_widgets_only_in_lab() -> None:
    for path in FILES:
        if room_of(path) in ("lab", "cli"):
            continue
        for node in source(path).imports:
            bad = [
                n
                for n in imported_names(node)
                if n.split(".")[0] in ("IPython", "ipywidgets", "anywidget", "traitlets")
            ]
            assert not bad, f"{path.relative_to(ROOT)} imports {bad}"


WRITES_CODE = {
    "ir/declare.py": "constructors of nodes, from the declared names only, as `dataclasses` does",
    "ir/converters.py": "annotations in the body of a class, as `inspect.get_annotations` does",
    "codegen/python_source.py": "`run_as_python` runs the Python that it made of a program: calls of operators",
}


def test_nothing_dangerous_is_imported() -> None:
    for path in FILES:
        found = source(path)
        names = {name.split(".")[0] for node in found.imports for name in imported_names(node)}
        assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle"} & names, path
        if str(path.relative_to(ROOT)) in WRITES_CODE or room_of(path) in FACES | LOADERS:
            continue
        run = [(name, line) for name, line in found.called if name in ("eval", "exec")]
        assert not run, f"{path} runs text: {run}"


def test_public_names_come_from_below() -> None:
    """The tables of public names name modules, as imports do."""
    rooms = {key.partition(".")[0] for key in SAME.values()}
    rooms |= {source.partition(".")[0] for _, sources in PUBLIC.values() for source in sources}
    assert rooms <= ENGINE | {"compat", "quantize", "relay", "frontend", "study", "viz", "zoo"}


def test_imports_stand_at_the_top() -> None:
    """An import inside a function hides an arrow or a cycle; the exceptions are listed with their reasons."""
    for path in FILES:
        if {str(path.relative_to(ROOT)), room_of(path)} & LATE.keys():
            continue
        late = [
            n
            for n in source(path).imports
            if n in source(path).late and isinstance(n, ast.ImportFrom) and (n.module or "").startswith("relaylab")
        ]
        assert not late, f"{path.relative_to(ROOT)}:{late[0].lineno} imports {late[0].module} in a function"
