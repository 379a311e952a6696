"""Mask stores of Lark's Python grammar: rows, build times, masks along real files, and checks.

    python benches/python/bench_mask_store.py --tokenizer path/to/model --files 20

Real files are those of the standard library that Lark's grammar takes. Each position's mask is
timed twice: as the text is met for the first time, and again once the store knows it. With
``--check N`` the mask of every N-th position is compared with the raw store: each row of the lexer
state, read by the table from the whole stack. ``--tokens`` tries so many tokens at these positions
one by one as well.
"""

from __future__ import annotations

import argparse
import random
import sys
import sysconfig
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

import numpy as np
from mask_store.lexer_views import places, raw_rows, reads
from tokfold import Vocabulary
from tokfold.mask_store.lark_reader import python_grammar
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.predicates import Predicates, interchangeable_terminals
from tokfold.mask_store.store import MaskStore
from tokfold.mask_store.streamline import streamline
from tokfold.mask_store.transitions import build_transitions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--lexer", choices=["basic", "contextual"], default="contextual")
    parser.add_argument("--files", type=int, default=10)
    parser.add_argument("--check", type=int, default=0, metavar="N")
    parser.add_argument("--tokens", type=int, default=0)
    parser.add_argument("--rows", action="store_true", help="count the rows of the raw store too")
    options = parser.parse_args()
    vocabulary = Vocabulary.from_file(options.tokenizer)
    grammar = python_grammar(lexer=options.lexer)
    if options.rows:
        show_rows(vocabulary)
    began = time.perf_counter()
    store = MaskStore(grammar, vocabulary)
    print(f"store built in {time.perf_counter() - began:.2f} s: {store.row_count()}")
    show_masks(store, options.files, options.check, options.tokens)


def show_rows(vocabulary: Vocabulary) -> None:
    grammar = python_grammar(lexer="basic")
    began = time.perf_counter()
    predicates = Predicates(grammar)
    parser_side = time.perf_counter() - began
    raw = build_transitions(grammar, vocabulary).joined()
    walked = time.perf_counter() - began - parser_side
    reductions = streamline(raw, predicates)
    streamlined = time.perf_counter() - began - parser_side - walked
    names = [terminal.name for terminal in grammar.terminals]
    sets = interchangeable_terminals(grammar.productions, names)
    print(f"transitions {int(raw.transitions.sum()):,}; rows {dict(reductions.counts)}")
    print(f"legality of rows {dict(reductions.legality)}")
    print(f"interchangeable: {len(sets)} sets, {sum(map(len, sets))} terminals")
    masks = {mask.tobytes() for mask in reductions.masks(raw, len(vocabulary))}
    print(f"distinct masks {len(masks):,}")
    print(f"seconds: stacks {parser_side:.2f}, walk {walked:.2f}, streamlining {streamlined:.2f}")


def show_masks(store: MaskStore, count: int, check: int, tokens: int) -> None:
    rng = random.Random(1)
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    rng.shuffle(files)
    row = np.zeros(store.words, np.int32)
    first: list[float] = []
    again: list[float] = []
    keys: set[tuple[object, ...]] = set()
    depths: list[int] = []
    positions = checked = wrong = taken = tried = 0
    for path in files:
        if taken == count:
            break
        ids = store.vocabulary.encode_greedy(path.read_bytes())
        matcher = StoreMatcher(store)
        if len(ids) > 30_000 or matcher.accept_tokens(ids) < len(ids) or not matcher.is_accepting:
            continue
        taken += 1
        for times in (first, again):
            matcher.reset()
            for token in ids:
                began = time.perf_counter()
                matcher.fill_bitmask(row)
                times.append(time.perf_counter() - began)
                if times is first:
                    note(matcher, keys, depths)
                    positions += 1
                    if check and positions % check == 0:
                        checked += 1
                        wrong += mask_of_rows(matcher) != bits(row, store)
                        for other in rng.sample(range(len(store.vocabulary)), tokens):
                            tried += 1
                            allowed = bool(row.view(np.uint32)[other >> 5] >> (other & 31) & 1)
                            wrong += matcher.fork().accept_token(other) != allowed
                if not matcher.accept_token(token):
                    raise AssertionError(f"{path}: a token was allowed once and not again")
    for name, times in (("first", first), ("again", again)):
        p50, p99 = np.percentile(np.array(times) * 1e6, [50, 99])
        print(
            f"masks {name}: p50 {p50:.1f} us, p99 {p99:.1f} us, mean {np.mean(times) * 1e6:.1f} us"
        )
    print(f"{positions:,} positions of {taken} files; {len(keys):,} keys")
    print(f"states of the stack read: {np.mean(depths):.2f} on average, {max(depths)} at most")
    print(f"checked: {checked:,} masks against all rows, {tried:,} tokens; wrong: {wrong}")
    print(f"store now: {store.row_count()}")


def note(matcher: StoreMatcher, keys: set[tuple[object, ...]], depths: list[int]) -> None:
    """What part of the stack decided the mask."""
    for place, depth in zip(places(matcher), matcher._core.depths(), strict=True):
        depths.append(depth)
        keys.add((place.state, place.scanner, place.stack[len(place.stack) - depth :]))


def bits(row: np.ndarray, store: MaskStore) -> int:
    mask = int.from_bytes(row.tobytes(), "little")
    for stop in store.vocabulary.stop_token_ids:
        mask &= ~(1 << stop)
    return mask


def mask_of_rows(matcher: StoreMatcher) -> int:
    """The mask by the raw store: each row read by the table from the whole stack."""
    store, mask = matcher.store, 0
    for place in places(matcher):
        for letters, tokens in raw_rows(store, place):
            if reads(store, place.stack, letters):
                mask |= sum(1 << token for token in tokens.tolist())
    return mask


if __name__ == "__main__":
    main()
