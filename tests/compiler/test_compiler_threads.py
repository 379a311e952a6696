"""``GrammarCompiler`` from many threads: one compilation for all, futures, and a stress."""

from __future__ import annotations

import signal
import sys
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor, wait
from random import Random

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from compiler.samples import (
    SLOW,
    STOP,
    STRING,
    TAG,
    VOCABULARY,
    compiler_of,
    row_of,
    takes,
)
from strategies.engine import compiled_with
from strategies.profiles import LONG
from support.processes import DEADLINE_S, is_inside, until
from tokfold import GrammarCompiler


class TestTogether:
    def test_equal_requests_are_compiled_once(self, gate):
        compiler = compiler_of()
        with ThreadPoolExecutor(6) as threads:
            made = [threads.submit(compiler.compile_grammar, SLOW) for _ in range(6)]
            until(lambda: compiler.statistics().waits == 5)
            found = compiler.statistics()
            assert (found.running, found.queued, found.grammars) == (1, 0, 0)
            gate.opened.set()
            results = {id(future.result(DEADLINE_S)) for future in made}
        assert len(results) == 1
        found = compiler.statistics()
        assert (found.misses, found.waits, found.hits) == (1, 5, 0)
        assert gate.compiled == ['root ::= "slow"\n']

    def test_others_do_not_wait(self, gate):
        compiler = compiler_of()
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            assert takes(compiler.compile_grammar('root ::= "b"'), "b")
            compiler.statistics()
            compiler.get_cache_size_bytes()
            assert not slow.done()
            gate.opened.set()
            slow.result(DEADLINE_S)

    def test_a_failure_is_that_of_all_who_wait_and_is_tried_again(self, gate):
        compiler = compiler_of()
        gate.error = tokfold.UnsupportedGrammarError("not this one", "thing", 1, 1)
        with ThreadPoolExecutor(4) as threads:
            made = [threads.submit(compiler.compile_grammar, SLOW) for _ in range(4)]
            until(lambda: compiler.statistics().waits == 3)
            gate.opened.set()
            for future in made:
                with pytest.raises(tokfold.UnsupportedGrammarError, match="not this one"):
                    future.result(DEADLINE_S)
        found = compiler.statistics()
        assert (found.misses, found.waits, found.failures, found.grammars) == (1, 3, 1, 0)
        gate.error = None
        assert takes(compiler.compile_grammar(SLOW), "slow")
        assert compiler.statistics().failures == 1

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
    def test_an_interrupt_is_that_of_one_thread(self, gate, error):
        """The others get an error of ours, and can try again."""
        compiler = compiler_of()
        gate.error = error
        first: list[BaseException] = []

        def interrupted() -> None:
            try:
                compiler.compile_grammar(SLOW)
            except BaseException as caught:
                first.append(caught)

        thread = threading.Thread(target=interrupted)
        thread.start()
        assert gate.entered.wait(DEADLINE_S)
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(compiler.compile_grammar, SLOW)
            until(lambda: compiler.statistics().waits == 1)
            gate.opened.set()
            with pytest.raises(tokfold.TokfoldError, match="interrupted"):
                waiting.result(DEADLINE_S)
        thread.join(DEADLINE_S)
        assert first == [error]
        gate.error = None
        assert takes(compiler.compile_grammar(SLOW), "slow")

    @pytest.mark.parametrize("call", [1, 2])
    def test_an_interrupt_anywhere_leaves_nobody_waiting(self, call, monkeypatch):
        """Ctrl-C may come between any two lines: before compiling begins, and after it."""
        compiler = compiler_of()
        calls = 0

        class Clock:
            @staticmethod
            def perf_counter() -> float:
                nonlocal calls
                calls += 1
                if calls == call:
                    raise KeyboardInterrupt
                return 0.0

        with monkeypatch.context() as patched:
            patched.setattr("tokfold.compiler.time", Clock)
            with pytest.raises(KeyboardInterrupt):
                compiler.compile_grammar('root ::= "a"')
        again: Future[object] = Future()

        def ask() -> None:
            again.set_result(compiler.compile_grammar('root ::= "a"'))

        threading.Thread(target=ask, daemon=True).start()
        again.result(DEADLINE_S)

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals")
    def test_ctrl_c_where_one_waits(self, gate):
        """The one who waits is interrupted; the one who compiles is not."""
        if threading.current_thread() is not threading.main_thread():
            pytest.skip("not in the main thread")
        compiler = compiler_of()
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            main = threading.main_thread().ident
            assert main is not None

            def interrupt() -> None:
                until(lambda: is_inside(main, "tokfold.compiler"))
                signal.pthread_kill(main, signal.SIGINT)

            threading.Thread(target=interrupt).start()
            with pytest.raises(KeyboardInterrupt):
                compiler.compile_grammar(SLOW)
            gate.opened.set()
            assert takes(slow.result(DEADLINE_S), "slow")
        assert compiler.compile_grammar(SLOW) is slow.result()

    def test_clear_while_one_compiles(self, gate):
        compiler = compiler_of()
        compiler.compile_grammar('root ::= "b"')
        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            compiler.clear_cache()
            assert (compiler.statistics().running, compiler.statistics().grammars) == (1, 0)
            two = threads.submit(compiler.compile_grammar, SLOW)
            until(lambda: compiler.statistics().waits == 1)
            gate.opened.set()
            assert one.result(DEADLINE_S) is two.result(DEADLINE_S)


