"""Members in any order: what is refused, what goes on, and objects as parts of grammars."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Callable

import pytest
import tokfold
from hypothesis import given
from json_schema.any_order import (
    ANY,
    NUMBERS,
    at,
    check_ahead,
    compiled_numbers,
    compiled_of,
    numbers,
    row_of,
    taken_by,
    wide,
)
from json_schema.truth import Validators
from strategies.engine import compiled_with
from strategies.profiles import CASES, examples
from strategies.wide_objects import WideBuilder, wide_builders
from support.processes import DEADLINE_S
from tokfold import (
    Grammar,
    GrammarCompiler,
    Matcher,
    UnsupportedGrammarError,
)


def test_what_sets_cannot_be() -> None:
    grammar, vocabulary = numbers(), compiled_numbers().vocabulary
    for call in (
        lambda: tokfold.compile_classes(grammar, vocabulary),
        lambda: tokfold.compile(grammar, vocabulary, classes="now"),
        lambda: compiled_with(grammar, vocabulary, engine="chart", classes="never"),
        lambda: str(grammar),
    ):
        with pytest.raises(UnsupportedGrammarError, match="members in any order"):
            call()


def test_by_default_there_are_no_classes() -> None:
    """`classes="auto"` does without, and says so only to who waits."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = tokfold.compile(numbers(), compiled_numbers().vocabulary)
        assert compiled._background is not None
        assert compiled._background.wait(DEADLINE_S)
        matcher = at(compiled, '{"k1": 1')
        assert row_of(matcher) == row_of(at(compiled_numbers(), '{"k1": 1'))
        with GrammarCompiler(compiled.vocabulary) as compiler:
            one = compiler.compile_json_schema(NUMBERS, **ANY)
            assert compiler.compile_json_schema(NUMBERS, **ANY) is one
            assert compiler.compile_json_schema(NUMBERS) is not one
            assert compiler.compile_grammar(numbers()) is not None
            assert compiler.submit("json_schema", NUMBERS, **ANY).result(DEADLINE_S) is one
            assert compiler.statistics().failures == 0
            assert one.has_classes is False
            assert row_of(at(one, '{"k1": 1')) == row_of(matcher)
    with pytest.warns(tokfold.FallbackWarning, match="no classes: .*members in any order"):
        compiled.wait(DEADLINE_S)


def test_pickling_and_equality() -> None:
    again = Grammar.from_json_schema(json.dumps(NUMBERS), **ANY)
    other = Grammar.from_json_schema({**NUMBERS, "required": []}, **ANY)
    ordered = Grammar.from_json_schema(NUMBERS, max_whitespace=2)
    assert numbers() == again
    assert numbers().fingerprint == again.fingerprint
    assert other not in (numbers(), ordered)
    assert len({numbers().fingerprint, other.fingerprint, ordered.fingerprint}) == 3
    for copied in (pickle.loads(pickle.dumps(numbers())), copy.deepcopy(numbers())):
        assert copied == numbers()
        assert copied.fingerprint == numbers().fingerprint
        assert tokfold.recognize(copied, '{"k2": 1, "k0": 2, "k1": 3}').accepted


def test_hashes() -> None:
    assert hash(numbers()) == hash(Grammar.from_json_schema(NUMBERS, **ANY))
    assert numbers() in {Grammar.from_json_schema(NUMBERS, **ANY)}


def test_recognition() -> None:
    text = '{"k0": 1, "k2": 3, "k1": 2}'
    assert tokfold.recognize(numbers(), text).accepted
    twice = tokfold.recognize(numbers(), '{"k0": 1, "k2": 3, "k0": 2}')
    assert not twice.accepted
    assert (twice.read, bytes(twice.expected)) == (21, b"134567")
    missing = tokfold.recognize(numbers(), '{"k0": 1, "k2": 3}')
    assert (missing.accepted, missing.read) == (False, 17)


def in_lark() -> Grammar:
    return Grammar.from_lark('start: "a" @o "," @o "b"', named={"o": numbers()})


