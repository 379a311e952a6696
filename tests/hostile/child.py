"""What is held against a hostile input, in a process of its own: facts, as lines of JSON.

A process serves many: it reads requests, forks for each, and writes what became of it. Forks start
in milliseconds, and one that crashes takes nothing along.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import tokfold
from hostile import faults, unseen  # noqa: F401 - unseen has more cases
from hostile.cases import CASES, Case
from support.forks import Write, forked
from support.processes import DEADLINE_S
from tokfold import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    Interrupt,
    Limits,
    Matcher,
    Vocabulary,
)

GIGABYTES = 4.0
STEPS = 12
SAMPLED = 6
"""Allowed tokens that are tried at each step, and as many forbidden ones."""
PATIENCE = DEADLINE_S
"""Seconds that a walk goes on for at most, where a request names none."""
TYPED = (tokfold.TokfoldError, ValueError, TypeError)

DEFAULT = Limits()
DEADLINES = Limits(
    max_compile_milliseconds=2_000, max_mask_milliseconds=50, max_accept_milliseconds=20
)
SMALL = Limits(max_memo_bytes=8 << 20, max_row_bytes=2 << 20, max_matcher_bytes=32 << 20)
MODES = {"default": DEFAULT, "deadlines": DEADLINES, "small": SMALL}

Row = npt.NDArray[np.int32]


def small_vocabulary() -> Vocabulary:
    """Bytes, pairs of letters, and what often stands in JSON."""
    letters = b'abcdefghijklmnopqrstuvwxyz(){}[]":, '
    pairs = [bytes([a, b]) for a in letters for b in letters]
    words = [
        b"hello",
        b" world",
        b'{"',
        b'": "',
        b"function",
        b"</",
        b"aaaa",
        b"aaaaaaaa",
        b"ababab",
    ]
    return Vocabulary(
        [b"</s>", *(bytes([i]) for i in range(256)), *pairs, *words], stop_token_ids=[0]
    )


def request(case: Case, source: Any, vocabulary: Vocabulary, limits: Limits) -> CompiledGrammar:
    """What a server does with an input."""
    if case.engine != "auto":
        grammar = Grammar.from_ebnf(source)
        return tokfold.compile(
            grammar,
            vocabulary,
            limits,
            classes="never",
            options=tokfold.CompileOptions(engine=case.engine, pool=None),
        )
    compiler = GrammarCompiler(vocabulary, classes="never", seed=False, limits=limits)
    return getattr(compiler, f"compile_{case.kind}")(source)


class Examination:
    """One input under some limits, and what is wrong with what comes of it."""

    def __init__(
        self,
        case: Case,
        vocabulary: Vocabulary,
        limits: Limits,
        write: Write,
        patience: float = PATIENCE,
    ) -> None:
        self.case, self.vocabulary, self.limits, self.write = case, vocabulary, limits, write
        self.draw = Random(case.name)
        self.tried = {"allowed": 0, "forbidden": 0, "recognized": 0, "cancelled": 0, "refused": 0}
        self.patience = patience
        self.until = 0.0
        tokens = vocabulary.token_bytes
        self.bytes = {t[0]: i for i, t in enumerate(tokens) if t is not None and len(t) == 1}

    def wrong(self, what: str) -> None:
        self.write(["wrong", what])

    def call(self, name: str, work: Callable[[], Any]) -> tuple[Any, str]:
        """What a call returns, and the name of its error."""
        self.write(["begin", name])
        try:
            return work(), ""
        except BaseException as error:
            kind = type(error).__name__
            typed = isinstance(error, TYPED)
            self.write(["error", name, kind, typed, str(error)[:300]])
            return None, kind

    def run(self) -> None:
        source = self.case.make()
        compiled, _ = self.call(
            "compile", lambda: request(self.case, source, self.vocabulary, self.limits)
        )
        if compiled is not None:
            self.until = time.monotonic() + self.patience
            self.walk(compiled)
            self.others(compiled)
            self.look(compiled)
            held = compiled._core.bytes_held
            self.write(
                ["held", "masks", held / (self.limits.max_memo_bytes + self.limits.max_row_bytes)]
            )
        self.write(["tried", self.tried])
        self.write(["end"])

    # -- masks and tokens

    def walk(self, compiled: CompiledGrammar) -> None:
        matcher, failed = self.call("matcher", lambda: Matcher(compiled))
        if failed:
            return
        sample = self.vocabulary.encode_greedy(self.case.sample) if self.case.sample else []
        row = tokfold.allocate_bitmask(1, len(self.vocabulary))
        for step in range(STEPS):
            if matcher.is_terminated or time.monotonic() > self.until:
                break
            bits = self.mask(matcher, row, step)
            token = self.next(bits, sample[step : step + 1], step)
            if bits is not None:
                self.write(["mask", step, hashlib.sha256(bits.tobytes()).hexdigest()[:16]])
                self.agree(matcher, bits)
                if step < 3:
                    self.recognized(matcher, bits)
            if token is None:
                break
            if step % 3 == 0:
                self.cancelled(matcher, token, bits)
            if not self.accept(matcher, token, bits):
                break
            if step % 4 == 3:
                self.back_and_forth(matcher, token)
        held = matcher.counters()["bytes_held"]
        self.write(["held", "matcher", held / self.limits.max_matcher_bytes])

    def mask(self, matcher: Matcher, row: Row, step: int) -> npt.NDArray[np.bool_] | None:
        """The mask; a deadline that passes gets further each time."""
        for _ in range(40):
            before = self.place(matcher)
            _, failed = self.call("mask", lambda: matcher.fill_bitmask(row))
            if not failed:
                bits = np.unpackbits(row.view(np.uint8)[0], bitorder="little").astype(bool)
                if bits[len(self.vocabulary) :].any():
                    self.wrong(f"a bit past the last token at step {step}")
                return bits[: len(self.vocabulary)]
            self.same(matcher, before, f"a mask that failed with {failed}")
            if failed != "DeadlineExceededError" or time.monotonic() > self.until:
                break
        return None

    def next(self, bits: npt.NDArray[np.bool_] | None, sample: list[int], step: int) -> int | None:
        """The next token: the same in each mode, however much was drawn and ended on the way."""
        if sample and (bits is None or bits[sample[0]]):
            return sample[0]
        if bits is None:
            return None
        ids = np.flatnonzero(bits)
        ids = ids[~np.isin(ids, self.vocabulary.stop_token_ids)]
        draw = Random(f"{self.case.name}, step {step}")
        return int(draw.choice(ids.tolist())) if len(ids) else None

    def accept(self, matcher: Matcher, token: int, bits: npt.NDArray[np.bool_] | None) -> bool:
        before = self.place(matcher)
        taken, failed = self.call("accept", lambda: matcher.accept_token(token))
        if failed or not taken:
            self.same(matcher, before, f"a token that was not taken {failed}")
        if bits is not None and not failed and not taken:
            self.wrong(f"the mask allows token {token}, which is refused")
        return bool(taken)

    def agree(self, matcher: Matcher, bits: npt.NDArray[np.bool_]) -> None:
        """Allowed tokens are taken, forbidden ones refused."""
        stops = self.vocabulary.stop_token_ids
        if bits[list(stops)].any() != matcher.is_accepting:
            self.wrong("the stop token is allowed where the text may not end, or the other way")
        expected, failed = self.call("expected", lambda: matcher.expected_bytes)
        if not failed:
            for byte, token in self.bytes.items():
                if bits[token] != (byte in expected):
                    self.wrong(f"byte {byte:#04x} is expected, or its token allowed, but not both")
        for what, ids in (("allowed", np.flatnonzero(bits)), ("forbidden", np.flatnonzero(~bits))):
            for token in self.draw.sample(ids.tolist(), min(SAMPLED, len(ids))):
                fork = matcher.fork()
                taken, failed = self.call("accept of a fork", lambda: fork.accept_token(token))  # noqa: B023
                if failed:
                    self.same(fork, self.place(matcher), "a token that failed")
                    continue
                self.tried[what] += 1
                if taken != (what == "allowed"):
                    self.wrong(f"token {token} is {what}, and accept_token says {taken}")
                if not taken:
                    self.same(fork, self.place(matcher), "a token that was refused")

    def recognized(self, matcher: Matcher, bits: npt.NDArray[np.bool_]) -> None:
        """Recognition, which has no masks, says the same."""
        grammar = matcher.compiled.grammar
        if grammar._takes_tokens:
            return
        tokens = self.vocabulary.token_bytes
        for ids in (np.flatnonzero(bits), np.flatnonzero(~bits)):
            ids = [i for i in ids.tolist() if i not in self.vocabulary.stop_token_ids]
            for token in self.draw.sample(ids, min(2, len(ids))):
                data = matcher.text + tokens[token]
                ends = Interrupt(milliseconds=int(70 * self.patience))
                found, failed = self.call(
                    "recognize",
                    lambda: tokfold.recognize(grammar, data, self.limits, interrupt=ends),  # noqa: B023
                )
                if failed:
                    return
                self.tried["recognized"] += 1
                if (found.read == len(data)) != bits[token]:
                    self.wrong(f"recognition reads {found.read} of {data[-40:]!r}: {bits[token]}")

    # -- refused, cancelled, rolled back

    def place(self, matcher: Matcher) -> tuple[Any, ...]:
        """Where a matcher stands."""
        return (matcher.num_steps, matcher.text, matcher.is_accepting, matcher.is_terminated)

    def same(self, matcher: Matcher, before: tuple[Any, ...], after: str) -> None:
        self.tried["refused"] += 1
        if self.place(matcher) != before:
            self.wrong(f"after {after}, the matcher stands elsewhere")

    def cancelled(self, matcher: Matcher, token: int, bits: npt.NDArray[np.bool_] | None) -> None:
        """Cancelled calls, before and on the way, leave the state and the masks as they were."""
        before = self.place(matcher)
        row = tokfold.allocate_bitmask(1, len(self.vocabulary))
        calls: dict[str, Callable[[Matcher], Any]] = {
            "mask": lambda own: own.fill_bitmask(row),
            "accept": lambda own: own.accept_token(token),
            "accept_bytes": lambda own: own.accept_bytes(self.case.sample * 50),
            "forced_bytes": lambda own: own.forced_bytes(1 << 20),
            "draft": lambda own: own.fill_bitmask_draft(
                [token] * 3, tokfold.allocate_bitmask(4, len(self.vocabulary))
            ),
        }
        for name, work in calls.items():
            for moment in (None, 0.0, self.draw.random() * 0.02):
                if moment is not None and time.monotonic() > self.until:
                    break
                own = matcher.fork()
                if name == "mask":
                    matcher.compiled._core.forget()
                if moment is None:
                    own.cancel()
                    _, failed = self.call(f"{name}, cancelled", lambda: work(own))  # noqa: B023
                else:
                    timer = threading.Timer(moment, own.cancel)
                    timer.start()
                    _, failed = self.call(f"{name}, cancelled on the way", lambda: work(own))  # noqa: B023
                    timer.join()
                own.resume()
                if failed == "CancelledError":
                    self.tried["cancelled"] += 1
                if failed:
                    self.same(own, before, f"{name} that failed with {failed}")
        if bits is not None and time.monotonic() < self.until:
            again = self.mask(matcher, row, -1)
            if again is not None and (again != bits).any():
                self.wrong("a mask that is made again after it was cancelled is another")

    def back_and_forth(self, matcher: Matcher, token: int) -> None:
        """What is rolled back and read again stands where it stood."""
        before = self.place(matcher)
        _, failed = self.call("rollback", matcher.rollback)
        if failed:
            self.same(matcher, before, "a rollback that failed")
            return
        for _ in range(40):
            taken, failed = self.call("accept again", lambda: matcher.accept_token(token))
            if failed != "DeadlineExceededError":
                break
        if taken and self.place(matcher) != before:
            self.wrong("rolled back and read again, the matcher stands elsewhere")
        if not taken and not failed:
            self.wrong(f"token {token} is refused after it was rolled back")
        with contextlib.suppress(*TYPED):
            state = matcher.state
            other = Matcher.from_state(matcher.compiled, state)
            if other.state != state:
                self.wrong("a state that is restored is another")

    # -- everything else

    def others(self, compiled: CompiledGrammar) -> None:
        """Long texts, drafts, forced bytes, siblings."""
        matcher, failed = self.call("matcher", lambda: Matcher(compiled))
        if failed:
            return
        before = self.place(matcher)
        sizes = {"120 kB": 120_000, "10 MB": 10_000_000, "long text": 20_000, "brackets": 100_000}
        for name in self.case.then:
            if name in sizes:
                piece = b"(" if name == "brackets" else self.case.sample
                data = piece * (sizes[name] // len(piece))
                own = matcher.fork()
                taken, failed = self.call(name, lambda: own.accept_bytes(data))  # noqa: B023
                if failed or not taken:
                    self.same(own, before, name)
                elif own.text != data:
                    self.wrong(f"{name}: the text is another")
                self.write(
                    ["held", name, own.counters()["bytes_held"] / self.limits.max_matcher_bytes]
                )
                del own
            elif name == "forced":
                forced, failed = self.call(name, lambda: matcher.forced_bytes(10**8))
                if forced:
                    piece = forced[:200]
                    taken, failed = self.call(
                        "forced bytes are read",
                        lambda: matcher.fork().accept_bytes(piece),  # noqa: B023
                    )
                    if not failed and not taken:
                        self.wrong("forced bytes are refused")
            elif name == "draft":
                ids = (self.vocabulary.encode_greedy(self.case.sample) * 300)[:300]
                rows = tokfold.allocate_bitmask(len(ids) + 1, len(self.vocabulary))
                self.call(name, lambda: matcher.fill_bitmask_draft(ids, rows))  # noqa: B023
            elif name == "sibling":
                self.sibling(matcher)
            elif name == "many steps":
                ids = self.vocabulary.encode_greedy(self.case.sample)
                own = matcher.fork()
                for token in ids * 500:
                    own.accept_token(token)
                self.call(name, lambda: own.rollback(own.num_steps))  # noqa: B023
                self.same(own, before, "many steps that were rolled back")
            elif name == "forks":
                forks, _ = self.call(name, lambda: [matcher.fork() for _ in range(2_000)])
                self.same(forks[-1], before, "many forks")
        self.same(matcher, before, "what its forks did")

    def sibling(self, matcher: Matcher) -> None:
        """A fork reads while another makes a mask."""
        token = self.vocabulary.encode_greedy(self.case.sample)[0]
        expected, _ = self.call("accept alone", lambda: matcher.fork().accept_token(token))
        matcher.compiled._core.forget()
        other = matcher.fork()
        row = tokfold.allocate_bitmask(1, len(self.vocabulary))
        errors: list[str] = []

        def fill() -> None:
            try:
                other.fill_bitmask(row)
            except BaseException as error:
                errors.append(type(error).__name__)

        thread = threading.Thread(target=fill)
        thread.start()
        for _ in range(20):
            taken, failed = self.call(
                "accept of a sibling", lambda: matcher.fork().accept_token(token)
            )
            if not failed and taken != expected:
                self.wrong("a fork beside a mask refuses what it takes alone")
        other.cancel()
        thread.join()
        if not set(errors) <= {"CancelledError", "LimitExceededError", "DeadlineExceededError"}:
            self.wrong(f"a mask beside a fork that reads raises {errors}")

    def look(self, compiled: CompiledGrammar) -> None:
        """What is asked of a grammar besides."""
        grammar = compiled.grammar
        self.call("text", lambda: str(grammar))
        self.call("fingerprint", lambda: grammar.fingerprint)
        self.call("cost", compiled.cost)
        ends = Interrupt(milliseconds=int(250 * self.patience))
        self.call(
            "classes",
            lambda: tokfold.compile_classes(grammar, self.vocabulary, self.limits, interrupt=ends),
        )
        self.call(
            "warm",
            lambda: compiled.warm(20, interrupt=Interrupt(milliseconds=int(100 * self.patience))),
        )
        gc.collect()


def examine(asked: dict[str, Any], write: Write, vocabulary: Vocabulary) -> None:
    """One request."""
    case, limits = CASES[asked["case"]], MODES[asked["mode"]]
    with faults.injected(asked["fault"]):
        Examination(case, vocabulary, limits, write, asked.get("patience", PATIENCE)).run()


def requests() -> Iterator[dict[str, Any]]:
    for line in sys.stdin:
        yield json.loads(line)


def main() -> None:
    """Serve requests: a line of JSON for each, and one for what became of it."""
    vocabulary = small_vocabulary()
    vocabulary._compiled  # noqa: B018 - made before the forks
    vocabulary.encode_greedy(b"x")
    with contextlib.suppress(ImportError):
        import xgrammar  # noqa: F401 - imported once, before the forks
    for asked in requests():
        outcome = forked(
            lambda write: examine(asked, write, vocabulary),  # noqa: B023
            gigabytes=asked.get("gigabytes", GIGABYTES),
            seconds=asked.get("seconds", DEADLINE_S),
        )
        print(json.dumps(dataclasses.asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