class TestSubmit:
    @pytest.mark.parametrize(
        ("kind", "source", "text"),
        [
            ("grammar", 'root ::= "a"', "a"),
            ("structural_tag", TAG, "<a>"),
            ("json_schema", {"type": "integer"}, "12"),
            ("regex", "a+", "aa"),
            ("lark", 'start: "a"', "a"),
        ],
    )
    def test_each_kind(self, kind, source, text):
        compiler = compiler_of()
        compiled = compiler.submit(kind, source).result(DEADLINE_S)
        assert takes(compiled, text)
        assert getattr(compiler, f"compile_{kind}")(source) is compiled

    def test_options_are_passed_on(self):
        compiler = compiler_of()
        schema = {"type": "array", "items": {"type": "integer"}}
        compiled = compiler.submit("json_schema", schema, whitespace="compact").result(DEADLINE_S)
        assert not takes(compiled, "[1, 2]")
        assert takes(compiled, "[1,2]")
        found = compiler.submit("regex", "a.c", flags="i", search=True).result(DEADLINE_S)
        assert takes(found, "xABCx")

    def test_errors_are_the_futures(self):
        future = compiler_of().submit("grammar", "root ::= (")
        assert type(future.exception(DEADLINE_S)) is tokfold.GrammarSyntaxError

    def test_one_that_waits_can_be_cancelled(self, gate):
        compiler = compiler_of(max_compiles=2)
        slow = [compiler.submit("grammar", f'root ::= "slow{number}"') for number in range(2)]
        until(lambda: len(gate.compiled) == 2)
        waiting = compiler.submit("grammar", 'root ::= "never"')
        after = compiler.submit("grammar", 'root ::= "after"')
        assert not slow[0].cancel()
        assert waiting.cancel()
        with pytest.raises(CancelledError):
            waiting.result(DEADLINE_S)
        gate.opened.set()
        assert takes(after.result(DEADLINE_S), "after")
        assert all(takes(f.result(DEADLINE_S), f"slow{n}") for n, f in enumerate(slow))
        assert not any("never" in text for text in gate.compiled)
        assert takes(compiler.compile_grammar('root ::= "never"'), "never")

    def test_a_cancelled_one_is_done_for_those_who_wait_for_several(self, gate):
        compiler = compiler_of(max_compiles=1)
        slow = compiler.submit("grammar", SLOW)
        assert gate.entered.wait(DEADLINE_S)
        waiting = compiler.submit("grammar", 'root ::= "a"')
        assert waiting.cancel()
        assert wait([waiting], DEADLINE_S).done == {waiting}
        gate.opened.set()
        assert takes(slow.result(DEADLINE_S), "slow")

    def test_thousands_wait_and_no_thread_can_start(self, gate, monkeypatch):
        """Each of them ends with an error, and the one that made room does not."""
        compiler = compiler_of(max_compiles=1)
        slow = compiler.submit("grammar", SLOW)
        assert gate.entered.wait(DEADLINE_S)
        waiting = [compiler.submit("grammar", f'root ::= "{n}"') for n in range(2_000)]
        start = threading.Thread.start

        def refuse(thread: threading.Thread) -> None:
            if thread.name == "tokfold-compile":
                raise RuntimeError("can't start new thread")
            start(thread)

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            gate.opened.set()
            assert takes(slow.result(DEADLINE_S), "slow")
            for future in waiting:
                assert "no thread" in str(future.exception(DEADLINE_S))
        assert takes(compiler.submit("grammar", 'root ::= "b"').result(DEADLINE_S), "b")
        assert (compiler.statistics().running, compiler.statistics().queued) == (0, 0)

    def test_an_interrupt_after_the_work_tells_the_clients(self, gate, monkeypatch):
        compiler = compiler_of()
        real, calls = compiler._settle, []

        def interrupted(*args) -> None:
            calls.append(args)
            if len(calls) == 1:
                raise KeyboardInterrupt
            real(*args)

        monkeypatch.setattr(compiler, "_settle", interrupted)
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            client = compiler.submit("grammar", SLOW)
            gate.opened.set()
            with pytest.raises(KeyboardInterrupt):
                slow.result(DEADLINE_S)
            assert takes(client.result(DEADLINE_S), "slow")

    def test_an_interrupt_while_a_failure_is_told(self, gate, monkeypatch):
        compiler = compiler_of()
        gate.error = tokfold.UnsupportedGrammarError("not this one", "thing", 1, 1)
        leave, calls = compiler._queue.leave, []

        def interrupted(ticket) -> None:
            calls.append(ticket)
            if len(calls) == 2:  # the first leaves after the work
                raise KeyboardInterrupt
            leave(ticket)

        monkeypatch.setattr(compiler._queue, "leave", interrupted)
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            client = compiler.submit("grammar", SLOW)
            gate.opened.set()
            with pytest.raises(KeyboardInterrupt):
                slow.result(DEADLINE_S)
            assert isinstance(client.exception(5), tokfold.UnsupportedGrammarError)

    def test_who_comes_while_a_cancelled_one_is_dropped(self):
        """A caller between the look at who wants a job and its end waits for a job of their own."""
        compiler = compiler_of()
        begin, begun = compiler._begin, []
        compiler._start = begun.append
        compiler._forgo = lambda job, client: None  # the thread that cancels is slow
        assert compiler.submit("grammar", 'root ::= "a"').cancel()
        made: list[tokfold.CompiledGrammar] = []
        late = threading.Thread(
            target=lambda: made.append(compiler.compile_grammar('root ::= "a"')), daemon=True
        )

        def begin_slowly(job) -> bool:
            is_wanted = begin(job)
            compiler._begin = begin
            late.start()
            until(lambda: compiler.statistics().waits == 1 or not late.is_alive())
            return is_wanted

        compiler._begin = begin_slowly
        compiler._run(begun[0])
        late.join(DEADLINE_S)
        assert takes(made[0], "a")
        found = compiler.statistics()
        assert (found.running, found.queued, found.misses, found.waits) == (0, 0, 1, 0)

    def test_equal_requests_in_the_background(self, gate):
        """More requests than threads, one of them in the caller's own: each of them ends."""
        compiler = compiler_of()
        made = [compiler.submit("grammar", SLOW) for _ in range(8)]
        assert gate.entered.wait(DEADLINE_S)
        gate.opened.set()
        mine = compiler.compile_grammar(SLOW)
        assert all(future.result(DEADLINE_S) is mine for future in made)
        assert compiler.statistics().misses == 1


