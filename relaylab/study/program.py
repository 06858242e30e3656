"""Programs by name: networks of the zoo, files of Relay text, modules of a notebook."""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from relaylab import relay
from relaylab.codegen.specialize import input_tensors, is_open, specialized
from relaylab.frontend.onnx import from_onnx, input_shapes
from relaylab.frontend.onnx.model import read_model
from relaylab.frontend.pytorch import from_pytorch
from relaylab.frontend.pytorch.program import input_types, load_model
from relaylab.frontend.told_sizes import Told, filled, split_sizes, told_of
from relaylab.ir import Expr, IRModule
from relaylab.ir.dims import Dim, IntImm, SizeVar
from relaylab.ir.types import TensorType
from relaylab.runtime.ndarray import NDArray
from relaylab.support.checked import checked
from relaylab.support.errors import RelayError, RelayTypeError, RelayValueError, kind_of
from relaylab.support.table import did_you_mean
from relaylab.zoo.catalog import NETWORKS

TEXT_SUFFIXES = (".relay", ".rly", ".txt")
ONNX_SUFFIX = ".onnx"
TORCH_SUFFIX = ".pt2"
SHOWN = 60
"""Letters of what is no program that an error shows."""
FOREIGN = (
    "programs are Relay text or ONNX models; "
    "models of other formats become programs through ONNX, or through TVM's mod.astext()"
)
"""What to do with a file that is no text."""
_FACTORY = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Program:
    """A named module with parameters, and, for networks of the zoo, the way to a small one of the same structure."""

    name: str
    mod: IRModule = field(repr=False)
    params: Mapping[str, NDArray] = field(default_factory=dict, repr=False)
    small: Callable[[], tuple[IRModule, dict[str, NDArray]]] | None = field(default=None, repr=False)
    note: str = ""
    """What people should know of it, beside its name."""

    @property
    def title(self) -> str:
        """The name, and what people should know."""
        return f"{self.name}: {self.note}" if self.note else self.name


Loadable = str | Path | IRModule | Expr | tuple[IRModule | Expr, Mapping[str, NDArray]] | Program


def load(what: Loadable, sizes: Mapping[str, int | Sequence[int]] | None = None) -> Program:
    """A program from the name of a network, the path of a Relay text, of an ONNX or `.pt2` model, or a module (or a
    function), alone or in a pair with its parameters, as `get_workload` gives them.

    `package.module:factory` is a function without arguments, in a Python module that is found from the current folder
    too, which gives a module, a function, or one of them with parameters; or a PyTorch module with its example inputs.
    Behind a path may stand the sizes that its program leaves open, and shapes of inputs:
    `model.onnx:sequence=128,image=1x3x64x64`. What nothing tells is 1, with an OpenSizeWarning; a Relay text of which
    nothing is told stays open. `sizes` says the same of any program: `load(mod, {"n": 8, "image": (1, 3, 64, 64)})`.
    """
    if sizes:
        told = ",".join(f"{k}={'x'.join(map(str, [n] if isinstance(n, int) else n))}" for k, n in sizes.items())
        return load(f"{what}:{told}") if isinstance(what, (str, Path)) else with_told(load(what), told)
    if isinstance(what, Program):
        return what
    mod, params = _pair(what)
    if isinstance(mod, (IRModule, Expr)) and isinstance(params or {}, Mapping):
        return _named("module", mod, params)
    if not isinstance(what, (str, Path)):
        raise RelayTypeError(
            f"a program is a name, a path or a module, with parameters by their names, not {type(what).__name__}",
            code="explore.kind",
            help="give an IRModule, a function, a pair of one and its parameters, the name of a network or a path",
        )
    name = str(what)
    if name in NETWORKS:
        network = NETWORKS[name]
        return Program(name, *network.build(), network.small)
    if _FACTORY.fullmatch(name) and not any(map(os.path.exists, (name, name.split(":")[0]))):
        return _made(*name.split(":"))
    file, told = (name, {}) if os.path.exists(name) else split_sizes(name)
    path = Path(file)
    named = f"{path.stem}[{name[len(file) + 1 :]}]" if told else path.stem
    if path.suffix in (ONNX_SUFFIX, TORCH_SUFFIX) and not path.exists():
        raise _unreadable(path, FileNotFoundError(2, "No such file or directory"))
    if path.suffix == ONNX_SUFFIX:
        model = read_model(path)
        return Program(named, *from_onnx(model, shape=filled(input_shapes(model), told, file)))
    if path.suffix == TORCH_SUFFIX:
        return Program(named, *_exported(path, told))
    if path.suffix in TEXT_SUFFIXES or os.path.isfile(name):  # False also for what is no path
        return Program(named, with_sizes(read(path), told, file) if told else read(path))
    help = did_you_mean(name, NETWORKS) or f"networks: {', '.join(NETWORKS)}; or a file that ends in " + " ".join(
        (*TEXT_SUFFIXES, ONNX_SUFFIX, TORCH_SUFFIX)
    )
    if name.partition("[")[0] in NETWORKS:
        help = "sizes are told of files, net.onnx[batch=2]: a network of the catalog has its own"
    if os.path.isdir(name):
        help = "it is a folder: name a file in it"
    if "@" in name and "(" in name:
        help = "relay.parse(text) makes a module of the text of a program"
    shown = name if len(name) <= SHOWN else f"{name[:SHOWN]} …"
    raise RelayValueError(f"`{shown}` is neither a network nor a file of Relay text", code="explore.unknown", help=help)


