"""The explorer speaks Chinese: every visible word of its scripts, and of the Python that feeds it, is in the table."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest
from support.wording import PLACE, Said, all_said, plain

from relaylab.explorer.session import Session
from relaylab.explorer.wording import TABLES, wording
from relaylab.study import explore
from relaylab.support import language

HOW = (
    "Add them to relaylab/explorer/languages/zh.json: the English text, with {names} where the program puts something, "
    "and the Chinese one with the same {names}. What is no text for people goes into NO_WORDS of this test."
)
PIECES = re.compile(rf"{PLACE.pattern}|[.:…,]")
NO_WORDS = {
    ".node, .group": "a selector",
    "text-title b": "classes",
    "let {}": "Relay",
    "main/{}": "an id",
    "before": "the name of a choice",
    "program": "the name of a choice",
    "differences {} of {}": "how far a command is",
    "off": "a value of autocomplete",
    "Alt ↑ ↓": "keys",
    "Ctrl Z": "keys",
    "Home End": "keys",
    "{} ms": "a unit",
    "(prefers-reduced-motion: reduce)": "a question to the browser",
    "type was": "the begin of a note of the diff",
    "{} {}  {} ms": "a unit",
    "{}  {} ms  {}": "a unit",
    "op:nn.conv2d & !dtype:float16, cost>1e6 | users>1, name:/^%layer/, role:added, words": "queries",
    "MACs bytes intensity users inputs cost bytes_read bytes_written time": "words of queries",
    "from relaylab import relay\n\n{} = relay.parse({})\n": "Python",
    "Mapping[object, object]": "a type",
    "dict[str, object]": "a type",
    "a message is a question with a list of arguments, not {}": "only a page of somebody else's sees it",
    "a pass is moved to a place, not to {}": "only a page of somebody else's sees it",
    "the pipeline has {} passes, not one at {}": "for callers",
    "ask of FuseOps, SimplifyExpr, a rule, a DFPatternCallback, a pattern": "for callers",
    "it is not made of rules or patterns; it would change this program{}": "only in the command",
    "it is not made of rules or patterns; it changes nothing here": "only in the command",
    "there is nothing here that it looks at": "only in the command",
    "picture format": "for callers",
    "this picture is no graph, which .{} needs": "for callers",
    "the suffix is {}": "for callers",
    "{} There are: {}": "for callers",
    "{} rules": "only in the command",
    "{} into {}": "a name of two nodes",
    "{} to {}": "only in the command",
}
COMPOSED = {
    "`{name}` at {place}": "a node and its place",
    "1 dimension expected, {words} has {there}": "of two texts",
    "{n} dimensions expected, {words} has {there}": "of two texts",
    "an elementwise operator": "a kind of operators",
    "a broadcasting operator": "a kind of operators",
    "an injective operator": "a kind of operators",
    "a reduction": "a kind of operators",
    "a heavy operator": "a kind of operators",
    "an opaque operator": "a kind of operators",
    "… 1 more input": "a count of what is passed on",
    "… {n} more inputs": "a count of what is passed on",
    "… 1 more user": "a count of what is passed on",
    "… {n} more users": "a count of what is passed on",
    "Changed": "the first word of a sentence made of a role",
    "Moved": "the first word of a sentence made of a role",
    "In other ways": "the first words of a sentence",
    "No pass of this pipeline is made of rules.": "a note with a capital",
    "It looks at no node like this.": "a note with a capital",
    "{name} is not made of rules or patterns.": "a note with a capital",
    "None of its {n} rules begins with {words}.": "a note with a capital",
    "None of its {n} rules begins with {words}; they begin with {list}.": "a note with a capital",
}


@cache
def said() -> list[Said]:
    return all_said()


def part_of(text: str, keys: str) -> bool:
    """Whether a text is one of several lines, or words of one."""
    return re.search(rf"(?<!\w){re.escape(text.strip())}(?!\w)", keys) is not None


def fills(text: str, keys: list[str]) -> bool:
    """Whether there is a key for what a text with places may become."""
    return "{}" in text and any(map(like(text).fullmatch, keys))


@cache
def like(text: str) -> re.Pattern[str]:
    """What a text with places may become."""
    return re.compile(".*".join(map(re.escape, text.strip().split("{}"))), re.DOTALL)


def test_every_visible_word_has_a_chinese_one():
    keys = [plain(k) for k in wording("zh")]
    known, lines = set(keys), "\n".join(k for k in keys if " " in k)
    texts = {s.text: s.place for s in said() if s.shown and s.text not in NO_WORDS}
    missing = [
        f"{text!r} ({place})"
        for text, place in texts.items()
        if text.strip() not in known and not (" " in text.strip() and part_of(text, lines)) and not fills(text, keys)
    ]
    assert not missing, "\n  ".join(["these words of the explorer are only said in English:", *missing]) + f"\n{HOW}"


def test_the_table_has_no_word_that_nobody_says():
    texts = {s.text.strip() for s in said()}
    lines = "\n".join(texts)
    templates = [t for t in texts if "{}" in t and re.search("[a-z]{3}", t)]
    spare = [
        key
        for key in wording("zh")
        if key not in COMPOSED
        and plain(key) not in texts
        and not any(fills(t, [plain(key)]) for t in templates)
        and not ("{" in key and all(part_of(p, lines) for p in PIECES.split(key) if p.strip()))
    ]
    assert not spare, f"nobody says this any more, take it out of zh.json: {spare}"


def test_what_the_exceptions_name_is_there():
    texts = {s.text for s in said()}
    assert not [t for t in NO_WORDS if t not in texts], "these are said no more: take them out of NO_WORDS"
    assert set(COMPOSED) <= set(wording("zh")) and not texts & COMPOSED.keys()


def test_translations_have_the_places_of_the_english_text():
    for path in TABLES.glob("*.json"):
        pairs = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=list)
        assert len(pairs) == len(dict(pairs)), "a text is translated twice"
        for english, other in pairs:
            places = PLACE.findall(english)
            assert len(set(places)) == len(places) and sorted(PLACE.findall(other)) == sorted(places), english
            assert english == english.strip() and other and english.replace(" ", "") != "", english


def test_a_session_gives_the_words_of_a_language():
    session = Session(explore("mlp"))
    assert session.ask("wording", "zh")["table"]["in words"] == "用文字说"
    assert session.ask("wording", "en") == session.ask("wording", "../zh") == {"table": {}}


@pytest.mark.parametrize(
    ("told", "expected"), [({"LANG": "zh_CN.UTF-8"}, "zh"), ({"LANG": "de_DE"}, "en"), ({}, "en"),
                           ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"), ({"LANGUAGE": "zh", "LANG": "C"}, "zh")],
)  # fmt: skip
def test_the_environment_names_a_language(monkeypatch, told, expected):
    for name in language.ASKED:
        monkeypatch.delenv(name, raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    assert language.preferred() == expected
