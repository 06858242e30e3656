"""The operators of a program as a table: how often, MACs, bytes, measured time, and shares of the whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from relaylab.support.checked import checked
from relaylab.support.errors import RelayValueError
from relaylab.support.table import did_you_mean
from relaylab.viz.graph.figure import abbreviated, macs, moved
from relaylab.viz.graph.view import Node, View
from relaylab.viz.write.svg import escape


@dataclass(frozen=True, slots=True)
class OperatorRow:
    """One operator: its calls, their multiply-adds, bytes read and written, and microseconds (None: not measured)."""

    operator: str
    calls: int
    macs: float
    bytes: float
    time: float | None = None


COLUMNS = tuple(f.name for f in fields(OperatorRow))


@dataclass(frozen=True)
class OperatorTable:
    """The operators of a picture, sorted by a column."""

    rows: tuple[OperatorRow, ...]

    def sorted(self, by: str) -> OperatorTable:
        """The same rows, the largest of a column first; `operator` from A to Z."""
        if by not in COLUMNS:
            raise RelayValueError(
                f"the table has no column `{by}`",
                code="viz.column",
                help=did_you_mean(by, COLUMNS) or ", ".join(COLUMNS),
            )
        if by == "operator":
            return OperatorTable(tuple(sorted(self.rows, key=lambda r: r.operator)))
        return OperatorTable(tuple(sorted(self.rows, key=lambda r: getattr(r, by) or 0, reverse=True)))

    def share(self, row: OperatorRow, by: str) -> float:
        """The share of a row in the sum of a column."""
        return (getattr(row, by) or 0) / (sum(getattr(r, by) or 0 for r in self.rows) or 1)

    @property
    def measured(self) -> bool:
        """Whether there are times."""
        return any(r.time is not None for r in self.rows)

    def cells(self) -> list[list[str]]:
        """The table as text, its head first."""
        head = ["operator", "calls", "MACs", "", "bytes", "", *(["µs", ""] if self.measured else [])]
        return [
            head,
            *(
                [
                    r.operator,
                    str(r.calls),
                    *self._pair(r, "macs"),
                    *self._pair(r, "bytes"),
                    *(self._pair(r, "time") if self.measured else []),
                ]
                for r in self.rows
            ),
        ]

    def _pair(self, row: OperatorRow, by: str) -> list[str]:
        return [abbreviated(getattr(row, by)), f"{self.share(row, by):.1%}"] if getattr(row, by) else ["", ""]

    def __str__(self) -> str:
        cells = self.cells()
        wide = [max(map(len, column)) for column in zip(*cells)]
        return "\n".join(
            "  ".join(t.ljust(w) if k == 0 else t.rjust(w) for k, (t, w) in enumerate(zip(line, wide))).rstrip()
            for line in cells
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *lines = ([escape(t) for t in line] for line in self.cells())
        body = "".join(f"<tr>{''.join(f'<td>{t}</td>' for t in line)}</tr>" for line in lines)
        return f"<table><thead><tr>{''.join(f'<th>{t}</th>' for t in head)}</tr></thead><tbody>{body}</tbody></table>"


@checked
def operator_table(view: View, times: Mapping[str, float] | None = None) -> OperatorTable:
    """The operators of a picture, those with the largest time (or else the most MACs) first.

    `times` are microseconds by node or by kernel (`figures.kernel_times`). A kernel is measured as one: its time counts
    for its heaviest operator, that with the most MACs, or bytes where none has any.
    """
    spent = _spent(view, times or {})
    found: dict[str, list[Node]] = {}
    for node in view.nodes:
        if node.operator:
            found.setdefault(node.operator, []).append(node)
    rows = [_row(operator, nodes, spent, times is not None) for operator, nodes in found.items()]
    rows.sort(key=lambda r: (r.time or 0, r.macs, r.bytes), reverse=True)
    return OperatorTable(tuple(rows))


def _row(operator: str, nodes: list[Node], spent: Mapping[str, float], measured: bool) -> OperatorRow:
    taken = sum(spent.get(n.id, 0.0) for n in nodes) if measured else None
    return OperatorRow(operator, len(nodes), sum(map(macs, nodes)), sum(map(moved, nodes)), taken)


def _spent(view: View, times: Mapping[str, float]) -> dict[str, float]:
    """Times by node: of a kernel that of its heaviest operator."""
    spent = {name: value for name, value in times.items() if name in view.node_by_id}
    inside: dict[str, list[Node]] = {}
    for node in view.nodes:
        if node.operator:
            inside.setdefault(node.group, []).append(node)
    for name, value in times.items():
        if name in view.group_by_id and name in inside:
            heaviest = max(inside[name], key=lambda n: (macs(n), moved(n)))
            spent[heaviest.id] = spent.get(heaviest.id, 0.0) + value
    return spent
