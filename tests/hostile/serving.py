"""A server in small: threads with hostile requests, and ordinary ones beside, in one process."""

from __future__ import annotations

import gc
import hashlib
import threading
import time
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import tokfold
from hostile.cases import CASES, Case
from tokfold import GrammarCompiler, Limits, Matcher, Vocabulary

TYPED = (tokfold.TokfoldError, ValueError, TypeError)
ORDINARY = {
    "lists": (
        'root ::= "[" (item (", " item)*)? "]"\nitem ::= root | [a-z]+ | "\\"" [^"]* "\\""',
        b'[abc, [x, "hello"], [[]]]',
    ),
    "expressions": ('root ::= root [-+*/] root | "(" root ")" | [0-9]+', b"1+(23*4)-5/(6)"),
}
"""Requests that must not be harmed: text and sample."""
TURNS = 12


@dataclass
class Served:
    """What became of the requests."""

    hostile: int = 0
    masks: int = 0
    tokens: int = 0
    ordinary: int = 0
    ended: dict[str, int] = field(default_factory=dict)
    """Hostile calls that raised, by error."""
    untyped: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def digests(compiler: GrammarCompiler, name: str) -> list[str]:
    """The masks along the sample of an ordinary request."""
    text, sample = ORDINARY[name]
    compiled = compiler.compile_grammar(text)
    matcher = Matcher(compiled)
    row = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
    found = []
    for token in compiled.vocabulary.encode_greedy(sample):
        _patiently(lambda: matcher.fill_bitmask(row))
        found.append(hashlib.sha256(row.tobytes()).hexdigest())
        if not _patiently(lambda token=token: matcher.accept_token(token)):
            found.append(f"refused {token}")
            break
    return found


def _patiently(work: Any) -> Any:
    """A deadline that passes on a busy machine gets further the next time."""
    for _ in range(100):
        try:
            return work()
        except tokfold.DeadlineExceededError:
            pass
    return work()


def serve(
    vocabulary: Vocabulary,
    names: list[str],
    limits: Limits,
    *,
    seconds: float,
    threads: int = 3,
    rounds: int = 1,
    classes: Any = "never",
    begun: threading.Event | None = None,
) -> Served:
    """Serve for some seconds, and at least so many rounds of all inputs; everything is counted.

    ``begun`` is set when all inputs are made, which is no part of serving.
    """
    sources = [(CASES[name], CASES[name].make()) for name in names]
    alone = {
        name: digests(GrammarCompiler(vocabulary, classes="never", seed=False), name)
        for name in ORDINARY
    }
    gc.collect()
    gc.freeze()
    served = Served()
    if begun is not None:
        begun.set()
    compiler = GrammarCompiler(
        vocabulary, limits=limits, classes=classes, seed=False, max_grammars=8
    )
    until = time.monotonic() + seconds
    lock = threading.Lock()
    turns = iter([place for _ in range(10_000) for place in range(len(sources))])
    least = rounds * len(sources)
    done = threading.Event()

    def hostile(draw: Random) -> None:
        while True:
            with lock:
                if served.hostile >= least and time.monotonic() > until:
                    return
                served.hostile += 1
                case, source = sources[next(turns)]
            _hostile(case, source, compiler, served, lock, draw)

    def ordinary() -> None:
        while not done.is_set():
            for name, expected in alone.items():
                try:
                    found = digests(compiler, name)
                except BaseException as error:
                    found = [repr(error)]
                with lock:
                    served.ordinary += 1
                    if found != expected:
                        served.wrong.append(
                            f"{name}: other masks beside hostile requests {found[-1]}"
                        )

    workers = [threading.Thread(target=hostile, args=(Random(i),)) for i in range(threads)]
    beside = threading.Thread(target=ordinary)
    for thread in (*workers, beside):
        thread.start()
    for thread in workers:
        thread.join()
    done.set()
    beside.join()
    return served


def _hostile(
    case: Case, source: Any, compiler: GrammarCompiler, served: Served, lock: Any, draw: Random
) -> None:
    """One request: compile, and go on for some tokens."""

    def tried(what: str, work: Any) -> tuple[bool, Any]:
        try:
            return True, work()
        except BaseException as error:
            kind = type(error).__name__
            with lock:
                served.ended[f"{what}: {kind}"] = served.ended.get(f"{what}: {kind}", 0) + 1
                if not isinstance(error, TYPED):
                    served.untyped.append(f"{case.name}, {what}: {error!r}"[:300])
            return False, None

    well, compiled = tried("compile", lambda: getattr(compiler, f"compile_{case.kind}")(source))
    if not well:
        return
    well, matcher = tried("matcher", lambda: Matcher(compiled))
    if not well:
        return
    vocabulary = compiled.vocabulary
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    sample = vocabulary.encode_greedy(case.sample) if case.sample else []
    for turn in range(TURNS):
        if matcher.is_terminated:
            break
        well, _ = tried("mask", lambda: matcher.fill_bitmask(row))
        served.masks += 1
        ids: list[int] = []
        if well:
            bits = np.unpackbits(row.view(np.uint8)[0], bitorder="little").astype(bool)
            bits[list(vocabulary.stop_token_ids)] = False
            ids = np.flatnonzero(bits).tolist()
        token = sample[turn] if turn < len(sample) else draw.choice(ids or [0])
        taken, accepted = tried("accept", lambda token=token: matcher.accept_token(token))
        served.tokens += 1
        if taken and well and accepted != (token in set(ids)):
            with lock:
                served.wrong.append(f"{case.name}: token {token} is {accepted} by accept_token")
        if not accepted:
            break
    tried("forced", lambda: matcher.forced_bytes(1 << 20))
