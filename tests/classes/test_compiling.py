"""While classes are compiled: progress, Ctrl-C, other threads."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest
from classes.class_samples import words
from support import processes
from support.processes import DEADLINE_S
from support.script_runner import child
from tokfold import (
    CancelledError,
    Grammar,
    Interrupt,
    Limits,
    MissingExtraError,
    TokenClasses,
    Vocabulary,
    compile_classes,
)

# Ambiguous without end: the first takes some ten microseconds for each token and goes on for ever
# with new ones; under the second a single token may take the whole of its budget.
STEADY = """
root ::= root | root "a" r1 | "c"
r1 ::= "c" r1 root "a" | root r2 | r2 r2 | "b"
r2 ::= r1 root r2 r1 | r2 root r1 r2 | "c"
"""
HEAVY = """
root ::= r0
r0 ::= r2 r2 "c" r0 | "c" "b" r3 | r2 | "c"
r1 ::= "b" r0 r5 r4 | "c" "a" | "a"
r2 ::= r2 r2 r0 r1 | r0 r4 "a" | r0 "a" r4 | r1 r3 r5 | "c"
r3 ::= r4 | r0 "b" r1 | "a" | "a"
r4 ::= "a" | "b" | "c" | "b" | "c"
r5 ::= "c" r0 "b" r0 | r3 | "b"
"""


# Progress


@pytest.fixture(scope="module")
def counted(nested):
    """Many words, and the counts that are reported while their classes are compiled."""
    tokens, counts = Vocabulary(words(13_000)), []
    compile_classes(nested, tokens, progress=lambda done, total: counts.append(done))
    return tokens, counts


def test_progress_goes_from_nothing_to_all(nested):
    reports: list[tuple[int, int]] = []
    tokens = Vocabulary([*words(20_000), b""], special_token_ids=[3])
    result = compile_classes(nested, tokens, progress=lambda *report: reports.append(report))
    assert result is not None
    assert all(type(done) is int and type(total) is int for done, total in reports)
    assert {total for _, total in reports} == {19_999}
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert (reports[0][0], reports[-1][0]) == (0, 19_999)


@pytest.mark.parametrize("at", [0, 1, 3, -1])
@pytest.mark.parametrize("raised", [RuntimeError("enough"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_callback_raises_ends_the_work(nested, counted, tmp_path, at, raised):
    tokens, counts = counted
    wanted = at % len(counts)
    seen = 0

    def callback(done: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen > wanted:
            raise raised

    with pytest.raises(type(raised)) as caught:
        compile_classes(nested, tokens, progress=callback, cache_dir=tmp_path / "c")
    assert caught.value is raised
    assert seen == wanted + 1
    assert not (tmp_path / "c").exists()
    assert compile_classes(nested, tokens) is not None


def test_a_callback_may_compile(nested, vocabulary, classes):
    inner = []
    compile_classes(
        nested, vocabulary, progress=lambda *_: inner.append(compile_classes(nested, vocabulary))
    )
    assert inner
    assert all(result == classes for result in inner)


@pytest.mark.parametrize("progress", [None, False])
def test_no_progress(nested, vocabulary, classes, progress):
    assert compile_classes(nested, vocabulary, progress=progress) == classes


def test_a_progress_bar(nested, vocabulary, classes):
    pytest.importorskip("rich")
    assert compile_classes(nested, vocabulary, progress=True) == classes


def test_a_progress_bar_without_its_package(nested, vocabulary, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtraError, match=r"\.\[cli\]"):
        compile_classes(nested, vocabulary, progress=True)


def test_a_callback_that_is_none(nested, vocabulary):
    with pytest.raises(TypeError, match="not callable"):
        compile_classes(nested, vocabulary, progress=5)


# Ctrl-C

UNBOUNDED = Limits(
    max_token_work=10**12,
    max_total_work=10**15,
    max_automaton_bytes=10**10,
    max_network_work=10**15,
    max_network_states=10**9,
)
LONG_WORK = """
    import hashlib, random
    kind, folder = sys.argv[1:]
    if kind == "network":
        draw = random.Random(1).randrange
        pairs = (" | ".join(f"r{draw(99)} r{draw(99)}" for _ in range(160)) for _ in range(99))
        rules = (f'r{i} ::= "{chr(97 + i % 2)}" | {pair}' for i, pair in enumerate(pairs))
        text = "root ::= r0\\n" + "\\n".join(rules)
        tokens = [bytes([b]) for b in range(256)]
    else:
        text = GRAMMAR
        digests = (hashlib.sha256(str(i).encode()).digest() for i in range(100_000))
        tokens = (bytes(b"abc"[b % 3] for b in d[: 1 + d[-1] % 30]) for d in digests)
        tokens = list(dict.fromkeys(tokens))
    grammar, vocabulary = Grammar.from_ebnf(text), Vocabulary(tokens)
    try:
        print("go", flush=True)
        compile_classes(grammar, vocabulary, UNBOUNDED, cache_dir=folder)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
    """


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent to a process")
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("steady", STEADY),
        ("heavy", HEAVY),
        ("network", ""),
    ],
)
def test_ctrl_c(tmp_path, kind, text):
    """A real signal ends work that goes on for hours, and nothing is half-written."""
    script = LONG_WORK.replace("GRAMMAR", repr(text)).replace("UNBOUNDED", repr(UNBOUNDED))
    with child(script, kind, tmp_path / "c") as process:
        assert process.line() == "go"
        time.sleep(0.25)  # any moment of the work will do
        assert process.poll() is None, "the work was not long"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=processes.DEADLINE_S)
    assert out == "interrupted\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    assert not list(tmp_path.rglob("*")) or not list((tmp_path / "c").iterdir())


# Threads


def test_other_threads_go_on():
    """The GIL is let go: another thread takes steps, then ends work that nothing else ends."""
    grammar, vocabulary = Grammar.from_ebnf(HEAVY), Vocabulary(words(2_000))
    begun, interrupt = threading.Event(), Interrupt()

    def end() -> None:
        assert begun.wait(DEADLINE_S)
        for _ in range(20):
            time.sleep(0.001)
        interrupt.cancel()

    thread = threading.Thread(target=end)
    thread.start()
    begun.set()
    with pytest.raises(CancelledError):
        compile_classes(grammar, vocabulary, UNBOUNDED, interrupt=interrupt)
    thread.join(DEADLINE_S)


def test_threads_compile_at_once():
    grammar = Grammar.from_ebnf('root ::= "a" root "b" | root root | "c" | "ab"+')
    vocabulary = Vocabulary(words(5_000))
    expected = compile_classes(grammar, vocabulary)
    results: list[TokenClasses | None] = [None] * 8
    barrier = threading.Barrier(len(results))

    def work(i: int) -> None:
        barrier.wait(DEADLINE_S)
        results[i] = compile_classes(grammar, vocabulary)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert all(result == expected for result in results)
