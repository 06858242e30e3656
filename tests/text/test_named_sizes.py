"""Sizes with names are read by their names wherever a text is not read back."""

from __future__ import annotations

from relaylab import relay
from relaylab.ir import structural_equal
from relaylab.study.stage_text import Constants, printed


def program(name: str = "batch") -> relay.IRModule:
    batch, seq = relay.SizeVar(name), relay.SizeVar("seq")
    x = relay.var("x", shape=(batch, 2 * seq))
    return relay.transform.InferType()(relay.IRModule.from_expr(relay.nn.relu(x)))


def test_comments_name_sizes_and_a_line_says_what_references_are() -> None:
    mod = program()
    for text in (str(mod), str(mod["main"]), str(mod["main"].body)):
        assert "nn.relu(%x) /* ty=Tensor[(batch, 2 * seq), float32] */" in text
        assert text.rstrip().endswith("/* meta[tir.SizeVar][0] is batch, meta[tir.Mul][0] is 2 * seq */")
    assert str(relay.const(1)) == "1", "nothing is said where there are no sizes"


def test_a_text_with_names_in_its_comments_is_read_back() -> None:
    mod = program("ba*/tch /*")
    again = relay.parse(mod.astext())
    assert structural_equal(again, mod, map_free_vars=True)
    assert str(again["main"].params[0].type_annotation) == "Tensor[(ba*/tch /*, 2 * seq), float32]"
    assert relay.parse(str(mod))["main"].params[0].name_hint == "x"


def test_the_explorer_shows_names() -> None:
    text = "\n".join(printed(program(), Constants()).lines)
    assert "%x: Tensor[(batch, 2 * seq), float32]" in text and "meta[" not in text
