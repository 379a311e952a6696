"""``GrammarCompiler``: what a server does to it, from many threads, processes and files.

Long because each part needs the same gate, which holds a compilation open at a chosen moment.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from random import Random

import numpy as np
import pytest

pytest.importorskip("tokfold._core")

import tokfold
from python.script_runner import child, output
from strategies.engine import compiled_with
from strategies.profiles import LONG
from support.forks import exit_code
from support.processes import DEADLINE_S, is_inside, until
from tokfold import GrammarCompiler
from tokfold._cache import CacheWarning


def build_tokens() -> list[bytes]:
    """Enough for masks to be shared by the pool."""
    random = Random(1)
    letters = [*"abcdex", *'()[]{},:-+" \\/0129', "é", "true", "null"]
    out = dict.fromkeys(bytes([b]) for b in range(256))
    while len(out) < 2_000:
        out["".join(random.choices(letters, k=random.randint(1, 5))).encode()] = None
    return [*out, b"</s>"]


TOKENS = build_tokens()
STOP = len(TOKENS) - 1
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])
STRING = 'root ::= "{key}" "\\"" [^"\\\\]* "\\""\n'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<",
        "content": {"type": "const_string", "value": "a"},
        "end": ">",
    },
}


def compiler_of(**options) -> GrammarCompiler:
    options.setdefault("classes", "never")
    options.setdefault("seed", False)
    return GrammarCompiler(VOCABULARY, **options)


def row_of(matcher: tokfold.Matcher) -> np.ndarray:
    bitmask = tokfold.allocate_bitmask(1, len(TOKENS))
    matcher.fill_bitmask(bitmask)
    return bitmask[0].copy()


def takes(compiled: tokfold.CompiledGrammar, text: str) -> bool:
    matcher = tokfold.Matcher(compiled)
    return matcher.accept_string(text) and matcher.is_accepting


def use(compiler: GrammarCompiler, texts: list[str], prefix: str = "") -> None:
    """Make a mask of each grammar."""
    for text in texts:
        matcher = tokfold.Matcher(compiler.compile_grammar(text))
        assert matcher.accept_string(prefix)
        row_of(matcher)


class Gate:
    """Compiling stops at a gate, for grammars that hold a word, until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.word, self.entered, self.opened = "slow", threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self.compiled: list[str] = []
        real = tokfold.compiler.compile

        def compile(grammar, *args, **options):
            self.compiled.append(str(grammar))
            if self.word in str(grammar):
                self.entered.set()
                assert self.opened.wait(DEADLINE_S)
                if self.error is not None:
                    raise self.error
            return real(grammar, *args, **options)

        monkeypatch.setattr("tokfold.compiler.compile", compile)


