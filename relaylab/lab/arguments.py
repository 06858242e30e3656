"""From the line of a magic to Python: programs by name, keyword inputs, one-line errors."""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

import numpy as np
from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython

import relaylab
from relaylab.ir import Call, Expr, IRModule, Op, TensorType, post_order
from relaylab.lab.magic import MAGICS
from relaylab.lab.options import actions
from relaylab.study import Program, load
from relaylab.study.program import is_told, with_told
from relaylab.support.errors import RelayError, kind_of
from relaylab.support.quoting import python_name
from relaylab.support.table import did_you_mean
from relaylab.transform import Pass
from relaylab.zoo.catalog import NETWORKS

WEIGHTS = ("weight", "kernel", "gamma", "beta", "moving_mean", "moving_var", "bias")
"""What operators call the arguments that are learnt."""
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_SIZED = re.compile(r"([A-Za-z_][\w.]*):(\w[\w.]*=.*)")
Namespace = dict[str, Any]
"""The names of a notebook."""
HELP = "Options: %relay_help viz and so on. A trailing ; silences the output; -o NAME binds the result."


def one_line(error: RelayError) -> UsageError:
    """An error of relaylab as a usage error: what is wrong and what to do, in one line."""
    return UsageError(f"{error.message}{'; ' + error.help if error.help else ''}")


def parse(magic: Callable[..., object], line: str) -> argparse.Namespace:
    """The arguments of a magic; a wrong option is an error of one line that offers the nearest one.

    A trailing `;` is `--quiet`. (IPython's own way to find it reads lines and cells as Python, which they need not be.)
    """
    text, parser = line.rstrip().removesuffix(";"), parser_of(magic)
    try:
        args = parser.parse_args([_unquoted(word) for word in _words(text)])
        args.quiet |= text != line.rstrip()
        return args
    except ValueError as error:  # of the splitting
        raise UsageError(f"{error} in `{text}`") from None
    except UsageError as error:
        told, hint = str(error), ""
        options = [o for action in actions(parser) for o in action.option_strings if o.startswith("--")]
        wrong = re.search(r"unrecognized arguments: (\S+)", told)
        if wrong:
            hint = did_you_mean(wrong[1], options) if wrong[1].startswith("-") else ""
            if not wrong[1].startswith("-") and "--passes" in options:
                hint = f"passes stand behind -p, as in -p {wrong[1]}"
        if "are required" in told:
            told = _required(told, parser)
            hint = "; ".join(m.usage for m in MAGICS if m.method == magic.__name__)
        raise UsageError(f"{told}{'; ' + hint if hint else ''}") from None


def _required(told: str, parser: argparse.ArgumentParser) -> str:
    """What argparse says is missing, without arguments of which there may be none."""
    head, _, names = told.partition(": ")
    free = {action.dest for action in actions(parser) if action.nargs in ("*", "?")}
    return f"{head}: {', '.join(n for n in names.split(', ') if n not in free)}"


def parser_of(magic: Callable[..., object]) -> argparse.ArgumentParser:
    """The parser that `takes` made for a magic."""
    found = getattr(magic, "parser", None)
    assert isinstance(found, argparse.ArgumentParser), f"{magic} has no arguments"
    return found


def help_text(line: str, magics: type) -> str:
    """All magics on one screen, or what one of them takes; UsageError for a name that none has."""
    name = line.strip().lstrip("%").removeprefix("relay_")
    if not name:
        return "\n".join([*(f"{m.usage:<33}{m.summary}" for m in MAGICS), HELP])
    known = {m.method.removeprefix("relay_"): m.method for m in MAGICS}
    if name not in known:
        near = did_you_mean(name, known) or f"there are {', '.join(known)}"
        raise UsageError(f"there is no magic `{name}`; {near}")
    return parser_of(getattr(magics, known[name])).format_help().removeprefix("::").strip()  # a mark for Sphinx


def _words(text: str) -> list[str]:
    """The words of a line; what stands in brackets that are closed later is one word, as in `x=np.ones((1, 8))`, and
    so is a list with blanks after its commas, as in `-p FoldConstant, FuseOps`."""
    found, left = [], shlex.split(text, comments=True, posix=False)
    while left:
        for count in range(1, len(left) + 1):
            bare = _QUOTED.sub("", " ".join(left[:count]))
            goes_on = bare.endswith(",") and not "".join(left[count : count + 1]).startswith("-")
            if sum(map(bare.count, "([{")) <= sum(map(bare.count, ")]}")) and not goes_on:
                break
        else:
            count = 1  # nothing closes it
        found.append(" ".join(left[:count]))
        left = left[count:]
    return found


def _unquoted(word: str) -> str:
    """A word without the quotes around all of it; those inside belong to Python expressions."""
    return word[1:-1] if len(word) > 1 and word[0] in "\"'" and word[0] == word[-1] else word


def from_the_notebook(error: BaseException) -> BaseException:
    """An error with the frames that the user wrote, if there are any: those of relaylab say nothing about it."""
    inside = f"{Path(relaylab.__file__).parent}/"
    kept, trace = [], error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(inside):
            kept.append(trace)
        trace = trace.tb_next
    for step in reversed(kept):
        trace = TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return error.with_traceback(trace)


