"""How long a hostile request holds up others: the GIL, cancelling, deadlines, memory.

    python benches/python/bench_responsiveness.py --json out.json
    python benches/python/bench_responsiveness.py --case "8 left-recursive" --passes gil
    python benches/python/bench_responsiveness.py --server 60

Cases are those of tests/hostile, each in processes of its own with bounds on memory and time:

- *gil*: a thread sleeps 0.5 ms in a loop beside every call; what it is late by is how long the GIL
  was held in one piece. What the system kept from the caller (run delay, from the scheduler's own
  counters) is no part of it ("at most"), nor what it kept from the ticker, which on a busy machine
  may be too much to leave out ("at least", the figure). A hold is not longer than the time that
  the caller was on a core. A case with a hold over --suspect is run again, and the smallest of the
  figures counts. The interpreter switches every 0.1 ms, so a hold is one call into C.
- *cancel*: another thread cancels at random moments; from there to the return of the call, without
  the time in which the system kept the caller from a core. A third thread keeps one busy. Likewise
  from a deadline to the return.
- *memory*: growth of the process beside the bounds that were asked for.

--server runs all cases in one process, in threads, with deadlines, beside a ticker and ordinary
requests whose masks must stay what they are alone.

One file of more than 600 lines, so that what the processes do and how their times are read stand
side by side.
"""

# ruff: noqa: B023 - what is made in a loop is called there

from __future__ import annotations

import contextlib
import dataclasses
import gc
import hashlib
import json
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import bench_common as common
import numpy as np
import tokfold
from tokfold import Grammar, GrammarCompiler, Interrupt, Limits, Matcher, Vocabulary

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from hostile import unseen  # noqa: F401 - has more cases
from hostile.cases import CASES, Case
from hostile.child import small_vocabulary
from hostile.processes import Outcome, Write, forked
from hostile.serving import serve

SLEEP = 0.0005
WALK = 24
WALK_SECONDS = 5.0
"""After which a walk goes no further: its calls were measured by then."""
DEADLINES = Limits(
    max_compile_milliseconds=2_000, max_mask_milliseconds=50, max_accept_milliseconds=20
)
PATIENT = Limits(max_mask_milliseconds=3_000, max_accept_milliseconds=3_000)
"""What would take longer is measured in parts."""
SMALL = Limits(max_memo_bytes=16 << 20, max_row_bytes=4 << 20, max_matcher_bytes=64 << 20)
BARS = {"gil": 5.0, "cancel": 10.0, "deadline": 10.0, "memory": 1.2, "stall": 20.0}
TYPED = (tokfold.TokfoldError, ValueError, TypeError)

Row = dict[str, Any]

# -- clocks ----------------------------------------------------------------------------------------


class Delay:
    """Time that a thread was ready and not on a core, and time that it was on one."""

    def __init__(self, thread: int) -> None:
        self._file = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY)

    def __call__(self) -> tuple[float, float]:
        """Seconds on a core, seconds waiting for one."""
        on, waiting, _ = os.pread(self._file, 64, 0).split()
        return int(on) / 1e9, int(waiting) / 1e9

    def close(self) -> None:
        """Look no more."""
        os.close(self._file)


class Ticker:
    """A thread that sleeps, and how late it was under each label."""

    def __init__(self) -> None:
        self.label = "idle"
        self.worst: dict[str, tuple[float, float, str]] = {}
        """For each label: the hold, at least and at most, and where the caller was after it."""
        self._on = True
        self._caller = threading.get_ident()
        self._of_caller = Delay(threading.get_native_id())
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        mine = Delay(threading.get_native_id())
        last, (_, my_wait), (on, wait) = time.perf_counter(), mine(), self._of_caller()
        label = self.label
        while self._on:
            time.sleep(SLEEP)
            now, (_, my_next), (on_next, next) = time.perf_counter(), mine(), self._of_caller()
            gap = now - last - SLEEP
            # At most; and at least, since who waits for the GIL wakes and may wait for a core too.
            most = min(gap - (next - wait), on_next - on)
            hold = min(most, gap - (my_next - my_wait) - (next - wait))
            for name in {label, self.label}:
                if hold > self.worst.get(name, (0.0,))[0]:
                    frame = sys._current_frames().get(self._caller)
                    self.worst[name] = (hold, most, place(frame))
            last, my_wait, on, wait, label = now, my_next, on_next, next, self.label
        mine.close()

    def stop(self) -> dict[str, tuple[float, float, str]]:
        """End, and say what was worst."""
        self._on = False
        self._thread.join()
        self._of_caller.close()
        return self.worst


