"""``GrammarCompiler``: its methods, what they cost, and what it admits."""

from __future__ import annotations

import contextlib
import io
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import make_dataclass
from pathlib import Path
from types import MappingProxyType

import pytest

pytest.importorskip("tokfold._core")

import tokfold
from compiler.samples import (
    SLOW,
    STRING,
    TAG,
    VOCABULARY,
    compiler_of,
    row_of,
    takes,
    use,
)
from support.processes import DEADLINE_S, until
from tokfold import GrammarCompiler


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

    def test_schemas_with_types_as_resources(self):
        compiler = compiler_of()

        def compiled(type_of_item: type) -> tokfold.CompiledGrammar:
            Item = make_dataclass("Item", [("a", type_of_item)])  # noqa: N806 - a class
            return compiler.compile_json_schema(
                {"$ref": "item"}, resources={"item": Item}, whitespace="compact"
            )

        # Their ``repr`` are equal.
        texts = ['{"a":1}', '{"a":"1"}']
        assert [takes(compiled(int), text) for text in texts] == [True, False]
        assert [takes(compiled(str), text) for text in texts] == [False, True]
        assert compiled(int) is compiled(int)

    def test_lark_with_grammars(self):
        compiler = compiler_of()
        text = "start: @word"

        def compiled(pattern: str) -> tokfold.CompiledGrammar:
            named = {"word": tokfold.Grammar.from_regex(pattern)}
            return compiler.compile_lark(text, named=MappingProxyType(named))

        # Their ``repr`` are equal.
        assert [takes(compiled("a"), each) for each in "ab"] == [True, False]
        assert [takes(compiled("b"), each) for each in "ab"] == [False, True]
        assert compiled("a") is compiled("a")

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

    @pytest.mark.parametrize(
        ("options", "error", "message"),
        [
            ({"classes": "x"}, ValueError, 'classes must be "auto", "now" or "never", not \'x\''),
            ({"seed": "no"}, TypeError, "seed must be True or False, not str"),
            ({"admit": 7}, TypeError, "admit must be a function"),
            ({"max_bytes": "1G"}, TypeError, "max_bytes must be a whole number, not str"),
            ({"max_grammars": "5"}, TypeError, "max_grammars must be a whole number, not str"),
            ({"max_compiles": "2"}, TypeError, "max_compiles must be a whole number, not str"),
            ({"max_compiles": 1.5}, TypeError, "max_compiles must be a whole number, not float"),
            ({"classes_milliseconds": "5"}, TypeError, "classes_milliseconds must be a whole"),
            ({"cache_dir": ""}, ValueError, "cache_dir is empty; pass a folder, or None for"),
            ({"cache_dir": 5}, TypeError, "cache_dir must be a path or None, not int"),
        ],
    )
    def test_options_are_checked_where_they_are_given(self, options, error, message):
        with pytest.raises(error, match=message) as caught:
            compiler_of(**options)
        assert error is ValueError or type(caught.value) is tokfold.ArgumentTypeError

    def test_vocabularies_without_the_seed(self):
        """None of the tokens can begin what is seeded."""
        for tokens in ([b"a", b"</s>"], [b"</s>"]):
            stop = len(tokens) - 1
            GrammarCompiler(tokfold.Vocabulary(tokens, stop_token_ids=[stop]))


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

    def test_admit_that_asks_for_the_same_grammar_does_not_wait_for_itself(self):
        text = 'root ::= "a"'
        compilers: list[tokfold.GrammarCompiler] = []

        def admit(compiled: tokfold.CompiledGrammar) -> None:
            compilers[0].compile_grammar(text)

        def ask() -> None:
            with pytest.raises(tokfold.ReentrantCompileError, match="would wait for itself"):
                compilers[0].compile_grammar(text)
            error = compilers[0].submit("grammar", text).exception(DEADLINE_S)
            assert type(error) is tokfold.ReentrantCompileError
            done.set()

        compilers.append(compiler_of(admit=admit))
        done = threading.Event()
        threading.Thread(target=ask, daemon=True).start()
        assert done.wait(DEADLINE_S), "the request waits for itself"
        found = compilers[0].statistics()
        assert (found.running, found.queued, found.grammars, found.refused) == (0, 0, 0, 2)

    def test_admit_may_ask_for_another_grammar(self):
        compilers: list[tokfold.GrammarCompiler] = []

        def admit(compiled: tokfold.CompiledGrammar) -> None:
            if compiled.grammar.num_rules == 2:
                compilers[0].compile_grammar('root ::= "b"')

        compilers.append(compiler_of(admit=admit, max_compiles=1))
        assert takes(compilers[0].compile_grammar('root ::= a\na ::= "a"'), "a")
        assert compilers[0].statistics().grammars == 2


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


def test_what_a_compiler_shows():
    compiler = GrammarCompiler(VOCABULARY, seed=False, max_grammars=7)
    compiler.compile_grammar('root ::= "a"')
    assert repr(compiler) == f"<GrammarCompiler of {VOCABULARY!r}, 1 of at most 7 grammars>"