def test_in_a_lark_grammar() -> None:
    """Each object keeps a set of its own."""
    one, two = '{"k0": 1, "k2": 3, "k1": 2}', '{"k1": 1, "k2": 3, "k0": 2, "k7": 1}'
    for text, expected in (
        (f"a{one},{two}b", True),
        (f"a{two},{two}b", True),
        (f'a{one},{{"k1": 1}}b', False),
        (f'a{one},{{"k1": 1, "k1": 1, "k0": 1, "k2": 1}}b', False),
    ):
        assert tokfold.recognize(in_lark(), text).accepted is expected, text
    compiled = compiled_of(in_lark(), compiled_numbers().vocabulary)
    matcher = at(compiled, f'a{one},{{"k2": 1')
    assert row_of(matcher) == taken_by(matcher)


FRAME = """
start: "[" item ("," item)* "]"
item: @p | @q | letters | start
letters: /[xy]{0,150}z/
"""
"""Objects of two schemas beside a repetition that is counted, and nested."""


@examples(10)
@given(builder=wide_builders())
def test_in_a_frame(builder: WideBuilder) -> None:
    """Objects among other things are what they are alone; states, masks and what is accepted."""
    one, two = wide(builder), wide(builder)
    if one is None or two is None:
        return
    random = builder.random
    frame = Grammar.from_lark(FRAME, named={"p": one[1], "q": two[1]})
    compiled = compiled_of(frame, one[2].vocabulary)
    validators = [Validators(one[0]), Validators(two[0])]
    parts: list[tuple[str, bool | None]] = [
        ("z", True),
        ("xyxz", True),
        ("[z]", True),
        ("x", False),
    ]
    for schema in (one[0], two[0]):
        for _ in range(10):
            value = builder.instance(schema, schema)
            verdicts = [validator.verdict(value) for validator in validators]
            known = None if None in verdicts else any(verdicts)
            parts.append((json.dumps(value, ensure_ascii=False), known))
    for _ in range(8):
        chosen = random.choices(parts, k=random.randint(1, 3))
        text = "[" + ",".join(part for part, _ in chosen) + "]"
        if all(known is not None for _, known in chosen):
            taken = tokfold.recognize(frame, text).accepted
            assert taken == all(known for _, known in chosen), text
            CASES["any order: texts in a frame"] += 1
        matcher = Matcher(compiled)
        cut = random.randrange(1, len(text))
        if matcher.accept_string(text[:cut]):
            row = row_of(matcher)
            assert row == taken_by(matcher), text[:cut]
            restored = Matcher.from_state(compiled, matcher.state)
            assert row_of(restored) == row
            check_ahead(random, matcher, restored)


def in_a_tag(required: int = 1) -> Grammar:
    schema = {**NUMBERS, "required": NUMBERS["required"][:required]}
    content = {"type": "json_schema", "json_schema": schema, "any_order": True}
    return Grammar.from_structural_tag(
        {"format": {"type": "tag", "begin": "<f>", "content": content, "end": "</f>"}}
    )


@pytest.mark.parametrize(
    ("made", "another"),
    [
        (in_lark, lambda: Grammar.from_lark('start: "a" @o', named={"o": numbers()})),
        (in_a_tag, lambda: in_a_tag(2)),
        (
            lambda: Grammar.from_lark("start: @a", named={"a": in_a_tag()}),
            lambda: Grammar.from_lark("start: @a", named={"a": in_a_tag(2)}),
        ),
    ],
)
def test_what_is_composed_is_compared_and_pickled(
    made: Callable[[], Grammar], another: Callable[[], Grammar]
) -> None:
    one, two, other = made(), made(), another()
    with pytest.raises(UnsupportedGrammarError, match="any order"):
        str(one)
    assert one == two
    assert hash(one) == hash(two)
    assert one.fingerprint == two.fingerprint
    assert one != other
    assert one.fingerprint != other.fingerprint
    for copied in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
        assert copied == one
        assert copied.fingerprint == one.fingerprint
        assert copied.root == one.root
        assert copied.num_rules == one.num_rules
    assert one != Grammar.from_ebnf('start ::= "a"', "start")
    assert numbers() not in (one, other)
