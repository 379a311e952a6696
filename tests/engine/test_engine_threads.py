"""Threads: matchers used by two at once, cancelled ones, and classes made in the background."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tokfold
from strategies.engine import compiled_with, mask_of
from support import processes
from support.processes import DEADLINE_S
from tokfold._background import _Worker

ROOT = Path(__file__).parents[2]

AMBIGUOUS = 'root ::= root root root | root root | "a" | "aa"'
NESTED = 'root ::= "(" root ")" | "x"'
TOKENS = [b"(", b")", b"x", b"a", b"aa", b"</s>", *(bytes([i]) * 3 for i in range(200))]


def compiled_of(text: str, **options) -> tokfold.CompiledGrammar:
    options.setdefault("classes", "never")
    return compiled_with(
        tokfold.Grammar.from_ebnf(text),
        tokfold.Vocabulary(TOKENS, stop_token_ids=[5]),
        **options,
    )


def sql() -> tokfold.Grammar:
    """One whose classes take a while."""
    return tokfold.Grammar.from_file(ROOT / "grammars" / "sql" / "sql.gbnf")


def words() -> tokfold.Vocabulary:
    """Many tokens, so that folding them takes a while."""
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789 '(),;"
    tokens = [bytes([a, b, c]) for a in letters for b in letters for c in letters]
    return tokfold.Vocabulary([*tokens, *(bytes([i]) for i in range(256))])


class Running:
    """Work in another thread that takes long enough to be met."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self.result: object = None

        def run() -> None:
            try:
                self.result = work()
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def join(self) -> None:
        self.thread.join(DEADLINE_S)
        assert not self.thread.is_alive(), "it hangs"


def long_matcher() -> tuple[tokfold.Matcher, bytes]:
    """A matcher, and a text that it reads for a good part of a second."""
    depth = 400_000
    return tokfold.Matcher(compiled_of(NESTED)), b"(" * depth


class TestTwoAtOnce:
    def test_the_second_is_refused(self):
        """All that is tried meanwhile raises, and the first is not disturbed."""
        matcher, text = long_matcher()
        running = Running(lambda: matcher.accept_bytes(text))
        refused = 0
        row = tokfold.allocate_bitmask(1, len(TOKENS))
        uses: list[Callable[[], object]] = [
            lambda: matcher.accept_token(0),
            lambda: matcher.accept_bytes(b"("),
            lambda: matcher.rollback(0),
            lambda: matcher.fork(),
            lambda: matcher.fill_bitmask(row),
            lambda: matcher.forced_bytes(),
            lambda: matcher.state,
            lambda: matcher.text,
            lambda: matcher.num_steps,
            lambda: matcher.is_accepting,
            lambda: matcher.is_terminated,
            lambda: matcher.counters(),
            lambda: tokfold.fill_bitmask_batch([matcher], row),
        ]
        while refused == 0 and running.thread.is_alive():
            try:
                assert matcher.num_steps in (0, 1)
            except tokfold.MatcherStateError:
                refused = 1
        for use in uses:
            try:
                use()
            except tokfold.MatcherStateError as error:
                assert "another thread" in str(error)  # noqa: PT017
                refused += 1
            else:
                running.join()  # or the matcher would have been in use
                break
        else:
            running.join()
            assert matcher.num_steps == 1
            assert matcher.text == text
        assert running.error is None
        assert running.result is True
        assert refused > 0, "the work was over too soon to be met"

    def test_forks_in_threads(self):
        """A thread for each fork, tables shared: each sees what it would see alone."""
        compiled = compiled_of(AMBIGUOUS)
        matcher = tokfold.Matcher(compiled)
        assert matcher.accept_bytes(b"aaa")

        def walk(number: int) -> list[object]:
            fork, seen = forks[number], []
            for step in range(60):
                seen.append(mask_of(fork, len(TOKENS)))
                assert fork.accept_token(3 + (number + step) % 2)
                if step % 7 == 6:
                    fork.rollback(3)
                seen.append(fork.state)
            return seen

        forks = [matcher.fork() for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            together = list(pool.map(walk, range(8)))
        forks = [matcher.fork() for _ in range(8)]
        assert together == [walk(number) for number in range(8)]

    def test_one_bitmask_for_two(self):
        """Rows of one bitmask, filled at once by many threads: right, or refused."""
        compiled = compiled_of(NESTED)
        matchers = [tokfold.Matcher(compiled) for _ in range(4)]
        for number, matcher in enumerate(matchers):
            assert matcher.accept_bytes(b"(" * number + b"x" * (number > 1))
        expected = [mask_of(matcher, len(TOKENS))[0] for matcher in matchers]
        bitmask = tokfold.allocate_bitmask(4, len(TOKENS))

        def fill(number: int) -> int:
            refused = 0
            for _ in range(300):
                try:
                    matchers[number].fill_bitmask(bitmask, number)
                except ValueError:
                    refused += 1
                    continue
                bits = np.unpackbits(bitmask[number].view(np.uint8), bitorder="little")
                assert bits[: len(TOKENS)].astype(bool).tolist() == expected[number]
            return refused

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(fill, range(4))) < 4 * 300