@pytest.fixture
def gate(monkeypatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    yield made
    made.opened.set()


SLOW = 'root ::= "slow"'


# --------------------------------------------------------------------- methods


class TestMethods:
    def test_grammars(self):
        compiler = compiler_of()
        text = 'root ::= "a" | "b"'
        compiled = compiler.compile_grammar(text)
        assert takes(compiled, "a")
        assert compiled.vocabulary is VOCABULARY
        assert compiler.compile_grammar(text) is compiled
        value = tokfold.Grammar.from_ebnf(text)
        assert takes(compiler.compile_grammar(value), "b")
        again = tokfold.Grammar.from_ebnf(text)
        assert compiler.compile_grammar(again) is compiler.compile_grammar(value)
        implied = tokfold.Grammar.from_ebnf(text, lookahead="implied")
        assert compiler.compile_grammar(implied) is not compiler.compile_grammar(value)

    def test_schemas(self):
        compiler = compiler_of()
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        compiled = compiler.compile_json_schema(schema)
        assert takes(compiled, '{"a": 12}')
        assert compiler.compile_json_schema(dict(schema)) is compiled
        assert compiler.compile_json_schema(json.dumps(schema)) is compiled
        tight = compiler.compile_json_schema(schema, whitespace="compact")
        assert tight is not compiled
        assert compiler.compile_json_schema(schema, whitespace="compact") is tight
        assert not takes(tight, '{"a": 12}')
        assert takes(tight, '{"a":12}')
        other = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        assert not takes(compiler.compile_json_schema(other), '{"a": 12}')
        anything = compiler.compile_builtin_json_grammar()
        assert takes(anything, '[1, {"b": null}]')
        assert compiler.compile_builtin_json_grammar() is anything

    def test_long_sources_are_told_apart_by_digests(self):
        """Whatever they differ in, and however long they are."""
        compiler = compiler_of()
        for length in (4_000, 4_090, 5_000, 100_000):
            text = 'root ::= "' + "ab" * (length // 2) + '"'
            compiled = compiler.compile_grammar(text)
            assert compiler.compile_grammar("".join(list(text))) is compiled
            for place in (10, length // 2, len(text) - 2):
                other = text[:place] + "x" + text[place + 1 :]
                made = compiler.compile_grammar(other)
                assert made is not compiled
                matcher = tokfold.Matcher(made)
                assert matcher.accept_string(other[10:-1])
            keys = [key for key in compiler._held if "ab" * 4_096 in str(key)]
            assert not keys, "sources are kept"
        with pytest.raises(tokfold.GrammarSyntaxError):
            compiler.compile_grammar('root ::= "' + "\ud800" * 5_000 + '"')

    def test_the_order_of_properties_counts(self):
        """JSON that is equal as a value and not as a schema."""
        compiler = compiler_of()
        fields = {"a": {"type": "integer"}, "b": {"type": "integer"}}
        turned = dict(reversed(fields.items()))
        made = [
            compiler.compile_json_schema(
                {"type": "object", "properties": p, "required": ["a", "b"]}
            )
            for p in (fields, turned)
        ]
        assert [takes(m, '{"a": 1, "b": 2}') for m in made] == [True, False]

    def test_patterns(self):
        compiler = compiler_of()
        compiled = compiler.compile_regex("a+b")
        assert takes(compiled, "aab")
        assert compiler.compile_regex("a+b") is compiled
        either = compiler.compile_regex("a+b", flags="i")
        assert either is not compiled
        assert takes(either, "AaB")
        assert compiler.compile_regex("a+b", flags="i") is either

    def test_lark(self):
        compiler = compiler_of()
        lark = compiler.compile_lark('start: "a" "b"*')
        assert takes(lark, "abb")
        assert compiler.compile_lark('start: "a" "b"*') is lark
        text = 'root ::= "a"'  # in two languages
        assert takes(compiler.compile_regex(text), text)
        assert takes(compiler.compile_grammar(text), "a")

    def test_structural_tags(self):
        compiler = compiler_of()
        compiled = compiler.compile_structural_tag(TAG)
        assert takes(compiled, "<a>")
        assert compiler.compile_structural_tag(json.dumps(TAG)) is compiled
        other = json.loads(json.dumps(TAG))
        other["format"]["end"] = ")"
        assert takes(compiler.compile_structural_tag(other), "<a)")

    def test_structural_tags_of_xgrammar(self):
        xgr = pytest.importorskip("xgrammar")
        compiler = compiler_of()
        tag = xgr.StructuralTag.model_validate(TAG)
        assert takes(compiler.compile_structural_tag(tag), "<a>")
        same = xgr.StructuralTag.model_validate(TAG)
        assert compiler.compile_structural_tag(same) is compiler.compile_structural_tag(tag)

    def test_classes_made_elsewhere(self):
        compiler = compiler_of()
        grammar = tokfold.Grammar.from_ebnf(STRING.format(key="a"))
        compiled = compiler.compile_grammar(grammar)
        before = row_of(tokfold.Matcher(compiled))
        assert not compiled.has_classes
        compiled.take_classes(tokfold.compile_classes(grammar, VOCABULARY))
        assert compiled.has_classes
        assert (row_of(tokfold.Matcher(compiled)) == before).all()

    @pytest.mark.parametrize("classes", ["auto", "now", "never"])
    def test_modes_of_classes(self, classes):
        compiled = compiler_of(classes=classes).compile_grammar(STRING.format(key="a"))
        assert compiled.wait(DEADLINE_S) is (classes != "never")
        expected = row_of(tokfold.Matcher(compiler_of().compile_grammar(STRING.format(key="a"))))
        assert (row_of(tokfold.Matcher(compiled)) == expected).all()

    def test_the_seed_is_found(self):
        """The inside of a JSON string has been looked at before the first request."""
        compiler = compiler_of(seed=True)
        assert compiler.pool.counters()["entries"] > 3
        text = 'root ::= "a" "\\"" [^"\\\\\\r\\n]{0,100} "\\""'
        matcher = tokfold.Matcher(compiler.compile_grammar(text))
        assert matcher.accept_string('a"')
        row_of(matcher)
        assert matcher.compiled.counters()["memo_shared"] > 0

    def test_statistics(self):
        compiler = compiler_of()
        for text in ('root ::= "a"', 'root ::= "b"', 'root ::= "a"'):
            compiler.compile_grammar(text)
        found = compiler.statistics()
        assert (found.hits, found.waits, found.misses, found.evicted) == (1, 0, 2, 0)
        assert (found.failures, found.grammars) == (0, 2)
        assert found.seconds > 0
        assert found.pool == compiler.pool.counters()

    def test_bytes_and_clear(self):
        compiler = compiler_of()
        kept = compiler.compile_grammar(STRING.format(key="a"))
        use(compiler, [STRING.format(key="a")], 'a"')
        full = compiler.get_cache_size_bytes()
        assert full >= kept.counters()["bytes_held"] + compiler.pool.counters()["bytes"] > 0
        assert compiler.pool.counters()["entries"] > 0
        compiler.clear_cache()
        assert compiler.get_cache_size_bytes() == 0
        assert compiler.statistics().grammars == 0
        assert takes(kept, 'a"x"')  # who uses one keeps it alive
        assert compiler.compile_grammar(STRING.format(key="a")) is not kept
        assert compiler.statistics().misses == 2

    def test_no_pool(self):
        compiler = compiler_of(max_pool_bytes=0, seed=True)
        use(compiler, [STRING.format(key=key) for key in "ab"], "")
        assert compiler.pool.counters() == dict.fromkeys(compiler.pool.counters(), 0)

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"max_grammars": -1}, ValueError),
            ({"max_bytes": -1}, ValueError),
            ({"max_compiles": 0}, ValueError),
            ({"classes_milliseconds": 0}, ValueError),
            ({"max_pool_bytes": -1}, ValueError),
            ({"max_pool_bytes": 1.5}, ValueError),
        ],
    )
    def test_options_that_are_none(self, options, error):
        with pytest.raises(error):
            compiler_of(**options)

    def test_vocabularies_without_the_seed(self):
        """None of the tokens can begin what is seeded."""
        for tokens in ([b"a", b"</s>"], [b"</s>"]):
            stop = len(tokens) - 1
            GrammarCompiler(tokfold.Vocabulary(tokens, stop_token_ids=[stop]))


