"""Counts within counts: a byte may end a pass or go on with it, so a text has many pairs of counts.

Grammars whose repetitions are written out say what is right. Of stacks that count those are dropped
that say nothing beside others, and few counts bound a mask, so its work does not grow with the
product of the bounds.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
import tokfold
from strategies.engine import compiled_with
from strategies.profiles import CASES, LONG
from tokfold import Grammar, LimitExceededError, Limits, Matcher, Vocabulary
from tokfold.bitmask import allocate_bitmask

TOKENS = [
    b"a",
    b"b",
    b",",
    b"\n",
    b"ab",
    b"aaaa",
    b"a,",
    b",a",
    b"b\n",
    b"aaaaaaaaa",
    b",,",
    b"</s>",
]
VOCABULARY = Vocabulary(TOKENS, stop_token_ids=[len(TOKENS) - 1])


def _counted(random: Random, body: str, large: bool) -> str:
    """A repetition; of more than sixteen passes where it is large, which the engine counts."""
    least = random.choice([0, 1, 1, 2, 5] if large else [0, 1, 2])
    most = least + (random.randint(17, 22) if large else random.randint(1, 4))
    upper = random.choice([str(most), str(most), ""]) if least else str(most)
    return f"(?:{body}){{{least},{upper}}}"


def _pattern(random: Random) -> str:
    letters = random.choice(["a", "[ab]", "[^,]", "."])
    body = _counted(random, letters, True) + random.choice(
        ["", ",?", r"\n?", ",*", "b", "(?:,|\\n)"]
    )
    for _ in range(random.choice([1, 1, 2])):
        body = _counted(random, body, random.random() < 0.7) + random.choice(["", "", ",?", "b"])
    return random.choice(["", "b?"]) + body + random.choice(["", "", ",", "b"])


@pytest.mark.parametrize("seed", range(1_500 if LONG else 60))
def test_masks_are_those_of_what_is_written_out(seed: int) -> None:
    random = Random(seed)
    pattern = _pattern(random)
    limits = Limits(max_mask_work=50_000_000, max_accept_work=50_000_000)
    try:
        grammar = Grammar.from_regex(pattern)
        written = Matcher(
            compiled_with(
                grammar, VOCABULARY, classes="never", limits=limits, _count_repetitions=False
            )
        )
    except LimitExceededError:
        CASES["nested counts: too large to write out"] += 1
        return
    counted = Matcher(compiled_with(grammar, VOCABULARY, classes="never", limits=limits))
    rows = [allocate_bitmask(1, len(TOKENS)) for _ in range(2)]
    for step in range(60):
        counted.fill_bitmask(rows[0])
        try:
            written.fill_bitmask(rows[1])
        except LimitExceededError:
            CASES["nested counts: too many pairs written out"] += 1
            return
        np.testing.assert_array_equal(*rows, err_msg=f"{pattern}, step {step}")
        assert counted.is_accepting == written.is_accepting, (pattern, step)
        bits = int(rows[0][0, 0])
        allowed = [token for token in range(len(TOKENS) - 1) if bits >> token & 1]
        if not allowed:
            break
        token = random.choice(allowed)
        assert counted.accept_token(token)
        assert written.accept_token(token)
        CASES["nested counts: masks compared"] += 1


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:.{1,80}\n?){1,20}",
        r"(?:.{1,80}\n?){1,5}",
        r"(?:[a-z ]{1,80},?){1,20}",
        r"(?:[^,\n]{0,40},?){20,40}",
        r"(?:.{1,20}){1,20}",
        r"(?:\w{1,30}[ ,.]?){1,200}",
        r"(?:.{5,40},?){10,30}",
        r"(?:.{1,80}\n?){20,40}",
        r"(?:\w{2,30}[ ,.]?){20,200}",
        r"(?:(?:ab|a|b){2,20}){17,40}",
        r"(?:(?:[ab]{2,20},?){3,20}\n?){4,20}",
    ],
)
def test_a_mask_takes_no_work_for_each_pair_of_counts(pattern: str) -> None:
    """Hundreds of pairs are possible after some letters, and each was asked about."""
    grammar = Grammar.from_regex(pattern)
    compiled = tokfold.compile(grammar, VOCABULARY, classes="never")
    matcher = Matcher(compiled)
    row = allocate_bitmask(1, len(TOKENS))
    for _ in range(40):
        matcher.fill_bitmask(row)
        assert matcher.accept_token(TOKENS.index(b"ab"))
    counters = compiled.counters()
    assert counters["sets_visited"] < 1_100
    assert counters["memo_misses"] < 32
    assert counters["trie_nodes"] < 600


def test_texts_read_by_bytes_and_by_tokens_are_at_one_place() -> None:
    compiled = tokfold.compile(Grammar.from_regex(r"(?:.{1,80}\n?){1,20}"), VOCABULARY)
    by_tokens, by_bytes = Matcher(compiled), Matcher(compiled)
    for token in (b"aaaaaaaaa", b"ab", b"b\n", b"aaaa", b",,"):
        assert by_tokens.accept_token(TOKENS.index(token))
        assert by_bytes.accept_bytes(token)
        assert by_tokens.state == by_bytes.state


# ------------------------------------------------------------------ counts that do not fit together

FEW = Vocabulary([b"a", b"0", b",", b"</s>"], stop_token_ids=3)


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "0"{1,2000000000} | ("a"{1,2000000000} ","?){1,2000000000}',
        'root ::= ("0" "a"?){1,1073741830} | ("a"{3,1900000000} ("," | "")){2,1900000000}',
        'root ::= ("a"{1,1900000000} ("," "a"{0,1500000000})?){3,2100000000} | "0"{7,2000000000}',
    ],
)
@pytest.mark.parametrize("classes", ["never", "now"])
def test_masks_of_counts_that_have_fewer_states_than_passes(text: str, classes: str) -> None:
    """The states of all counts have 31 bits together: the last passes of each share one."""
    compiled = tokfold.compile(text, FEW, classes=classes)
    random = Random(3)
    for _ in range(20):
        matcher = Matcher(compiled)
        for _ in range(8):
            row = allocate_bitmask(1, len(FEW))
            matcher.fill_bitmask(row)
            allowed = tokfold.allowed_tokens(row[0], len(FEW)).tolist()
            assert allowed == [t for t in range(4) if matcher.fork().accept_token(t)]
            going = [token for token in allowed if token != 3]
            if not going:
                break
            matcher.accept_token(random.choice(going))


LETTERS = Vocabulary([*(bytes([byte]) for byte in range(256)), b"</s>"], stop_token_ids=256)


@pytest.mark.parametrize("count", [2_147_483_646, 2_147_483_647, 2_147_483_648, 4_000_000_000])
@pytest.mark.parametrize("kind", ["ebnf", "minItems", "minLength", "regex"])
def test_counts_that_no_text_reaches_have_no_end(count: int, kind: str) -> None:
    source = {
        "ebnf": Grammar.from_ebnf(f'root ::= "ab"{{{count}}}'),
        "regex": Grammar.from_regex(f"(ab|c){{{count},}}"),
    }
    schema = {"type": "array" if kind == "minItems" else "string", kind: count}
    grammar = source.get(kind) or Grammar.from_json_schema(schema)
    compiled = tokfold.compile(grammar, LETTERS, classes="never")
    for ask in (
        lambda: Matcher(compiled).closing_bytes(),
        lambda: Matcher(compiled).closing_tokens(),
        lambda: Matcher(compiled, max_tokens=50),
    ):
        with pytest.raises((LimitExceededError, tokfold.TokenBudgetError)):
            ask()
    matcher = Matcher(compiled)
    assert matcher.accept_bytes({"minItems": b"[1,", "minLength": b'"a'}.get(kind, b"ab"))
    row = allocate_bitmask(1, len(LETTERS))
    matcher.fill_bitmask(row)
    allowed = tokfold.allowed_tokens(row[0], len(LETTERS)).tolist()
    assert allowed == [t for t in range(257) if matcher.fork().accept_token(t)]
