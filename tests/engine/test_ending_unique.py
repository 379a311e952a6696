"""Texts with arrays of unique items end in time: every bit against a search of all token sequences.

The oracle searches with forks of a matcher without a budget: which texts repeat an item is held to
account elsewhere (`tests/json_schema/test_distinct_items.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
import tokfold
from strategies.engine import compiled_with
from strategies.profiles import CASES, LONG

MOST = 4
"""Tokens that the search goes deep."""
PATIENCE = 4_000
"""Texts that one search may meet."""

ITEMS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer"},
    {"type": "number"},
    {"type": ["string", "null"]},
    {"type": ["integer", "string"]},
    {"type": "string", "pattern": "^[ab]*$"},
    {"type": "string", "pattern": "^a*$"},
    {"type": "string", "minLength": 1},
    {"type": "string", "maxLength": 1},
    {"type": "integer", "minimum": 0, "maximum": 12},
    {"type": ["boolean", "string"]},
    {"type": "number", "multipleOf": 0.5},
)
LETTERS = [bytes([byte]) for byte in b'[]{},:"01abklnutrex5-. \\']
PIECES = [
    *(b"10", b"ab", b'","', b'",', b'"a"', b'["', b'"]', b'["a', b"0,", b",0", b"0]", b"]}", b'"}'),
    *(b'"k":[', b'{"k":[', b"[0,0]", b'["",""]', b"null", b"1,2]", b"1,1]", b'","a"]', b"\\u0061"),
    *(b'","b","', b'","","', b'b"', b'"b","', b"\\u00", b"61"),
    *(b".5", b"1.0", b"e1", b", ", b"[1,", b'],"l":[', b'"l":["a",', b'"x"'),
]


class TooManyTextsError(Exception):
    """The search meets more texts than it may."""


class Search:
    """Whether a text can end within some tokens, by trying all of them."""

    def __init__(self, size: int) -> None:
        self._known: dict[tuple[bytes, int], bool] = {}
        self._size = size

    def allowed(self, matcher: tokfold.Matcher) -> list[int]:
        bitmask = tokfold.allocate_bitmask(1, self._size)
        matcher.fill_bitmask(bitmask)
        return tokens_of(bitmask, self._size)

    def within(self, matcher: tokfold.Matcher, left: int) -> bool:
        if left < 1:
            return False
        key = matcher.text, left
        if key not in self._known:
            if len(self._known) > PATIENCE:
                raise TooManyTextsError
            self._known[key] = False
            self._known[key] = self._search(matcher, left)
        return self._known[key]

    def _search(self, matcher: tokfold.Matcher, left: int) -> bool:
        allowed = self.allowed(matcher)
        if self._size - 1 in allowed:
            return True
        return any(self.takes(matcher, token, left) for token in allowed)

    def takes(self, matcher: tokfold.Matcher, token: int, left: int) -> bool:
        after = matcher.fork()
        if token == self._size - 1:
            return left >= 1 and after.accept_token(token)
        return left >= 1 and after.accept_token(token) and self.within(after, left - 1)

    def needed(self, matcher: tokfold.Matcher) -> int | None:
        return next((left for left in range(MOST + 2) if self.within(matcher, left)), None)


def tokens_of(bitmask: Any, size: int) -> list[int]:
    bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")[:size]
    return [int(token) for token in np.flatnonzero(bits)]


def schema_of(random: Random, needs_several: bool) -> dict[str, Any]:
    def array() -> dict[str, Any]:
        out: dict[str, Any] = {"type": "array", "uniqueItems": True, "items": random.choice(ITEMS)}
        if needs_several:
            out["items"] = random.choice([item for item in ITEMS if "string" in item["type"]])
            return {**out, "minItems": random.randint(2, 3)}
        if random.random() < 0.35:
            out["minItems"] = random.randint(1, 3)
        if random.random() < 0.2:
            out["maxItems"] = random.randint(3, 4)
        return out

    kind = random.random()
    if kind < 0.5:
        return array()
    if kind < 0.9:
        required = random.choice((["k"], ["l"], ["k", "l"], []))
        properties = {"k": array(), "l": array()}
        closed = {"required": required, "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed}
    return {"anyOf": [array(), {"type": "array", "items": {"type": "integer"}, "maxItems": 3}]}


def settings(
    random: Random, needs_several: bool = False
) -> Iterator[tuple[dict[str, Any], list[bytes], Any]]:
    """Schemas that compile, with tokens and what was compiled."""
    while True:
        letters = [letter for letter in LETTERS if random.random() < 0.93]
        tokens = list(dict.fromkeys(letters + random.sample(PIECES, random.randint(4, 16))))
        random.shuffle(tokens)
        vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
        schema = schema_of(random, needs_several)
        try:
            grammar = tokfold.Grammar.from_json_schema(schema)
            compiled = compiled_with(grammar, vocabulary, check_tokens=False)
        except tokfold.TokfoldError:
            continue
        yield schema, tokens, compiled


def begun(random: Random, compiled: Any, tokens: list[bytes], search: Search) -> tokfold.Matcher:
    """A matcher some random tokens on."""
    matcher = tokfold.Matcher(compiled)
    for _ in range(random.randint(0, 7)):
        allowed = [token for token in search.allowed(matcher) if token < len(tokens)]
        if not allowed:
            break
        weights = [4 if set(tokens[token]) & {*b"[,"} else 1 for token in allowed]
        assert matcher.accept_token(random.choices(allowed, weights)[0])
    return matcher


@pytest.mark.parametrize("needs_several", [False, True])
@pytest.mark.parametrize("seed", range(150 if LONG else 5))
def test_every_bit_and_every_least_budget(seed: int, needs_several: bool) -> None:
    random = Random(seed)
    compared = 0
    for schema, tokens, compiled in settings(random, needs_several):
        search = Search(len(tokens) + 1)
        matcher = begun(random, compiled, tokens, search)
        try:
            compared += compare(search, matcher, json.dumps(schema))
        except TooManyTextsError:
            continue
        if compared >= 40:
            break
    CASES["masks of unique items that end in time"] += compared


def compare(search: Search, matcher: tokfold.Matcher, schema: str) -> int:
    """Compares masks at one place; how many."""
    size = len(matcher.vocabulary)
    needed = search.needed(matcher)
    masks = 0
    for left in range(MOST + 1):
        bitmask = tokfold.allocate_bitmask(1, size)
        if needed is None or needed > left:
            with pytest.raises(tokfold.TokenBudgetError) as caught:
                matcher.fill_bitmask(bitmask, tokens_left=left)
            assert needed is None or caught.value.needed in {needed, None}, (schema, matcher.text)
            continue
        matcher.fill_bitmask(bitmask, tokens_left=left)
        expected = [token for token in range(size) if search.takes(matcher, token, left)]
        assert tokens_of(bitmask, size) == expected, (schema, matcher.text, left)
        masks += 1
    if needed is not None:
        assert matcher.shortest().tokens == needed - 1, (schema, matcher.text)
        closing = matcher.closing_tokens()
        assert len(closing) == needed - 1
        after = matcher.fork()
        assert after.accept_tokens(closing) == len(closing)
        assert size - 1 in search.allowed(after)
    return masks


def test_walks_end_in_time() -> None:
    """A budget of a matcher is kept to the last token, forks and rollbacks included."""
    random = Random(5)
    schema = {
        "type": "object",
        "properties": {
            "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "ids": {
                "type": "array",
                "items": {"type": "integer"},
                "uniqueItems": True,
                "minItems": 3,
            },
        },
        "required": ["tags", "ids"],
    }
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b'","', b'":[', b'["', b'"]', b"1,2", b'"a"', b",0", b"</s>"]
    stop = len(tokens) - 1
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[stop])
    compiled = compiled_with(tokfold.Grammar.from_json_schema(schema), vocabulary)
    shortest = tokfold.Matcher(compiled).shortest()
    assert shortest.tokens is not None
    for extra in (0, 1, 7, 40, 400):
        matcher = tokfold.Matcher(compiled, max_tokens=shortest.tokens + 1 + extra)
        while not matcher.is_terminated:
            bitmask = tokfold.allocate_bitmask(1, len(tokens))
            matcher.fill_bitmask(bitmask)
            allowed = tokens_of(bitmask, len(tokens))
            fork = matcher.fork()
            assert fork.accept_token(random.choice(allowed))
            weights = [9 if set(tokens[token]) & {*b'",[]'} else 1 for token in allowed]
            assert matcher.accept_token(random.choices(allowed, weights)[0])
            if random.random() < 0.2 and not matcher.is_terminated:
                matcher.rollback(1)
        value = json.loads(matcher.text)
        assert len(set(value["tags"])) == len(value["tags"])
        assert len(set(value["ids"])) == len(value["ids"]) >= 3


def test_tokens_taken_whole_beside_unique_items() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"<|end|>", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[257], special_token_ids=[256])
    schema = json.dumps({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    grammar = tokfold.Grammar.from_lark(f"start: %json {schema} <[256]>")
    matcher = tokfold.Matcher(compiled_with(grammar, vocabulary))
    assert matcher.accept_string("[1,1")
    # The shortest end of the stacks would repeat the item.
    assert matcher.shortest() == (3, None)
    closing = matcher.closing_tokens()
    assert vocabulary.decode(closing[:2]) == b"0]"
    assert closing[2] == 256
    assert matcher.accept_tokens(closing) == 3


@pytest.mark.parametrize("letters", ["a", "ab"])
def test_the_end_is_not_far_where_items_differ_by_length_alone(letters: str) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256])
    items = {"type": "string", "pattern": f"^[{letters}]*$"}
    schema = {"type": "array", "items": items, "uniqueItems": True}
    compiled = compiled_with(tokfold.Grammar.from_json_schema(schema), vocabulary)
    matcher = tokfold.Matcher(compiled)
    text = json.dumps(["a" * count for count in range(160)], separators=(",", ":"))
    assert matcher.accept_string(text[:-1])
    for left in (140, 150, 160, 164, 165, 180):
        bitmask = tokfold.allocate_bitmask(1, len(tokens))
        try:
            matcher.fill_bitmask(bitmask, tokens_left=left)
        except tokfold.LimitExceededError:  # a search that takes more than it may says so
            continue
        # Behind the comma come two quotes, 160 letters, a bracket and the stop token.
        is_enough = left - 1 >= 164 or len(letters) > 1
        assert (ord(",") in tokens_of(bitmask, len(tokens))) == is_enough, left


def test_what_is_not_counted_is_refused_by_name() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[256])
    nested = {"type": "array", "items": {"type": "object"}, "uniqueItems": True}
    compiled = compiled_with(tokfold.Grammar.from_json_schema(nested), vocabulary)
    with pytest.raises(tokfold.UnsupportedGrammarError, match=r"max_tokens.*arrays or objects"):
        tokfold.Matcher(compiled, max_tokens=50)


@pytest.mark.parametrize("is_unique", [True, False])
@pytest.mark.parametrize("left", [10**9, 2**30, 2**31, 2**32 - 1, 2**40])
def test_no_budget_is_large_enough_for_a_text_that_no_tokens_end(
    is_unique: bool, left: int
) -> None:
    vocabulary = tokfold.Vocabulary([b'"', b"[", b"x", b"</s>"], stop_token_ids=[3])
    schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": is_unique}
    grammar = tokfold.Grammar.from_json_schema(schema, whitespace="compact")
    compiled = compiled_with(grammar, vocabulary, classes="never", check_tokens=False)
    with pytest.raises(tokfold.TokenBudgetError) as caught:
        tokfold.Matcher(compiled, max_tokens=left)
    assert caught.value.needed is None
    matcher = tokfold.Matcher(compiled)
    with pytest.raises(tokfold.TokenBudgetError):
        matcher.fill_bitmask(tokfold.allocate_bitmask(1, 4), tokens_left=left)
    assert matcher.shortest().tokens is None
    assert matcher._tokens_to_end() is None


def test_closing_bytes_are_found_in_one_search() -> None:
    """A search for each byte of a long item would take an hour."""
    length = 20_000
    items = {"type": "string", "minLength": length}
    schema = {"type": "array", "items": items, "uniqueItems": True}
    grammar = tokfold.Grammar.from_json_schema(schema, whitespace="compact")
    vocabulary = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="never"))
    item = "a" * length
    assert matcher.accept_string(f'["{item}","a')
    within = tokfold.Interrupt(milliseconds=60_000)
    closing = matcher.closing_bytes(2 * length, interrupt=within)
    assert len(closing) == matcher.shortest().bytes == length + 1
    assert matcher.closing_bytes(7) == closing[:7]
    assert matcher.accept_bytes(closing)
    assert matcher.is_accepting


def test_tokens_that_may_repeat_an_item_look_at_the_deadline() -> None:
    """Many tokens may go on with the member that is open, and each is read on the item so far."""
    members = ",".join(f'"m{number}":{number}' for number in range(1_500))
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
    grammar = tokfold.Grammar.from_json_schema(
        schema, whitespace="compact", additional_properties=True
    )
    names = [f"{number}{letter}".encode() for number in range(150) for letter in '0123456789":']
    tokens = [*(bytes([byte]) for byte in range(256)), *dict.fromkeys(names), b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=len(tokens) - 1)
    matcher = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="never"))
    assert matcher.accept_string(f'[{{{members}}},{{{members[: members.rindex(",")]},"m')
    row = tokfold.allocate_bitmask(1, len(tokens))
    with pytest.raises(tokfold.DeadlineExceededError):
        matcher.fill_bitmask(row, interrupt=tokfold.Interrupt(milliseconds=1))
    matcher.fill_bitmask(row)
    allowed = set(tokfold.allowed_tokens(row[0], len(tokens)).tolist())
    for token in (*b'59"}:,', 256, 300, len(tokens) - 2):
        assert (token in allowed) is matcher.fork().accept_token(token)