class Stress:
    """Threads that compile, fill, fork, evict, cancel and clear, each a fixed number of times."""

    TEXTS = (
        *(STRING.format(key=key) for key in ("a", "b", "c(", "d")),
        'root ::= "(" root ")" | "a" | root "," root',
        'root ::= ("ab" | "c" "a"?){17,30} "x"',
        'root ::= root "," word | word\nword ::= [a-z] [a-z0-9]*',
        'root ::= "[" (root (", " root)*)? "]" | "\\"" [^"\\\\]{0,40} "\\""',
        'root ::= TagDispatch(("<a", x), excludes=("!",))\nx ::= [0-9]+ ">"',
    )

    def __init__(self) -> None:
        self.rows: dict[str, list[tuple[int, bytes]]] = {}
        for text in self.TEXTS:
            grammar = tokfold.Grammar.from_ebnf(text)
            compiled = compiled_with(grammar, VOCABULARY, classes="never", pool=None)
            self.rows[text] = self.walk(text, tokfold.Matcher(compiled))

    def walk(self, text: str, matcher: tokfold.Matcher) -> list[tuple[int, bytes]]:
        """The masks along a walk, and the tokens taken."""
        random, out = Random(text), []
        for _ in range(5):
            row = row_of(matcher)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")[:STOP]
            allowed = np.flatnonzero(bits).tolist()
            token = random.choice(allowed) if allowed else -1
            out.append((token, row.tobytes()))
            if token < 0:
                break
            fork = matcher.fork()
            assert matcher.accept_token(token)
            assert fork.accept_token(token)
            assert fork.state == matcher.state
            assert row_of(fork).tobytes() == row_of(matcher).tobytes()
            fork.rollback()
        return out

    def one(self, compiler: GrammarCompiler, random: Random) -> None:
        """One request."""
        text = random.choice(self.TEXTS)
        kind = random.randrange(10)
        if kind == 0:
            future = compiler.submit("grammar", text)
            if random.random() < 0.5:
                future.cancel()
            if future.cancelled():
                return
            compiled = future.result(DEADLINE_S)
        elif kind == 1:
            compiler.clear_cache()
            return
        elif kind == 2:
            with pytest.raises(tokfold.GrammarSyntaxError):
                compiler.compile_grammar("root ::= (")
            return
        elif kind == 3:
            found = compiler.statistics()
            assert found.pool["bytes"] <= compiler.pool.max_bytes
            assert compiler.get_cache_size_bytes() >= 0
            return
        else:
            compiled = compiler.compile_grammar(text)
        if random.random() < 0.3:
            self.cancelled(compiled)
        if random.random() < 0.2:
            compiled.stop()
        assert self.walk(text, tokfold.Matcher(compiled)) == self.rows[text], text

    @staticmethod
    def cancelled(compiled: tokfold.CompiledGrammar) -> None:
        """A matcher that is cancelled leaves nothing wrong behind."""
        matcher = tokfold.Matcher(compiled)
        matcher.cancel()
        with pytest.raises(tokfold.TokfoldError, match="cancelled"):
            row_of(matcher)
        matcher.resume()