# -------------------------------------------------------------------- eviction


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


# --------------------------------------------------------------------- threads


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

    def test_equal_requests_in_the_background(self, gate):
        """More than there are threads, and one that is no background: nobody waits for ever."""
        compiler = compiler_of()
        made = [compiler.submit("grammar", SLOW) for _ in range(8)]
        assert gate.entered.wait(DEADLINE_S)
        gate.opened.set()
        mine = compiler.compile_grammar(SLOW)
        assert all(future.result(DEADLINE_S) is mine for future in made)
        assert compiler.statistics().misses == 1


# ------------------------------------------------------------------- the queue

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


# ------------------------------------------------------------------ what it costs


class TestBytes:
    def test_the_sum_is_bounded(self):
        one = compiler_of().compile_grammar('root ::= "a"').num_bytes
        compiler = compiler_of(max_bytes=5 * one)
        for letter in "abcdefghij":
            compiler.compile_grammar(f'root ::= "{letter}"')
        found = compiler.statistics()
        assert 2 <= found.grammars <= 5
        assert one < found.bytes <= 5 * one
        assert found.evicted == 10 - found.grammars
        before = found.misses
        compiler.compile_grammar('root ::= "j"')
        assert compiler.statistics().misses == before, "the last one is held"

    def test_none_is_no_bound(self):
        compiler = compiler_of(max_bytes=None)
        made = [compiler.compile_grammar(f'root ::= "{letter}"') for letter in "abc"]
        found = compiler.statistics()
        assert (found.grammars, found.bytes) == (3, sum(one.num_bytes for one in made))

    def test_one_that_is_too_large_leaves_the_others(self):
        small = 'root ::= "a"'
        compiler = compiler_of(max_bytes=20 * compiler_of().compile_grammar(small).num_bytes)
        held = compiler.compile_grammar(small)
        large = compiler.compile_grammar(f'root ::= "{"b" * 50_000}"')
        assert large.num_bytes > compiler.max_bytes
        assert compiler.compile_grammar(small) is held
        assert compiler.statistics().grammars == 1
        assert compiler.statistics().evicted == 1
        assert takes(large, "b" * 50_000)

    def test_a_grammar_that_grows_is_looked_at_when_it_is_asked_for(self):
        compiler = compiler_of(max_bytes=None)
        text = STRING.format(key="a")
        compiled = compiler.compile_grammar(text)
        before = compiler.statistics().bytes
        use(compiler, [text], 'a"')
        compiler.compile_grammar(text)
        assert compiler.statistics().bytes == compiled.num_bytes > before

    def test_all_are_looked_at_from_time_to_time(self, monkeypatch):
        """Not at each request: a hundred of them look a few hundred times, not ten thousand."""
        compiler = compiler_of(max_bytes=None)
        made = [compiler.compile_grammar(f'root ::= "{n}" [^x]* "x"') for n in range(100)]
        looks = 0
        real = tokfold.CompiledGrammar.num_bytes.fget

        def num_bytes(self):
            nonlocal looks
            looks += 1
            return real(self)

        monkeypatch.setattr(tokfold.CompiledGrammar, "num_bytes", property(num_bytes))
        grown = tokfold.Matcher(made[7])
        assert grown.accept_string("7a")
        row_of(grown)
        for _ in range(100):
            compiler.compile_grammar('root ::= "0" [^x]* "x"')
        assert looks <= 300
        assert compiler.statistics().bytes == sum(one.num_bytes for one in made)

    def test_a_hit_makes_room_too(self):
        """What the grammar of a request grew by is taken from those not asked for longest."""
        compiler = compiler_of()
        texts = ['root ::= "a"', STRING.format(key="b")]
        other, growing = (compiler.compile_grammar(text) for text in texts)
        before = other.num_bytes + growing.num_bytes
        use(compiler, texts[1:], 'b"')
        compiler.max_bytes = growing.num_bytes
        assert compiler.statistics().bytes == before <= compiler.max_bytes
        assert compiler.compile_grammar(texts[1]) is growing
        assert compiler.statistics().grammars == 1
        assert compiler.statistics().bytes == growing.num_bytes


