"""Many tags at one place are handed to the core as they are: the same masks as those of the tags
written as grammar text."""

from __future__ import annotations

import gc
from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.engine import compiled_with
from strategies.profiles import CASES, examples
from tokfold import Grammar, LimitExceededError, Vocabulary, _core
from tokfold._tags import known

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


def any_content(random: Random) -> dict[str, Any]:
    """A content of any kind: of the core as it is, put together by itself, or with the frame."""
    if random.random() < 0.5:
        return content(random.choice([*range(len(CONTENTS)), 0, 0, 5]))
    text = {"type": "const_string", "value": random.choice(["", "a", "=x", "</"])}
    free = {"type": "any_text", "excludes": random.sample(["</", "xx", "a>"], random.randint(0, 2))}
    inner = {"type": "tag", "begin": random.choice(["", "<"]), "content": content(0), "end": "a"}
    token = TEXTS.index(b"ab")
    macro = random.choice(['TagDispatch(("a", b))\nb ::= "b"', f"Token({token})", '"a"'])
    one, other = content(random.choice([0, 2, 3])), content(random.choice([0, 4]))
    return random.choice(
        [
            text,
            free,
            {"type": "sequence", "elements": [one, text, other]},
            {"type": "sequence", "elements": [one, one, text]},
            {"type": "sequence", "elements": [text, {**free, "excludes": ["x"]}]},
            {"type": "sequence", "elements": [one] * 5},
            {"type": "optional", "content": one},
            {"type": "tags_with_separator", "tags": [inner], "separator": "="},
            {"type": "triggered_tags", "triggers": ["<"], "tags": [{**inner, "begin": "<f"}]},
            {**inner, "content": {**free, "excludes": []}},
            {"type": "grammar", "grammar": f'root ::= "x" {macro}'},
            {"type": "token", "token": token},
        ]
    )


def made(format: dict[str, Any], many: int) -> Grammar:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", many)
        return Grammar.from_structural_tag({"format": format})