def _made(module: str, factory: str) -> Program:
    """What a factory gives."""
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), factory)()
    except RelayError:
        raise
    except Exception as error:  # of somebody's own module
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise RelayValueError(
            f"cannot take {factory} from the module {module}: {error}",
            code="explore.factory",
            place=f"  --> {last.filename}:{last.lineno}"
            if last.filename != __file__ and os.path.isfile(last.filename)
            else "",
            help="" if isinstance(error, (ImportError, AttributeError)) else f"it raised {type(error).__name__}",
        ) from None
    finally:
        sys.path.remove("")
    mod, params = _pair(found)
    if isinstance(mod, (IRModule, Expr)):
        return _named(factory, mod, params)
    if "torch" not in sys.modules:  # nothing of PyTorch can be there
        raise RelayTypeError(
            f"{factory} of the module {module} gives {kind_of(found)}",
            code="explore.factory",
            help="it should give a module or a function of Relay, or one with its parameters, or a PyTorch module",
        )
    return Program(factory, *from_pytorch(mod, cast("Sequence[object] | None", params)))


def _pair(what: object) -> tuple[object, object]:
    """A program and its parameters, which may be missing."""
    return cast("tuple[object, object]", what) if isinstance(what, tuple) and len(what) == 2 else (what, None)


def _named(name: str, mod: IRModule | Expr, params: object) -> Program:
    given = cast("Mapping[str, NDArray]", params or {})
    return Program(name, mod if isinstance(mod, IRModule) else IRModule.from_expr(mod), given)


def _exported(path: Path, told: Told) -> tuple[IRModule, dict[str, NDArray]]:
    """The program in a `.pt2` file."""
    program = load_model(path)
    types = input_types(program)
    if types is None:
        return from_pytorch(program)
    shapes = filled({name: shape for name, (shape, _) in types.items()}, told, str(path))
    return from_pytorch(program, [(name, (shapes[name], dtype)) for name, (_, dtype) in types.items()])


def is_told(name: str) -> bool:
    """Whether sizes stand behind the name of a file."""
    return bool(split_sizes(name)[1])


def with_told(program: Program, text: str) -> Program:
    """A program with numbers for sizes that it leaves open, as they stand behind a name: `n=8,image=1x3x64x64`."""
    mod = with_sizes(program.mod, told_of(text, program.name), program.name)
    return replace(program, name=f"{program.name}[{text}]", mod=mod)


