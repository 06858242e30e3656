"""Law: the page of an operator says what each parameter means, the result's shape as a formula, and the source."""

from __future__ import annotations

import re

import pytest

import relaylab.op  # noqa: F401  (registers the operators)
from relaylab import relay
from relaylab.ir import OPERATORS
from relaylab.op.builder import OperatorBuilder
from relaylab.op.reference import description, errors, undocumented

NAMES = sorted(OPERATORS)


@pytest.mark.parametrize("name", [n for n in NAMES if OPERATORS[n].definition.__module__.startswith("relaylab.op.")])
def test_the_page_is_complete(name):
    cls = OPERATORS[name].definition
    assert not list(undocumented(cls, OperatorBuilder(cls).signature))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_described_that_is_not_there(name):
    cls = OPERATORS[name].definition
    parameters = set(OperatorBuilder(cls).signature.parameters)
    assert set(cls.extra) <= parameters
    for parameter in parameters:
        text = description(cls, parameter)
        assert not text or (len(text.split()) > 1 and not text.endswith((".", " ")) and "\n" not in text), text


@pytest.mark.parametrize("name", NAMES)
def test_every_page_can_be_made(name):
    cls = OPERATORS[name].definition
    text = OperatorBuilder(cls).__doc__
    assert text.startswith(f"{name}(") and all(code in text for code in errors(cls))
    assert max(map(len, text.splitlines())) <= 120


def test_a_page_says_all_there_is_to_know():
    text = relay.nn.conv2d.__doc__
    assert re.findall(r"^(\w+)$", text, re.M) == ["Parameters", "Result", "Errors", "Source"]
    for word in (
        "weight - expression: the kernels",
        "(O, C / groups, *kernel)",
        "strides - a list of whole numbers, default (1, 1): steps of the window",
        "out_dtype - a data type, default ''",
        "// stride + 1",
        "op.padding - ",
        "Dumoulin",
    ):
        assert word in text, word