class TestCancel:
    def test_from_another_thread(self):
        matcher, text = long_matcher()
        assert matcher.accept_bytes(b"(")
        before = matcher.state
        running = Running(lambda: matcher.accept_bytes(text))
        time.sleep(0.02)
        matcher.cancel()
        running.join()
        if running.error is None:
            pytest.skip("it was over before it could be cancelled")
        assert type(running.error) is tokfold.CancelledError
        assert matcher.state == before
        assert matcher.num_steps == 1
        with pytest.raises(tokfold.TokfoldError, match="cancelled"):
            matcher.accept_token(0)
        fork = matcher.fork()
        assert fork.accept_token(0)  # each has a switch of its own
        matcher.resume()
        assert matcher.accept_token(0)
        assert matcher.num_steps == 2

    def test_all_that_begins_while_it_is_on(self):
        """An error, or what would have come without it; never anything else."""
        compiled = compiled_of(NESTED)
        matcher = tokfold.Matcher(compiled)
        expected = mask_of(tokfold.Matcher(compiled_of(NESTED)), len(TOKENS))
        matcher.cancel()
        with pytest.raises(tokfold.TokfoldError, match="cancelled"):
            mask_of(matcher, len(TOKENS))
        matcher.resume()
        assert mask_of(matcher, len(TOKENS)) == expected
        matcher.cancel()
        try:
            assert mask_of(matcher, len(TOKENS)) == expected
        except tokfold.TokfoldError as error:
            assert "cancelled" in str(error)  # noqa: PT017
        assert matcher.num_steps == 0
        assert not matcher.is_terminated
        matcher.reset()

    def test_many_times(self):
        """Cancelled at any moment: the state is before or after, and nothing between."""
        compiled = compiled_of(NESTED)
        matcher = tokfold.Matcher(compiled)
        over = threading.Event()

        def switch() -> None:
            while not over.is_set():
                matcher.cancel()
                matcher.resume()

        running = Running(switch)
        depth = cancelled = 0
        try:
            for _ in range(300):
                try:
                    assert matcher.accept_bytes(b"(" * 2_000)
                    depth += 1
                except tokfold.TokfoldError:
                    cancelled += 1
                assert matcher.num_steps == depth
        finally:
            over.set()
            running.join()
        matcher.resume()
        assert matcher.text == b"(" * 2_000 * depth
        assert matcher.accept_bytes(b"x" + b")" * (2_000 * depth))
        assert matcher.is_accepting