def place(frame: FrameType | None) -> str:
    """Where a thread is: the innermost lines of the package and what they are in."""
    said = []
    while frame is not None and len(said) < 3:
        name = Path(frame.f_code.co_filename).name
        said.append(f"{name}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    return " < ".join(said)


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def reset_peak() -> None:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def peak() -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """A core that is kept busy, without the GIL."""
    on, data = True, bytes(1 << 20)

    def run() -> None:
        while on:
            hashlib.sha256(data).digest()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        on = False
        thread.join()


# -- one case --------------------------------------------------------------------------------------


def request(case: Case, source: Any, vocabulary: Vocabulary, limits: Limits | None = None) -> Any:
    """What a server does with it."""
    compiler = GrammarCompiler(vocabulary, classes="never", seed=False, limits=limits)
    if case.engine != "auto":
        grammar = Grammar.from_ebnf(source)
        return tokfold.compile(
            grammar,
            vocabulary,
            limits,
            classes="never",
            options=tokfold.CompileOptions(engine=case.engine, pool=None),
        )
    return getattr(compiler, f"compile_{case.kind}")(source)


def allowed(row: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8)[0], bitorder="little")).tolist()


class Calls:
    """The calls of one case, each timed under a label."""

    def __init__(self, ticker: Ticker | None, write: Write) -> None:
        self.ticker, self.write = ticker, write
        self.longest: dict[str, float] = {}
        self.errors: dict[str, str] = {}

    def __call__(self, label: str, work: Callable[[], Any]) -> Any:
        """What a call returns; None where it raises."""
        self.write(["begin", label])
        if self.ticker:
            self.ticker.label = label
        began = time.perf_counter()
        result = None
        try:
            result = work()
        except BaseException as error:
            typed = isinstance(error, TYPED)
            name = type(error).__name__ if typed else f"UNTYPED {type(error).__name__}"
            self.errors[label] = f"{name}: {str(error)[:120]}"
            error.__traceback__ = None
        took = time.perf_counter() - began
        self.longest[label] = max(took, self.longest.get(label, 0.0))
        if self.ticker:
            time.sleep(2 * SLEEP)  # what the ticker measured comes under this label
            self.ticker.label = "idle"
        return result


def walk(case: Case, compiled: Any, call: Calls, steps: int = WALK) -> Matcher | None:
    """Masks and tokens along the sample, then along random allowed ones."""
    vocabulary = compiled.vocabulary
    matcher = call("matcher", lambda: Matcher(compiled))
    if matcher is None:
        return None
    row = tokfold.allocate_bitmask(1, len(vocabulary))
    sample = vocabulary.encode_greedy(case.sample) if case.sample else []
    draw = random.Random(1)
    until = time.perf_counter() + WALK_SECONDS
    for step in range(steps):
        if call("terminated", lambda: matcher.is_terminated) or time.perf_counter() > until:
            break
        call("mask", lambda: matcher.fill_bitmask(row))
        failed = "mask" in call.errors
        ids = [] if failed else [i for i in allowed(row) if i not in vocabulary.stop_token_ids]
        if step < len(sample) and (failed or sample[step] in ids):
            token = sample[step]
        elif ids:
            token = draw.choice(ids)
        else:
            break
        if not call("accept", lambda token=token: matcher.accept_token(token)):
            break
        if step % 4 == 3:
            call("fork", matcher.fork)
            call("rollback", matcher.rollback)
            call("accept again", lambda token=token: matcher.accept_token(token))
            call("expected", lambda: matcher.expected_bytes)
            call("forced", matcher.forced_bytes)
            call("accepting", lambda: matcher.is_accepting)
            call("state", lambda: matcher.state)
            call("counters", matcher.counters)
        if failed and step > 2:
            break
    return matcher