@pytest.mark.parametrize("classes", ["never", "auto"])
def test_stress(classes):
    stress = Stress()
    compiler = compiler_of(classes=classes, max_grammars=2, max_pool_bytes=8_000)

    def work(number: int) -> None:
        random = Random(number)
        for _ in range(60 if not LONG else 2_000):
            stress.one(compiler, random)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as threads:
            list(threads.map(work, range(6)))
    finally:
        sys.setswitchinterval(interval)
    found = compiler.statistics()
    assert found.evicted > 10
    assert found.hits > 10
    assert found.failures > 5
    assert found.grammars <= 2
    # Masks over classes, which may be there at any time under "auto", do not ask the pool.
    assert found.pool["evicted"] > 0 or classes == "auto"


def test_cancelled_requests_leave_nobody_waiting():
    """Few texts, most of them asked for by several at once, and dropped by as many."""
    compiler = compiler_of(classes="never", max_grammars=2)
    done: list[int] = []

    def work(number: int) -> None:
        random = Random(number)
        for _ in range(400 if not LONG else 4_000):
            text, kind = random.choice(Stress.TEXTS[:4]), random.randrange(4)
            if kind < 2:
                future = compiler.submit("grammar", text)
                if random.random() >= 0.7 or not future.cancel():
                    future.result(DEADLINE_S)
            elif kind == 2:
                compiler.clear_cache()
            else:
                compiler.compile_grammar(text)
        done.append(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
    finally:
        sys.setswitchinterval(interval)
    assert sorted(done) == list(range(6))
    found = compiler.statistics()
    assert (found.running, found.queued) == (0, 0)


def test_the_stress_has_teeth():
    """A compiler that gives the wrong grammar now and then is found out."""
    stress = Stress()
    compiler = compiler_of()
    right = compiler.compile_grammar
    wrong = right(stress.TEXTS[1])
    compiler.compile_grammar = lambda text: wrong if text == stress.TEXTS[0] else right(text)
    random = Random(0)

    def work() -> None:
        for _ in range(200):
            stress.one(compiler, random)

    with pytest.raises(AssertionError):
        work()
