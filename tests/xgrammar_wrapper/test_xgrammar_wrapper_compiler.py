"""The wrapper's compiler: all ways to compile, its cache, serialization, fallback."""

from __future__ import annotations

import threading
import warnings

import pytest

pytest.importorskip("xgrammar")
pytest.importorskip("torch")

import numpy as np
import tokfold
import xgrammar as xgr
from support.processes import DEADLINE_S, until
from tokfold import xgrammar as txgr
from tokfold.xgrammar.forms import IS_028
from xgrammar_wrapper.xgrammar_pairs import STOPS, TOKENS, allowed, compiled_pair, make_info, makers

# ------------------------------------------------------------------ compile, cache


def test_all_ways_to_compile() -> None:
    compiler = txgr.GrammarCompiler(make_info())
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
    for compiled in (
        compiler.compile_grammar('start ::= "ab"', root_rule_name="start"),
        compiler.compile_grammar(xgr.Grammar.from_ebnf('root ::= "ab"')),
        compiler.compile_regex("ab"),
        compiler.compile_lark('start: "ab"'),
        compiler.compile_lark("start: @other", named_grammars={"other": 'start: "ab"'}),
        compiler.compile_structural_tag(tag),
        compiler.compile_structural_tag(xgr.StructuralTag.model_validate(tag)),
    ):
        assert compiled.is_compressed, compiled.fallback_reason
        matcher = txgr.GrammarMatcher(compiled)
        assert matcher.accept_string("ab")
        assert allowed(matcher, 40) == STOPS
        assert compiled.tokenizer_info is not None
        assert compiled.memory_size_bytes > 0
    for compiled in (compiler.compile_builtin_json_grammar(), compiler.compile_json_schema({})):
        assert compiled.is_compressed, compiled.fallback_reason


def test_a_grammar_that_names_tokens_comes_back() -> None:
    text = 'root ::= Token(2) "a" | Token(1)'
    plain = xgr.GrammarCompiler(make_info()).compile_grammar(text)
    compiled = txgr.GrammarCompiler(make_info()).compile_grammar(text)
    assert compiled.is_compressed, compiled.fallback_reason
    assert str(compiled.grammar) == str(plain.grammar)


def test_the_forms_of_other_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"v1": "0.1.0", "v2": "0.1.1"}
    monkeypatch.setattr("tokfold.xgrammar.forms.SERIALIZATION_VERSIONS", known)
    both = r"tokfold reads v1 of xgrammar 0\.1\.0 and v2 of xgrammar 0\.1\.1: install"
    with pytest.raises(tokfold.UnsupportedGrammarError, match=both):
        txgr.GrammarCompiler(make_info()).compile_grammar('root ::= "a"')


def test_the_grammar_comes_back_as_from_xgrammar() -> None:
    plain, compiled = compiled_pair('root ::= root "a" | b\nb ::= "b" | "bb"')
    assert str(compiled.grammar) == str(plain.grammar)
    assert txgr.GrammarCompiler(make_info()).compile_grammar(compiled.grammar).is_compressed


@pytest.mark.skipif(IS_028, reason="XGrammar 0.2.8 reads no Lark in structural tags")
@pytest.mark.parametrize(
    "lark",
    [
        'start: "a" <end> "b"*',
        'start: "a" w "x"\nw[capture]: /[ab]+/',
        'start: ("a" | <end>)+ /b+/',
    ],
)
def test_lark_in_structural_tags(lark: str) -> None:
    tag = {"format": {"type": "grammar", "grammar": lark, "syntax": "lark"}}
    tokens = [*TOKENS[:8], b"<end>", *TOKENS[9:]]
    info = make_info(tokens, [5])
    compiled = txgr.GrammarCompiler(info, strict=True).compile_structural_tag(tag)
    assert compiled.is_compressed
    plain = xgr.GrammarCompiler(info, cache_enabled=False).compile_structural_tag(tag)
    matchers = [make(one) for make, one in zip(makers(), (plain, compiled), strict=True)]
    for token in (0, 8, 1, 1, 6, 5):
        theirs, wrapped = (allowed(matcher, 40) for matcher in matchers)
        assert theirs == wrapped
        first, second = (matcher.accept_token(token) for matcher in matchers)
        assert first == second
        if matchers[0].is_terminated():
            break


