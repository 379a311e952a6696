"""Tools that come and go: the changed grammar is that of the changed tag; texts go on with it."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.profiles import CASES, examples
from tokfold import ArgumentTypeError, Grammar, MatcherStateError, StructuralTagError, Vocabulary
from tokfold._tags import known
from tokfold._tags.leaves import default_cache

TEXTS = [bytes([byte]) for byte in range(32, 127)] + [
    b"<f=",
    b"</f>",
    b"one>",
    b"two",
    b'{"a"',
    b"11",
]
VOCABULARY = Vocabulary([*TEXTS, b"</s>", b"<|call|>"], stop_token_ids=[len(TEXTS)])
CALL = len(TEXTS) + 1


def content(kind: int) -> dict[str, Any]:
    return [
        {"type": "grammar", "grammar": 'root ::= "{" [0-9]{1,20} "}"'},
        {"type": "const_string", "value": "x"},
        {"type": "grammar", "grammar": 'root ::= s | "(" root ")"\ns ::= "\'" [^\']* "\'"'},
        {"type": "any_text"},
    ][kind]


def tag(name: str, kind: int = 0) -> dict[str, Any]:
    return {"type": "tag", "begin": f"<f={name}>", "content": content(kind), "end": "</f>"}


def rule(name: str, kind: int = 0) -> list[Any]:
    end = {"type": "const_string", "value": "</f>"}
    return [f"<f={name}>", {"type": "sequence", "elements": [content(kind), end]}]


def triggered(tags: list[Any], **more: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<f="], "tags": tags, **more}


def dispatch(rules: list[Any]) -> dict[str, Any]:
    return {"type": "dispatch", "rules": rules}


def required(tags: list[Any]) -> dict[str, Any]:
    return triggered(tags, at_least_one=True)


def one_call(tags: list[Any]) -> dict[str, Any]:
    return triggered(tags, at_least_one=True, stop_after_first=True)


def separated(tags: list[Any]) -> dict[str, Any]:
    return {"type": "tags_with_separator", "tags": tags, "separator": ", "}


def section(tags: list[Any]) -> dict[str, Any]:
    """Calls in a tag that free text calls."""
    calls = {"type": "tag", "begin": "<calls>", "content": separated(tags), "end": "</calls>"}
    return {"type": "triggered_tags", "triggers": ["<calls>"], "tags": [calls]}


def thinking(format: dict[str, Any]) -> dict[str, Any]:
    think = {"type": "tag", "begin": "<t>", "content": {"type": "any_text"}, "end": "</t>"}
    return {"type": "sequence", "elements": [think, format]}


def grammar(format: dict[str, Any]) -> Grammar:
    return Grammar.from_structural_tag({"format": format}, VOCABULARY)


def compiled(found: Grammar) -> tokfold.CompiledGrammar:
    return tokfold.compile(found, VOCABULARY, classes="never")


def mask_of(matcher: tokfold.Matcher) -> list[int]:
    row = tokfold.allocate_bitmask(1, len(VOCABULARY))
    matcher.fill_bitmask(row)
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


@pytest.fixture(autouse=True, scope="module", params=["handed over", "written"])
def _way(request):
    """Tags behind a trigger as the core has them, and as text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(known, "MANY_TAGS", 1 if request.param == "handed over" else 1_000)
        yield


