r"""Masks of a store along real files, compared with oracles that know nothing of its classes.

    python benches/python/check_mask_store.py --tokenizer path/to/model --positions 100000 \
        --record masks.jsonl

At each position of each file the store's mask is compared, whole, with the raw rows: those of the
lexer before any predicate, each read by Lark's table from the whole stack. ``--tokens`` are tried
one by one as well, half of them from the mask and half not, each through the lexer and the table.
Whether a file is taken at all is compared with Lark. Files are those of the standard library, or
``--texts``. What was compared is written to ``--record`` file by file; the same command goes on
from there. Exits with 1 where something differs.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import random
import sys
import sysconfig
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
if not os.environ.get("PYTHONPATH"):
    sys.path.append(str(ROOT / "python"))

import lark  # noqa: E402
import numpy as np  # noqa: E402
from lark.indenter import PythonIndenter  # noqa: E402
from mask_store.lalr_oracle import Engine  # noqa: E402
from mask_store.lark_texts import parses  # noqa: E402
from mask_store.raw_oracle import RawReader  # noqa: E402
from tokfold import Vocabulary  # noqa: E402
from tokfold.mask_store.lark_reader import open_lark, python_grammar  # noqa: E402
from tokfold.mask_store.matcher import StoreMatcher  # noqa: E402
from tokfold.mask_store.store import MaskStore  # noqa: E402

SHOWN = 20


@dataclass
class Counts:
    """What was compared; ``refused`` are files that neither the store nor Lark takes."""

    files: int = 0
    refused: int = 0
    positions: int = 0
    tokens: int = 0
    wrong: int = 0
    seconds: float = 0.0

    def add(self, other: Counts) -> None:
        """Add what was compared elsewhere."""
        for name, value in asdict(other).items():
            setattr(self, name, getattr(self, name) + value)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokenizer", required=True)
    parser.add_argument("--grammar", type=Path, help="a .lark file; without it Lark's Python")
    parser.add_argument("--texts", type=Path, nargs="+", help="files; without it the library's")
    parser.add_argument("--lexer", choices=["basic", "contextual"], default="contextual")
    parser.add_argument("--positions", type=int, default=10_000)
    parser.add_argument("--tokens", type=int, default=4, help="tokens tried at each position")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", type=Path, help="a file of JSON lines, gone on with")
    parser.add_argument("--without-lark", action="store_true", help="believe the store's verdicts")
    options = parser.parse_args()
    vocabulary = Vocabulary.from_file(options.tokenizer)
    if options.grammar is None:
        grammar, source = python_grammar(lexer=options.lexer), "python"
    else:
        grammar = open_lark(options.grammar, lexer=options.lexer)
        source = options.grammar.read_text(encoding="utf-8")
    began = time.perf_counter()
    store = MaskStore(grammar, vocabulary)
    print(f"store built in {time.perf_counter() - began:.2f} s")
    asked = [vocabulary.fingerprint, source, lark.__version__, options.lexer]
    setting = hashlib.sha256(json.dumps([*asked, options.tokens, options.seed]).encode())
    check = Check(store, None if options.without_lark else truth(options), options)
    total = check.all(files_of(options), setting.hexdigest())
    print(
        f"{total.positions:,} masks whole and {total.tokens:,} tokens one by one, along "
        f"{total.files} files ({total.refused} more are refused by all); wrong: {total.wrong}; "
        f"{total.seconds:.0f} s"
    )
    reader = check.reader
    print(f"{reader.misses:,} groups of rows read anew, {reader.rows_read:,} letters of rows")
    return 1 if total.wrong else 0


def truth(options: argparse.Namespace) -> lark.Lark:
    common: dict[str, Any] = {"parser": "lalr", "lexer": options.lexer}
    if options.grammar is not None:
        return lark.Lark.open(str(options.grammar), **common)
    common |= {"postlex": PythonIndenter(), "start": "file_input"}
    return lark.Lark.open_from_package("lark", "python.lark", ["grammars"], **common)


def files_of(options: argparse.Namespace) -> list[Path]:
    if options.texts:
        return list(options.texts)
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("**/*.py"))
    files = [path for path in files if "site-packages" not in path.parts]
    random.Random(options.seed).shuffle(files)
    return files


class Check:
    """A store beside its oracles, which remember what they read from file to file."""

    def __init__(
        self, store: MaskStore, parser: lark.Lark | None, options: argparse.Namespace
    ) -> None:
        self.store, self.parser, self.options = store, parser, options
        self.reader = RawReader(store.transitions)
        self.stops = sum(1 << token for token in store.vocabulary.stop_token_ids)
        self.row = np.zeros(store.words, np.int32)

    def all(self, files: list[Path], setting: str) -> Counts:
        """Compare along files until there are enough positions."""
        total, record = Counts(), self.options.record
        done = {}
        if record is not None and record.exists():
            lines = [json.loads(line) for line in record.read_text("utf-8").splitlines()]
            done = {line["file"]: line for line in lines if line["setting"] == setting}
        for path in files:
            if total.positions >= self.options.positions:
                break
            data = path.read_bytes()
            known = done.get(str(path))
            digest = hashlib.sha256(data).hexdigest()
            if known is not None and known["digest"] == digest:
                total.add(Counts(**known["counts"]))
                continue
            counts = self.file(path, data)
            total.add(counts)
            if record is not None:
                line = {"file": str(path), "digest": digest, "setting": setting}
                with record.open("a", encoding="utf-8") as out:
                    out.write(json.dumps({**line, "counts": asdict(counts)}) + "\n")
            verdict = "refused" if counts.refused else f"{counts.positions:,} positions"
            print(
                f"{total.positions:>9,}  {path.name}: {verdict}, {counts.seconds:.1f} s, "
                f"wrong: {counts.wrong}",
                flush=True,
            )
        return total

    def file(self, path: Path, data: bytes) -> Counts:
        """Compare at each position of a file that is taken."""
        counts, began = Counts(), time.perf_counter()
        store, rng = self.store, random.Random(f"{self.options.seed} {path.name}")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return Counts(refused=1)
        ids = store.vocabulary.encode_greedy(data)
        matcher = StoreMatcher(store)
        taken = matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting
        if self.parser is not None and parses(self.parser, text) != taken:
            counts.wrong += 1
            print(f"{path}: {'taken' if taken else 'refused'}, and Lark says otherwise")
        if not taken:
            counts.refused = 1
        else:
            counts.files = 1
            matcher.reset()
            engine = Engine(store.transitions)
            for place, token in enumerate([*ids, None]):
                self.position(f"{path}, token {place}", matcher, engine, rng, counts)
                if token is None:
                    break
                if not matcher.accept_token(token) or not engine.accept(store.vocabulary[token]):
                    raise AssertionError(f"{path}, token {place}: allowed once and not again")
        counts.seconds = time.perf_counter() - began
        return counts

    def position(
        self, where: str, matcher: StoreMatcher, engine: Engine, rng: random.Random, counts: Counts
    ) -> None:
        """Compare the mask of one position."""
        store, size = self.store, len(self.store.vocabulary)
        matcher.fill_bitmask(self.row)
        full = int.from_bytes(self.row.tobytes(), "little")
        mask, raw = full & ~self.stops, self.reader.mask(engine) & ~self.stops
        counts.positions += 1
        if mask != raw:
            counts.wrong += 1
            self.show(where, matcher, "rows", mask ^ raw, mask)
        if (full & self.stops == self.stops) != engine.complete() or full >> size:
            counts.wrong += 1
            print(f"{where}: whether the text may end differs")
        flags = np.unpackbits(self.row.view(np.uint8), bitorder="little")[:size]
        tried = []
        for side, share in ((1, self.options.tokens // 2), (0, -(-self.options.tokens // 2))):
            members = np.flatnonzero(flags == side).tolist()
            tried += rng.sample(members, min(share, len(members)))
        for token in tried:
            data = store.vocabulary[token]
            if self.stops >> token & 1 or token in store.vocabulary.special_token_ids or not data:
                continue
            counts.tokens += 1
            allowed = copy.copy(engine).accept(data)
            if allowed != bool(mask >> token & 1):
                counts.wrong += 1
                self.show(where, matcher, "token", 1 << token, mask)

    def show(self, where: str, matcher: StoreMatcher, what: str, differs: int, mask: int) -> None:
        """Print some of the tokens that differ."""
        size = len(self.store.vocabulary)
        tokens = [i for i in range(size) if differs >> i & 1]
        print(f"{where}, by {what}: {len(tokens)} tokens differ, after {matcher.text[-40:]!r}:")
        for token in tokens[:SHOWN]:
            side = "allowed" if mask >> token & 1 else "not allowed"
            print(f"    {token} {self.store.vocabulary[token]!r}: {side} by the store alone")


if __name__ == "__main__":
    sys.exit(main())