class TestCost:
    def test_what_a_grammar_cost(self):
        compiled = compiler_of().compile_grammar(STRING.format(key="a"))
        before = compiled.cost()
        assert before.bytes == compiled.num_bytes
        assert before.network_states == compiled._core.network_states > 0
        assert before.compile_seconds > 0
        assert (before.masks, before.worst_mask_milliseconds) == (0, 0)
        matcher = tokfold.Matcher(compiled)
        assert matcher.accept_string('a"')
        row_of(matcher)
        after = compiled.cost()
        assert after.masks == 1
        assert after.bytes > before.bytes
        assert after.compile_seconds == before.compile_seconds
        with pytest.raises(AttributeError):
            after.masks = 2

    def test_the_worst_mask_is_the_cores(self):
        compiled = compiler_of().compile_grammar('root ::= "a"')

        class Core:
            network_states, network_bytes, bytes_held = 3, 10, 20

            @staticmethod
            def counters():
                return {"masks": 5, "worst_mask_microseconds": 1_500}

        compiled._core = Core()
        cost = compiled.cost()
        assert (cost.masks, cost.worst_mask_milliseconds, cost.bytes) == (5, 1.5, 30)

    def test_the_compiler_counts_the_conversion(self, monkeypatch):
        """The seconds are those of the whole request, as in the statistics."""
        compiler = compiler_of()
        compiled = compiler.compile_grammar('root ::= "a"')
        assert compiled.cost().compile_seconds == compiler.statistics().seconds