FORMS = {"triggered": (triggered, tag), "dispatch": (dispatch, rule)}
ALL_FORMS = {
    **FORMS,
    **{form.__name__: (form, tag) for form in (required, one_call, separated, section)},
}


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(60)
def test_changed_is_made_anew(random: Random):
    """Tags added and removed in any order: the grammar and the network of the tag they make."""
    form, one = ALL_FORMS[random.choice(list(ALL_FORMS))]
    around = random.choice([lambda format: format, thinking])
    names = ["one", "two", "on", "o", "three"]
    there = {name: random.randrange(4) for name in random.sample(names, random.randint(1, 3))}
    found = grammar(around(form([one(name, kind) for name, kind in there.items()])))
    for _ in range(random.randint(1, 4)):
        gone = random.sample(list(there), random.randint(0, len(there) - 1))
        new = {n: random.randrange(4) for n in names if n not in there and random.random() < 0.4}
        there = {n: k for n, k in there.items() if n not in gone} | new
        found = found.with_tags(
            added=[one(name, kind) for name, kind in new.items()],
            removed=[f"<f={name}>" for name in gone],
        )
    anew = grammar(around(form([one(name, kind) for name, kind in there.items()])))
    assert found == anew
    assert compiled(found)._core.fingerprint == compiled(anew)._core.fingerprint
    CASES["changed tags: networks"] += 1


@given(st.randoms(use_true_random=False, note_method_calls=False))
@examples(60)
def test_texts_go_on(random: Random):
    """Where a text may be moved, it goes on as a new text under the new grammar does, in which it
    has come to the free text; where it may not, it stays as it is."""
    form, one = FORMS[random.choice(list(FORMS))]
    is_thinking = random.random() < 0.4
    around = thinking if is_thinking else (lambda format: format)
    before = "<t>so</t>" if is_thinking else ""
    # With so many a dispatch is written down as it stands, most of its states falling back.
    others = [one(f"other tool {n}") for n in range(300)] if random.random() < 0.2 else []
    if form is triggered and known.MANY_TAGS == 1 and random.random() < 0.4:
        form, before = required, before + "<f=first>x</f>"
        others.append(one("first", 1))
    old = grammar(around(form([one("one"), one("two", 2), *others])))
    new = old.with_tags(added=[one("on", 1)], removed=[f"<f={random.choice(['one', 'two'])}>"])
    old_compiled, new_compiled = compiled(old), compiled(new)
    pieces = ["a", "<", "f=", "<f=", "two>", "one>", "{1}", "'q'", "</f>", "<f=one>{11}</f>", " "]
    text = before[: random.randint(0, len(before))]
    text = (
        before + "".join(random.choices(pieces, k=random.randint(0, 5))) if text == before else text
    )
    matcher = tokfold.Matcher(old_compiled)
    taken = 0
    while taken < len(text) and matcher.accept_bytes(text[taken].encode()):
        taken += 1
    state = matcher.state
    try:
        moved = matcher.moved_to(new_compiled)
    except MatcherStateError:
        assert matcher.state == state
        # Free text in which no tag has begun is never refused.
        rest = text[:taken].removeprefix(before)
        assert "<" in rest or not text[:taken].startswith(before)
        CASES["changed tags: refused"] += 1
        return
    assert matcher.state == state
    fresh = tokfold.Matcher(new_compiled)
    inside = text[:taken] if not text[:taken].startswith(before) else before
    assert fresh.accept_bytes(inside.encode())
    for _ in range(12):
        masks = [mask_of(moved), mask_of(fresh)]
        assert masks[0] == masks[1]
        assert moved.is_accepting == fresh.is_accepting
        CASES["changed tags: masks"] += 1
        allowed = [token for token in masks[0] if token < len(TEXTS)]
        likely = [token for token in allowed if TEXTS[token][:1] in b"<f=on>12{}'/x"]
        if not allowed:
            return
        token = random.choice(likely or allowed)
        assert moved.accept_token(token)
        assert fresh.accept_token(token)


def test_a_tool_comes_while_a_text_is_written():
    found = grammar(triggered([tag("one")]))
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(b"so <f=one>{7}</f> and")
    other = found.with_tags([tag("two", 1)], removed=["<f=one>"])
    moved = matcher.moved_to(compiled(other))
    assert moved.accept_bytes(b" then <f=two>x</f>")
    assert not moved.accept_bytes(b"<f=one>")
    assert matcher.accept_bytes(b"<f=one>")  # the old one is as it was
    assert moved.num_steps == 1


