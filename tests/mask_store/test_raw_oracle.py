"""The fast reading of raw rows against each row read alone, and stores against both."""

from __future__ import annotations

import random

import pytest
from mask_store.lalr_oracle import Engine
from mask_store.lexer_views import NO_SCANNER, Column, Letter
from mask_store.raw_oracle import RawReader
from mask_store.store_samples import PYTHON, json_store, python_store
from mask_store.test_store_matcher import allowed
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore

TEXTS = {"json": '{"a": [1, {"b\\n": null}], "c": -0.5e+3, "é": ""} ', "python": PYTHON}


def row_by_row(reader: RawReader, engine: Engine) -> int:
    """Each row of the hypotheses on its own, from the whole stack, nothing remembered."""
    t, sets, mask = reader.t, reader.sets, 0
    letters_of = [tuple(t.letters[i] for i in sequence) for sequence in t.sequences]
    bits = [sum(1 << token for token in tokens.tolist()) for tokens in t.token_sets]
    ended = (Letter(reader.newline, NO_SCANNER, Column("after", 0)),)
    for h in engine.front:
        pair = None if h.state == t.start else t.states[h.state]
        rows, parts = [], [((), 0)] if pair is None else []
        for *of, scanners, sequence, tokens in t.own_rows.tolist():
            if tuple(of) == pair and sets[scanners][h.scanner]:
                rows.append((letters_of[sequence], tokens))
        for *of, scanners, part in t.at_once.tolist():
            if tuple(of) == pair and sets[scanners][h.scanner]:
                parts.append((ended if pair[1] == reader.newline else (), part))
        for before, wanted in parts:
            for part, sequence, tokens in t.shared_rows.tolist():
                if part == wanted:
                    rows.append((before + letters_of[sequence], tokens))
        for letters, tokens in rows:
            if engine.read(h, letters, 0, b"") is not None:
                mask |= bits[tokens]
    return mask


def store_of(name: str) -> MaskStore:
    return json_store() if name == "json" else python_store()


@pytest.mark.parametrize("name", list(TEXTS))
def test_what_is_remembered_is_what_is_read_row_by_row(name: str) -> None:
    store = store_of(name)
    reader, engine = RawReader(store.transitions), Engine(store.transitions)
    tokens = store.vocabulary.encode_greedy(TEXTS[name].encode())
    looked_at = set(random.Random(4).sample(range(len(tokens)), min(len(tokens), 20)))
    matcher, stop = StoreMatcher(store), store.vocabulary.stop_token_ids[0]
    for place, token in enumerate(tokens):
        mask = reader.mask(engine)
        assert mask >> token & 1
        if place in looked_at:
            assert mask == row_by_row(reader, engine)
        of_store = allowed(matcher)
        assert sum(1 << i for i in of_store - {stop}) == mask
        assert (stop in of_store) == engine.complete()
        assert engine.accept(store.vocabulary[token])
        assert matcher.accept_token(token)
    again = reader.misses
    engine = Engine(store.transitions)
    for token in tokens:
        reader.mask(engine)
        engine.accept(store.vocabulary[token])
    assert reader.misses == again


def test_a_row_that_is_missing_is_seen() -> None:
    store = MaskStore(json_store().grammar, json_store().vocabulary)
    reader, engine = RawReader(store.transitions), Engine(store.transitions)
    engine.accept(b"[1")
    mask = reader.mask(engine)
    assert mask >> ord(",") & 1
    lost = RawReader(store.transitions)
    for rows in (lost._parts, lost._own):
        for key, group in rows.items():
            sets = lost.t.token_sets
            rows[key] = [row for row in group if ord(",") not in sets[row[-1]]]
    assert not lost.mask(engine) >> ord(",") & 1