def mask_of(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def tags(random: Random, count: int, of_all_kinds: bool = False) -> list[dict[str, Any]]:
    def one() -> dict[str, Any]:
        ends = random.sample(ENDS, random.choice([1, 1, 2]))
        return {
            "type": "tag",
            "begin": random.choice(BEGINS),
            "content": content(random.choice([*range(len(CONTENTS)), 0, 0, 5])),
            "end": ends[0] if len(ends) == 1 else ends,
        }

    def of_any_kind() -> dict[str, Any]:
        tag = one() | {"content": any_content(random)}
        if tag["end"] == "":
            tag["end"] = ">"  # what goes on for ever has an end
        if random.random() < 0.1:
            tag["end"] = {"type": "token", "token": TEXTS.index(b"/>")}
        return tag

    if of_all_kinds:
        return [random.choice([one, of_any_kind])() for _ in range(count)]

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
    chart = "auto" if at_once._takes_tokens else "chart"
    out = [
        tokfold.compile(found, VOCABULARY, classes="never"),
        compiled_with(at_once, VOCABULARY, classes="never", engine=chart),
        compiled_with(at_once, VOCABULARY, classes="never", _count_repetitions=False),
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


def flags(random: Random) -> dict[str, bool]:
    return {name: True for name in ("at_least_one", "stop_after_first") if random.random() < 0.5}


@pytest.mark.parametrize("form", ["triggered_tags", "tags_with_separator", "or", "within"])
@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(40)
def test_every_shape_as_written(form: str, random: Random):
    """Tags that must come, once or more, between separators, in a choice, within another tag; with
    contents of all kinds, some of which are written beside the others."""
    there = tags(random, random.randint(1, 6), True)
    more = tags(random, random.randint(0, 3), True) if form != "or" else []
    if form == "or":
        others = [content(0)] * random.randint(0, 1)
        format: dict[str, Any] = {"type": "or", "elements": [*others, *there]}
    elif form == "triggered_tags":
        triggers = random.choice([["<f"], ["<fa", "<f=", "<fé", "<f<", "<f>"]])
        if len(triggers) > 1:
            there, more = ([t for t in ts if t["begin"] != "<f"] for ts in (there, more))
            there.append({**tags(random, 1, True)[0], "begin": "<f>"})
            begins = [tag["begin"] for tag in there + more]
            triggers = [t for t in triggers if any(begin.startswith(t) for begin in begins)]
        format = {"type": form, "triggers": triggers, "tags": there, **flags(random)}
    else:
        separator = random.choice(["", "a", ">", "</", "<f"])
        format = {"type": "tags_with_separator", "tags": there, "separator": separator}
        format |= flags(random)

    def around(format: dict[str, Any]) -> dict[str, Any]:
        if form != "within":
            return format
        tag = {"type": "tag", "begin": "=<", "content": format, "end": ">>"}
        return {"type": "triggered_tags", "triggers": ["="], "tags": [tag]}

    everything = format if form == "or" else {**format, "tags": there + more}
    try:
        written = made(around(everything), 1_000)
        compiled = [tokfold.compile(written, VOCABULARY, classes="never")]
    except tokfold.UnsupportedGrammarError:  # it has no string at all
        with pytest.raises(tokfold.UnsupportedGrammarError):
            tokfold.compile(made(around(everything), 1), VOCABULARY)
        return
    found = at_once = made(around(everything), 1)
    if more and {*(t["begin"][:3] for t in more)} <= {*(t["begin"][:3] for t in there)}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(known, "MANY_TAGS", 1)
            begun = [t["begin"][:3] for t in there]
            only = [
                t for t in format.get("triggers", ()) if any(t[:3] == b[: len(t)] for b in begun)
            ]
            first = {**format, "triggers": only} if only else format
            found = made(around(first), 1).with_tags(more)
    compiled += in_all_ways(found, at_once)
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=axb>")
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=ab>x/{'1}\xc3\xa9")
    is_handed_over = any(part._tags is not None for part in at_once._source.parts.values())
    CASES[f"{form}, {'handed over' if is_handed_over else 'written'}: grammars"] += 1


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(80)
def test_free_text_as_written(random: Random):
    """Patterns that begin like others or hold them, excluded texts within them and at their ends,
    contents of all kinds, one end or none, with a loop and without, in a tag and alone."""
    patterns = ["<f", "<fa>", "<fab>", "<f=a>", "a<f=", "ab", "<fé", "x<", "=a=a"]

    def rule(pattern: str) -> list[Any]:
        leaf = content(random.choice([*range(len(CONTENTS)), 0, 0, 5]))
        end = random.choice([None, "</>", "", ">", "a", "<f"])
        if random.random() < 0.4:
            leaf = any_content(random)
        if random.random() < 0.2:
            tag = {"type": "tag", "begin": random.choice(["", "a="]), "content": leaf}
            return [pattern, {**tag, "end": random.choice([">", "</>", [">", "x"]])}]
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
    is_within = random.random() < 0.3

    def around(format: dict[str, Any]) -> dict[str, Any]:
        tag = {"type": "tag", "begin": "=", "content": format, "end": "x>"}
        return tag if is_within else format

    everything = around({**format, "rules": there + more})
    written = made(everything, 1_000)
    found = made(around(format), 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", 1)
        found = found.with_tags(more)
    at_once = made(everything, 1)
    compiled = [tokfold.compile(written, VOCABULARY, classes="never")]
    compiled += in_all_ways(found, at_once)
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=axb>")
    walk(random, [tokfold.Matcher(one) for one in compiled], b"<f=ab>x/{'1}\xc3\xa9")
    is_handed_over = any(part._tags is not None for part in at_once._source.parts.values())
    CASES[f"free text {'handed over' if is_handed_over else 'written'}: grammars"] += 1


@pytest.mark.parametrize(
    "form", ["triggered_tags", "dispatch", "required", "one", "tags_with_separator"]
)
@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(40)
def test_tags_come_and_go(form: str, random: Random):
    """However the tags came to be there, the core has those that are, in their order; beside them
    are those that are written."""
    leaves = [content(kind) for kind in (0, 5, 6)] + [{"type": "any_text"}]
    if form != "dispatch":
        leaves.append({"type": "token", "token": TEXTS.index(b"ab")})
    of_one = {"required": ["at_least_one"], "one": ["at_least_one", "stop_after_first"]}
    required = dict.fromkeys(of_one.get(form, []), True)
    if form in of_one:
        form = "triggered_tags"
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
        tags = list(there.values())
        if form == "tags_with_separator":
            return made({"type": form, "separator": ">", "tags": tags}, 2)
        begun = [t for t in triggers if any(name.startswith(t) for name in there)]
        return made({"type": form, "triggers": begun, "tags": tags, **required}, 2)

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


def test_what_tells_parts_apart():
    """Tags at two places that are alike but for a text, or for one of the contents."""
    one, text = content(0), {"type": "const_string", "value": "="}

    def tags(*elements: dict[str, Any], begin: str = "<", end: str = ">") -> dict[str, Any]:
        inner = {"type": "sequence", "elements": list(elements)}
        tag = {"type": "tag", "begin": begin, "content": inner, "end": end}
        return {"type": "tags_with_separator", "tags": [tag], "separator": "", "at_least_one": True}

    kinds = [
        tags(one, text, one),
        tags(one, {**text, "value": "a"}, one),
        tags(one, text, content(2)),
        tags(one, text, content(5)),
        tags(one, text, {"type": "any_text"}),
        tags(one, text, {"type": "any_text", "excludes": ["x"]}),
        tags(one, text, {"type": "any_text"}, end="/>"),
        tags(one, text),
        tags(text, one),
        tags(one, text, one, begin="<f"),
    ]
    for kind in kinds:
        for other in kinds:
            format = {"type": "sequence", "elements": [kind, other]}
            compiled = [
                tokfold.compile(made(format, many), VOCABULARY, classes="never")
                for many in (1, 1_000)
            ]
            for seed in range(3):
                matchers = [tokfold.Matcher(each) for each in compiled]
                walk(Random(seed), matchers, b"<f=axb>/")


@pytest.mark.parametrize("begins", [["<a", "<a", "<a"], ["<a", "<b", "<ab"], ["<", "<a", "<x"]])
def test_contents_in_a_row(begins: list[str]):
    """Calls with a number before the name, or behind it: what is read first is the same, and what
    follows is that of the tag."""
    number = content(0)
    rests = [("=", content(5)), ("a", content(0)), ("=", content(4))]

    def tag(begin: str, text: str, last: dict[str, Any]) -> dict[str, Any]:
        elements = [number, {"type": "const_string", "value": text}, last]
        inner = {"type": "sequence", "elements": elements}
        return {"type": "tag", "begin": begin, "content": inner, "end": ">"}

    tags = [tag(begin, *rest) for begin, rest in zip(begins, rests, strict=True)]
    format = {"type": "tags_with_separator", "tags": tags, "separator": "", "at_least_one": True}
    compiled = [
        tokfold.compile(made(format, many), VOCABULARY, classes="never") for many in (1, 1_000)
    ]
    for seed in range(10):
        walk(Random(seed), [tokfold.Matcher(each) for each in compiled], b"<abx=>'{}")


def test_nothing_is_left_for_the_collector():
    """A server that makes one grammar for each request drops all of it with its last reference."""
    tag = {"type": "tag", "begin": "<f>", "content": {"type": "any_text"}, "end": "</f>"}
    format = {"type": "triggered_tags", "triggers": ["<f"], "tags": [tag]}
    made(format, 1)
    gc.collect()
    gc.disable()
    try:
        made(format, 1)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_few_are_written():
    tag = {"type": "tag", "begin": "<f>", "content": content(0), "end": "</f>"}
    few = [{**tag, "begin": f"<f{n}>"} for n in range(known.MANY_TAGS - 1)]
    format = {"type": "triggered_tags", "triggers": ["<f"], "tags": few}
    grammar = Grammar.from_structural_tag({"format": format})
    assert not any(part._tags for part in grammar._source.parts.values())
    more = grammar.with_tags([tag])
    (part,) = more._source.parts.values()
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
    plain = known.of_tag
    monkeypatch.setattr(
        known,
        "of_tag",
        lambda tag, trigger, makers: given.append(tag) or plain(tag, trigger, makers),
    )
    more = grammar.with_tags([{**tag, "begin": "<fnew>"}])
    assert [tag.begin for tag in given] == ["<fnew>"]
    assert more == Grammar.from_structural_tag(
        {"format": {**format, "tags": [*there, {**tag, "begin": "<fnew>"}]}}
    )


def test_limits_hold():
    core = Grammar.from_ebnf('root ::= "a"')._core
    limits = tokfold.Limits(max_grammar_bytes=100)
    with pytest.raises(LimitExceededError, match="max_grammar_bytes"):
        _core.Tags([("b" * 200, [("", core, core)], ["c"])], limits)
    few = _core.Tags([("b", [("", core, core)], ["c"])])
    with pytest.raises(LimitExceededError, match="max_grammar_bytes"):
        few.changed([], [("b" * 200, [("", core, core)], ["c"])], limits)
    assert len(few) == 1
    frame = Grammar.from_ebnf('root ::= tags\ntags ::= "-"')._core
    many = _core.Tags([(str(n), [("", core, core)], ["c"]) for n in range(50)])
    with pytest.raises(LimitExceededError, match="max_rules"):
        _core.check_composed(frame, [("tags", many)], tokfold.Limits(max_rules=60))
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
    assert more.__dict__.get("_core") is None
    assert different[0].__dict__.get("_core") is None
    plain = Grammar.from_ebnf(str(more), lookahead="implied")
    assert plain == more
    assert plain._key is plain