def test_a_move_keeps_the_options_of_the_text():
    """Stop tokens, the tokens that are left and ``prefer_end``; what the call names counts."""
    both = VOCABULARY.replace(stop_token_ids=[len(TEXTS), CALL])
    found = grammar(triggered([tag("one")]))
    before, other = (
        tokfold.compile(one, both, classes="never")
        for one in (found, found.with_tags([tag("two", 1)]))
    )
    letter = TEXTS.index(b"a")
    first = tokfold.Matcher(before, stop_token_ids=[CALL], max_tokens=9, prefer_end=2)
    for matcher in (first, first.fork()):
        assert matcher.accept_bytes(b"so ")
        assert matcher.accept_tokens([letter, letter]) == 2
        moved = matcher.moved_to(other)
        assert moved.stop_token_ids == matcher.stop_token_ids == (CALL,)
        assert (moved.tokens_left, moved.prefer_end) == (7, 2)
        assert moved.accept_tokens([letter] * 9) == 6
        assert moved.tokens_left == 1
        again = matcher.moved_to(other, max_tokens=3)
        assert (again.tokens_left, again.prefer_end) == (3, 2)
        free = matcher.moved_to(other, max_tokens=None, stop_token_ids=None)
        assert (free.tokens_left, free.prefer_end) == (None, 0)
        assert free.stop_token_ids == both.stop_token_ids
        assert matcher.moved_to(other, prefer_end=1).prefer_end == 1
        assert matcher.tokens_left == 7
    with pytest.raises(ValueError, match="prefer_end counts"):
        matcher.moved_to(other, max_tokens=None, prefer_end=1)


def test_a_move_keeps_how_a_text_ends():
    found = grammar(triggered([tag("one")], at_least_one=True, stop_after_first=True))
    other = compiled(found.with_tags([tag("two", 1)]))
    matcher = tokfold.Matcher(compiled(found), terminate_without_stop_token=True)
    moved = matcher.moved_to(other)
    assert moved.accept_bytes(b"<f=two>x</f>")
    assert moved.is_terminated


def test_a_budget_that_the_other_grammar_cannot_keep():
    found = grammar(triggered([tag("one")]))
    names = [f"name{number}" for number in range(9)]
    schema = {"type": "object", "properties": {key: {} for key in names}, "minProperties": 2}
    content = {"type": "json_schema", "json_schema": schema, "any_order": True}
    uncounted = found.with_tags([{**tag("two"), "content": content}])
    matcher = tokfold.Matcher(compiled(found), max_tokens=9)
    assert matcher.accept_bytes(b"so ")
    with pytest.raises(tokfold.UnsupportedGrammarError, match="members come in any order"):
        matcher.moved_to(compiled(uncounted))
    assert (matcher.tokens_left, matcher.text) == (9, b"so ")
    assert matcher.moved_to(compiled(found.with_tags([tag("two", 1)]))).tokens_left == 9


def test_a_move_to_what_is_not_compiled():
    found = grammar(triggered([tag("one")]))
    matcher = tokfold.Matcher(compiled(found))
    with pytest.raises(tokfold.ArgumentTypeError, match=r"CompiledGrammar, .*, not Grammar"):
        matcher.moved_to(found)


@pytest.mark.parametrize("text", ["<", "a <f", "<f=", "<f=one>", "<f=one>{1", "<f=one>{1}</"])
def test_no_dispatch_point(text):
    found = grammar(triggered([tag("one")]))
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(text.encode())
    with pytest.raises(MatcherStateError, match="dispatch point"):
        matcher.moved_to(compiled(found.with_tags([tag("two")])))