def test_token_strings_of_structural_tags_are_resolved() -> None:
    info = make_info()
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "sequence",
            "elements": [{"type": "token", "token": "x"}, {"type": "token", "token": 1}],
        },
    }
    plain = xgr.GrammarCompiler(info).compile_structural_tag(tag)
    compiled = txgr.GrammarCompiler(info).compile_structural_tag(tag)
    assert compiled.is_compressed
    for compiled_one, make in zip((plain, compiled), makers(), strict=True):
        matcher = make(compiled_one)
        assert allowed(matcher, 40) == [6]
        assert matcher.accept_token(6)
        assert allowed(matcher, 40) == [1]
    tag["format"]["elements"][0]["token"] = "nowhere"
    with pytest.raises(RuntimeError, match='"nowhere" not found'):
        txgr.GrammarCompiler(info).compile_structural_tag(tag)


@pytest.mark.parametrize(
    ("call", "options"),
    [
        ({"cache_limit_bytes": -5}, {}),
        ({"cache_limit_bytes": "5"}, {}),
        ({}, {"separators": ",:"}),
        ({}, {"separators": (",", 5)}),
    ],
)
def test_options_that_both_refuse(call: dict[str, object], options: dict[str, object]) -> None:
    raised = []
    for module in (xgr, txgr):
        with pytest.raises((RuntimeError, TypeError)) as error:
            module.GrammarCompiler(make_info(), **call).compile_json_schema("{}", **options)
        raised.append(error.type)
    assert raised[0] is raised[1]


@pytest.mark.parametrize(
    "format",
    [
        '{"type": "token", "token": ""}',
        '{"type": "any_tokens", "exclude_tokens": [""]}',
        '{"type": "json_schema", "json_schema": {"maximum": %s}}' % ("9" * 5_000),
    ],
)
def test_tags_that_both_refuse(format: str) -> None:
    for module in (xgr, txgr):
        with pytest.raises((RuntimeError, tokfold.UnsupportedGrammarError)):
            module.GrammarCompiler(make_info()).compile_structural_tag(
                f'{{"type": "structural_tag", "format": {format}}}'
            )


def test_grammars_that_differ_in_token_ids_only() -> None:
    """XGrammar's own cache gives the first one's masks to the second."""
    compiler = txgr.GrammarCompiler(make_info())
    for token in (6, 7):
        matcher = txgr.GrammarMatcher(compiler.compile_grammar(f"root ::= Token({token})"))
        assert allowed(matcher, 40) == [token]


def test_the_cache() -> None:
    compiler = txgr.GrammarCompiler(make_info())
    first = compiler.compile_regex("a+")
    assert compiler.compile_regex("a+") is first
    assert compiler.compile_regex("a*") is not first
    assert compiler.get_cache_size_bytes() >= 2 * first.memory_size_bytes // 2
    compiler.clear_cache()
    assert compiler.get_cache_size_bytes() == 0
    assert compiler.compile_regex("a+") is not first
    assert compiler.cache_limit_bytes == -1

    off = txgr.GrammarCompiler(make_info(), cache_enabled=False)
    assert off.compile_regex("a+") is not off.compile_regex("a+")
    assert off.get_cache_size_bytes() == 0

    small = txgr.GrammarCompiler(make_info(), cache_limit_bytes=1)
    old = small.compile_regex("a+")
    new = small.compile_regex("a*")
    assert small.compile_regex("a*") is new
    assert small.compile_regex("a+") is not old


def test_the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokfold.xgrammar.compiler.MAX_CACHED", 2)
    compiler = txgr.GrammarCompiler(make_info())
    first, second = compiler.compile_regex("a"), compiler.compile_regex("b")
    assert compiler.compile_regex("a") is first  # now the second is the oldest
    compiler.compile_regex("c")
    assert compiler.compile_regex("a") is first
    assert compiler.compile_regex("b") is not second


def test_threads_share_one_compilation() -> None:
    compiler = txgr.GrammarCompiler(make_info())
    start = threading.Barrier(8)
    found: list[txgr.CompiledGrammar] = []
    masks: list[list[int]] = []

    def work() -> None:
        start.wait()
        compiled = compiler.compile_regex("a+b")
        found.append(compiled)
        matcher = txgr.GrammarMatcher(compiled)
        for _ in range(50):
            masks.append(allowed(matcher, 40))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(compiled) for compiled in found}) == 1
    assert len(found) == 8
    assert all(mask == masks[0] for mask in masks)


