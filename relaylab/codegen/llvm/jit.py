"""From LLVM IR text to machine code: emit objects, in parallel and through the cache.

No IR passes are run: the text is written the way the passes would leave it (SSA, rotated loops, constant byte
offsets), and they would cost more time than the code generator itself. Kernels carry their pointers as phis, so
loop strength reduction has nothing to do.

Parsing and code generation use nothing shared when each thread has its own context and target machine: they are
called without llvmlite's lock where it lets us (`direct.py`); otherwise threads wait for each other and the result is
the same.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import lru_cache
from types import ModuleType

from relaylab.codegen.isa.target import CpuTarget
from relaylab.codegen.llvm.cache import ObjectCache, digest
from relaylab.codegen.llvm.direct import DirectCompiler
from relaylab.runtime.threads import available_processors
from relaylab.support.errors import RelayError

# Loop strength reduction took up to 75 % of the time on nested loops, the second scheduler 13 %; neither helps. The
# others find nothing in this text, or what makes no difference, and took 7 % together. The first scheduler stays:
# without it 1.6 times as many registers are spilled on AVX2.
OPTIONS = (
    "-disable-lsr", "-disable-post-ra", "-disable-machine-cse", "-disable-cgp", "-disable-copyprop",
    "-disable-branch-fold", "-disable-tail-duplicate", "-disable-early-taildup",
)  # fmt: skip
_OBJECT_VERSION = "1"
_local = threading.local()


@lru_cache(maxsize=1)
def _llvm() -> ModuleType:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for option in OPTIONS:
        llvm.set_option("relaylab", option)
    return llvm


def compiler_version() -> str:
    """The versions that object code depends on."""
    import llvmlite

    version = ".".join(map(str, _llvm().llvm_version_info))
    return f"llvmlite {llvmlite.__version__}, LLVM {version}, {_OBJECT_VERSION} {OPTIONS}"


def _machine(target: CpuTarget):
    """This thread's target machine and context for `target`."""
    machines = _local.__dict__.setdefault("machines", {})
    if target.key not in machines:
        llvm = _llvm()
        if target.architecture is not CpuTarget.host().architecture:
            llvm.initialize_all_targets()
            llvm.initialize_all_asmprinters()
        machine = llvm.Target.from_triple(target.triple)
        # The baseline and not the CPU's name: LLVM would add features that no file could list (docs/choices.md,
        # Kernels).
        # Small code and pic: the default of its JIT is the large model, with 64-bit addresses in registers for every
        # constant.
        machines[target.key] = machine.create_target_machine(
            cpu=target.architecture.baseline, features=target.stated, opt=2, reloc="pic", codemodel="small", jit=True
        )
    if not hasattr(_local, "context"):
        _local.context = _llvm().create_context()
    return machines[target.key], _local.context


def _parse(text: str, target: CpuTarget):
    """(module, machine) for `text`, verified by the parser only."""
    machine, context = _machine(target)
    module = _llvm().parse_assembly(text, context)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    return module, machine


@lru_cache(maxsize=1)
def _compiler() -> DirectCompiler | None:
    """LLVM without llvmlite's lock; None where llvmlite does not show its library."""
    handle = getattr(_llvm().ffi.lib, "_handle", None)
    return DirectCompiler(handle) if handle else None


@lru_cache(maxsize=16)
def _head(target: CpuTarget) -> str:
    """What a module says of its target."""
    machine, _ = _machine(target)
    return f'target datalayout = "{machine.target_data}"\ntarget triple = "{machine.triple}"\n'


def emit_object(text: str, target: CpuTarget) -> bytes:
    """Object code of one module of LLVM IR. Raises RelayError when LLVM does not accept the text."""
    compiler = _compiler()
    try:
        if compiler is not None:
            machine, context = _machine(target)
            return compiler.emit(_head(target) + text, context, machine)
        module, machine = _parse(text, target)
        with module:
            return machine.emit_object(module)
    except RuntimeError as error:
        raise RelayError(f"LLVM rejects the generated code: {error}", code="codegen.llvm") from error


def emit_assembly(text: str, target: CpuTarget) -> str:
    """The assembly of one module of LLVM IR, for people and tests."""
    module, machine = _parse(text, target)
    with module:
        return machine.emit_assembly(module)


def object_key(text: str, target: CpuTarget) -> str:
    """The cache address of a module's object code."""
    return digest(text, target.key, compiler_version())


class Compilation:
    """Modules on their way to object code, through the cache where it has them, else on `threads` threads.

    `add` returns at once, so that code is made for the first modules while the text of the next ones is written.
    Whoever writes them is one of the threads: it compiles too as soon as it waits.
    """

    def __init__(self, target: CpuTarget, cache: ObjectCache | None = None, threads: int | None = None):
        self.target, self.cache = target, cache
        others = max(1, (threads or available_processors()) - 1)
        self._pool = ThreadPoolExecutor(others, thread_name_prefix="relaylab-compile")
        self._known: dict[str, Future[bytes]] = {}
        self._waiting: deque[tuple[Future[bytes], str, str, CpuTarget]] = deque()
        self._made: list[tuple[str, bytes]] = []
        self._together = self.cache.together() if self.cache else nullcontext()

    def __enter__(self) -> Compilation:
        self._together.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._waiting.clear()
        try:
            self._pool.shutdown()
        finally:
            if self.cache is not None:
                for key, made in self._made:  # not by the threads: one that writes files waits for Python each time
                    self.cache.put(key, made)
            self._together.__exit__(None, None, None)

    def add(self, text: str, target: CpuTarget | None = None) -> Future[bytes]:
        """Start with a module of LLVM IR, once: its object code to be, or the RelayError of `emit_object`. All for one
        target but those that name theirs.
        """
        if text not in self._known:
            target = target or self.target
            key = object_key(text, target)
            self._known[text] = found = Future()
            made = self.cache.get(key) if self.cache else None
            if made is None:
                self._waiting.append((found, text, key, target))
                self._pool.submit(self._next)
            else:  # a thread would take longer to begin
                found.set_result(made)
        return self._known[text]

    def result(self, started: Future[bytes]) -> bytes:
        """The object code of a module that was added, or its error; until it is there, this thread compiles too."""
        while not started.done() and self._waiting:
            self._next()
        return started.result()

    def _next(self) -> None:
        """Compile one of those that wait, if another thread did not take the last one."""
        try:
            found, text, key, target = self._waiting.popleft()
        except IndexError:
            return
        try:
            made = emit_object(text, target)
            self._made.append((key, made))
            found.set_result(made)
        except BaseException as error:
            found.set_exception(error)
            if not isinstance(error, RelayError):  # an interrupt ends the build
                raise


def compile_objects(
    texts: Iterable[str], target: CpuTarget, threads: int | None = None, cache: ObjectCache | None = None
) -> list[bytes]:
    """Object code of each module, from the cache where it has it, the rest compiled on `threads` threads."""
    with Compilation(target, cache, threads) as compilation:
        return [compilation.result(started) for started in [compilation.add(text) for text in texts]]
