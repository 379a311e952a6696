"""Many tags behind one trigger are handed to the core as they are: the same masks as those of the
tags written as grammar text."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.profiles import CASES, examples
from tokfold import Grammar, LimitExceededError, Vocabulary, _core
from tokfold.structural_tags import known

TEXTS = [bytes([byte]) for byte in b"abcx<>/=f{}'1\xc3\xa9"] + [
    b"<f",
    b"=a",
    b"ab",
    b">x",
    b"/>",
    b"aa",
]
VOCABULARY = Vocabulary([*TEXTS, b"</s>"], stop_token_ids=[len(TEXTS)])
CONTENTS = [
    "root ::= [xab]{1,3}",
    "root ::= [xab]{1,3} | root2\nroot2 ::= root2 root2",
    'root ::= x*\nx ::= "x"',
    'root ::= ""',
    'root ::= "x" root | root "x"',
    'root ::= s | "{" root "}"\ns ::= "\'" [^\'] * "\'"',
    'root ::= root "a" | "a"',
    'root ::= "x"{40,90}',
]
BEGINS = ["<f", "<f=", "<fa", "<fab", "<faa", "<f=a>", "<fé", "<f<f"]
ENDS = ["</>", "", ">", "a", "</f>", "é", "x"]


def content(kind: int) -> dict[str, Any]:
    return {"type": "grammar", "grammar": CONTENTS[kind]}


def made(format: dict[str, Any], many: int) -> Grammar:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", many)
        return Grammar.from_structural_tag({"format": format})


def mask_of(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def tags(random: Random, count: int) -> list[dict[str, Any]]:
    def one() -> dict[str, Any]:
        ends = random.sample(ENDS, random.choice([1, 1, 2]))
        return {
            "type": "tag",
            "begin": random.choice(BEGINS),
            "content": content(random.choice([*range(len(CONTENTS)), 0, 0, 5])),
            "end": ends[0] if len(ends) == 1 else ends,
        }

    return [one() for _ in range(count)]


def walk(random: Random, matchers: list[tokfold.Matcher], likely: bytes) -> None:
    for _ in range(25):
        masks = [mask_of(matcher) for matcher in matchers]
        assert all(mask == masks[0] for mask in masks)
        assert len({matcher.is_accepting for matcher in matchers}) == 1
        CASES["tags handed over: masks"] += 1
        allowed = [token for token in masks[0] if token < len(TEXTS)]
        near = [token for token in allowed if TEXTS[token][:1] in likely]
        if not allowed:
            return
        token = random.choice(near or allowed)
        assert all(matcher.accept_token(token) for matcher in matchers)


def in_all_ways(found: Grammar, at_once: Grammar) -> list[tokfold.CompiledGrammar]:
    """Two grammars that are the same, one made by changes, compiled in every way."""
    assert found == at_once
    out = [
        tokfold.compile(found, VOCABULARY, classes="never"),
        tokfold.compile(at_once, VOCABULARY, classes="never", engine="chart"),
        tokfold.compile(at_once, VOCABULARY, classes="never", count_repetitions=False),
        tokfold.compile(at_once, VOCABULARY, classes="now"),
        tokfold.compile(Grammar.from_ebnf(str(at_once)), VOCABULARY, classes="never"),
    ]
    again = tokfold.compile(at_once, VOCABULARY, classes="never")
    assert again._core.fingerprint == out[0]._core.fingerprint
    return out


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(80)
def test_as_written(random: Random):
    """Beginnings that begin like others or are all of the trigger, ends that are empty or several,
    tags twice, contents that may be empty, have no string, are left-recursive, count."""
    there = tags(random, random.randint(1, 7))
    more = tags(random, random.randint(0, 3))
    format = {"type": "triggered_tags", "triggers": ["<f"], "tags": there}
    if random.random() < 0.3:
        format["at_least_one"] = True
    if random.random() < 0.2:
        format["stop_after_first"] = True
    try:
        written = made({**format, "tags": there + more}, 1_000)
        compiled = [tokfold.compile(written, VOCABULARY, classes="never")]
    except tokfold.UnsupportedGrammarError:  # it has no string at all
        with pytest.raises(tokfold.UnsupportedGrammarError):
            tokfold.compile(made({**format, "tags": there + more}, 1), VOCABULARY)
        return
    found = made(format, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", 1)
        found = found.with_tags(more)
    at_once = made({**format, "tags": there + more}, 1)
    compiled += in_all_ways(found, at_once)
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=axb")
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=ab>x/{'1}\xc3\xa9")
    CASES["tags handed over: grammars"] += 1


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(80)
def test_free_text_as_written(random: Random):
    """Patterns that begin like others or hold them, excluded texts within them and at their ends,
    contents of all kinds, one end or none, with a loop and without."""
    patterns = ["<f", "<fa>", "<fab>", "<f=a>", "a<f=", "ab", "<fé", "x<", "=a=a"]

    def rule(pattern: str) -> list[Any]:
        leaf = content(random.choice([*range(len(CONTENTS)), 0, 0, 5]))
        end = random.choice([None, "</>", "", ">", "a", "<f"])
        last = {"type": "const_string", "value": end}
        return [
            pattern,
            leaf if end is None else {"type": "sequence", "elements": [leaf, last]},
        ]

    names = random.sample(patterns, random.randint(1, 6))
    there = [rule(pattern) for pattern in names]
    more = [rule(pattern) for pattern in patterns if pattern not in names][: random.randint(0, 2)]
    if random.random() < 0.1:
        more = [rule(names[0])]
    format = {"type": "dispatch", "rules": there, "loop": random.random() < 0.7}
    if random.random() < 0.4:
        format["excludes"] = random.sample(["</", "f=a", "<fa", "x'", "<f"], random.randint(1, 2))
    everything = {**format, "rules": there + more}
    written = made(everything, 1_000)
    found = made(format, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", 1)
        found = found.with_tags(more)
    at_once = made(everything, 1)
    compiled = [tokfold.compile(written, VOCABULARY, classes="never")]
    compiled += in_all_ways(found, at_once)
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=axb>")
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=ab>x/{'1}\xc3\xa9")
    is_handed_over = any(part._tags is not None for part in at_once._parts.values())
    CASES[f"free text {'handed over' if is_handed_over else 'written'}: grammars"] += 1


@pytest.mark.parametrize("form", ["triggered_tags", "dispatch"])
@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(60)
def test_tags_come_and_go(form: str, random: Random):
    """However the tags came to be there, the core has those that are, in their order."""
    leaves = [content(kind) for kind in (0, 5, 6)]
    triggers = ["<f=", "<a="] if form == "triggered_tags" else []

    def one(name: str) -> Any:
        leaf = random.choice(leaves)
        if form == "dispatch":
            end = {"type": "const_string", "value": "</>"}
            return [name, {"type": "sequence", "elements": [leaf, end]}]
        return {"type": "tag", "begin": name, "content": leaf, "end": "</>"}

    def anew(there: dict[str, Any]) -> Grammar:
        if form == "dispatch":
            return made({"type": form, "rules": list(there.values())}, 2)
        begun = [t for t in triggers if any(name.startswith(t) for name in there)]
        return made({"type": form, "triggers": begun, "tags": list(there.values())}, 2)

    names = [f"<{letter}={c}>" for letter in "fa" for c in "abcx1'"]
    there = {name: one(name) for name in random.sample(names, random.randint(4, 8))}
    if form == "triggered_tags":
        there = {"<f=": one("<f="), "<a=": one("<a="), **there}
    found = anew(there)
    keep = ["<f=", "<a="] if form == "triggered_tags" else []
    for _ in range(random.randint(1, 4)):
        gone = random.sample(
            [n for n in there if n not in keep], random.randint(0, len(there) - len(keep) - 1)
        )
        new = [name for name in names if name not in there and random.random() < 0.3]
        added = {name: one(name) for name in new}
        there = {name: tag for name, tag in there.items() if name not in gone} | added
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(known, "MANY_TAGS", 2)
            found = found.with_tags(added.values(), removed=gone)
        now = anew(there)
        assert found._key == now._key
        assert hash(found._key) == hash(now._key)
    assert found == now
    compiled = [tokfold.compile(one, VOCABULARY, classes="never") for one in (found, now)]
    assert compiled[0]._core.fingerprint == compiled[1]._core.fingerprint
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=abcx1>'{")
    CASES["tags that come and go: grammars"] += 1


def test_few_are_written():
    tag = {"type": "tag", "begin": "<f>", "content": content(0), "end": "</f>"}
    few = [{**tag, "begin": f"<f{n}>"} for n in range(known.MANY_TAGS - 1)]
    format = {"type": "triggered_tags", "triggers": ["<f"], "tags": few}
    grammar = Grammar.from_structural_tag({"format": format})
    assert not any(part._tags for part in grammar._parts.values())
    more = grammar.with_tags([tag])
    (part,) = more._parts.values()
    assert part._tags is not None
    assert len(part._tags) == known.MANY_TAGS


def test_what_is_handed_over_once_is_not_again(monkeypatch):
    """One tag more touches the new one alone."""
    monkeypatch.setattr(known, "MANY_TAGS", 2)
    tag = {"type": "tag", "content": content(0), "end": "</f>"}
    there = [{**tag, "begin": f"<f{n}>"} for n in range(5)]
    format = {"type": "triggered_tags", "triggers": ["<f"], "tags": there}
    grammar = Grammar.from_structural_tag({"format": format})
    given = []
    plain = known._given
    monkeypatch.setattr(
        known,
        "_given",
        lambda tags, trigger, cache: given.extend(tags) or plain(tags, trigger, cache),
    )
    more = grammar.with_tags([{**tag, "begin": "<fnew>"}])
    assert [tag.begin for tag in given] == ["<fnew>"]
    assert more == Grammar.from_structural_tag(
        {"format": {**format, "tags": [*there, {**tag, "begin": "<fnew>"}]}}
    )


def test_limits_hold():
    core = Grammar.from_ebnf('root ::= "a"')._core
    with pytest.raises(LimitExceededError, match="max_grammar_bytes"):
        _core.Tags([("b" * 200, core, core, ["c"])], {"max_grammar_bytes": 100})
    few = _core.Tags([("b", core, core, ["c"])])
    with pytest.raises(LimitExceededError, match="max_grammar_bytes"):
        few.changed([], [("b" * 200, core, core, ["c"])], {"max_grammar_bytes": 100})
    assert len(few) == 1
    frame = Grammar.from_ebnf('root ::= tags\ntags ::= "-"')._core
    many = _core.Tags([(str(n), core, core, ["c"]) for n in range(50)])
    with pytest.raises(LimitExceededError, match="max_rules"):
        frame.check_composed([("tags", many)], {"max_rules": 60})
    tag = {"type": "tag", "begin": "<f", "content": content(0), "end": "x" * 300}
    names = [{**tag, "begin": f"<f{n}"} for n in range(known.MANY_TAGS)]
    large = {"type": "triggered_tags", "triggers": ["<f"], "tags": names}
    limits = tokfold.Limits(max_network_states=200)
    with pytest.raises(LimitExceededError, match="max_network_states"):
        tokfold.compile(Grammar.from_structural_tag({"format": large}), VOCABULARY, limits)


def test_known_by_what_they_are_made_of(monkeypatch):
    """A compiler knows the grammar of the same tags, without putting any together."""
    monkeypatch.setattr(known, "MANY_TAGS", 2)
    tag = {"type": "tag", "content": content(0), "end": "</f>"}
    there = [{**tag, "begin": f"<f{n}>"} for n in range(3)]
    new = {**tag, "begin": "<fnew>", "content": content(5)}

    def grammar(tags: list[dict[str, Any]]) -> Grammar:
        format = {"type": "triggered_tags", "triggers": ["<f"], "tags": tags}
        return Grammar.from_structural_tag({"format": format})

    found, other, more = grammar(there), grammar(there), grammar(there).with_tags([new])
    assert found._key == other._key
    assert hash(found._key) == hash(other._key)
    assert more._key == grammar([*there, new])._key
    different = [
        grammar([*there, {**new, "begin": "<fnext>"}]),
        grammar([*there, {**new, "end": "</g>"}]),
        grammar([*there, {**new, "content": content(2)}]),
        grammar([new, *there]),
        grammar(there),
    ]
    assert all(more._key != one._key for one in different)
    compiler = tokfold.GrammarCompiler(VOCABULARY, classes="never")
    compiled = compiler.compile_grammar(more)
    assert compiler.compile_grammar(grammar([*there, new])) is compiled
    assert all(compiler.compile_grammar(one) is not compiled for one in different)
    assert more._whole is None
    assert different[0]._whole is None
    plain = Grammar.from_ebnf(str(more), lookahead="implied")
    assert plain == more
    assert plain._key is plain
