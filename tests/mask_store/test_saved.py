"""Stores as files: what is taken up is what was built, and damage is found."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mask_store.store_samples import JSON, PYTHON, json_store, python_store, vocabulary
from mask_store.table_oracles import grammar_texts, table_of
from strategies.profiles import examples
from support import processes
from support.processes import DEADLINE_S
from tokfold import Vocabulary, _artifact
from tokfold.errors import ArtifactError, MatcherStateError
from tokfold.mask_store.errors import TableLoopError
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.saved import KIND
from tokfold.mask_store.store import MaskStore


def mask(matcher: object) -> bytes:
    row = np.zeros(matcher.store.words, np.int32)  # type: ignore[attr-defined]
    matcher.fill_bitmask(row)  # type: ignore[attr-defined]
    return row.tobytes()


def same_along(one: MaskStore, two: MaskStore, text: bytes) -> None:
    first, second = StoreMatcher(one), StoreMatcher(two)
    for token in one.vocabulary.encode_greedy(text):
        assert mask(first) == mask(second)
        taken = first.accept_token(token)
        assert second.accept_token(token) == taken
        assert first.state == second.state
        assert first.is_accepting == second.is_accepting
        if not taken:
            break


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
@pytest.mark.parametrize("mmap", [True, False])
def test_a_store_taken_up_makes_the_same_masks(tmp_path: Path, lexer: str, mmap: bool) -> None:
    built = python_store(lexer)  # type: ignore[arg-type]
    built.save(tmp_path / "python.store")
    loaded = MaskStore.load(tmp_path / "python.store", built.vocabulary, mmap=mmap)
    assert loaded.grammar == built.grammar
    same_along(built, loaded, PYTHON.encode())
    for text in (b"f(a[{", b"if x:\n\ty\n\t z", b"\\\n x='''"):
        same_along(built, loaded, text)


def test_equal_stores_are_equal_bytes(tmp_path: Path) -> None:
    built = json_store()
    built.save(tmp_path / "one")
    loaded = MaskStore.load(tmp_path / "one", built.vocabulary)
    loaded.save(tmp_path / "two")
    again = MaskStore.load(tmp_path / "two", built.vocabulary)
    same_along(built, again, b'{"a": [1, -2.5e3, true]}')


@examples(15)
@given(grammar_texts(), st.text("abcd", max_size=8))
def test_random_grammars(tmp_path_factory: pytest.TempPathFactory, text: str, word: str) -> None:
    grammar = table_of(text)
    assume(grammar is not None and grammar.terminals)
    tokens = [b"a", b"b", b"c", b"d", b"ab", b"ba", b"aab", b"cd"]
    path = tmp_path_factory.mktemp("store") / "file"
    try:
        built = MaskStore(grammar, Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)]))
    except TableLoopError:
        assume(False)
    built.save(path)
    loaded = MaskStore.load(path, built.vocabulary)
    try:
        same_along(built, loaded, word.encode())
    except TableLoopError:
        assume(False)


def test_another_vocabulary_is_refused(tmp_path: Path) -> None:
    json_store().save(tmp_path / "file")
    with pytest.raises(ArtifactError, match="another vocabulary"):
        MaskStore.load(tmp_path / "file", vocabulary([JSON], 3))


def test_damage_is_found(tmp_path: Path) -> None:
    path = tmp_path / "file"
    json_store().save(path)
    whole = path.read_bytes()
    for at in (9, 40, len(whole) // 2, len(whole) - 40):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ArtifactError):
            MaskStore.load(path, json_store().vocabulary)
    path.write_bytes(whole[:-100])
    with pytest.raises(ArtifactError):
        MaskStore.load(path, json_store().vocabulary)


@pytest.mark.parametrize("seed", range(60))
def test_wrong_numbers_under_a_right_checksum(tmp_path: Path, seed: int) -> None:
    """What cannot be is an error, whatever stands in the file; nothing crashes."""
    rng = np.random.default_rng(seed)
    path, built = tmp_path / "file", json_store()
    built.save(path)
    artifact = _artifact.read(path, KIND)
    arrays = {name: array.copy() for name, array in artifact.arrays.items()}
    name = sorted(set(arrays) - {"grammar"})[seed % (len(arrays) - 1)]
    array = arrays[name]
    if not array.size:
        return
    at = rng.integers(array.size)
    array.flat[at] = rng.choice([0, 1, 2**31 - 1, int(array.flat[at]) // 2, array.size])
    if rng.random() < 0.2:
        arrays[name] = array[:-1]
    _artifact.write(path, KIND, artifact.header, arrays)
    try:
        loaded = MaskStore.load(path, built.vocabulary)
    except ArtifactError:
        return
    matcher = StoreMatcher(loaded)
    for token in built.vocabulary.encode_greedy(b'{"a": [1]}'):
        mask(matcher)
        if not matcher.accept_token(token):
            break


def test_a_store_is_taken_up_without_lark(tmp_path: Path) -> None:
    built = json_store()
    built.save(tmp_path / "file")
    tokens = [built.vocabulary[i].hex() for i in range(len(built.vocabulary))]
    (tmp_path / "tokens.json").write_text(json.dumps([tokens, built.vocabulary.stop_token_ids]))
    script = f"""
import json, pathlib, sys
sys.modules["lark"] = None
from tokfold import Vocabulary
from tokfold.mask_store import MaskStore, StoreMatcher
folder = pathlib.Path({str(tmp_path)!r})
tokens, stops = json.loads((folder / "tokens.json").read_text())
vocabulary = Vocabulary([bytes.fromhex(token) for token in tokens], stop_token_ids=stops)
matcher = StoreMatcher(MaskStore.load(folder / "file", vocabulary))
assert matcher.accept_string("[1, 2]") and matcher.is_accepting
"""
    processes.run([sys.executable, "-c", script], check=True, text=False)


def test_threads_share_a_mapped_store_and_a_matcher(tmp_path: Path) -> None:
    built = json_store()
    built.save(tmp_path / "file")
    text = b'{"a": [1, {"b": null}, -2.5e3, "c"]}'
    for _ in range(5):
        # All is forgotten at once: each mask reads the tokens of rows from the file again.
        loaded = MaskStore.load(tmp_path / "file", built.vocabulary, max_kept=1)
        shared = StoreMatcher(loaded)
        failed: list[BaseException] = []

        def read(shared: StoreMatcher = shared, failed: list[BaseException] = failed) -> None:
            try:
                for _ in range(100):
                    mask(shared)
                    fork = shared.fork()
                    assert fork.accept_bytes(text)
                    assert fork.is_accepting
                    mask(fork)
                    assert shared.num_steps == 0
            except BaseException as error:
                failed.append(error)
                raise

        threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
            assert not thread.is_alive(), "the threads wait for each other"
        assert not failed


def test_what_is_not_in_a_file_is_named(tmp_path: Path) -> None:
    json_store().save(tmp_path / "file")
    loaded = MaskStore.load(tmp_path / "file", json_store().vocabulary)
    rows, saved = (store.transitions.rows.values() for store in (json_store(), loaded))
    assert all(map(np.array_equal, rows, saved))
    with pytest.raises(MatcherStateError, match="to count them"):
        loaded.transitions.joined()