def more(case: Case, matcher: Matcher, call: Calls) -> None:
    """The calls that a case asks for besides."""
    vocabulary = matcher.compiled.vocabulary
    fresh = Matcher(matcher.compiled)
    for name in case.then:
        if name == "forced":
            call("forced 10^8", lambda: matcher.forced_bytes(10**8))
            call("forced 10^8, fresh", lambda: fresh.forced_bytes(10**8))
        elif name in ("120 kB", "10 MB", "long text", "brackets"):
            size = {"120 kB": 120_000, "10 MB": 10_000_000, "long text": 20_000}.get(name, 100_000)
            piece = b"(" if name == "brackets" else case.sample
            data = piece * (size // len(piece))
            own = fresh.fork()
            call(f"accept {name}", lambda: own.accept_bytes(data))
            row = tokfold.allocate_bitmask(1, len(vocabulary))
            call(f"mask after {name}", lambda: own.fill_bitmask(row))
            call(f"text after {name}", lambda: own.text)
            call(f"state after {name}", lambda: own.state)
            call(f"reset after {name}", own.reset)
            del own
            call("drop", gc.collect)
        elif name == "sibling":
            for _ in range(5):
                matcher.compiled._core.forget()
                other = matcher.fork()
                row = tokfold.allocate_bitmask(1, len(vocabulary))

                def fill(other: Matcher = other, row: Any = row) -> None:
                    with contextlib.suppress(tokfold.TokfoldError):
                        other.fill_bitmask(row)

                thread = threading.Thread(target=fill)
                thread.start()
                time.sleep(0.02)
                token = vocabulary.encode_greedy(case.sample)[0]
                for _ in range(10):
                    call("accept of a sibling", lambda: matcher.fork().accept_token(token))
                    call("looks of a sibling", lambda: matcher.counters())
                other.cancel()
                thread.join()
        elif name == "many steps":
            ids = vocabulary.encode_greedy(case.sample)

            def many() -> None:
                for _ in range(2_000):
                    for token in ids:
                        fresh.accept_token(token)

            call("many steps", many)
            call("rollback of many", lambda: fresh.rollback(fresh.num_steps - 1))
        elif name == "forks":
            call("forks", lambda: [matcher.fork() for _ in range(10_000)])
        elif name == "draft":
            ids = vocabulary.encode_greedy(case.sample)
            draft = (ids * 2_000)[:2_000]
            rows = tokfold.allocate_bitmask(len(draft) + 1, len(vocabulary))
            call("draft", lambda: fresh.fill_bitmask_draft(draft, rows))


def gil_pass(case: Case, vocabulary: Vocabulary, write: Write) -> None:
    """Every call, beside a ticker."""
    sys.setswitchinterval(1e-4)
    source = case.make()
    gc.collect()
    gc.freeze()
    ticker = Ticker()
    call = Calls(ticker, write)
    reset_peak()
    before = resident()
    compiled = call("compile", lambda: request(case, source, vocabulary, PATIENT))
    memory = {"compile": peak() - before}
    if compiled is not None:
        matcher = walk(case, compiled, call)
        if matcher is not None:
            more(case, matcher, call)
        grammar = compiled.grammar
        call("text of the grammar", lambda: str(grammar))
        call("fingerprint", lambda: grammar.fingerprint)
        call("size", lambda: (compiled.num_bytes, compiled.cost(), compiled.counters()))
        call("repr", lambda: repr(compiled))
        call("recognize", lambda: tokfold.recognize(grammar, case.sample))
        reset_peak()
        before = resident()
        ends = Interrupt(milliseconds=8_000)
        classes = call(
            "classes", lambda: tokfold.compile_classes(grammar, vocabulary, interrupt=ends)
        )
        memory["classes"] = peak() - before
        if classes is not None:
            call("take classes", lambda: compiled.take_classes(classes))
        call("warm", lambda: compiled.warm(200, interrupt=Interrupt(milliseconds=2_000)))
        held: list[Any] = [matcher, classes, compiled, grammar]
        del matcher, classes, compiled, grammar
        for name in ("matcher", "classes", "compiled", "grammar"):
            call(f"drop {name}", lambda: held.pop(0) and None)
    write(["gil", ticker.stop(), call.longest, call.errors, memory])


def cancel_pass(
    case: Case, vocabulary: Vocabulary, moments: int, seconds: float, write: Write
) -> None:
    """Calls that take long are cancelled at random moments, and end at random deadlines."""
    source = case.make()
    draw = random.Random(case.name)
    me = Delay(threading.get_native_id())
    figures: dict[str, list[tuple[float, float, float]]] = {}

    def timed(work: Callable[[], Any]) -> float:
        began = time.perf_counter()
        with contextlib.suppress(*TYPED):
            work()
        return time.perf_counter() - began

    def attempts(
        label: str,
        begin: Callable[[], tuple[Callable[[], Any], Callable[[], None]]],
        longest: float,
    ) -> None:
        """Cancel at moments spread over the time that a call takes by itself."""
        if longest < 0.006:
            return
        write(["begin", f"cancel {label}"])
        until = time.perf_counter() + seconds
        for number in range(moments):
            if time.perf_counter() > until:
                break
            work, cancel = begin()
            moment = longest * (number + draw.random()) / moments
            cancelled: list[float] = []
            go = threading.Event()

            def later(
                moment: float = moment,
                cancel: Any = cancel,
                cancelled: Any = cancelled,
                go: Any = go,
            ) -> None:
                go.wait()
                time.sleep(moment)
                cancelled.extend((time.perf_counter(), *me()))
                cancel()

            thread = threading.Thread(target=later)
            thread.start()
            go.set()
            with contextlib.suppress(*TYPED):
                work()
            now, (on, waited) = time.perf_counter(), me()
            thread.join()
            if cancelled[0] < now:
                late = now - cancelled[0]
                net = max(on - cancelled[1], late - (waited - cancelled[2]))
                figures.setdefault(label, []).append((min(net, late), late, moment))
            del work, cancel
            write(["begin", f"cancel {label}"])

    def overshoot(label: str, milliseconds: int, work: Callable[[], Any]) -> None:
        seen: list[float] = []
        timer = threading.Timer(milliseconds / 1_000, lambda: seen.extend(me()))
        timer.start()
        began = time.perf_counter()
        with contextlib.suppress(*TYPED):
            work()
        now, (on, waited) = time.perf_counter(), me()
        timer.cancel()
        timer.join()
        late = now - began - milliseconds / 1_000
        if late > 0 and seen:
            net = max(on - seen[0], late - (waited - seen[1]))
            figures.setdefault(label, []).append((min(net, late), late, milliseconds / 1_000))

    with busy():
        grammar = None
        write(["begin", "compile"])
        if case.kind == "grammar":

            def reading() -> tuple[Callable[[], Any], Callable[[], None]]:
                ends = Interrupt()
                return lambda: Grammar.from_ebnf(source, interrupt=ends), ends.cancel

            attempts("read", reading, timed(reading()[0]))
        with contextlib.suppress(*TYPED):
            compiled = request(case, source, vocabulary)
            grammar = compiled.grammar
            del compiled
        if grammar is None and case.kind == "grammar":
            with contextlib.suppress(*TYPED):
                grammar = Grammar.from_ebnf(source)
        longest = timed(lambda: request(case, source, vocabulary))
        if longest > 0.01:
            for number in range(4):
                write(["begin", "deadline of a compiler"])
                at = max(1, int(longest * 1_000 * (number + draw.random()) / 4))
                limits = Limits(max_compile_milliseconds=at)
                overshoot(
                    "deadline of a compiler",
                    at,
                    lambda limits=limits: request(case, source, vocabulary, limits),
                )
        if grammar is not None:
            grammar.__dict__.pop("_compilable", None)
            assert grammar is not None

            def compiling() -> tuple[Callable[[], Any], Callable[[], None]]:
                ends = Interrupt()
                return (
                    lambda: tokfold.compile(
                        grammar,
                        vocabulary,
                        classes="never",
                        options=tokfold.CompileOptions(engine=case.engine, pool=None),
                        interrupt=ends,
                    ),
                    ends.cancel,
                )

            with contextlib.suppress(*TYPED):
                grammar._compilable  # noqa: B018 - made once, before what is measured
            longest = timed(compiling()[0])
            attempts("compile", compiling, longest)
            if longest > 0.006:
                for number in range(moments // 2):
                    write(["begin", "deadline of compile"])
                    at = int(longest * 1_000 * (number + draw.random()) / (moments // 2))
                    ends = Interrupt(milliseconds=at)
                    overshoot(
                        "deadline of compile",
                        at,
                        lambda ends=ends: tokfold.compile(
                            grammar,
                            vocabulary,
                            classes="never",
                            options=tokfold.CompileOptions(engine=case.engine, pool=None),
                            interrupt=ends,
                        ),
                    )

            def folding() -> tuple[Callable[[], Any], Callable[[], None]]:
                ends = Interrupt()
                return (
                    lambda: tokfold.compile_classes(grammar, vocabulary, interrupt=ends),
                    ends.cancel,
                )

            write(["begin", "classes"])
            ends = Interrupt(milliseconds=5_000)
            longest = timed(lambda: tokfold.compile_classes(grammar, vocabulary, interrupt=ends))
            attempts("classes", folding, longest)
            write(["begin", "recognize"])

            def recognizing() -> tuple[Callable[[], Any], Callable[[], None]]:
                ends = Interrupt()
                return (
                    lambda: tokfold.recognize(grammar, case.sample * 10, interrupt=ends),
                    ends.cancel,
                )

            attempts("recognize", recognizing, timed(recognizing()[0]))
            with contextlib.suppress(*TYPED):
                compiled = tokfold.compile(
                    grammar,
                    vocabulary,
                    classes="never",
                    options=tokfold.CompileOptions(engine=case.engine, pool=None),
                )
                _cancelled_walk(case, compiled, attempts, timed, write)
            with contextlib.suppress(*TYPED):
                compiled = tokfold.compile(
                    grammar,
                    vocabulary,
                    DEADLINES,
                    classes="never",
                    options=tokfold.CompileOptions(engine=case.engine, pool=None),
                )
                _deadlines_in_a_walk(case, compiled, overshoot, write)
    worst = {
        label: (*max(found), len(found), sorted(f[0] for f in found)[len(found) // 2])
        for label, found in figures.items()
    }
    write(["cancel", worst])


def _cancelled_walk(
    case: Case,
    compiled: Any,
    attempts: Callable[..., None],
    timed: Callable[..., float],
    write: Write,
) -> None:
    """The slowest mask and the slowest token of a walk, and long texts, cancelled."""
    matcher = Matcher(compiled)
    row = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
    ids = compiled.vocabulary.encode_greedy(case.sample) if case.sample else []

    def filling(at: Matcher) -> Callable[[], tuple[Callable[[], Any], Callable[[], None]]]:
        def begin() -> tuple[Callable[[], Any], Callable[[], None]]:
            compiled._core.forget()
            own = at.fork()
            return lambda: own.fill_bitmask(row), own.cancel

        return begin

    def reading(
        at: Matcher, what: Callable[[Matcher], Any]
    ) -> Callable[[], tuple[Callable[[], Any], Callable[[], None]]]:
        def begin() -> tuple[Callable[[], Any], Callable[[], None]]:
            own = at.fork()
            return lambda: what(own), own.cancel

        return begin

    slowest: dict[str, tuple[float, Any]] = {}

    def note(label: str, begin: Any) -> None:
        write(["begin", f"{label}, alone"])
        took = timed(begin()[0])
        if took > slowest.get(label, (0.0,))[0]:
            slowest[label] = took, begin

    note("mask", filling(matcher.fork()))
    for number, token in enumerate([*ids[:16], None]):
        here = matcher.fork()
        note("forced", reading(here, lambda own: own.forced_bytes(10**8)))
        note("expected", reading(here, lambda own: own.expected_bytes))
        if token is None:
            break
        note("accept", reading(here, lambda own, token=token: own.accept_token(token)))
        try:
            if not matcher.accept_token(token):
                break
        except tokfold.TokfoldError:
            break
        if number < 6 or number % 4 == 0:
            note("mask", filling(matcher.fork()))
    fresh = Matcher(compiled)
    for size in (20_000, 200_000) if case.sample else ():
        data = case.sample * (size // len(case.sample))
        note(
            f"accept_bytes of {size}", reading(fresh, lambda own, data=data: own.accept_bytes(data))
        )
    note("draft", _draft(case, fresh, (ids * 100)[:100]))
    for label, (took, begin) in slowest.items():
        attempts(label, begin, took)


def _draft(case: Case, at: Matcher, ids: list[int]) -> Any:
    rows = tokfold.allocate_bitmask(len(ids) + 1, len(at.compiled.vocabulary))

    def begin() -> tuple[Callable[[], Any], Callable[[], None]]:
        at.compiled._core.forget()
        own = at.fork()
        return lambda: own.fill_bitmask_draft(ids, rows), own.cancel

    return begin


def _deadlines_in_a_walk(
    case: Case,
    compiled: Any,
    overshoot: Callable[..., None],
    write: Write,
) -> None:
    matcher = Matcher(compiled)
    row = tokfold.allocate_bitmask(1, len(compiled.vocabulary))
    ids = compiled.vocabulary.encode_greedy(case.sample) if case.sample else []
    for token in [*ids[:16], None]:
        for _ in range(4):
            write(["begin", "deadline of a mask"])
            overshoot("deadline of a mask", 50, lambda: matcher.fill_bitmask(row))
        if token is None:
            break
        write(["begin", "deadline of accept"])
        taken: list[bool] = []
        overshoot(
            "deadline of accept", 20, lambda token=token: taken.append(matcher.accept_token(token))
        )
        overshoot("deadline of forced", 20, lambda: matcher.forced_bytes(10**8))
        if taken != [True]:
            break
    if case.sample:
        data = case.sample * (200_000 // len(case.sample))
        fresh = Matcher(compiled)
        overshoot("deadline of accept_bytes", 20, lambda: fresh.accept_bytes(data))


def memory_pass(case: Case, vocabulary: Vocabulary, write: Write) -> None:
    """Masks and tokens under small bounds: what the process grows by, and what is held."""
    source = case.make()
    call = Calls(None, write)
    compiled = call("compile", lambda: request(case, source, vocabulary, SMALL))
    if compiled is None:
        write(["memory", None])
        return
    gc.collect()
    reset_peak()
    before = resident()
    matcher = walk(case, compiled, call, 32)
    held = compiled._core.bytes_held / (SMALL.max_memo_bytes + SMALL.max_row_bytes)
    of_matcher = 0.0
    if matcher is not None:
        if case.sample:
            data = case.sample * (120_000 // len(case.sample))
            call("accept 120 kB", lambda: matcher.fork().accept_bytes(data))
        with contextlib.suppress(tokfold.TokfoldError):
            of_matcher = matcher.counters()["bytes_held"] / SMALL.max_matcher_bytes
    grown = peak() - before
    bound = SMALL.max_memo_bytes + SMALL.max_row_bytes + SMALL.max_matcher_bytes
    write(["memory", {"process": grown / bound, "memo": held, "matcher": of_matcher}])


# -- all of them -----------------------------------------------------------------------------------


def floor(write: Write) -> None:
    """What the ticker says where nothing holds the GIL, and where a sleep in C does not."""
    sys.setswitchinterval(1e-4)
    ticker = Ticker()
    ticker.label = "nothing"
    time.sleep(2)
    ticker.label = "hashing without the GIL"
    data = bytes(64 << 20)
    for _ in range(10):
        hashlib.sha256(data).digest()
    ticker.label = "a loop of bytecode"
    until = time.perf_counter() + 2
    while time.perf_counter() < until:
        pass
    write(ticker.stop())


def of_case(case: Case, vocabulary: Vocabulary, options: Any) -> list[Row]:
    """Rows: kind, case, step, figure, what is known of it."""
    rows: list[Row] = []

    def take(kind: str, step: str, value: float, **known: Any) -> None:
        rows.append({"kind": kind, "case": case.name, "step": step, "value": value, **known})

    def done(outcome: Outcome) -> Any:
        steps = [line[1] for line in outcome.lines if line[0] == "begin"]
        if outcome.trouble:
            last = steps[-1] if steps else "the source"
            take("trouble", last, 0.0, what=outcome.trouble, stderr=outcome.stderr[-600:])
        return outcome.lines[-1] if outcome.lines and not outcome.trouble else None

    bounds = {"gigabytes": options.gigabytes, "seconds": options.patience}
    if "gil" in options.passes:
        best: dict[str, tuple[float, float, str]] = {}
        for attempt in range(options.repeats):
            found = done(forked(lambda write: gil_pass(case, vocabulary, write), **bounds))
            if found is None:
                break
            _, worst, longest, errors, memory = found
            for label, figures in worst.items():
                if attempt == 0 or label not in best or figures[0] < best[label][0]:
                    best[label] = figures
            for label in [label for label in best if label not in worst]:
                best[label] = (0.0, 0.0, "")
            if attempt == 0:
                for label, error in errors.items():
                    if error.startswith("UNTYPED"):
                        take("untyped", label, 0.0, what=error)
                for label, took in longest.items():
                    take("time", label, took * 1e3, what=errors.get(label, ""))
                for label, taken in memory.items():
                    take("bytes", label, taken / 2**20)
            if all(figures[0] * 1e3 < options.suspect for figures in best.values()):
                break
        for label, (hold, gap, where) in best.items():
            if label != "idle":
                take("gil", label, hold * 1e3, gap=gap * 1e3, what=where)
    if "cancel" in options.passes:
        found = done(
            forked(
                lambda write: cancel_pass(
                    case, vocabulary, options.moments, options.seconds, write
                ),
                **bounds,
            )
        )
        for label, (net, late, moment, count, median) in (found[1] if found else {}).items():
            kind = "deadline" if label.startswith("deadline") else "cancel"
            what = f"at {moment * 1e3:.0f} ms; {count} times, median {median * 1e3:.1f} ms"
            take(kind, label, net * 1e3, gap=late * 1e3, what=what)
    if "memory" in options.passes:
        found = done(forked(lambda write: memory_pass(case, vocabulary, write), **bounds))
        for label, ratio in ((found[1] if found else None) or {}).items():
            take("memory", label, ratio)
    return rows


def stalls(options: Any, vocabulary: Vocabulary, write: Write) -> None:
    """Serve hostile and ordinary requests in one process, and say how late a ticker was."""
    names = [case.name for case in chosen(options)]
    worst: list[tuple[float, float, str]] = []
    begun, done = threading.Event(), threading.Event()

    def tick() -> None:
        begun.wait()
        mine = Delay(threading.get_native_id())
        me = threading.get_ident()
        last, (_, waited) = time.perf_counter(), mine()
        while not done.is_set():
            time.sleep(SLEEP)
            now, (_, waits) = time.perf_counter(), mine()
            gap = now - last - SLEEP
            if len(worst) < options.top or gap > worst[-1][1]:
                frames = sys._current_frames()
                places = [place(frame) for thread, frame in frames.items() if thread != me]
                worst.append((gap - (waits - waited), gap, " || ".join(places)))
                worst.sort(key=lambda found: -found[1])
                del worst[options.top :]
            last, (_, waited) = time.perf_counter(), mine()

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    served = serve(vocabulary, names, DEADLINES, seconds=options.server, rounds=0, begun=begun)
    done.set()
    ticker.join()
    write([worst, dataclasses.asdict(served)])


def server(options: Any, vocabulary: Vocabulary) -> None:
    """Print the longest stalls of a ticker beside a server, and what became of the requests."""
    patience = options.server * 2 + 300
    outcome = forked(
        lambda write: stalls(options, vocabulary, write), gigabytes=16, seconds=patience
    )
    if outcome.trouble:
        sys.exit(f"{outcome.trouble}\n{outcome.stderr}")
    worst, served = outcome.lines[-1]
    print(
        f"stalls of a ticker, bar {BARS['stall']:g} ms: at least, by the clock, where others were"
    )
    for net, gap, where in worst:
        print(f"{net * 1e3:8.2f} ms {gap * 1e3:8.2f} ms  {where}")
    print(json.dumps(served, indent=1))


def chosen(options: Any) -> list[Case]:
    cases = [*CASES.values()]
    if not options.held_back:
        cases = [case for case in cases if not case.held_back]
    if options.first:
        names = [case.name for case in cases]
        cases = cases[names.index(options.first) :]
    if options.case:
        cases = [c for c in CASES.values() if any(part in c.name for part in options.case)]
    return cases


def show(rows: list[Row], top: int) -> None:
    units = {"memory": "times the bound", "bytes": "MB"}
    for kind in ("trouble", "untyped", "gil", "cancel", "deadline", "memory", "bytes", "time"):
        found = sorted((r for r in rows if r["kind"] == kind), key=lambda r: -r["value"])
        if not found:
            continue
        over = [r for r in found if r["value"] > BARS.get(kind, 1e99)]
        title = f"{kind}: {len(found)} figures"
        if kind in BARS:
            title += f", {len(over)} over the bar of {BARS[kind]:g} {units.get(kind, 'ms')}"
        print(f"\n{title}")
        for row in found[:top]:
            how = "at most" if kind == "gil" else "by the clock"
            gap = f" ({row['gap']:.1f} {how})" if "gap" in row else ""
            figure = f"{row['value']:10.2f}{gap}"
            print(f"{figure:34} {row['case'][:44]:44} {row['step'][:28]:28} {row.get('what', '')}")


def main() -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    parser = common.described(__doc__)
    parser.add_argument("--tokenizer", default="tekken", help="file or folder, tekken, or small")
    parser.add_argument("--case", action="append", metavar="PART", help="cases with this name")
    parser.add_argument(
        "--list", action="store_true", help="print the names of the cases and do nothing"
    )
    parser.add_argument("--server", type=float, metavar="SECONDS", help="one process for all")
    parser.add_argument("--first", metavar="NAME", help="go on from this case")
    parser.add_argument("--passes", nargs="+", default=["gil", "cancel", "memory"])
    parser.add_argument("--held-back", action="store_true", help="the cases that are held back too")
    parser.add_argument("--repeats", type=int, default=3, help="runs of a case with a long hold")
    parser.add_argument("--suspect", type=float, default=3.0, metavar="MS")
    parser.add_argument("--moments", type=int, default=20, help="times that a call is cancelled")
    parser.add_argument("--seconds", type=float, default=8.0, help="for the moments of one call")
    parser.add_argument("--gigabytes", type=float, default=6.0)
    parser.add_argument("--patience", type=float, default=30.0, help="seconds; a hang after these")
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument(
        "--json", type=Path, metavar="OUT", help="write all figures there, as lines"
    )
    options = parser.parse_args()
    if options.list:
        print(*(case.name for case in chosen(options)), sep="\n")
        return
    small = options.tokenizer == "small"
    vocabulary = small_vocabulary() if small else common.read_tokenizer(options.tokenizer)
    with contextlib.suppress(ImportError):
        import xgrammar  # noqa: F401 - before the forks
    vocabulary._compiled  # noqa: B018 - made before the forks
    vocabulary.encode_greedy(b"x")
    if options.server:
        server(options, vocabulary)
        return
    rows: list[Row] = []
    said = forked(floor, gigabytes=options.gigabytes, seconds=options.patience)
    for label, (hold, gap, _) in (said.lines[0] if said.lines else {}).items():
        print(f"floor, {label}: {hold * 1e3:.2f} ms ({gap * 1e3:.2f} at most)", flush=True)
    out = options.json.open("a", encoding="utf-8") if options.json else None
    cases = chosen(options)
    for number, case in enumerate(cases, 1):
        began = time.perf_counter()
        found = of_case(case, vocabulary, options)
        rows += found
        if out:
            out.writelines(json.dumps(row) + "\n" for row in found)
            out.flush()
        worst = {
            kind: max((r["value"] for r in found if r["kind"] == kind), default=0.0)
            for kind in ("gil", "cancel", "deadline", "memory")
        }
        trouble = [
            f"{r['step']}: {r['what']}" for r in found if r["kind"] in ("trouble", "untyped")
        ]
        took = time.perf_counter() - began
        figures = "  ".join(f"{kind} {value:.1f}" for kind, value in worst.items())
        print(
            f"[{number}/{len(cases)}] {case.name}: {figures}  {took:.1f} s {trouble or ''}",
            flush=True,
        )
    show(rows, options.top)


if __name__ == "__main__":
    main()