def value_of(text: str, namespace: Namespace) -> Any:
    """The value of a Python expression in the notebook (the user's own code, in the user's own kernel)."""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError as error:
        raise UsageError(f"`{text}` is not an expression: {error.msg}") from None
    try:
        return eval(text, namespace)  # noqa: S307
    except NameError as error:
        names = [n for n, v in namespace.items() if isinstance(v, (IRModule, Expr)) and not n.startswith("_")]
        hint = did_you_mean(text, [*names, *NETWORKS])
        raise UsageError(f"{error}{'; ' + hint if hint else ''}") from None
    except RelayError as error:
        raise one_line(error) from None
    except Exception as error:
        raise UsageError(f"`{text}` raises {type(error).__name__}: {error}") from None


def program_of(text: str, namespace: Namespace) -> Program:
    """The program that an argument names: a module, function, expression, `(mod, params)`, a network, or a file.

    Behind a file, and a name of the notebook, may stand sizes that the program leaves open: `mod:n=8`.
    """
    if text not in namespace and (text in NETWORKS or os.path.isfile(text) or is_told(text)):
        return load(text)
    named = _SIZED.fullmatch(text)
    if named is not None:
        return with_told(program_of(named[1], namespace), named[2])
    value = value_of(text, namespace) if not _like_a_file(text, namespace) else _no_file(text)
    params: dict[str, Any] = {}
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], IRModule):
        value, params = value
    if isinstance(value, Program):
        return value
    if isinstance(value, Expr) and not isinstance(value, IRModule):
        value = IRModule.from_expr(value)
    if not isinstance(value, IRModule):
        raise UsageError(f"`{text}` is {kind_of(value)}, expected an IRModule, an expression, a network or a file")
    return Program(python_name(text, "module"), value, params)


def _like_a_file(text: str, namespace: Namespace) -> bool:
    """Whether a text can only be the name of a file: `net.onx`, `models/net.onnx`, where no `net` is known."""
    found = re.fullmatch(r"(\w[\w-]*)(?:[./\\][\w.-]+)+", text)
    return found is not None and found[1] not in namespace and not found[1].isdigit()


def _no_file(text: str) -> NoReturn:
    folder = os.path.dirname(text)
    try:
        known = [os.path.join(folder, name) for name in os.listdir(folder or ".")]
    except OSError:
        raise UsageError(f"there is no folder `{folder}`, and no name for `{text}`") from None
    near = did_you_mean(text, known)
    raise UsageError(f"there is no file and no name `{text}`{'; ' + near if near else ''}")


def with_params(program: Program, name: str | None, namespace: Namespace) -> Program:
    """A program with the parameters that `--params` names, or else those of the notebook's `params`, if they fit it.

    Without any, a program whose operators read weights from its inputs gets a note that says so.
    """
    if program.params:
        return program
    given = namespace.get("params") if name is None else value_of(name, namespace)
    wanted = {p.name_hint: p.type_annotation for p in program.mod["main"].params}
    known = {k: v for k, v in given.items() if k in wanted} if isinstance(given, Mapping) else {}
    if name is not None and not known:
        raise UsageError(f"`{name}` holds no parameters of this program: {', '.join(wanted) or 'it has none'}")
    if known and (name is not None or all(_fits(wanted[k], v) for k, v in known.items())):
        return replace(program, params=known)
    return replace(program, note="parameters are not bound (--params NAME)") if _reads_weights(program.mod) else program


def bound(text: str, namespace: Namespace) -> Program:
    """The program that an argument names, with the notebook's `params` if they fit it."""
    return with_params(program_of(text, namespace), None, namespace)


def _fits(kind: object, value: object) -> bool:
    """Whether an array has the shape of a declared type; one that is not declared takes any."""
    if not isinstance(kind, TensorType):
        return kind is None
    return [str(d) for d in kind.shape] == [str(d) for d in getattr(value, "shape", ())]


def _reads_weights(mod: IRModule) -> bool:
    """Whether an operator of the main function takes an input of the program for a weight."""
    inputs = set(mod["main"].params)
    for node in post_order(mod["main"].body):
        if isinstance(node, Call) and isinstance(node.op, Op):
            if any(n in WEIGHTS and a in inputs for n, a in zip(node.op.arguments, node.args)):
                return True
    return False


def inputs_of(pairs: list[str], namespace: Namespace) -> dict[str, np.ndarray]:
    """`name=expression` arguments as arrays."""
    inputs = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"`{pair}` is not an input; write name=expression")
        inputs[name] = np.asarray(value_of(text, namespace))
    return inputs


def named_in_notebook(name: str, value: IRModule) -> str:
    """Give a module a name in the notebook, another if something else has it; that name, empty without a notebook."""
    shell = get_ipython()
    if shell is None:
        return ""
    taken = (n for n, v in shell.user_ns.items() if not isinstance(v, IRModule))
    known = set(taken)
    given = next(n for n in (name, *(f"{name}_{k}" for k in range(1, len(known) + 2))) if n not in known)
    shell.user_ns[given] = value
    return given


def is_own_pass(value: object) -> bool:
    """Whether it is a class of passes that the notebook defines: relaylab's, which it may import, are not meant."""
    return isinstance(value, type) and issubclass(value, Pass) and not value.__module__.startswith("relaylab.")
