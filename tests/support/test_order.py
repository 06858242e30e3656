"""What leads to each other in order: each once, after what it leads to, from left to right, however deep."""

from relaylab.support.order import post_order

BELOW = {"d": ["b", "c"], "b": ["a"], "c": ["a", "b"], "a": [], "e": ["e"]}


def test_each_comes_once_after_what_it_leads_to():
    assert post_order(["d"], BELOW.__getitem__) == ["a", "b", "c", "d"]
    assert post_order(["c", "d"], BELOW.__getitem__) == ["a", "b", "c", "d"]
    assert post_order([], BELOW.__getitem__) == []


def test_circles_end():
    assert post_order(["e"], BELOW.__getitem__) == ["e"]


def test_depth_is_no_limit():
    assert post_order([200_000], lambda n: [n - 1] if n else []) == list(range(200_001))