def test_what_is_in_a_tag_stays_there():
    """A tag whose content changes, tags that change places: a text inside is never moved, though
    all that it stands in is there under the other grammar too."""
    for make, one in FORMS.values():
        found = grammar(make([one("one", 0), one("two", 2)]))
        for kinds in ((2, 0), (1, 0), (2, 2)):
            added = [one("one", kinds[0]), one("two", kinds[1])]
            other = found.with_tags(added, removed=["<f=one>", "<f=two>"])
            matcher = tokfold.Matcher(compiled(found))
            assert matcher.accept_bytes(b"<f=one>{1")
            with pytest.raises(MatcherStateError, match="dispatch point"):
                matcher.moved_to(compiled(other))
    bare = dispatch([["<f=one>", content(0)], ["<f=two>", content(2)]])
    found = grammar(bare)
    other = found.with_tags([["<f=six>", content(0)]], removed=["<f=one>"])
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(b"<f=one>{1")
    with pytest.raises(MatcherStateError, match="dispatch point"):
        matcher.moved_to(compiled(other))


def test_before_the_free_text():
    found = grammar(thinking(triggered([tag("one")])))
    other = found.with_tags([tag("two")])
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(b"<t>so")
    with pytest.raises(MatcherStateError, match="dispatch point"):
        matcher.moved_to(compiled(other))
    assert matcher.accept_bytes(b"</t>")
    assert matcher.moved_to(compiled(other)).accept_bytes(b"<f=two>{1}</f>")


def test_the_same_grammar_again():
    """Where nothing has changed, a text goes on from anywhere."""
    found = grammar(triggered([tag("one")]))
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(b"a <f=one>{1")
    assert matcher.moved_to(compiled(found)).accept_bytes(b"}</f>")


def test_grammars_that_have_nothing_in_common():
    matcher = tokfold.Matcher(compiled(grammar(triggered([tag("one")]))))
    assert matcher.accept_bytes(b"a")
    plain = tokfold.compile(Grammar.from_ebnf('root ::= "a"*'), VOCABULARY, classes="never")
    with pytest.raises(MatcherStateError, match="structural tags"):
        matcher.moved_to(plain)
    with pytest.raises(MatcherStateError, match="structural tags"):
        tokfold.Matcher(plain).moved_to(matcher.compiled)
    thought = compiled(grammar(thinking(triggered([tag("one")]))))
    with pytest.raises(MatcherStateError, match="dispatch point"):
        matcher.moved_to(thought)
    others = Vocabulary([*TEXTS, b"</s>"], stop_token_ids=[len(TEXTS)])
    other = tokfold.compile(grammar(triggered([tag("one")])), others, classes="never")
    with pytest.raises(MatcherStateError, match="vocabulary"):
        matcher.moved_to(other)


def test_tokens_begin_tags():
    begin = {"type": "token", "token": CALL}
    one = {"type": "tag", "begin": begin, "content": content(1), "end": "</f>"}
    format = {"type": "token_triggered_tags", "trigger_tokens": [CALL], "tags": [one]}
    found = grammar(format)
    other = found.with_tags([{**one, "content": content(0)}], removed=[CALL])
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_token(TEXTS.index(b"a"))  # free text of tokens takes them whole
    moved = matcher.moved_to(compiled(other))
    assert moved.accept_token(CALL)
    assert moved.accept_bytes(b"{1}</f>")


