"""The queue of a ``GrammarCompiler``, and which grammars it forgets."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random

import pytest

pytest.importorskip("tokfold._core")

import tokfold
from compiler.samples import (
    SLOW,
    compiler_of,
    takes,
)
from strategies.profiles import LONG
from support.processes import DEADLINE_S, until


class TestEviction:
    def test_what_was_not_asked_for_longest_goes(self):
        compiler = compiler_of(max_grammars=2)
        texts = [f'root ::= "{letter}"' for letter in "abc"]
        first, second = (compiler.compile_grammar(text) for text in texts[:2])
        assert compiler.compile_grammar(texts[0]) is first
        compiler.compile_grammar(texts[2])
        assert compiler.statistics().grammars == 2
        assert compiler.statistics().evicted == 1
        assert compiler.compile_grammar(texts[0]) is first
        assert compiler.compile_grammar(texts[1]) is not second
        assert takes(second, "b")

    def test_none_are_held(self):
        compiler = compiler_of(max_grammars=0)
        made = [compiler.compile_grammar('root ::= "a"') for _ in range(3)]
        assert len({id(m) for m in made}) == 3
        assert all(takes(m, "a") for m in made)
        found = compiler.statistics()
        assert (found.misses, found.evicted, found.grammars) == (3, 3, 0)

    def test_evicted_grammars_are_let_go(self):
        import gc
        import weakref

        compiler = compiler_of(max_grammars=1, classes="auto")
        held = weakref.ref(compiler.compile_grammar('root ::= "a"'))
        compiled = held()
        assert compiled is not None
        compiled.wait(DEADLINE_S)
        del compiled
        compiler.compile_grammar('root ::= "b"').wait(DEADLINE_S)
        gc.collect()
        assert held() is None

    def test_what_is_being_compiled_is_not_evicted(self, gate):
        compiler = compiler_of(max_grammars=1)
        with ThreadPoolExecutor(2) as threads:
            one = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            compiler.compile_grammar('root ::= "b"')
            two = threads.submit(compiler.compile_grammar, SLOW)
            until(lambda: compiler.statistics().waits == 1 or compiler.statistics().misses == 3)
            gate.opened.set()
            assert one.result(DEADLINE_S) is two.result(DEADLINE_S)
        assert compiler.statistics().misses == 2


LARGE = f"# {'x' * 100_000}\n" + SLOW
"""A large source, whose compilation stops at the gate."""


class TestQueue:
    def test_no_more_than_may(self, gate):
        """Callers and what is submitted wait in one queue."""
        compiler = compiler_of(max_compiles=2)
        with ThreadPoolExecutor(3) as threads:
            made = [threads.submit(compiler.compile_grammar, f"{SLOW} [{n}]") for n in range(3)]
            made += [compiler.submit("grammar", f"{SLOW} [{n}]") for n in range(3, 6)]
            until(lambda: compiler.statistics().queued == 4)
            assert compiler.statistics().running == 2
            until(lambda: len(gate.compiled) == 2)
            gate.opened.set()
            assert [takes(f.result(DEADLINE_S), f"slow{n}") for n, f in enumerate(made)] == [
                True
            ] * 6
        found = compiler.statistics()
        assert (found.running, found.queued, found.misses) == (0, 0, 6)

    def test_a_small_request_is_not_behind_large_ones(self, gate):
        compiler = compiler_of(max_compiles=2)
        large = [compiler.submit("grammar", f"{LARGE} [{n}]") for n in range(3)]
        assert gate.entered.wait(DEADLINE_S)
        assert takes(compiler.compile_grammar('root ::= "b"'), "b")
        assert takes(compiler.submit("grammar", 'root ::= "c"').result(DEADLINE_S), "c")
        assert (compiler.statistics().running, compiler.statistics().queued) == (1, 2)
        gate.opened.set()
        assert all(takes(f.result(DEADLINE_S), f"slow{n}") for n, f in enumerate(large))

    def test_who_waits_for_the_same_holds_no_slot(self, gate):
        compiler = compiler_of(max_compiles=2)
        with ThreadPoolExecutor(4) as threads:
            same = [threads.submit(compiler.compile_grammar, SLOW) for _ in range(4)]
            until(lambda: compiler.statistics().waits == 3)
            assert takes(compiler.compile_grammar('root ::= "b"'), "b")
            gate.opened.set()
            assert len({id(future.result(DEADLINE_S)) for future in same}) == 1

    def test_the_same_in_the_queue_is_one(self, gate):
        """Those that wait for one that waits; it is compiled for the last who wants it."""
        compiler = compiler_of(max_compiles=1)
        blocking = compiler.submit("grammar", SLOW)
        assert gate.entered.wait(DEADLINE_S)
        text = 'root ::= "b"'
        first, second = compiler.submit("grammar", text), compiler.submit("grammar", text)
        assert (compiler.statistics().queued, compiler.statistics().waits) == (1, 1)
        with ThreadPoolExecutor(1) as threads:
            caller = threads.submit(compiler.compile_grammar, text)
            until(lambda: compiler.statistics().waits == 2)
            assert first.cancel()
            assert second.cancel()
            assert compiler.statistics().queued == 1
            gate.opened.set()
            assert takes(caller.result(DEADLINE_S), "b")
        assert takes(blocking.result(DEADLINE_S), "slow")
        assert compiler.statistics().misses == 2

    def test_the_last_that_is_cancelled_leaves_the_queue(self, gate):
        compiler = compiler_of(max_compiles=1)
        blocking = compiler.submit("grammar", SLOW)
        assert gate.entered.wait(DEADLINE_S)
        waiting = [compiler.submit("grammar", 'root ::= "b"') for _ in range(2)]
        for future in waiting:
            assert compiler.statistics().queued == 1
            assert future.cancel()
        assert compiler.statistics().queued == 0
        gate.opened.set()
        blocking.result(DEADLINE_S)
        assert takes(compiler.compile_grammar('root ::= "b"'), "b")

    def test_one_that_joins_a_compilation_cannot_be_cancelled(self, gate):
        compiler = compiler_of()
        with ThreadPoolExecutor(1) as threads:
            caller = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            joined = compiler.submit("grammar", SLOW)
            assert joined.running()
            assert not joined.cancel()
            gate.opened.set()
            assert joined.result(DEADLINE_S) is caller.result(DEADLINE_S)

    def test_a_failure_frees_the_slot(self, gate):
        compiler = compiler_of(max_compiles=1)
        for _ in range(3):
            with pytest.raises(tokfold.GrammarSyntaxError):
                compiler.compile_grammar("root ::= (")
            wrong = compiler.submit("grammar", "root ::= (")
            assert type(wrong.exception(DEADLINE_S)) is tokfold.GrammarSyntaxError
        assert takes(compiler.compile_grammar('root ::= "b"'), "b")
        found = compiler.statistics()
        assert (found.failures, found.running, found.queued) == (6, 0, 0)

    @pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals")
    def test_ctrl_c_in_the_queue(self, gate):
        if threading.current_thread() is not threading.main_thread():
            pytest.skip("not in the main thread")
        compiler = compiler_of(max_compiles=1)
        blocking = compiler.submit("grammar", SLOW)
        assert gate.entered.wait(DEADLINE_S)
        main = threading.main_thread().ident
        assert main is not None

        def interrupt() -> None:
            until(lambda: compiler.statistics().queued == 1)
            signal.pthread_kill(main, signal.SIGINT)

        threading.Thread(target=interrupt).start()
        with pytest.raises(KeyboardInterrupt):
            compiler.compile_grammar('root ::= "b"')
        assert compiler.statistics().queued == 0
        gate.opened.set()
        assert takes(blocking.result(DEADLINE_S), "slow")
        assert takes(compiler.compile_grammar('root ::= "b"'), "b")

    def test_wrong_arguments_are_the_futures_error(self):
        future = compiler_of().submit("grammar", 'root ::= "a"', what=1)
        assert type(future.exception(DEADLINE_S)) is TypeError

    def test_no_thread_can_be_started(self, monkeypatch):
        """As when the interpreter ends: the request gets the reason, and the next one its turn."""
        compiler = compiler_of(max_compiles=1)

        def start(self: threading.Thread) -> None:
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", start)
            future = compiler.submit("grammar", 'root ::= "a"')
        with pytest.raises(tokfold.TokfoldError, match="no thread to compile"):
            future.result(DEADLINE_S)
        assert takes(compiler.compile_grammar('root ::= "a"'), "a")

    def test_all_get_their_answer(self, monkeypatch):
        """Requests of random sizes, from callers and submitted, some cancelled, some wrong."""
        real, lock = tokfold.compiler.compile, threading.Lock()
        inside = most = 0

        def compile(*args, **options):
            nonlocal inside, most
            with lock:
                inside += 1
                most = max(most, inside)
            try:
                return real(*args, **options)
            finally:
                with lock:
                    inside -= 1

        compiler = compiler_of(max_compiles=3, max_grammars=4)
        monkeypatch.setattr("tokfold.compiler.compile", compile)

        def work(seed: int) -> None:
            random = Random(seed)
            waiting: list[tuple[str, Future[tokfold.CompiledGrammar]]] = []
            for _ in range(60 if not LONG else 1_000):
                word = random.choice("abcdefgh") + random.choice("12")
                text = f'root ::= "{word}" {"#" * random.choice((1, 1_000, 70_000, 150_000))}\n'
                kind = random.randrange(6)
                if kind == 0:
                    with pytest.raises(tokfold.GrammarSyntaxError):
                        compiler.compile_grammar("root ::= (")
                elif kind < 3:
                    assert takes(compiler.compile_grammar(text), word)
                else:
                    future = compiler.submit("grammar", text)
                    if random.random() > 0.4 or not future.cancel():
                        waiting.append((word, future))
            assert all(takes(future.result(DEADLINE_S), word) for word, future in waiting)

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(work, range(6)))
        until(lambda: compiler.statistics().running == 0)
        assert compiler.statistics().queued == 0
        assert not compiler._jobs
        assert most <= 3