class TestBackground:
    def test_masks_are_the_same_before_and_after(self):
        vocabulary = words()
        compiled = tokfold.compile(sql(), vocabulary)
        matcher = tokfold.Matcher(compiled)
        before = mask_of(matcher, len(vocabulary))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compiled.wait(DEADLINE_S)
        assert compiled.has_classes
        assert mask_of(matcher, len(vocabulary)) == before
        assert compiled.wait(0)

    def test_masks_while_the_classes_arrive(self):
        """Four threads look all the time; none sees anything but the mask."""
        grammar, vocabulary = sql(), words()
        plain = tokfold.Matcher(tokfold.compile(grammar, vocabulary, classes="never"))
        expected = [mask_of(plain, len(vocabulary))]
        assert plain.accept_bytes(b"select a")
        expected.append(mask_of(plain, len(vocabulary)))
        compiled = tokfold.compile(grammar, vocabulary)

        def look(number: int) -> tuple[int, int]:
            seen = [0, 0]
            matcher = tokfold.Matcher(compiled)
            if number % 2:
                assert matcher.accept_bytes(b"select a")
            while seen[1] < 5:
                has_classes = compiled.has_classes
                assert mask_of(matcher, len(vocabulary)) == expected[number % 2]
                seen[has_classes] += 1
            return seen[0], seen[1]

        with ThreadPoolExecutor(4) as pool:
            seen = list(pool.map(look, range(4)))
        assert all(after for _, after in seen)
        assert any(before for before, _ in seen), "the classes were there too soon"

    def test_stop(self):
        compiled = tokfold.compile(sql(), words())
        compiled.stop()
        compiled.stop()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled.wait(DEADLINE_S)
        assert mask_of(tokfold.Matcher(compiled), len(compiled.vocabulary))[1]

    def test_nothing_in_the_background(self):
        compiled = compiled_of(NESTED)
        assert compiled.wait() is False
        compiled.stop()
        assert compiled.warm(5) > 0
        assert compiled.warm(5) == 0

    def test_an_unwanted_one_goes_while_the_thread_works(self):
        """Nobody holds it: it goes, and the thread ends soon."""
        compiled = tokfold.compile(sql(), words())
        matcher = tokfold.Matcher(compiled)
        background = compiled._background
        assert background is not None
        gone = weakref.ref(compiled)
        del compiled
        gc.collect()
        assert gone() is not None, "a matcher holds it"
        del matcher
        gc.collect()
        assert gone() is None
        assert background.wait(DEADLINE_S)

    def test_one_that_takes_too_long_goes_without(self, monkeypatch):
        """It ends with the reason, the next ones get theirs, and masks are exact."""
        real, late, asked = tokfold.compile_classes, threading.Event(), []

        class Clock:
            @staticmethod
            def thread_time() -> float:
                return 2.5 if late.is_set() else 0.0

        def compile_classes(grammar, *args, progress, **options):
            asked.append(grammar)
            if len(asked) == 1:
                progress(0, 10)  # in time
                late.set()
                try:
                    progress(1, 10)
                finally:
                    late.clear()
                raise AssertionError("it went on")
            return real(grammar, *args, progress=progress, **options)

        monkeypatch.setattr("tokfold._background.time", Clock)
        monkeypatch.setattr("tokfold._background.compile_classes", compile_classes)
        grammar, vocabulary = tokfold.Grammar.from_ebnf(AMBIGUOUS), tokfold.Vocabulary(TOKENS)
        slow, quick = (tokfold.compile(grammar, vocabulary) for _ in range(2))
        assert quick.wait(DEADLINE_S)
        with pytest.warns(
            tokfold.FallbackWarning, match="no classes: .* 2000 ms in the background"
        ):
            assert slow.wait(DEADLINE_S) is False
        failure = slow._background.failure
        assert isinstance(failure, tokfold.LimitExceededError)
        assert (failure.limit, failure.value) == ("classes_milliseconds", 2_000)
        masks = [mask_of(tokfold.Matcher(each), len(TOKENS)) for each in (slow, quick)]
        assert masks[0] == masks[1]

    @pytest.mark.parametrize(
        ("milliseconds", "has_classes"), [(None, True), (2_500, True), (1, False)]
    )
    def test_the_time_of_one_is_an_argument(self, monkeypatch, milliseconds, has_classes):
        real, late = tokfold.compile_classes, threading.Event()

        class Clock:
            @staticmethod
            def thread_time() -> float:
                return 2.5 if late.is_set() else 0.0

        def compile_classes(*args, progress, **options):
            late.set()
            progress(1, 10)
            return real(*args, progress=progress, **options)

        monkeypatch.setattr("tokfold._background.time", Clock)
        monkeypatch.setattr("tokfold._background.compile_classes", compile_classes)
        grammar, vocabulary = tokfold.Grammar.from_ebnf(AMBIGUOUS), tokfold.Vocabulary(TOKENS)
        compiled = compiled_with(grammar, vocabulary, classes_milliseconds=milliseconds)
        compiled._background.wait(DEADLINE_S)
        assert compiled.has_classes is has_classes

    def test_what_is_no_exception_does_not_end_the_thread(self, monkeypatch):
        """A panic of the core derives from BaseException; the next ones get theirs."""
        real, asked = tokfold.compile_classes, []

        def compile_classes(*args, **options):
            asked.append(args)
            if len(asked) == 1:
                raise SystemExit("panic")
            return real(*args, **options)

        monkeypatch.setattr("tokfold._background.compile_classes", compile_classes)
        grammar, vocabulary = tokfold.Grammar.from_ebnf(AMBIGUOUS), tokfold.Vocabulary(TOKENS)
        bad, good = (tokfold.compile(grammar, vocabulary) for _ in range(2))
        assert good.wait(DEADLINE_S)
        with pytest.warns(tokfold.FallbackWarning, match="no classes: SystemExit: panic"):
            assert bad.wait(DEADLINE_S) is False

    def test_no_thread_can_start(self, monkeypatch):
        """The grammar goes without classes, and those that come later have them."""
        monkeypatch.setattr("tokfold._background._WORKER", _Worker())
        grammar, vocabulary = tokfold.Grammar.from_ebnf(AMBIGUOUS), tokfold.Vocabulary(TOKENS)
        with monkeypatch.context() as patched:

            def refuse(thread: threading.Thread) -> None:
                raise RuntimeError("can't start new thread")

            patched.setattr(threading.Thread, "start", refuse)
            without = tokfold.compile(grammar, vocabulary)
        with pytest.warns(tokfold.FallbackWarning, match="no classes: no thread"):
            assert without.wait(DEADLINE_S) is False
        assert tokfold.compile(grammar, vocabulary).wait(DEADLINE_S)

    def test_masks_ahead_of_time_end_with_the_time(self, monkeypatch):
        """The classes are there, and nothing is said."""
        late, warmed = threading.Event(), []

        class Clock:
            @staticmethod
            def thread_time() -> float:
                return 2.5 if late.is_set() else 0.0

        class Core:
            def __init__(self, core):
                self.core = core

            def __getattr__(self, name):
                return getattr(self.core, name)

            def warm(self, states, switch):
                warmed.append(states)
                late.set()

        held = threading.Event()
        real = tokfold.compile_classes

        def compile_classes(*args, **options):
            assert held.wait(DEADLINE_S)
            return real(*args, **options)

        monkeypatch.setattr("tokfold._background.time", Clock)
        monkeypatch.setattr("tokfold._background.compile_classes", compile_classes)
        grammar, vocabulary = tokfold.Grammar.from_ebnf(AMBIGUOUS), tokfold.Vocabulary(TOKENS)
        compiled = tokfold.compile(grammar, vocabulary)
        compiled._core = Core(compiled._core)
        held.set()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compiled.wait(DEADLINE_S)
        assert warmed == [100]

    @pytest.mark.parametrize("milliseconds", [0, -1])
    def test_a_time_that_is_none(self, milliseconds):
        with pytest.raises(ValueError, match="classes_milliseconds must be 1 or more"):
            compiled_with(sql(), words(), classes_milliseconds=milliseconds)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
    def test_a_child_process_does_not_wait_for_the_thread_of_its_parent(self):
        """Its own compiled grammars are served by a thread of its own."""
        program = (
            "import os, sys\nimport tokfold\n"
            f"grammar = tokfold.Grammar.from_file({str(ROOT / 'grammars/sql/sql.gbnf')!r})\n"
            "letters = b'abcdefghijklmnopqrstuvwxyz(){};,. '\n"
            "tokens = [bytes([a, b, c]) for a in letters for b in letters for c in letters]\n"
            "vocabulary = tokfold.Vocabulary(tokens)\n"
            "compiled = [tokfold.compile(grammar, vocabulary) for _ in range(3)]\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    old = [c.wait() for c in compiled][-1]\n"
            "    new = tokfold.compile(grammar, vocabulary).wait()\n"
            "    os._exit(0 if (old, new) == (False, True) else 1)\n"
            "sys.exit(os.waitpid(child, 0)[1])\n"
        )
        result = processes.run(
            [sys.executable, "-W", "ignore", "-c", program],
            env={**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])},
            text=False,
        )
        assert result.returncode == 0

    def test_many_at_once(self):
        grammar, vocabulary = tokfold.Grammar.from_ebnf(AMBIGUOUS), tokfold.Vocabulary(TOKENS)
        all_of_them = [tokfold.compile(grammar, vocabulary) for _ in range(20)]
        masks = [mask_of(tokfold.Matcher(compiled), len(TOKENS)) for compiled in all_of_them]
        assert all(mask == masks[0] for mask in masks)
        for compiled in all_of_them[::2]:
            assert compiled.wait(DEADLINE_S)
        del all_of_them, compiled
        gc.collect()

    @pytest.mark.parametrize("limit", ["max_mask_work", "max_memo_bytes"])
    def test_warm_masks_that_cannot_be_made(self, limit):
        """The classes are there all the same: nothing is said of their being missing."""
        compiled = compiled_of(NESTED, classes="auto", limits=tokfold.Limits(**{limit: 1}))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compiled.wait(DEADLINE_S)

    def test_classes_that_cannot_be_kept(self, tmp_path):
        """A cache folder that becomes a file: a warning, and exact masks."""
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").write_bytes(b"")
        path = tmp_path / "cache"
        path.symlink_to("folder")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled = compiled_of(NESTED, classes="auto", cache_dir=path)
            (tmp_path / "file").rename(path)  # at once: the thread may be about to write
            compiled.wait(DEADLINE_S)
        expected = mask_of(tokfold.Matcher(compiled_of(NESTED)), len(TOKENS))
        assert mask_of(tokfold.Matcher(compiled), len(TOKENS)) == expected

    @pytest.mark.parametrize("ending", ["", "raise SystemExit(0)", "del compiled"])
    def test_the_end_of_the_process(self, ending):
        """At once, with the thread at work: no crash, no word."""
        program = (
            "import tokfold\n"
            f"grammar = tokfold.Grammar.from_file({str(ROOT / 'grammars/cpp/cpp.gbnf')!r})\n"
            "letters = b'abcdefghijklmnopqrstuvwxyz(){};,. '\n"
            "tokens = [bytes([a, b, c]) for a in letters for b in letters for c in letters]\n"
            "vocabulary = tokfold.Vocabulary([*tokens, b'</s>'], stop_token_ids=[len(tokens)])\n"
            "compiled = tokfold.compile(grammar, vocabulary)\n"
            "matcher = tokfold.Matcher(compiled)\n" + ending
        )
        result = processes.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(Path(tokfold.__file__).parents[1])},
        )
        assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
