"""JSON, SQL and Lua from end to end: masks token by token, and Lark as judge in both directions."""

from __future__ import annotations

import functools
import random
from pathlib import Path
from typing import Literal

import lark
import pytest
from mask_store.decode_samples import CLOSERS, SHORT, changed, mutants
from mask_store.lark_texts import parses
from mask_store.lexer_views import places
from mask_store.store_samples import vocabulary
from mask_store.test_store_matcher import accepted, allowed
from strategies.profiles import CASES, LONG
from tokfold.mask_store.lark_reader import open_lark
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore

GRAMMARS = Path(__file__).parents[2] / "grammars" / "lark"
NAMES = ("json", "lua", "sql")
TEXTS = sorted(GRAMMARS.glob("*/valid/*"))
Lexer = Literal["basic", "contextual"]


def source(name: str) -> Path:
    return GRAMMARS / name / f"{name}.lark"


def texts(name: str) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in TEXTS if path.parts[-3] == name]


@functools.cache
def store(name: str, lexer: Lexer = "contextual") -> MaskStore:
    return MaskStore(open_lark(source(name), lexer=lexer), vocabulary(texts(name), 450))


@functools.cache
def truth(name: str, lexer: Lexer = "contextual") -> lark.Lark:
    return lark.Lark.open(str(source(name)), parser="lalr", lexer=lexer)


@functools.cache
def token_ids(name: str) -> dict[bytes, int]:
    known = store(name).vocabulary
    return {known[i]: i for i in range(len(known)) if i not in known.stop_token_ids}


def spelled(name: str, data: bytes, rng: random.Random) -> list[int]:
    """Some way to spell a text in tokens, through the middle of characters as well."""
    known, found, place = token_ids(name), [], 0
    while place < len(data):
        size = rng.randint(1, 6)
        while data[place : place + size] not in known:
            size -= 1
        found.append(known[data[place : place + size]])
        place += size
    return found


def reads(name: str, text: str, lexer: Lexer = "contextual") -> bool:
    matcher = StoreMatcher(store(name, lexer))
    return matcher.accept_string(text) and matcher.is_accepting


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: "/".join(path.parts[-3:]))
def test_masks_are_what_is_accepted_along_real_texts(path: Path) -> None:
    name, rng = path.parts[-3], random.Random(path.name)
    known = store(name).vocabulary
    stop = known.stop_token_ids[0]
    data = path.read_text(encoding="utf-8").encode()
    for tokens in (known.encode_greedy(data), spelled(name, data, rng)):
        whole = set(rng.sample(range(len(tokens)), min(len(tokens), len(tokens) if LONG else 4)))
        matcher = StoreMatcher(store(name))
        for place, token in enumerate(tokens):
            mask = allowed(matcher)
            assert token in mask
            assert (stop in mask) == matcher.is_accepting
            if place in whole:
                assert mask == accepted(matcher)
            for other in rng.sample(range(len(known)), 20):
                assert (other in mask) == matcher.fork().accept_token(other), known[other]
            assert matcher.accept_token(token)
            CASES[f"masks along texts of {name}"] += 1
        assert matcher.is_accepting
        assert stop in allowed(matcher)


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.parametrize("name", NAMES)
def test_short_texts_as_lark(name: str, lexer: Lexer) -> None:
    verdicts = set()
    for text in SHORT[name]:
        expected = parses(truth(name, lexer), text)
        assert reads(name, text, lexer) == expected, text
        verdicts.add(expected)
    assert verdicts == {True, False}


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.parametrize("name", NAMES)
def test_mutants_as_lark(name: str, lexer: Lexer) -> None:
    rng, taken = random.Random(11), 0
    tried = mutants(texts(name), rng, 20_000 if LONG else 500)
    for text in [*tried, *(changed(t, rng) for t in texts(name) for _ in range(25))]:
        expected = parses(truth(name, lexer), text)
        assert reads(name, text, lexer) == expected, text
        taken += expected
        CASES[f"mutants of {name}"] += 1
    assert 15 < taken < len(tried)


@pytest.mark.parametrize("name", NAMES)
def test_what_a_mask_refuses_lark_refuses_whatever_follows(name: str) -> None:
    rng, known = random.Random(12), store(name).vocabulary
    tried = 0
    for text in texts(name):
        data = text.encode()
        tokens = spelled(name, data, rng)
        for place in rng.sample(range(len(tokens)), min(len(tokens), 200 if LONG else 25)):
            matcher = StoreMatcher(store(name))
            assert matcher.accept_tokens(tokens[:place]) == place
            refused = sorted(set(token_ids(name).values()) - allowed(matcher))
            begun = matcher.text
            for token in rng.sample(refused, min(len(refused), 2)):
                rest = rng.choice([len(begun), len(begun) + 1, rng.randrange(len(data) + 1)])
                whole = begun + known[token] + data[rest:]
                for end in (b"", *(piece.encode() for piece in CLOSERS[name][:3])):
                    try:
                        made = (whole + end).decode()
                    except UnicodeDecodeError:
                        continue
                    tried += 1
                    assert not parses(truth(name), made), (made, known[token])
    assert tried > 50


def completed(name: str, matcher: StoreMatcher) -> bytes | None:
    """A whole text that begins as a matcher's; None where none was found."""
    pieces = [piece.encode() for piece in CLOSERS[name]] + [b"\x80", b"\xa0", b"\x90"]
    words = [t.text for t in matcher.store.grammar.terminals if t.text and t.text.isalpha()]
    # The first piece may go on with a keyword that has begun; they are too many for each step.
    endings = sorted({word[i:].encode() for word in words for i in range(1, len(word))})
    seen, front = {matcher.state}, [matcher]
    if matcher.is_accepting:
        return matcher.text
    for step in range(150):
        following = []
        for current in front:
            for piece in pieces if step else [*pieces, *endings]:
                fork = current.fork()
                if fork.accept_bytes(piece) and fork.state not in seen:
                    if fork.is_accepting:
                        return fork.text
                    seen.add(fork.state)
                    following.append(fork)
        # Some of each depth: what is open may need more on the stack before it can be closed.
        by_depth: dict[int, list[StoreMatcher]] = {}
        for found in following:
            depth = min(len(place.stack) for place in places(found))
            by_depth.setdefault(depth, []).append(found)
        front = [found for depth in sorted(by_depth)[:8] for found in by_depth[depth][:12]]
    return None


@pytest.mark.parametrize("name", NAMES)
def test_random_walks_can_be_completed_to_what_lark_takes(name: str) -> None:
    rng, ended = random.Random(13), 0
    stop = store(name).vocabulary.stop_token_ids[0]
    plain = {i for data, i in token_ids(name).items() if data.isascii()}
    for _ in range(400 if LONG else 25):
        matcher = StoreMatcher(store(name))
        for _ in range(rng.randint(5, 40)):
            mask = allowed(matcher)
            try:
                text = matcher.text.decode()
            except UnicodeDecodeError:
                assert stop not in mask
            else:
                assert (stop in mask) == parses(truth(name), text), text
                ended += stop in mask
            options = sorted(mask - {stop})
            if rng.random() < 0.8:
                options = sorted(mask & plain) or options
            assert options or stop in mask
            if not options:
                break
            assert matcher.accept_token(rng.choice(options))
        whole = completed(name, matcher)
        assert whole is not None, matcher.text
        assert parses(truth(name), whole.decode()), whole
        CASES[f"random walks of {name}"] += 1
    assert ended > 3