class TestAdmit:
    def test_one_that_costs_too_much_is_refused(self):
        class TooDear(tokfold.TokfoldError):
            pass

        def admit(compiled: tokfold.CompiledGrammar) -> None:
            states = compiled.cost().network_states
            if states > 50:
                raise TooDear(f"the grammar has {states} states; 50 are allowed")

        compiler = compiler_of(admit=admit)
        assert takes(compiler.compile_grammar('root ::= "a"'), "a")
        text = f'root ::= "{"b" * 100}"'
        with pytest.raises(TooDear, match="50 are allowed"):
            compiler.compile_grammar(text)
        assert type(compiler.submit("grammar", text).exception(DEADLINE_S)) is TooDear
        found = compiler.statistics()
        assert (found.refused, found.failures, found.grammars, found.misses) == (2, 2, 1, 3)

    def test_those_that_wait_are_refused_too(self, gate):
        def admit(compiled: tokfold.CompiledGrammar) -> None:
            raise ValueError("never")

        compiler = compiler_of(admit=admit)
        with ThreadPoolExecutor(2) as threads:
            made = [threads.submit(compiler.compile_grammar, SLOW) for _ in range(2)]
            until(lambda: compiler.statistics().waits == 1)
            gate.opened.set()
            for future in made:
                with pytest.raises(ValueError, match="never"):
                    future.result(DEADLINE_S)
        assert compiler.statistics().refused == 1


# -------------------------------------------------------------------- a folder


def pool_file(folder: Path) -> Path:
    (path,) = folder.glob("*-mask-pool.tokfold")
    return path