@pytest.mark.parametrize(
    ("found", "added", "removed", "message"),
    [
        (triggered([tag("one")]), [], ["<f=two>"], "no tag begins with '<f=two>'"),
        (triggered([tag("one")]), [{"begin": "<g>"}], [], "content"),
        (triggered([tag("one")]), [{**tag("two"), "begin": "<g>"}], [], "trigger"),
        (triggered([tag("one")]), [content(1)], [], "is a tag"),
        (triggered([tag("one")], at_least_one=True), [], ["<f=one>"], "at_least_one"),
        (dispatch([rule("one")]), [], ["<f=two>"], "no tag begins with"),
        (dispatch([rule("one")]), [tag("two")], [], "rules"),
        ({"type": "any_text"}, [tag("one")], [], "here is none"),
        (
            {"type": "sequence", "elements": [triggered([tag("one")]), dispatch([rule("one")])]},
            [tag("two")],
            [],
            "here is 2",
        ),
    ],
)
def test_wrong_changes(found, added, removed, message):
    before = grammar(found)
    text = str(before)
    with pytest.raises(StructuralTagError, match=message):
        before.with_tags(added, removed)
    assert str(before) == text


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (tag("one"), 'dict: pass what stands in its "begin"'),
        ({"type": "token", "token": 1}, 'dict: pass what stands in its "begin"'),
        (1.0, "float"),
        (None, "NoneType"),
        (True, "bool"),
        (b"<f=one>", "bytes"),
        (["<f=one>"], "list"),
        (np.zeros((2, 2), dtype=np.int64), "ndarray"),
    ],
)
def test_what_names_no_tag(wrong, kind):
    """True and 1.0 are equal to a token's id, and are none."""
    begin = {"type": "token", "token": 1}
    by_token = {"type": "tag", "begin": begin, "content": content(0), "end": "</f>"}
    called = {"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [by_token]}
    for found in (grammar(called), grammar(triggered([tag("one")]))):
        text = str(found)
        with pytest.raises(ArgumentTypeError) as caught:
            found.with_tags(removed=["<f=one>", wrong])
        assert str(caught.value) == (
            "removed must hold the texts, or ids of tokens, with which tags begin, and removed[1] "
            f"is {kind}"
        )
        assert str(found) == text
    assert grammar(called).with_tags(removed=[np.int64(1)]) is not None


@pytest.mark.parametrize("around", [lambda format: format, thinking])
def test_after_the_first_call(around):
    """Where a call must come first, the free text begins behind it."""
    if known.MANY_TAGS > 1:
        pytest.skip("tags that are written are in what stands around the free text")
    found = grammar(around(required([tag("one"), tag("two", 2)])))
    other = found.with_tags([tag("on", 1)], removed=["<f=one>"])
    before = "<t>so</t>" if around is thinking else ""
    for text in ("<f=one>{1}</f>", "<f=one>{1}</f> and <f=two>''</f> so"):
        matcher = tokfold.Matcher(compiled(found))
        assert matcher.accept_bytes((before + text).encode())
        moved = matcher.moved_to(compiled(other))
        assert moved.is_accepting
        assert moved.accept_bytes(b" then <f=on>x</f>")
        assert not moved.accept_bytes(b"<f=one>")
    for text in ("<f=", "<f=one>{1}</f", "<f=one>{1}</f> <f=two>", "<f=one>{1}</f> <"):
        matcher = tokfold.Matcher(compiled(found))
        assert matcher.accept_bytes((before + text).encode())
        with pytest.raises(MatcherStateError, match="dispatch point"):
            matcher.moved_to(compiled(other))


def test_calls_in_a_section():
    """What the free text cannot call is a call of the section in it."""
    found = grammar(section([tag("one")]))
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(b"so <calls><f=one>{7}</f></calls> and")
    other = found.with_tags([tag("two", 1)], removed=["<f=one>"])
    moved = matcher.moved_to(compiled(other))
    assert moved.accept_bytes(b" then <calls><f=two>x</f>, <f=two>x</f></calls>")
    assert not moved.accept_bytes(b"<calls><f=one>")
    for text in ("<calls>", "<calls><f=one>{", "<calls><f=one>{1}</f>, "):
        inside = tokfold.Matcher(compiled(found))
        assert inside.accept_bytes(text.encode())
        with pytest.raises(MatcherStateError, match="dispatch point"):
            inside.moved_to(compiled(other))
    # The free text has tags of its own.
    both = other.with_tags([{**tag("three"), "begin": "<calls>"}])
    assert tokfold.recognize(both, "<calls>{1}</f> <calls><f=two>x</f></calls>").accepted
    with pytest.raises(StructuralTagError, match="no tag begins with"):
        other.with_tags(removed=["<f=one>"])
    with pytest.raises(StructuralTagError, match="the last tag"):
        other.with_tags(removed=["<f=two>"])


def test_grammars_of_no_tag():
    with pytest.raises(StructuralTagError, match="from_structural_tag"):
        Grammar.from_ebnf('root ::= "a"').with_tags([tag("one")])


def test_the_last_tag_goes():
    """What is left is free text in which the trigger is text."""
    found = grammar(triggered([tag("one")])).with_tags(removed=["<f=one>"])
    matcher = tokfold.Matcher(compiled(found))
    assert matcher.accept_bytes(b"a <f=one> b")
    assert matcher.is_accepting


def test_many_tools_change_by_what_is_new():
    """Of 300 tools all but the new one are there: their parts are not made again."""
    default_cache.clear()
    tokfold._parts.shared.clear()
    names = [f"{index:03}" for index in range(300)]
    leaves = [{"type": "grammar", "grammar": f'root ::= "{name}" [0-9]+'} for name in names]
    tags = [{**tag(name), "content": leaf} for name, leaf in zip(names, leaves, strict=True)]
    found = grammar(triggered(tags))
    compiled(found)
    before = tokfold._parts.shared.counters()
    new = {**tag("new"), "content": {"type": "grammar", "grammar": 'root ::= "new"+'}}
    more = compiled(found.with_tags([new], removed=["<f=007>"]))
    after = tokfold._parts.shared.counters()
    assert after["misses"] - before["misses"] == 1
    matcher = tokfold.Matcher(more)
    assert matcher.accept_bytes(b"<f=new>newnew</f><f=008>0081</f>")
    assert not matcher.accept_bytes(b"<f=007>")
    assert json.loads(json.dumps(tags[0])) == tags[0]  # what was given is as it was


FRAMES = {
    "any text": {"type": "any_text"},
    "without a text": {"type": "any_text", "excludes": ["zz"]},
    "calls": triggered([tag("one")]),
    "calls that must come": triggered([tag("one")], at_least_one=True),
    "one call": triggered([tag("one")], stop_after_first=True),
    "one call that must come": triggered([tag("one")], at_least_one=True, stop_after_first=True),
    "before a text": {"type": "sequence", "elements": [triggered([tag("one")]), rule("q")[1]]},
    "a list": separated([tag("one")]),
    "a text": {"type": "const_string", "value": "q"},
    "a number": {"type": "json_schema", "json_schema": {"type": "integer"}},
    "letters": {"type": "regex", "pattern": "[a-z]*"},
    "patterns": dispatch([rule("one")]),
}


@pytest.mark.parametrize("before", FRAMES)
def test_at_the_start_all_grammars_are_as_if_made_anew(before):
    """A tag that must have a call may not end there because the one before might."""
    old = compiled(grammar(FRAMES[before]))
    moves = 0
    for format in FRAMES.values():
        new = compiled(grammar(format))
        try:
            moved = tokfold.Matcher(old).moved_to(new)
        except MatcherStateError:
            continue
        moves += 1
        fresh = tokfold.Matcher(new)
        assert mask_of(moved) == mask_of(fresh), format
        assert moved.is_accepting == fresh.is_accepting
        assert moved.shortest() == fresh.shortest()
        CASES["tags that come and go: grammars of other frames"] += 1
    assert moves


def test_tags_that_only_a_list_beside_free_text_has():
    calls = [tag("one"), tag("two")]
    answers = [tag("yes") | {"begin": "[yes]"}, tag("no") | {"begin": "[no]"}]
    found = grammar({"type": "or", "elements": [triggered(calls), separated(answers)]})
    without = grammar({"type": "or", "elements": [triggered(calls), separated(answers[:1])]})
    assert found.with_tags(removed=["[no]"]) == without
    fewer = grammar({"type": "or", "elements": [triggered(calls[:1]), separated(answers)]})
    assert found.with_tags(removed=["<f=two>"]) == fewer
    with pytest.raises(StructuralTagError, match="no tag begins with '<f=three>'"):
        found.with_tags(removed=["<f=three>"])
