"""Threads get Python soon while a build is under way, and as before after the last one, in whichever order they end."""

from __future__ import annotations

import sys

from relaylab.support.handover import SOON, hand_over_soon


def test_the_interval_is_put_back_after_the_last_block():
    usual = sys.getswitchinterval()
    first, second = hand_over_soon(), hand_over_soon()
    first.__enter__()
    assert sys.getswitchinterval() == SOON < usual
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getswitchinterval() == SOON
    second.__exit__(None, None, None)
    assert sys.getswitchinterval() == usual


def test_an_interval_that_is_shorter_stays():
    usual = sys.getswitchinterval()
    sys.setswitchinterval(SOON / 4)
    try:
        with hand_over_soon():
            assert sys.getswitchinterval() < SOON / 2
        assert abs(sys.getswitchinterval() - SOON / 4) < 1e-6
    finally:
        sys.setswitchinterval(usual)
