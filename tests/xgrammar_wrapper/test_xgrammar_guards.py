"""Inputs on which XGrammar ends the process, or never returns: refused, or bounded."""

from __future__ import annotations

import json
import sys
import warnings

import pytest

xgr = pytest.importorskip("xgrammar")
pytest.importorskip("torch")

import tokfold  # noqa: E402
from support import processes  # noqa: E402
from tokfold import xgrammar as txgr  # noqa: E402
from tokfold.xgrammar.forms import IS_028, GrammarForm  # noqa: E402
from tokfold.xgrammar.lengths import forced_text_ends  # noqa: E402
from tokfold.xgrammar.refusals import refuse_crash  # noqa: E402
from tokfold.xgrammar.spelling import spell  # noqa: E402

CRASHES = {
    "root ::= root{0,2}": (1, 1),
    "root ::= root{2}": (1, 1),
    "root ::= root{1}": (1, 1),
    'root ::= root{2,} ""': (1, 1),
    "root ::= (root{2}){1,3}": (1, 1),
    'root ::= "a"\n  r ::= r{2}': (2, 3),
    "root ::= s{2}\ns ::= root{2}": (1, 1),
    "root ::= s{2}\ns ::= root": (2, 1),
    "root ::= s\ns ::= t{2}\nt ::= root{3,200}": (1, 1),
    'root ::= s{2}\ns[capture="c"] ::= root{2}': (1, 1),
    'root[capture="c"] ::= root{2}': (1, 1),
    "root[max_chars=9] ::= a\na ::= a{2}": (2, 1),
}
SAFE = [
    "root ::= root",
    "root ::= root?",
    "root ::= root*",
    'root ::= root{2} | "a"',
    'root ::= "a" root{2}',
    "root ::= s\ns ::= t\nt ::= root{2}",
    "root ::= s{2}\ns ::= s",
    "root[max_chars=9] ::= root{2}",
    "root[temperature=0.5] ::= root{2}",
    'root ::= x\nx[capture="c"] ::= root{2}',
]


def make_info() -> xgr.TokenizerInfo:
    return xgr.TokenizerInfo(["a", b"\xc3", b"\xa9", "b", "</s>"], stop_token_ids=[4])


@pytest.mark.parametrize("given", ["text", "object"])
@pytest.mark.parametrize("grammar", CRASHES)
def test_a_repetition_of_itself_is_refused(grammar: str, given: str) -> None:
    compiler = txgr.GrammarCompiler(make_info())
    made = grammar if given == "text" else xgr.Grammar.from_ebnf(grammar)
    with pytest.raises(tokfold.UnsupportedGrammarError, match="repetition of itself") as raised:
        compiler.compile_grammar(made)
    assert raised.value.construct == "repetition of itself"
    if given == "text":
        assert (raised.value.line, raised.value.column) == CRASHES[grammar]
        assert f"line {raised.value.line}" in str(raised.value)
    assert "leave it out" in str(raised.value)
    with pytest.raises(tokfold.UnsupportedGrammarError, match="repetition of itself"):
        txgr.GrammarCompiler(xgr.TokenizerInfo([])).compile_grammar(made)


@pytest.mark.parametrize("grammar", SAFE)
def test_others_are_not(grammar: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tokfold.FallbackWarning)
        txgr.GrammarCompiler(make_info()).compile_grammar(grammar)


@pytest.mark.parametrize("grammar", list(CRASHES)[::5])
def test_xgrammar_still_dies_of_it(grammar: str) -> None:
    """Where it does not any more, the guard can go."""
    code = (
        f"import xgrammar as x; x.GrammarCompiler(x.TokenizerInfo([])).compile_grammar({grammar!r})"
    )
    done = processes.run([sys.executable, "-c", code], text=False)
    assert done.returncode not in (0, 1)


# ------------------------------------------------------- dispatch within repeat

WORD = {"type": "const_string", "value": "b"}
DISPATCH = {"type": "token_dispatch", "rules": [[0, WORD]]}


def repeat(content: object, **more: object) -> dict[str, object]:
    return {"type": "repeat", "min": 1, "max": 3, "content": content, **more}


def sequence(*elements: object) -> dict[str, object]:
    return {"type": "sequence", "elements": [*elements]}


TAGS = {
    "content": repeat(DISPATCH),
    "content/elements/1": repeat(sequence(WORD, DISPATCH)),
    "elements/1/content": sequence(WORD, repeat(DISPATCH)),
    "content/content/content": repeat(repeat({"type": "star", "content": DISPATCH}, min=0)),
    "content/tags/0/content": repeat(
        {
            "type": "tags_with_separator",
            "separator": ",",
            "tags": [{"type": "tag", "begin": "a", "content": DISPATCH, "end": "b"}],
        }
    ),
    "rules/0/1/content": {"type": "dispatch", "rules": [["a", repeat(DISPATCH)]]},
    "content/rules/0/1": repeat({"type": "dispatch", "rules": [["a", DISPATCH]]}),
    "elements/0/content": sequence(repeat({"rules": [["b", WORD], [0, WORD]]})),  # without type
}
"""Where the dispatch stands in a format."""


@pytest.mark.parametrize("place", TAGS)
def test_a_dispatch_on_tokens_within_a_repetition_is_refused(place: str) -> None:
    tag = {"type": "structural_tag", "format": TAGS[place]}
    for given in (tag, json.dumps(tag)):
        with pytest.raises(
            tokfold.UnsupportedGrammarError, match="'token_dispatch' stands within a 'repeat'"
        ) as raised:
            txgr.GrammarCompiler(make_info()).compile_structural_tag(given)
        assert str(raised.value).startswith(f"#/format/{place}: ")
    code = f"import xgrammar as x; x.Grammar.from_structural_tag({json.dumps(tag)!r})"
    done = processes.run([sys.executable, "-c", code], text=False)
    assert done.returncode not in (0, 1)  # where it is, the guard can go


