"""The table of operators: counts, sums, shares, the time of kernels, order."""

from __future__ import annotations

import pytest

from relaylab import relay, study, viz
from relaylab.support.errors import RelayError


@pytest.fixture(scope="module")
def view():
    return viz.view(relay.optimize(*relay.testing.mlp.get_workload(1)[:1], target="llvm")[0])


def test_sums_and_shares(view):
    table = viz.operator_table(view)
    rows = {r.operator: r for r in table.rows}
    assert rows["nn.dense"].calls == 3 and rows["nn.dense"].macs == 784 * 128 + 128 * 64 + 64 * 10
    assert table.rows[0].operator == "nn.dense" and table.share(table.rows[0], "macs") == 1 and not table.measured
    assert sum(table.share(r, "bytes") for r in table.rows) == pytest.approx(1)
    assert "µs" not in str(table) and "nn.dense" in str(table)


def test_the_time_of_a_kernel_is_its_heaviest_operators(view):
    kernels = [g.id for g in view.groups if g.kind == "primitive"]
    table = viz.operator_table(view, dict.fromkeys(kernels, 2.0))
    rows = {r.operator: r.time for r in table.rows}
    assert rows["nn.dense"] == 6.0 and rows["nn.relu"] == 0 and sum(rows.values()) == 2.0 * len(kernels)
    assert table.measured and "<th>µs</th>" in table._repr_html_()


def test_order(view):
    table = viz.operator_table(view)
    assert [r.operator for r in table.sorted("operator").rows] == sorted(r.operator for r in table.rows)
    calls = [r.calls for r in table.sorted("calls").rows]
    assert calls == sorted(calls, reverse=True)
    with pytest.raises(RelayError, match="no column `mac`"):
        table.sorted("mac")


def test_of_a_whole_program():
    found = study.operator_table(study.load("mlp"), number=2)
    assert found.measured and found.rows[0].time > 0