class TestFolder:
    def test_there_and_back(self, tmp_path):
        with compiler_of(cache_dir=tmp_path / "new" / "folder") as compiler:
            use(compiler, [STRING.format(key="a")], 'a"')
            held = compiler.pool.counters()["entries"]
        assert compiler.statistics().grammars == 0
        assert compiler.pool.counters()["entries"] == 0
        assert (tmp_path / "new" / "folder").stat().st_mode & 0o077 == 0
        again = compiler_of(cache_dir=tmp_path / "new" / "folder")
        assert again.pool.counters()["entries"] == held
        use(again, [STRING.format(key="b")], 'b"')
        assert again.pool.counters()["hits"] > 0
        compiler.compile_grammar('root ::= "a"')  # a closed one goes on

    def test_another_process(self, tmp_path):
        compiler = compiler_of(cache_dir=tmp_path)
        text = STRING.format(key="a")
        use(compiler, [text], 'a"')
        expected = row_of(tokfold.Matcher(compiler.compile_grammar(text))).tobytes().hex()
        compiler.close()
        script = """
            sys.path.insert(0, sys.argv[2])
            from python.test_compiler import *
            compiler = compiler_of(cache_dir=sys.argv[1])
            print(compiler.pool.counters()["entries"])
            use(compiler, [STRING.format(key="a")], 'a"')
            print(compiler.pool.counters()["hits"], compiler.pool.counters()["misses"])
            use(compiler, ['root ::= [^x"]* "y"'])
            compiled = compiler.compile_grammar(STRING.format(key="a"))
            print(row_of(tokfold.Matcher(compiled)).tobytes().hex())
            compiler.close()
        """
        lines = output(child(script, tmp_path, Path(__file__).parents[1])).split()
        assert int(lines[0]) > 0
        assert int(lines[1]) > 0
        assert int(lines[2]) == 0
        assert lines[3] == expected
        after = compiler_of(cache_dir=tmp_path)
        assert after.pool.counters()["entries"] > int(lines[0])

    def test_what_others_saved_meanwhile_is_kept(self, tmp_path):
        one, two = (compiler_of(cache_dir=tmp_path) for _ in range(2))
        use(one, ['root ::= [^a"]* "a"'])
        use(two, ['root ::= [^b"]* "b"'])
        one.save()
        two.save()
        held = one.pool.counters()["entries"]
        assert compiler_of(cache_dir=tmp_path).pool.counters()["entries"] == 2 * held

    def test_a_full_pool_saves_what_was_used_last(self, tmp_path):
        """The file of long ago takes up the whole bound; the work of this process is newer."""
        old = [f'root ::= [^{a}{b}"]* "{a}"' for a in "abcdefgh" for b in "0123"]
        new = [f'root ::= [^{a}{b}"]* "{a}"' for a in "ijklmnop" for b in "0123"]
        probe = compiler_of()
        use(probe, old)
        compiler = compiler_of(cache_dir=tmp_path, max_pool_bytes=probe.pool.counters()["bytes"])
        use(compiler, old)
        compiler.save()
        use(compiler, new)
        compiler.save()
        for found in (compiler, compiler_of(cache_dir=tmp_path, max_pool_bytes=1 << 20)):
            before = found.pool.counters()["hits"]
            plain = compiler_of()
            plain.pool = found.pool
            use(plain, new[16:])
            assert found.pool.counters()["hits"] - before >= 12

    def test_vocabularies_have_files_of_their_own(self, tmp_path):
        compiler_of(cache_dir=tmp_path).close()
        other = tokfold.Vocabulary(TOKENS)
        GrammarCompiler(other, cache_dir=tmp_path, seed=False).close()
        assert len(list(tmp_path.glob("*-mask-pool.tokfold"))) == 2

    @pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other vocabulary", "version"])
    def test_a_damaged_file_is_named_and_made_again(self, tmp_path, damage, monkeypatch):
        compiler = compiler_of(cache_dir=tmp_path)
        use(compiler, [STRING.format(key="a")], 'a"')
        compiler.close()
        path = pool_file(tmp_path)
        data = path.read_bytes()
        match damage:
            case "flip":
                path.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
            case "cut":
                path.write_bytes(data[:-1])
            case "empty":
                path.write_bytes(b"")
            case "other vocabulary":
                tokfold.MaskPool(tokfold.Vocabulary(TOKENS)).save(path)
            case "version":
                monkeypatch.setattr("tokfold.pool.ALGORITHM", -1)
        with pytest.warns(CacheWarning, match="masks are made again") as caught:
            again = compiler_of(cache_dir=tmp_path)
        assert str(path) in str(caught[0].message)
        assert again.pool.counters()["entries"] == 0
        use(again, [STRING.format(key="a")], 'a"')
        with pytest.warns(CacheWarning):
            again.close()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert compiler_of(cache_dir=tmp_path).pool.counters()["entries"] > 0

    def test_nothing_can_be_written(self, tmp_path):
        """A warning, and what is held is let go all the same."""
        compiler = compiler_of(cache_dir=tmp_path)
        use(compiler, [STRING.format(key="a")], 'a"')
        compiler._pool_path.mkdir()
        with pytest.warns(CacheWarning), pytest.raises(tokfold.ArtifactError):
            compiler.save()
        with pytest.warns(CacheWarning) as caught:
            compiler.close()
        assert any("were not saved" in str(warning.message) for warning in caught)
        assert compiler.statistics().grammars == 0

    def test_a_file_in_place_of_the_folder(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(tokfold.ArtifactError, match=r"/file: not a folder"):
            compiler_of(cache_dir=tmp_path / "file")
        compiler = compiler_of(cache_dir=tmp_path / "late")
        (tmp_path / "late").write_bytes(b"")
        with pytest.warns(CacheWarning, match="is no folder any more"):
            assert takes(compiler.compile_grammar('root ::= "a"'), "a")
        with pytest.warns(CacheWarning, match="were not saved"):
            compiler.close()

    def test_without_a_folder(self):
        with compiler_of() as compiler:
            with pytest.raises(ValueError, match="no cache_dir"):
                compiler.save()
            compiler.compile_grammar('root ::= "a"')
        assert compiler.statistics().grammars == 0

    def test_an_error_inside_is_not_swallowed(self, tmp_path):
        with pytest.raises(ZeroDivisionError), compiler_of(cache_dir=tmp_path):
            raise ZeroDivisionError
        assert pool_file(tmp_path).exists()

    def test_threads_that_save_at_once(self, tmp_path):
        compilers = [compiler_of(cache_dir=tmp_path) for _ in range(4)]

        def work(number: int) -> None:
            for step in range(10):
                use(compilers[number], [f'root ::= [^{"abcd"[number]}{step}"]* "x"'])
                compilers[number].save()

        with ThreadPoolExecutor(4) as threads, warnings.catch_warnings():
            warnings.simplefilter("error")
            list(threads.map(work, range(4)))
        assert compiler_of(cache_dir=tmp_path).pool.counters()["entries"] >= 10
        assert [path.name for path in tmp_path.iterdir()] == [pool_file(tmp_path).name]


# ---------------------------------------------------------------------- limits


class TestLimits:
    @pytest.mark.parametrize(
        ("limit", "value", "text"),
        [
            ("max_grammar_bytes", 5, 'root ::= "a"'),
            ("max_rules", 1, 'root ::= x\nx ::= "a"'),
            ("max_nesting", 2, 'root ::= (((("a" "b"))))'),
            ("max_network_states", 3, 'root ::= "abcdef"'),
        ],
    )
    def test_each_is_that_of_all_grammars(self, limit, value, text):
        compiler = compiler_of(limits=tokfold.Limits(**{limit: value}))
        for _ in range(2):
            with pytest.raises(tokfold.LimitExceededError) as caught:
                compiler.compile_grammar(text)
            assert caught.value.limit == limit
        found = compiler.statistics()
        assert (found.failures, found.misses, found.grammars) == (2, 2, 0)

    def test_masks(self):
        limits = tokfold.Limits(max_mask_work=1)
        compiler = compiler_of(limits=limits, seed=True)  # the seed is not bound by them
        compiled = compiler.compile_grammar('root ::= ([a-z] | "é" | [0-9] root root)+ "x"')
        assert compiled.limits is limits
        with pytest.raises(tokfold.LimitExceededError) as caught:
            row_of(tokfold.Matcher(compiled))
        assert caught.value.limit == "max_mask_work"


# ------------------------------------------------------------------------ fork


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestFork:
    def test_a_child_goes_on(self, tmp_path):
        """What was compiled is there, what is submitted is done, and the pool is saved."""
        script = """
            sys.path.insert(0, sys.argv[2])
            from python.test_compiler import *
            compiler = compiler_of(cache_dir=sys.argv[1], classes="auto")
            before = compiler.submit("grammar", STRING.format(key="a")).result(DEADLINE_S)
            expected = row_of(tokfold.Matcher(before)).tolist()
            def in_child():
                assert compiler.compile_grammar(STRING.format(key="a")) is before
                assert row_of(tokfold.Matcher(before)).tolist() == expected
                after = compiler.submit("grammar", 'root ::= [^x"]* "z"').result(DEADLINE_S)
                row_of(tokfold.Matcher(after))
                after.wait(DEADLINE_S)
                compiler.close()
                return True
            print(exit_code(in_child), len(list(Path(sys.argv[1]).glob("*mask-pool*"))))
        """
        tests = Path(__file__).parents[1]
        lines = output(child(script, tmp_path, tests, PYTHONWARNINGS="ignore")).split()
        assert lines == ["0", "1"]

    def test_a_child_does_not_wait_for_its_parents_threads(self, gate):
        """Neither for their slots, nor for those that wait in the queue."""
        compiler = compiler_of(max_compiles=1)
        with ThreadPoolExecutor(1) as threads:
            slow = threads.submit(compiler.compile_grammar, SLOW)
            assert gate.entered.wait(DEADLINE_S)
            waiting = compiler.submit("grammar", 'root ::= "b"')

            def child() -> bool:
                gate.opened.set()
                compiler.compile_grammar(SLOW)
                compiler.compile_grammar('root ::= "b"')
                found = compiler.statistics()
                return (found.running, found.queued) == (0, 0)

            status = exit_code(child)
            gate.opened.set()
            slow.result(DEADLINE_S)
            waiting.result(DEADLINE_S)
        assert status == 0


# ---------------------------------------------------------------------- stress


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
    assert found.pool["evicted"] > 0


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


# ------------------------------------------------------------------------ page

PAGE = Path(__file__).parents[2] / "docs" / "serving.md"


def test_the_page_about_servers_is_true():
    """Every example prints what stands below it."""
    pairs = re.findall(
        r"```python\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )
    assert len(pairs) == 8
    names: dict[str, object] = {}
    for code, printed in pairs:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == printed