def with_known_sizes(program: Program) -> Program:
    """A program whose kernels have sizes, for what measures and rewrites them; RelayValueError `study.open-sizes`."""
    for p in program.mod["main"].params if "main" in program.mod else ():
        declared = p.inferred or p.type_annotation
        if isinstance(declared, TensorType) and declared.is_dynamic:
            told = f"{p.name_hint}={'x'.join(str(d) if isinstance(d, int) else '1' for d in declared.shape)}"
            raise RelayValueError(
                f"{program.name} leaves sizes of its input `{p.name_hint}` open: {declared}",
                code="study.open-sizes",
                help=f"say sizes behind the name, as in net.relay:{told}, or study.load(mod, {{'n': 8}}); "
                "relay.vm.compile builds a program for all sizes",
            )
    return program


def with_sizes(mod: IRModule, told: Told, file: str) -> IRModule:
    """A program with numbers for sizes that it leaves open: named ones by their names, each by its input's shape."""
    mod = relay.transform.InferType()(mod)
    inputs = input_tensors(mod["main"].params)
    if not is_open(mod) or len(inputs) != len(mod["main"].params):
        raise RelayValueError(
            f"{file} leaves no sizes of tensors open that could be told",
            code="import.shape",
            help="leave out what stands behind the `:`",
        )
    declared = {p.name_hint: tuple(_size(p.name_hint, k, d) for k, d in enumerate(t.shape)) for p, t in inputs}
    shapes = filled(declared, told, file)
    for name, shape in declared.items():
        if len(shape) != len(shapes[name]) or any(isinstance(d, int) and d != n for d, n in zip(shape, shapes[name])):
            said = f"({', '.join(map(str, shape))}), not ({', '.join(map(str, shapes[name]))})"
            raise RelayValueError(f"the input `{name}` of {file} has the shape {said}", code="import.shape")
    return specialized(mod, [shapes[p.name_hint] for p, _ in inputs], {})


def _size(name: str, axis: int, size: Dim) -> int | str:
    """A dimension as a number or a name; a `?` is called by its place."""
    return (
        int(size) if isinstance(size, (int, IntImm)) else str(size) if isinstance(size, SizeVar) else f"{name}.{axis}"
    )


@checked
def read(path: Path) -> IRModule:
    """The module in a file of Relay text; errors quote it."""
    return relay.parse(text_of(path), path.name, fill=0)


def text_of(path: Path) -> str:
    """What is written in a file; RelayValueError where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) and (text := _utf_16(path)):
            return text
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: OSError | UnicodeDecodeError) -> RelayValueError:
    foreign = isinstance(error, UnicodeDecodeError)
    why = "it is not text (UTF-8)" if foreign else error.strerror or error
    help = FOREIGN if foreign else _remedy(path, error)
    if foreign and path.suffix == ".rlab":
        help = "study.reopen opens a recorded run, runtime.load_module a compiled program"
    return RelayValueError(f"cannot read {path}: {why}", code="explore.unreadable", help=help)


def _utf_16(path: Path) -> str:
    """The text of a file that says that it is UTF-16, as shells of Windows write them; empty for others."""
    data = path.read_bytes()
    try:
        return data.decode("utf-16") if data[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else ""
    except UnicodeDecodeError:
        return ""


def _remedy(path: Path, error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, IsADirectoryError):
        return "it is a folder: name a file in it"
    if not isinstance(error, FileNotFoundError):
        return ""
    if path.stem in NETWORKS:
        return f"the network is named {path.stem}, without {path.suffix}"
    if str(path).startswith("~"):
        return "`~` is a word of the shell: write os.path.expanduser(…), or the whole path"
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    beside = (other.name for other in sorted(folder.iterdir())[:1000])
    return did_you_mean(path.name, beside) or f"it is looked for in {folder.resolve()}"
