"""Automata over bytes take the UTF-8 of their characters, and nothing else."""

from __future__ import annotations

import re

import numpy as np
import pytest
from mask_store.store_samples import vocabulary
from tokfold.mask_store.byte_automata import ByteAutomaton, terminal_automaton
from tokfold.mask_store.lark_reader import read_lark
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.store import MaskStore

EVERY = "".join(chr(p) for p in range(0x110000) if not 0xD800 <= p < 0xE000)
CLASSES = [".", "[^a]", "[^\\x00-\\x1f]", "\\w", "\\D", "[^\\s]", "[\\x80-\\U0010fffe]"]
CLASSES += ["[\\u07ff-\\u0800]", "[\\uffff-\\U00010000]", "[\\ud7ff-\\ue000]", "[^\\u0800]"]
CLASSES += ["[\\x7f-\\x80\\U0010ffff]", "[ſ-ſK]", "(?i:[a-zà-ÿ])", "(?s:.)"]


def count(automaton: ByteAutomaton) -> int:
    """How many texts of at most four bytes are matched whole."""
    size = len(automaton.ends)
    steps = np.zeros((size, size), np.int64)
    for state, row in enumerate(automaton.moves):
        np.add.at(steps[state], row[row >= 0], 1)
    is_end, at, found = np.array(automaton.ends) == 1, np.eye(1, size, dtype=np.int64)[0], 0
    for _ in range(4):
        at = at @ steps
        found += int(at[is_end].sum())
    return found


@pytest.mark.parametrize("pattern", CLASSES)
def test_a_class_is_the_utf8_of_its_characters_and_no_more(pattern: str) -> None:
    [terminal] = read_lark(f"start: T\nT: /{pattern}/\n").terminals
    automaton = terminal_automaton(terminal)
    characters = re.findall(pattern, EVERY)
    assert characters
    for width in range(1, 5):
        data = b"".join(b for c in characters if len(b := c.encode()) == width)
        columns = np.frombuffer(data, np.uint8).reshape(-1, width).T
        states = np.zeros(columns.shape[1], np.int32)
        for column in columns:
            states = automaton.moves[states, column]
            assert (states >= 0).all()
        assert all(automaton.ends[state] == 1 for state in np.unique(states))
    assert count(automaton) == len(characters)


def test_a_mask_has_no_byte_that_cannot_be_of_a_character() -> None:
    store = MaskStore(read_lark('start: T\nT: /"[^"]*"/\n'), vocabulary(['"é日😀"'], 5))
    row = np.zeros(store.words, np.int32)
    edges = (0x21, 0x7F, 0x80, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF)
    for first in (*edges, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF):
        for second in (None, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF):
            begun = bytes([first] if second is None else [first, second])
            matcher = StoreMatcher(store)
            assert matcher.accept_string('"')
            after = {byte for byte in range(256) if begins_character(begun + bytes([byte]))}
            if not matcher.accept_bytes(begun):
                assert not after or begun[:1] == b'"'
                continue
            if begins_character(begun) == "whole":
                continue
            matcher.fill_bitmask(row)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")
            assert set(np.flatnonzero(bits[:256]).tolist()) == after, begun


def begins_character(data: bytes) -> str:
    """Whether bytes are the beginning of one character, or a whole one."""
    for end in (b"", b"\x80", b"\x80\x80", b"\xa0", b"\xa0\x80", b"\x90\x80", b"\x90\x80\x80"):
        for tail in (end, end.replace(b"\xa0", b"\x80")):
            try:
                text = (data + tail).decode()
            except UnicodeDecodeError:
                continue
            if len(text) == 1:
                return "part" if tail else "whole"
    return ""
