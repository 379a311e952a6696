"""The wrapper's surface: names, errors, bitmasks, batches, stop tokens, drafts, cache, fallback."""

from __future__ import annotations

import threading
import warnings

import pytest

xgr = pytest.importorskip("xgrammar")
torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
import tokfold  # noqa: E402
from tokfold import xgrammar as txgr  # noqa: E402
from tokfold.xgrammar.vocabulary import fillers  # noqa: E402

TOKENS = [b"a", b"b", b"ab", b"", b"a", b"</s>", b"x", b"bb", b"<end>", b'"', b"1", b"\xc3"]
STOPS = [5, 8]


def make_info(tokens: list[bytes] | None = None, stops: list[int] | None = None, size: int = 40):
    return xgr.TokenizerInfo(
        TOKENS if tokens is None else tokens,
        xgr.VocabType.RAW,
        vocab_size=size,
        stop_token_ids=STOPS if stops is None else stops,
    )


def compiled_pair(grammar: str, info: xgr.TokenizerInfo | None = None):
    info = info or make_info()
    plain = xgr.GrammarCompiler(info, cache_enabled=False).compile_grammar(grammar)
    return plain, txgr.GrammarCompiler(info).compile_grammar(grammar)


def allowed(matcher: xgr.GrammarMatcher | txgr.GrammarMatcher, size: int) -> list[int]:
    words = np.zeros(-(-size // 32), dtype=np.int32)
    matcher.fill_next_token_bitmask(words)
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")[:size]
    return np.flatnonzero(bits).tolist()


# ------------------------------------------------------------------------ names


def test_every_name_of_xgrammar_is_there() -> None:
    assert set(xgr.__all__) <= set(txgr.__all__)
    for name in txgr.__all__:
        assert hasattr(txgr, name)


@pytest.mark.parametrize("name", ["GrammarCompiler", "GrammarMatcher", "CompiledGrammar"])
def test_every_method_of_xgrammar_is_there(name: str) -> None:
    ours, theirs = getattr(txgr, name), getattr(xgr, name)
    public = {attribute for attribute in dir(theirs) if not attribute.startswith("_")}
    assert public <= set(dir(ours))


def test_every_method_of_the_batch_matcher_is_there() -> None:
    theirs = {name for name in dir(xgr.BatchGrammarMatcher) if name.startswith("batch")}
    assert theirs <= set(dir(txgr.BatchGrammarMatcher))


# ------------------------------------------------------------------ vocabulary


def test_fillers_part_a_token_from_one_that_holds_it() -> None:
    texts = [b"xa", b"xbxa", b"c", b"abc", b"ac", b"acb"]
    added = fillers(texts)
    stack: list[bytes] = []
    for text in sorted({*texts, *added}):
        while stack and stack[-1] not in text:
            stack.pop()
        assert not stack or text.startswith(stack[-1])
        stack.append(text)
    assert added
    assert not set(added) & set(texts)


def test_fillers_are_none_where_none_are_needed() -> None:
    assert fillers([b"a", b"ab", b"abc", b"b"]) == []


def test_a_token_that_holds_another_is_not_lost() -> None:
    """XGrammar's mask is empty here, though it accepts ``xbxa`` (its trie bug)."""
    info = make_info([b"xa", b"xbxa", b"c", b"</s>"], [3], size=4)
    plain, compiled = compiled_pair('root ::= "xbxa" | "xc"', info)
    assert allowed(xgr.GrammarMatcher(plain), 4) == []
    assert xgr.GrammarMatcher(plain).accept_token(1)
    assert allowed(txgr.GrammarMatcher(compiled), 4) == [1]


def test_a_recursive_root_does_not_lose_tokens() -> None:
    info = make_info([b"c", b"d", b"dd", b"</s>"], [3], size=4)
    plain, compiled = compiled_pair('root ::= root "d" | "c"', info)
    matchers = xgr.GrammarMatcher(plain), txgr.GrammarMatcher(compiled)
    assert all(matcher.accept_token(0) for matcher in matchers)
    assert [allowed(matcher, 4) for matcher in matchers] == [[1, 3], [1, 2, 3]]


def test_wrong_lookahead_of_a_converter_does_not_lose_tokens() -> None:
    """The JSON schema converter expects ``,`` after a string, whatever the separators are."""
    info = make_info([b'["a"', b'"', b";", b'";', b'"]', b"[", b"a"], [], size=7)
    schema = {"type": "array", "items": {"type": "string"}}
    options = {"any_whitespace": False, "separators": (";", ":")}
    plain = xgr.GrammarCompiler(info).compile_json_schema(schema, **options)
    compiled = txgr.GrammarCompiler(info).compile_json_schema(schema, **options)
    matchers = xgr.GrammarMatcher(plain), txgr.GrammarMatcher(compiled)
    assert all(matcher.accept_string('["a') for matcher in matchers)
    assert matchers[0].fork().accept_token(3)
    assert 3 not in allowed(matchers[0], 7)
    assert 3 in allowed(matchers[1], 7)


def test_special_tokens_and_padding_are_never_allowed() -> None:
    _, compiled = compiled_pair("root ::= [^]*")
    matcher = txgr.GrammarMatcher(compiled)
    tokens = allowed(matcher, 40)
    assert 3 not in tokens
    assert max(tokens) < len(TOKENS)
    assert not matcher.accept_token(3)
    assert not matcher.accept_token(39)
    class_of = compiled.class_of_token
    row = txgr.allocate_class_bitmask(1, compiled)
    matcher.fill_next_class_bitmask(row)
    bits = np.unpackbits(row.numpy().view(np.uint8), bitorder="little")
    assert not bits[class_of[3]]
    assert not bits[class_of[39]]
    assert (class_of >= 0).all()
    assert class_of.max() < compiled.num_class_bits


# ------------------------------------------------------------------ steps, errors


@pytest.mark.parametrize("token", [-1, 40, 2**31, 2**32, 2**40, -(2**40)])
def test_ids_out_of_range_are_refused(token: int) -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    assert not txgr.GrammarMatcher(compiled).accept_token(token)


@pytest.mark.parametrize("token", ["1", 1.0, None])
def test_ids_that_are_no_integers(token: object) -> None:
    for compiled, make in zip(compiled_pair('root ::= "a"*'), _matchers(), strict=True):
        with pytest.raises(TypeError):
            make(compiled).accept_token(token)


def _matchers():
    return xgr.GrammarMatcher, txgr.GrammarMatcher


def test_numpy_ids() -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    assert txgr.GrammarMatcher(compiled).accept_token(np.int64(0))


def test_after_termination() -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    matcher = txgr.GrammarMatcher(compiled)
    assert matcher.accept_token(0)
    assert matcher.accept_token(8)
    assert matcher.is_terminated()
    assert not matcher.accept_token(0)
    assert not matcher.accept_string("a")
    with pytest.raises(RuntimeError, match="terminated"):
        matcher.fill_next_token_bitmask(txgr.allocate_token_bitmask(1, 40))
    with pytest.raises(RuntimeError, match="terminated"):
        matcher.fill_next_class_bitmask(txgr.allocate_class_bitmask(1, compiled))
    matcher.rollback(1)
    assert not matcher.is_terminated()
    with pytest.raises(RuntimeError, match="Intended to rollback 2 tokens"):
        matcher.rollback(2)


def test_only_our_grammars_are_taken() -> None:
    plain, compiled = compiled_pair('root ::= "a"*')
    with pytest.raises(ValueError, match=r"GrammarCompiler of tokfold\.xgrammar"):
        txgr.GrammarMatcher(plain)
    with pytest.raises(ValueError, match="should be compiled"):
        xgr.GrammarMatcher(compiled)  # never XGrammar over the wrong vocabulary
    with pytest.warns(DeprecationWarning, match="max_rollback_tokens"):
        assert txgr.GrammarMatcher(compiled, max_rollback_tokens=3).max_rollback_tokens == -1


def test_errors_of_the_compiler() -> None:
    with pytest.raises(ValueError, match="TokenizerInfo"):
        txgr.GrammarCompiler(TOKENS)
    compiler = txgr.GrammarCompiler(make_info())
    with pytest.raises(ValueError, match="Invalid grammar type"):
        compiler.compile_grammar(1)
    with pytest.raises(RuntimeError):
        compiler.compile_grammar("root ::= nowhere")
    with pytest.raises(RuntimeError):
        compiler.compile_regex("(")
    with pytest.raises(RuntimeError):
        compiler.compile_json_schema("{")
    with pytest.raises(xgr.InvalidJSONError):
        compiler.compile_structural_tag("{")
    with pytest.raises(TypeError):
        compiler.compile_structural_tag(1, 2, 3)
    with pytest.raises(RuntimeError, match="Token id 99"):
        compiler.compile_grammar("root ::= Token(99)")
    assert compiler.get_cache_size_bytes() == 0  # what failed is not kept


# ---------------------------------------------------------------------- bitmasks


@pytest.mark.parametrize("grammar", ["root ::= [ab]*", "root[max_chars=9] ::= [ab]*"])
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_bitmasks_of_any_kind(grammar: str) -> None:
    info = make_info(TOKENS + [b"x"] * 24 + [b"a", b"ba", b"x", b"b"])
    _, compiled = compiled_pair(grammar, info)
    matcher = txgr.GrammarMatcher(compiled)
    expected = torch.zeros(2, dtype=torch.int32)
    matcher.fill_next_token_bitmask(expected)
    assert expected[1] != 0

    for rows in (torch.zeros(3, 2, dtype=torch.int32), np.zeros((3, 2), dtype=np.int32)):
        matcher.fill_next_token_bitmask(rows, 1)
        assert np.asarray(rows).tolist() == [[0, 0], expected.tolist(), [0, 0]]

    wide = torch.zeros(3, 5, dtype=torch.int32)
    matcher.fill_next_token_bitmask(wide[:, 1:3], 2)  # XGrammar would write into another row
    assert wide[2].tolist() == [0, *expected.tolist(), 0, 0]
    assert wide[:2].eq(0).all()

    columns = torch.zeros(2, 3, dtype=torch.int32)
    matcher.fill_next_token_bitmask(columns.t(), 1)
    assert columns.t().tolist() == [[0, 0], expected.tolist(), [0, 0]]

    column = torch.zeros(2, 3, dtype=torch.int32)
    matcher.fill_next_token_bitmask(column[:, 2])
    assert column.t().tolist() == [[0, 0], [0, 0], expected.tolist()]


class OnlyDlpack:
    """An array that offers DLPack and nothing else."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def __dlpack__(self, **options: object) -> object:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def test_bitmasks_with_dlpack_only() -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    array = np.zeros((1, 2), dtype=np.int32)
    txgr.GrammarMatcher(compiled).fill_next_token_bitmask(OnlyDlpack(array))
    assert array[0, 0] != 0


@pytest.mark.parametrize(
    ("bitmask", "index", "error"),
    [
        (torch.zeros(2, 5, dtype=torch.int32), 0, RuntimeError),
        (torch.zeros(2, 2, dtype=torch.int64), 0, RuntimeError),
        (torch.zeros(1, 1, 2, dtype=torch.int32), 0, RuntimeError),
        (torch.zeros(3, dtype=torch.int32), 0, RuntimeError),
        (torch.zeros(2, dtype=torch.int32), 1, RuntimeError),
        (torch.zeros(2, 2, dtype=torch.int32), 2, RuntimeError),
        (torch.zeros(2, 2, dtype=torch.int32), -1, RuntimeError),
        (np.zeros((2, 2), dtype=np.uint32), 0, RuntimeError),
        ([1, 2], 0, TypeError),
        (torch.zeros(2, 2, dtype=torch.int32), "0", TypeError),
    ],
)
def test_bitmasks_that_do_not_fit(bitmask: object, index: int, error: type[Exception]) -> None:
    for compiled, make in zip(compiled_pair('root ::= "a"*'), _matchers(), strict=True):
        with pytest.raises(error):
            make(compiled).fill_next_token_bitmask(bitmask, index)


def test_read_only_bitmask() -> None:
    array = np.zeros((1, 2), dtype=np.int32)
    array.flags.writeable = False
    for compiled, make in zip(compiled_pair('root ::= "a"*'), _matchers(), strict=True):
        with pytest.raises(BufferError):
            make(compiled).fill_next_token_bitmask(array)


def test_need_apply_is_false_only_when_every_token_is_allowed() -> None:
    tokens = [b"a", b"b", b"ab", b"ba", b"</s>"]
    for size, expected in ((5, False), (6, True)):
        info = make_info(tokens, [4], size=size)
        for compiled, make in zip(compiled_pair("root ::= [ab]*", info), _matchers(), strict=True):
            matcher = make(compiled)
            assert matcher.fill_next_token_bitmask(np.zeros(1, dtype=np.int32)) is expected


# ------------------------------------------------------------------- stop tokens


@pytest.mark.parametrize("override", [[0], [5], [6, 7], [3], 4, [5, 0], [8, 5, 5]])
def test_overridden_stop_tokens(override: int | list[int]) -> None:
    plain, compiled = compiled_pair('root ::= [ab]* "<"?')
    matchers = [
        make(grammar, override_stop_tokens=override)
        for grammar, make in zip((plain, compiled), _matchers(), strict=True)
    ]
    assert matchers[0].stop_token_ids == matchers[1].stop_token_ids
    for token in range(len(TOKENS)):
        forks = [matcher.fork() for matcher in matchers]
        accepted = {fork.accept_token(token) for fork in forks}
        assert len(accepted) == 1, token
        assert forks[0].is_terminated() == forks[1].is_terminated()
        assert accepted == {token in allowed(matchers[1], 40)}


@pytest.mark.parametrize("override", [[], [40], [-1]])
def test_bad_overrides(override: list[int]) -> None:
    for compiled, make in zip(compiled_pair('root ::= "a"*'), _matchers(), strict=True):
        with pytest.raises(RuntimeError, match="override"):
            make(compiled, override_stop_tokens=override)


def test_a_dropped_stop_token_without_bytes_runs_plain() -> None:
    info = make_info([b"a", b"b", b""], [2], size=3)
    plain, compiled = compiled_pair('root ::= "a" "b"*', info)
    with pytest.warns(tokfold.FallbackWarning, match="has no bytes"):
        matcher = txgr.GrammarMatcher(compiled, override_stop_tokens=[1])
    expected = xgr.GrammarMatcher(plain, override_stop_tokens=[1])
    assert allowed(matcher, 3) == allowed(expected, 3)
    assert matcher.accept_token(2) == expected.accept_token(2)
    with pytest.raises(RuntimeError, match="stop token without bytes"):
        matcher.fill_next_class_bitmask(np.zeros((1, 1), dtype=np.int32))


def test_no_stop_tokens() -> None:
    info = make_info([b"a", b"</s>"], [], size=2)
    _, compiled = compiled_pair('root ::= "a"*', info)
    matcher = txgr.GrammarMatcher(compiled)
    assert matcher.stop_token_ids == []
    assert allowed(matcher, 2) == [0]


def test_several_stop_tokens_and_termination_without() -> None:
    _, compiled = compiled_pair('root ::= "a" "b"?')
    matcher = txgr.GrammarMatcher(compiled, terminate_without_stop_token=True)
    assert not matcher.accept_token(5)
    assert matcher.accept_token(0)
    assert matcher.is_terminated()
    assert allowed(matcher, 40) == [1, 5, 8]


# ---------------------------------------------------------------------- captures


def test_captures_are_the_real_bytes() -> None:
    grammar = 'root ::= "<" name ">"\nname[capture="n"] ::= [a-z]+'
    info = make_info([b"<", b"qq", b"zebra", b"aa", b">", b"</s>"], [5], size=6)
    _, compiled = compiled_pair(grammar, info)
    matcher = txgr.GrammarMatcher(compiled)
    assert [matcher.accept_token(token) for token in (0, 2, 4, 5)] == [True] * 4
    assert matcher.get_captures() == [("n", b"zebra")]
    fork = matcher.fork()
    matcher.rollback(3)
    assert matcher.get_captures() == []
    matcher.accept_token(1)
    matcher.accept_string("s>")
    assert matcher.get_captures() == [("n", b"qqs")]
    matcher.reset()
    assert matcher.get_captures() == []
    assert fork.get_captures() == [("n", b"zebra")]


# ------------------------------------------------------------------- draft trees


def draft_tree(tokens: list[int]) -> list[torch.Tensor]:
    """A root with two children, the first of which has two."""
    children = torch.tensor([1, 3, -1, -1, -1])
    siblings = torch.tensor([-1, 2, -1, 4, -1])
    return [children, siblings, torch.tensor(tokens)]


@pytest.mark.parametrize("grammar", ['root ::= "a" [ab]* "x"', 'root[lazy] ::= "a" [ab]* "x"'])
@pytest.mark.parametrize(
    "tokens", [[0, 0, 1, 2, 6], [0, 2, 6, 5, 0], [9, 39, 3, 0, 0], [0, -7, 10**12, 0, 0]]
)
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_draft_trees(grammar: str, tokens: list[int]) -> None:
    masks = []
    for compiled, make in zip(compiled_pair(grammar), _matchers(), strict=True):
        matcher = make(compiled)
        assert matcher.accept_token(0)
        bitmask = torch.full((5, 2), 7, dtype=torch.int32)
        temperatures = torch.zeros(5)
        assert matcher.traverse_draft_tree(*draft_tree(tokens), bitmask, -1.0, temperatures)
        assert temperatures.eq(-1).all()
        masks.append(bitmask)
        assert not matcher.is_terminated()
    bits = [np.unpackbits(m.numpy().view(np.uint8), axis=1, bitorder="little") for m in masks]
    assert (bits[0][:, : len(TOKENS)] == bits[1][:, : len(TOKENS)]).all()


def test_draft_nodes_that_are_not_reached_keep_their_rows() -> None:
    for compiled, make in zip(compiled_pair('root ::= "a" [ab]*'), _matchers(), strict=True):
        bitmask = torch.full((5, 2), 7, dtype=torch.int32)
        tree = draft_tree([0, 6, 0, 0, 0])  # node 1 is refused, so 3 and 4 are not reached
        assert make(compiled).traverse_draft_tree(*tree, bitmask)
        assert bitmask[3:].eq(7).all()
        assert bitmask[1].eq(0).all()


def test_a_draft_tree_after_termination() -> None:
    for compiled, make in zip(compiled_pair('root ::= "a"*'), _matchers(), strict=True):
        matcher = make(compiled)
        matcher.accept_token(5)
        bitmask = torch.full((5, 2), 7, dtype=torch.int32)
        assert matcher.traverse_draft_tree(*draft_tree([0] * 5), bitmask)
        assert bitmask[0].eq(0).all()
        assert bitmask[1:].eq(7).all()


def test_bad_draft_trees() -> None:
    good = draft_tree([0] * 5)
    bitmask = torch.zeros(5, 2, dtype=torch.int32)
    for compiled, make in zip(compiled_pair('root ::= "a"*'), _matchers(), strict=True):
        matcher = make(compiled)
        for bad in (
            (good[0], good[1], good[2].int(), bitmask),
            (good[0], good[1][:3], good[2], bitmask),
            (good[0], good[1], good[2], bitmask[:4]),
            (good[0], good[1], good[2], bitmask[0]),
            (torch.tensor([1, 1, -1, -1, -1]), good[1], good[2], bitmask),
        ):
            with pytest.raises(RuntimeError):
                matcher.traverse_draft_tree(*bad)


# ------------------------------------------------------------------------- batches


@pytest.mark.parametrize("threads", [1, 2, "auto"])
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_batches_of_different_grammars(threads: int | str) -> None:
    compiler = txgr.GrammarCompiler(make_info())
    grammars = [
        'root ::= "a"*',
        "root ::= [ab]* [^a]",
        "root[max_chars=9] ::= [ab]*",
        'root ::= "x"',
    ]
    matchers = [txgr.GrammarMatcher(compiler.compile_grammar(text)) for text in grammars]
    wide = torch.zeros(6, 4, dtype=torch.int32)
    batch = txgr.BatchGrammarMatcher(threads)
    batch.batch_fill_next_token_bitmask(matchers, wide[:, 1:3], [5, 0, 3, 1])
    for matcher, row in zip(matchers, (5, 0, 3, 1), strict=True):
        expected = torch.zeros(2, dtype=torch.int32)
        matcher.fill_next_token_bitmask(expected)
        assert wide[row].tolist() == [0, *expected.tolist(), 0]
    assert wide[2].eq(0).all()

    accepted = batch.batch_accept_token(matchers, [0, 0, 0, 0])
    assert accepted == [True, True, True, False]
    assert batch.batch_accept_string(matchers, ["a", b"b", "", "x"]) == [True] * 4
    batch.batch_rollback(matchers[:3], [2, 1, 0])
    batch.batch_rollback(matchers[3:])
    temperatures = torch.zeros(4)
    batch.batch_fill_temperature(matchers, temperatures)
    assert temperatures.eq(-1).all()


def test_errors_of_batches() -> None:
    _, compiled = compiled_pair('root ::= "a"*')
    matchers = [txgr.GrammarMatcher(compiled) for _ in range(2)]
    batch = txgr.BatchGrammarMatcher()
    bitmask = txgr.allocate_token_bitmask(2, 40)
    for call in (
        lambda: batch.batch_fill_next_token_bitmask(matchers, bitmask, [0]),
        lambda: batch.batch_fill_next_token_bitmask(matchers, bitmask, [0, 2]),
        lambda: batch.batch_fill_next_token_bitmask([*matchers, matchers[0]], bitmask),
        lambda: batch.batch_accept_token(matchers, [0]),
        lambda: batch.batch_accept_string(matchers, ["a"]),
        lambda: batch.batch_rollback(matchers, [0]),
        lambda: batch.batch_rollback(matchers, 1),
        lambda: txgr.BatchGrammarMatcher(0),
    ):
        with pytest.raises(RuntimeError):
            call()
    matchers[1].accept_token(5)
    with pytest.raises(RuntimeError, match="terminated"):
        batch.batch_fill_next_token_bitmask(matchers, bitmask)


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


def test_the_grammar_comes_back_as_from_xgrammar() -> None:
    plain, compiled = compiled_pair('root ::= root "a" | b\nb ::= "b" | "bb"')
    assert str(compiled.grammar) == str(plain.grammar)
    assert txgr.GrammarCompiler(make_info()).compile_grammar(compiled.grammar).is_compressed


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
    for compiled_one, make in zip((plain, compiled), _matchers(), strict=True):
        matcher = make(compiled_one)
        assert allowed(matcher, 40) == [6]
        assert matcher.accept_token(6)
        assert allowed(matcher, 40) == [1]
    tag["format"]["elements"][0]["token"] = "nowhere"
    with pytest.raises(RuntimeError, match='"nowhere" not found'):
        txgr.GrammarCompiler(info).compile_structural_tag(tag)


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


def test_threads_fill_rows_of_one_bitmask() -> None:
    """As vLLM does: a row for each request, filled from threads."""
    _, compiled = compiled_pair("root ::= [ab]* [^a]")
    matchers = [txgr.GrammarMatcher(compiled) for _ in range(8)]
    for steps, matcher in enumerate(matchers):
        assert all(matcher.accept_token(0) for _ in range(steps))
        if steps % 2:
            assert matcher.accept_token(6)
    bitmask = txgr.allocate_token_bitmask(8, 40)
    errors: list[Exception] = []

    def work(row: int) -> None:
        try:
            for _ in range(300):
                matchers[row].fill_next_token_bitmask(bitmask, row)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(row,)) for row in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    expected = txgr.allocate_token_bitmask(8, 40)
    for row, matcher in enumerate(matchers):
        matcher.fill_next_token_bitmask(expected, row)
    assert bitmask.tolist() == expected.tolist()


def test_classes_between_processes(tmp_path) -> None:
    for _ in range(2):
        compiler = txgr.GrammarCompiler(make_info(), cache_dir=tmp_path)
        assert compiler.compile_regex("a+").is_compressed
    assert any(tmp_path.iterdir())


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
