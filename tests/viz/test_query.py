"""The query language: fields, figures, expressions, and places of errors."""

from __future__ import annotations

import pytest
from support.queries import MADE, MEANT, WRONG

from relaylab.support.errors import RelayValueError
from relaylab.viz.selection.query import select


@pytest.mark.parametrize("query, ids", MEANT)
def test_what_a_query_means(query, ids):
    assert select(MADE, query) == tuple(ids.split())


@pytest.mark.parametrize("query, place, word", WRONG)
def test_errors_point_at_the_place(query, place, word):
    with pytest.raises(RelayValueError) as err:
        select(MADE, query)
    assert err.value.code == "viz.query" and word in str(err.value)
    assert err.value.place == f"{query}\n{' ' * place}^"


def test_deep_queries_do_not_recurse():
    assert select(MADE, "(" * 5000 + "op:relu" + ")" * 5000) == ("r",)
    assert select(MADE, "!" * 5001 + "op:relu") == ("x", "c", "t", "f", "k")