@pytest.mark.parametrize(
    "format",
    [
        *({"type": name, "content": DISPATCH} for name in ("star", "plus", "optional")),
        sequence(repeat(WORD), DISPATCH),
        repeat({"type": "dispatch", "rules": [["a", WORD]]}),
        repeat({"rules": [["a", WORD]]}),
    ],
)
@pytest.mark.filterwarnings("ignore::tokfold.FallbackWarning")
def test_other_dispatches_are_not(format: dict[str, object]) -> None:
    tag = {"type": "structural_tag", "format": format}
    txgr.GrammarCompiler(make_info()).compile_structural_tag(tag)


# ----------------------------------------------------------------- forced bytes


def jump(grammar: str, before: bytes = b"") -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tokfold.FallbackWarning)
        matcher = txgr.GrammarMatcher(txgr.GrammarCompiler(make_info()).compile_grammar(grammar))
    assert matcher.accept_string(before)
    found = matcher.find_jump_forward_string()
    assert matcher.find_jump_forward_string() == found  # the state is as it was
    return found


@pytest.mark.parametrize(
    "grammar",
    [
        'root ::= "a" root',
        'root ::= "ab" r\nr ::= "b" r',
        'root ::= "a" root | [^\\0-\\U0010ffff]',
        'root ::= r{1000}\nr ::= s{1000}\ns ::= "a"',
        'root ::= "a" Regex("b*[^\\\\s\\\\S]")',
        'root[max_chars=5] ::= "a" root',
        # XGrammar 0.2.8 passes over tokens that are taken whole
        *(['root ::= "a" root | Token(0)'] if IS_028 else []),
    ],
)
def test_forced_bytes_without_an_end(grammar: str) -> None:
    with pytest.raises(tokfold.MatcherStateError, match=r"forced here.*cannot be completed"):
        jump(grammar)


@pytest.mark.parametrize(
    ("grammar", "before", "expected"),
    [
        ('root ::= "ab" ("a" | "b")', b"", "ab"),
        ('root ::= "é" "b" | "x"', b"\xc3", ""),
        ('root ::= "a" [é-ü]', b"", "a"),
        ('root ::= "a" "\\ud800" "b"', b"", "a"),
        ('root ::= "ab" dead\ndead ::= dead', b"", "ab"),
        ('root ::= "a" dead | "b" "é" [à-ü]\ndead ::= "a" dead', b"b", "é"),
        ('root ::= "a" Regex("bc+d|bca")', b"", "abc"),
    ],
)
def test_forced_text_is_of_whole_characters(grammar: str, before: bytes, expected: str) -> None:
    assert jump(grammar, before) == expected


@pytest.mark.skipif(IS_028, reason="XGrammar 0.2.8 passes over tokens that are taken whole")
@pytest.mark.parametrize(
    ("grammar", "expected"),
    [
        ('root ::= "a" root | Token(0)', ""),
        ('root ::= "a" ("b" root | Token(0))', "a"),
        ('root ::= "ab" dead | "x" Token(0)\ndead ::= "a" "b" (Token(1) | "x" dead)', ""),
    ],
)
def test_forced_text_ends_where_tokens_are_taken_whole(grammar: str, expected: str) -> None:
    assert jump(grammar) == expected


@pytest.mark.skipif(IS_028, reason="XGrammar 0.2.8 passes over tokens that are taken whole")
def test_forced_text_without_an_end_beside_tokens_taken_whole() -> None:
    grammar = 'root ::= "a" (Token(0) | "b" dead)\ndead ::= "a" dead'
    assert jump(grammar) == "a"  # XGrammar would not return behind that
    with pytest.raises(tokfold.MatcherStateError, match="by their ids"):
        jump('root ::= "a" (ExcludeToken(0) | "b" dead)\ndead ::= "a" dead')


# ------------------------------------------------------------------- large forms


def test_long_chains_of_rules_are_read() -> None:
    rules = 20_000
    chain = [f"r{i} ::= [a-b] r{i + 1} | r{i + 1}{{2}}" for i in range(rules)]
    text = "\n".join(["root ::= r0", *chain, f'r{rules} ::= "x"'])
    form = GrammarForm(xgr.Grammar.from_ebnf(text))
    refuse_crash(form)
    assert forced_text_ends(form, 1 << 17)
    assert not forced_text_ends(form, 1 << 14)
    spelled, root = spell(form)
    assert root == "root"
    assert spelled.count("\n") == rules + 1


def test_deep_nesting_is_read() -> None:
    depth = 900  # XGrammar's own reader takes no more than a thousand
    form = GrammarForm(
        xgr.Grammar.from_ebnf("root ::= " + "(" * depth + '"a" | "b"' + ")?" * depth)
    )
    refuse_crash(form)
    assert forced_text_ends(form, 1 << 16)
    spell(form)


def test_deep_expressions_are_read() -> None:
    """Grammar objects that no converter of XGrammar's would write."""
    form = GrammarForm(xgr.Grammar.from_ebnf('root ::= "a"'))
    first = type(form.expressions[0])
    for depth in range(10_000):
        form.expressions.append(first(5 + depth % 2, (len(form.expressions) - 1,)))
    form.rules[0] = type(form.rules[0])("root", len(form.expressions) - 1)
    refuse_crash(form)
    assert forced_text_ends(form, 1)
    assert spell(form)[0].count("(") > 10_000
