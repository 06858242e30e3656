"""The arena: blocks that live together never overlap, halos keep to themselves, and memory is reused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from relaylab.codegen.network.arena import ALIGNMENT, Allocation, place

BLOCKS = st.lists(
    st.builds(
        lambda size, first, length, halo: Allocation(640 * halo if halo else size, first, first + length, halo),
        st.integers(0, 5000),
        st.integers(0, 12),
        st.integers(0, 6),
        st.sampled_from([None, None, None, 1, 2]),
    ),
    max_size=25,
)


@given(BLOCKS)
def test_blocks_that_live_together_are_apart(blocks: list[Allocation]) -> None:
    offsets, total = place(blocks)
    for j, (a, at) in enumerate(zip(blocks, offsets)):
        assert at % ALIGNMENT == 0 and at + a.size <= total
        for b, bt in zip(blocks[:j], offsets[:j]):
            apart = at + a.size <= bt or bt + b.size <= at
            if a.first <= b.last and b.first <= a.last:
                assert apart
            if a.halo != b.halo:
                assert apart or (a.halo is None and b.halo is None)


def test_a_chain_needs_two_buffers() -> None:
    _, total = place([Allocation(4096, k, k + 1) for k in range(1000)])
    assert total <= 2 * (4096 + 128)


def test_equal_halos_are_reused() -> None:
    offsets, _ = place([Allocation(4096, k, k + 1, "pad1") for k in range(10)])
    assert len(set(offsets)) == 2
