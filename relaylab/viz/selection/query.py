"""The query language of pictures: which nodes and groups are meant, in a few characters.

    op:nn.conv2d & dtype:float32        both; words side by side mean the same
    attr:strides=(2, 2) | kind:tuple    either
    !role:added                         not
    cost>1e6, bytes>=1e9, inputs<3      figures (cost is MACs; also intensity, users, any figure of the nodes)
    /conv\\d+/  name:/^%layer/           regular expressions, anywhere or in a field
    batch  "two words"                  text: anywhere, capital or small letters alike

`&` binds stronger than `|`, `!` strongest; parentheses group; brackets and quotes within a word keep it together.
The search field of the explorer reads the same in `lab/static/explorer/query.js`: one table of cases holds both.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.graph.figure import Part, is_named, known, names_in
from relaylab.viz.graph.view import Node, View

Test = Callable[[View, Part], bool]

_HEAD = re.compile(r"([A-Za-z_]\w*)(:|>=|<=|==|>|<|=)", re.ASCII)
_LONE = re.compile(r"(>=|<=|==|>|<|=)[\d.]*", re.ASCII)
_COMPARE = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq, "==": operator.eq,
}  # fmt: skip
_BINDING = {"|": 1, "&": 2, "!": 3}
_OPENING, _CLOSING = "([{", ")]}"


@checked
def select(view: View, query: str) -> tuple[str, ...]:
    """The ids of the nodes, then of the groups, that a query means; none for an empty query.

    Raises `RelayValueError` with a caret under the place where the query cannot be understood.
    """
    if not query.strip():
        return ()
    program = tuple(_postfix(query, view))
    return tuple(p.id for p in (*view.nodes, *view.groups) if _holds(program, view, p))


@dataclass(frozen=True, slots=True)
class _Token:
    """An operator, a parenthesis or a `term`, and where it stands."""

    kind: str
    place: int
    text: str = ""


def _error(query: str, place: int, message: str, help: str = "") -> RelayValueError:
    return RelayValueError(message, code="viz.query", place=f"{query}\n{' ' * place}^", help=help)


# -- reading ---------------------------------------------------------------------------------------


def _tokens(query: str) -> Iterator[_Token]:
    at = 0
    while at < len(query):
        char = query[at]
        if char in "&|!()":
            yield _Token(char, at)
            at += 1
        elif char in " \t\n,":
            at += 1
        else:
            end = _term_end(query, at)
            yield _Token("term", at, query[at:end])
            at = end


def _term_end(query: str, start: int) -> int:
    """The end of a word: at a blank or an operator that is in no bracket, quote or regular expression."""
    head = _HEAD.match(query, start)
    at = head.end() if head else start
    if at < len(query) and query[at] in "/\"'":
        return _closing(query, at)
    depth = 0
    while at < len(query):
        char = query[at]
        if char in "\"'" and depth:
            at = _closing(query, at) - 1
        depth += (char in _OPENING) - (char in _CLOSING)
        if depth < 0 or (depth == 0 and char in " \t\n,&|!"):
            break
        at += 1
    if depth > 0 or at == start:
        raise _error(query, start, "a bracket stands alone")
    return at


def _closing(query: str, start: int) -> int:
    at = start + 1
    while at < len(query) and query[at] != query[start]:
        at += 2 if query[at] == "\\" else 1
    if at >= len(query):
        what = "regular expression" if query[start] == "/" else "quotation"
        raise _error(query, start, f"this {what} is never closed")
    return at + 1


def _postfix(query: str, view: View) -> Iterator[str | Test]:
    """Tests and operators in the order of evaluation (Dijkstra's shunting yard)."""
    waiting: list[_Token] = []
    operand = True  # what may come next
    for token in _joined(query):
        if operand != (token.kind in ("term", "!", "(")):
            raise _error(query, token.place, "a word is missing before this" if operand else "an operator is missing")
        if token.kind == "term":
            yield _test(query, view, token)
        elif token.kind == ")":
            yield from _down_to_parenthesis(query, waiting, token)
        else:
            yield from _stronger(waiting, token)
            waiting.append(token)
        operand = token.kind not in ("term", ")")
    if operand:
        raise _error(query, len(query), "a word is missing here")
    for token in reversed(waiting):
        if token.kind == "(":
            raise _error(query, token.place, "this parenthesis is never closed")
        yield token.kind


def _joined(query: str) -> Iterator[_Token]:
    """The tokens, with `&` between words that stand side by side."""
    ended = False
    for token in _tokens(query):
        if ended and token.kind in ("term", "!", "("):
            yield _Token("&", token.place)
        yield token
        ended = token.kind in ("term", ")")


def _stronger(waiting: list[_Token], token: _Token) -> Iterator[str]:
    """The operators that bind at least as strongly as one that follows them."""
    if token.kind in "&|":
        while waiting and waiting[-1].kind != "(" and _BINDING[waiting[-1].kind] >= _BINDING[token.kind]:
            yield waiting.pop().kind


def _down_to_parenthesis(query: str, waiting: list[_Token], closing: _Token) -> Iterator[str]:
    while waiting and waiting[-1].kind != "(":
        yield waiting.pop().kind
    if not waiting:
        raise _error(query, closing.place, "this parenthesis was never opened")
    waiting.pop()


def _holds(program: tuple[str | Test, ...], view: View, part: Part) -> bool:
    stack: list[bool] = []
    for step in program:
        if step == "!":
            stack.append(not stack.pop())
        elif isinstance(step, str):
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if step == "&" else left or right)
        else:
            stack.append(step(view, part))
    return stack[0]