def test_an_interrupt_is_that_of_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for an interrupted thread gets an error of ours, and can try again."""
    compiler = txgr.GrammarCompiler(make_info())
    entered, opened = threading.Event(), threading.Event()

    def interrupted(*_: object, **__: object) -> None:
        entered.set()
        assert opened.wait(DEADLINE_S)
        raise KeyboardInterrupt

    caught: list[BaseException] = []

    def work() -> None:
        try:
            compiler.compile_regex("a+b")
        except BaseException as error:
            caught.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
    with monkeypatch.context() as patched:
        patched.setattr(compiler, "_compile", interrupted)
        threads[0].start()
        assert entered.wait(DEADLINE_S)
        future = next(iter(compiler._cache.values()))
        threads[1].start()
        until(lambda: future._condition._waiters)  # type: ignore[attr-defined]
        opened.set()
        for thread in threads:
            thread.join(DEADLINE_S)
    assert sorted(type(error).__name__ for error in caught) == ["KeyboardInterrupt", "TokfoldError"]
    assert compiler.compile_regex("a+b").is_compressed


def test_an_interrupt_before_the_work_leaves_nobody_waiting() -> None:
    class Interrupted(dict):
        def move_to_end(self, key: object) -> None:
            raise KeyboardInterrupt

    compiler = txgr.GrammarCompiler(make_info())
    cache, compiler._cache = compiler._cache, Interrupted()
    with pytest.raises(KeyboardInterrupt):
        compiler.compile_regex("a+b")
    assert not compiler._cache
    compiler._cache = cache
    assert compiler.compile_regex("a+b").is_compressed


def test_classes_between_processes(tmp_path) -> None:
    for _ in range(2):
        compiler = txgr.GrammarCompiler(make_info(), cache_dir=tmp_path)
        assert compiler.compile_regex("a+").is_compressed
    assert any(tmp_path.iterdir())


def test_dynamic_compilation() -> None:
    grammar = 'root ::= "a" [ab]{1,4} "</s>"? | "x" root'
    if IS_028:
        with pytest.raises(TypeError, match=r"needs xgrammar 0\.2\.9"):
            txgr.GrammarCompiler(make_info(), enable_dynamic_compilation=True)
        return
    plain, ours = (
        make(make_info(), enable_dynamic_compilation=True).compile_grammar(grammar)
        for make in (xgr.GrammarCompiler, txgr.GrammarCompiler)
    )
    eager = txgr.GrammarCompiler(make_info()).compile_grammar(grammar)
    assert ours.memory_size_bytes < eager.memory_size_bytes  # no masks yet
    matchers = [make(one) for make, one in zip(makers(), (plain, ours), strict=True)]
    for token in (6, 0, 2, 1, 5):
        theirs, wrapped = (allowed(matcher, 40) for matcher in matchers)
        assert theirs == wrapped
        assert [matcher.accept_token(token) for matcher in matchers] == [True, True]
    assert ours.memory_size_bytes > eager.memory_size_bytes / 2


# -------------------------------------------------------------------- serialization


@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
@pytest.mark.parametrize("grammar", ['root ::= "a\\0" [ab]* | root "x"', "root[lazy] ::= [ab]*"])
def test_serialization(grammar: str) -> None:
    info = make_info()
    compiled = txgr.GrammarCompiler(info).compile_grammar(grammar)
    again = txgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), info)
    assert again.is_compressed == compiled.is_compressed
    matchers = [txgr.GrammarMatcher(one) for one in (compiled, again)]
    assert allowed(matchers[0], 40) == allowed(matchers[1], 40)
    other = make_info([*TOKENS[:-1], b"\xc4"])
    with pytest.raises(xgr.DeserializeFormatError, match="another vocabulary"):
        txgr.CompiledGrammar.deserialize_json(compiled.serialize_json(), other)


def test_serialization_errors() -> None:
    info = make_info()
    read = txgr.CompiledGrammar.deserialize_json
    with pytest.raises(xgr.InvalidJSONError):
        read("{", info)
    plain, compiled = compiled_pair('root ::= "a"')
    with pytest.raises(xgr.DeserializeFormatError):
        read(plain.serialize_json(), info)
    text = compiled.serialize_json()
    with pytest.raises(xgr.DeserializeVersionError):
        read(text.replace('"tokfold_xgrammar": 1', '"tokfold_xgrammar": 99'), info)
    with pytest.raises(xgr.DeserializeFormatError, match="grammar"):
        read(text.replace('"grammar"', '"gramma"'), info)


# ------------------------------------------------------------------------- fallback

FALLBACKS = {
    "lazy": ("root ::= a\na[lazy] ::= [ab]*", 2),
    "max_chars": ("root[max_chars=3] ::= [ab]*", 1),
    "max_tokens": ("root[max_tokens=3] ::= [ab]*", 1),
    "lookahead": ('root ::= a "b"\na ::= [ab]* (= "b")', 2),
    "TokenTagDispatch": (
        'root ::= TokenTagDispatch((6, b), loop_after_dispatch=false)\nb ::= "x"',
        1,
    ),
    "recursive root beside Token": ('root ::= "a" root "b" | Token(6)', 1),
    "capture beside Token": ('root ::= a Token(6)\na[capture="c"] ::= "a"', 1),
    **({} if IS_028 else {"ExcludeToken": ('root ::= "a" r\nr ::= ("b" | ExcludeToken(1))*', 2)}),
    "a large repetition that XGrammar may miscount": (
        'root ::= "a"\n  | Regex("(a|xb){2,300}c|[a-c]{150,}")',
        2,
    ),
}


@pytest.mark.parametrize("name", FALLBACKS)
def test_fallback(name: str) -> None:
    grammar, line = FALLBACKS[name]
    info = make_info()
    compiler = txgr.GrammarCompiler(info)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = compiler.compile_grammar(grammar)
        assert compiler.compile_grammar(grammar) is compiled
    messages = [str(one.message) for one in caught if one.category is tokfold.FallbackWarning]
    assert len(messages) == 1
    assert name in messages[0]
    assert f"line {line}" in messages[0]
    assert caught[0].filename == __file__

    assert not compiled.is_compressed
    for access in ("classes", "class_of_token", "num_class_bits"):
        with pytest.raises(tokfold.UnsupportedGrammarError, match=name):
            getattr(compiled, access)
    with pytest.raises(tokfold.UnsupportedGrammarError) as raised:
        txgr.allocate_class_bitmask(1, compiled)
    assert raised.value.line == line
    matcher = txgr.GrammarMatcher(compiled)
    with pytest.raises(tokfold.UnsupportedGrammarError, match=name):
        matcher.fill_next_class_bitmask(np.zeros((1, 1), dtype=np.int32))
    plain_compiler = xgr.GrammarCompiler(info, cache_enabled=False)
    plain = xgr.GrammarMatcher(plain_compiler.compile_grammar(grammar))
    for token in (0, 0, 1, 6, 5):
        assert allowed(matcher, 40) == allowed(plain, 40)
        assert matcher.accept_token(token) == plain.accept_token(token)
        if matcher.is_terminated():
            break

    with pytest.raises(tokfold.UnsupportedGrammarError, match=name):
        txgr.GrammarCompiler(info, strict=True).compile_grammar(grammar)


def test_fallback_at_a_limit() -> None:
    limits = tokfold.Limits(max_rules=1)
    compiler = txgr.GrammarCompiler(make_info(), limits=limits)
    with pytest.warns(tokfold.FallbackWarning):
        compiled = compiler.compile_grammar('root ::= "a" b\nb ::= "b" root | "a"')
    assert isinstance(compiled.fallback_reason, tokfold.LimitExceededError)
    with pytest.raises(tokfold.LimitExceededError):
        _ = compiled.classes


@pytest.mark.parametrize("tokens", [[], [b"", b""]])
def test_a_vocabulary_without_tokens_reads_strings(tokens: list[bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = txgr.GrammarCompiler(xgr.TokenizerInfo(tokens)).compile_regex("ab")
    matcher = txgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
    assert matcher.accept_string("ab")
    assert matcher.is_terminated()
    with pytest.raises(tokfold.TokfoldError, match="no token with text"):
        _ = compiled.classes
