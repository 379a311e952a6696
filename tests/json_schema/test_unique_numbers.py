"""`uniqueItems` over numbers of which many beginnings have no end soon, as multiples of seven.

A number may begin like a number that the array has, and still end as another one. The engine
searches for such an end and tries short numbers first. A search that appends one digit after the
other may never find an end; the low limits of these tests end such a search with an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tokfold
from tokfold import Grammar, Limits, Matcher, Vocabulary

Schema = dict[str, Any]

BOUNDS = Limits(max_accept_work=3_000, max_mask_work=60_000, max_matcher_bytes=4 << 20)
LETTERS = [bytes([byte]) for byte in range(32, 127)]
TOKENS = [*LETTERS, b"],[", b'{"qty":', b"},{", b"70", b".0", b"</s>"]
VOCABULARY = Vocabulary(TOKENS, stop_token_ids=[len(TOKENS) - 1])
SEVENS = {"type": "number", "multipleOf": 7}
FIVES = {"type": "object", "properties": {"qty": {"type": "integer", "multipleOf": 5}}}
FEW = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 4}}}


def unique(items: Schema) -> Schema:
    return {"type": "array", "items": items, "uniqueItems": True}


def matcher_of(items: Schema, **options: Any) -> Matcher:
    grammar = Grammar.from_json_schema(unique(items), whitespace="compact", **options)
    return Matcher(tokfold.compile(grammar, VOCABULARY, limits=BOUNDS, classes="never"))


CASES: list[tuple[Schema, str, bool]] = [
    *((SEVENS | {"multipleOf": step}, "[1", True) for step in (3, 6, 7, 9, 11, 30, 997)),
    (SEVENS, "[7,7", True),  # 70
    (SEVENS, "[7,7.", False),  # 7.0 alone
    (SEVENS, "[7,70.00,70.", False),
    (SEVENS, "[7,14,14", True),
    (SEVENS, "[7,14,14]", False),
    (SEVENS, "[0,0", False),
    (SEVENS, "[-7,-7.", False),
    (SEVENS, "[-7,7.", True),
    (SEVENS | {"maximum": 30, "minimum": 0}, "[7,21,14,28,2", False),
    (SEVENS | {"maximum": 30, "minimum": 0}, "[7,14,28,2", True),
    ({"not": {"type": "integer"}}, "[1.5,", True),
    ({"not": {"type": "integer"}}, "[1.5,1", True),
    ({"type": ["integer", "object"], "multipleOf": 5}, "[5,", True),
    ({"type": ["integer", "object"], "multipleOf": 5}, "[5,5", True),
    (FIVES, '[{"qty":30},{"qty":', True),
    (FIVES, '[{"qty":30},{"qty":3', True),
    (FIVES, '[{"qty":30},{"qty":30', True),
    (FIVES, '[{"qty":30},{"qty":30}', False),
    (FEW, '[{},{"a":2},{"a":2', False),
    (FEW, '[{},{"a":2},{"a":3', True),
    ({"anyOf": [FEW, SEVENS]}, '[7,{"a":2},{"a":2', False),
    ({"anyOf": [FEW, SEVENS]}, '[7,{"a":2},7', True),
    (unique(SEVENS), "[[7],[7", True),
    (unique(SEVENS), "[[7],[7.", True),  # [7, 14]
    (unique(SEVENS), "[[7],[7]", False),
    (unique(SEVENS), "[[7],[7,7.", False),
]


@pytest.mark.parametrize(("items", "text", "is_begun"), CASES)
def test_beginnings_of_numbers(items: Schema, text: str, is_begun: bool) -> None:
    matcher = matcher_of(items)
    assert matcher.accept_string(text) is is_begun
    grammar = matcher.compiled.grammar
    assert (tokfold.recognize(grammar, text).read == len(text)) is is_begun
    if is_begun:
        row = tokfold.allocate_bitmask(1, len(VOCABULARY))
        matcher.fill_bitmask(row)
        allowed = set(tokfold.allowed_tokens(row[0], len(VOCABULARY)).tolist())
        for token in range(len(VOCABULARY)):
            assert (token in allowed) is matcher.fork().accept_token(token), TOKENS[token]


def test_integers_that_are_written_with_a_point() -> None:
    matcher = matcher_of({"type": "integer", "multipleOf": 7}, integers="1.0")
    assert matcher.accept_string("[1")
    assert matcher.accept_string("4,14")
    assert not matcher.accept_string("]")


@pytest.mark.parametrize("step", [7, 12, 37])
def test_walks_by_masks(step: int) -> None:
    """Whatever is written, no two items are equal, and the array can be ended."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        for items in (SEVENS | {"multipleOf": step}, FIVES | {"required": ["qty"]}):
            matcher = matcher_of(items)
            row = tokfold.allocate_bitmask(1, len(VOCABULARY))
            for _ in range(60):
                matcher.fill_bitmask(row)
                allowed = tokfold.allowed_tokens(row[0], len(VOCABULARY))
                allowed = allowed[allowed < len(VOCABULARY) - 1]
                if not len(allowed):
                    break
                assert matcher.accept_token(int(random.choice(allowed)))
            grammar, text = matcher.compiled.grammar, matcher.text
            assert tokfold.recognize(grammar, text).read == len(text)
            if items["type"] == "number":  # ends of objects with unique items are not counted
                assert tokfold.recognize(grammar, text + matcher.closing_bytes()).accepted


def test_a_long_number_is_read_in_time_that_grows_with_it() -> None:
    """The square of its digits would take minutes."""
    within = tokfold.Interrupt(milliseconds=60_000)  # it takes half a second
    for items in ({"type": "number"}, {"type": "integer"}, {"type": "integer", "multipleOf": 7}):
        grammar = Grammar.from_json_schema(unique(items))
        number = "1" * 199_998  # of so many ones seven is a divisor
        text = f"[{number},{number}"
        assert tokfold.recognize(grammar, text, interrupt=within).read == len(text)