# -- terms -----------------------------------------------------------------------------------------


def _test(query: str, view: View, token: _Token) -> Test:
    head = _HEAD.match(token.text)
    if head is None and _LONE.fullmatch(token.text):
        raise _error(query, token.place, "a comparison has no spaces", "MACs>1e6")
    if head is None:
        matches = _matcher(query, token.place, token.text, whole=False)
        return lambda view, part: any(map(matches, _everything(part)))
    name, sign = head.groups()
    value, place = token.text[head.end() :], token.place + head.end()
    if not value:
        raise _error(query, place, f"`{name}{sign}` needs a value")
    if sign != ":":
        test = _figure_test(query, place, name, sign, value)
        if not is_named(view, name):
            raise _error(query, token.place, f"there is no figure `{name}`", _offered(name, names_in(view)))
        return test
    if name not in FIELDS:
        raise _error(query, token.place, f"there is no field `{name}`", _offered(name, FIELDS))
    texts, whole = FIELDS[name]
    matches = _matcher(query, place, value, whole)
    return lambda view, part: any(map(matches, texts(view, part)))


def _offered(name: str, known: Collection[str]) -> str:
    return did_you_mean(name, known) or f"there are: {', '.join(known)}"


def _matcher(query: str, place: int, value: str, whole: bool) -> Callable[[str], bool]:
    """Whether a text is (`whole`) or holds a value; what stands between slashes is a regular expression."""
    if len(value) > 1 and value[0] == "/" == value[-1]:
        try:
            found = re.compile(value[1:-1])
            return lambda text: found.search(text) is not None
        except re.error as err:
            message = f"this regular expression is not valid: {err.msg}"
            raise _error(query, place + 1 + (err.pos or 0), message) from None
    wanted = _plain(value[1:-1] if len(value) > 1 and value[0] in "\"'" else value)
    return (lambda text: wanted == _plain(text)) if whole else (lambda text: wanted in _plain(text))


def _plain(text: str) -> str:
    return text.casefold().replace(" ", "").replace("[", "(").replace("]", ")")


def _figure_test(query: str, place: int, name: str, sign: str, value: str) -> Test:
    try:
        limit, compare = float(value.replace("_", "")), _COMPARE[sign]
    except ValueError:
        raise _error(query, place, f"`{value}` is not a number", f"fields of text are written {name}:{value}") from None

    figure = known(name)

    def test(view: View, part: Part) -> bool:
        found = figure.value(view, part)
        return found is not None and compare(found, limit)

    return test


def _everything(part: Part) -> Iterator[str]:
    yield from (part.title, part.id, part.type, part.text, part.span, part.note, part.role, part.kind, *part.rows)
    yield from (f"{a.name}={a.value}" for a in part.attrs)
    if isinstance(part, Node):
        yield from (part.operator, *part.names)
        yield from (f"{o.name or o.position} {o.text} {o.type}" for o in part.operands if o.text)
    else:
        yield part.detail


def _operators(view: View, part: Part) -> tuple[str, ...]:
    return (part.operator, part.operator.rsplit(".", 1)[-1]) if isinstance(part, Node) and part.operator else ()


def _groups(view: View, part: Part) -> Iterator[str]:
    yield from (g.title for g in view.around(part.group if isinstance(part, Node) else part.parent))


def _attrs(view: View, part: Part) -> Iterator[str]:
    for attr in part.attrs:
        yield from (attr.name, f"{attr.name}={attr.value}")


def _names(view: View, part: Part) -> tuple[str, ...]:
    return (part.title, part.id, *(part.names if isinstance(part, Node) else ()))


FIELDS: dict[str, tuple[Callable, bool]] = {
    "op": (_operators, True),
    "dtype": (lambda view, part: re.findall(r"\b(?:u?int|b?float|bool)\d*\b", part.type), True),
    "type": (lambda view, part: (part.type,), False),
    "name": (_names, False),
    "kind": (lambda view, part: (part.kind,), True),
    "role": (lambda view, part: (part.role,), True),
    "attr": (_attrs, True),
    "text": (lambda view, part: (part.text,), False),
    "group": (_groups, False),
    "family": (lambda view, part: (getattr(part, "family", ""),), True),
    "span": (lambda view, part: (part.span,), False),
    "note": (lambda view, part: (part.note,), False),
    "id": (lambda view, part: (part.id,), True),
}
"""The fields of queries: the texts of a part, and whether the value must be the whole text."""
