"""What lint says of engines is what they do: each rule of thumb has a case that is run."""

from __future__ import annotations

import signal
import sys

import pytest
import tokfold
from support import processes
from support.forks import exit_code
from tokfold.laboratory.form import Form
from tokfold.laboratory.lint import Engine, lint


def codes(text: str, *engines: Engine, root: str = "root") -> set[str]:
    return {f.code for f in lint(text, root=root, engines=engines, quick=True).findings}


def xgrammar_masks(text: str, tokens: list[str], prefix: str) -> tuple[set[str], set[str]]:
    """What XGrammar's mask allows after a text, and what it would accept."""
    xgr = pytest.importorskip("xgrammar")
    vocabulary = [*tokens, "</s>"]
    info = xgr.TokenizerInfo(vocabulary, vocab_type=xgr.VocabType.RAW, stop_token_ids=[len(tokens)])
    compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
    matcher = xgr.GrammarMatcher(compiler.compile_grammar(text))
    assert matcher.accept_string(prefix)
    mask = xgr.allocate_token_bitmask(1, info.vocab_size)
    matcher.fill_next_token_bitmask(mask)
    allowed = {t for i, t in enumerate(tokens) if mask[0, i // 32].item() >> (i % 32) & 1}
    return allowed, {t for i, t in enumerate(tokens) if matcher.fork().accept_token(i)}


@pytest.mark.parametrize(
    ("text", "tokens", "prefix", "wrong"),
    [
        ('root ::= root "d" | "c"', ["c", "d", "dd"], "c", True),
        ('root ::= "[" v "]"\nv ::= root | "x"', ["[", "]", "]]", "x"], "[[x", True),
        ('root ::= "a" root | "b"', ["a", "b", "aa", "ab", "aab"], "a", False),
        ('root ::= "a" ("," root)?', ["a", ",", ",a", ",a,a"], "a", False),
        ('root ::= r\nr ::= r "d" | "c"', ["c", "d", "dd"], "c", False),
    ],
)
def test_a_recursive_root_loses_tokens_where_something_follows(text, tokens, prefix, wrong):
    allowed, accepted = xgrammar_masks(text, tokens, prefix)
    assert (allowed != accepted) == wrong
    report = lint(text, engines=[Engine.XGRAMMAR], quick=True)
    found = [f for f in report.findings if f.code == "recursive-root"]
    assert bool(found) == wrong
    for finding in found:
        allowed, accepted = xgrammar_masks(str(report.mended(finding)), tokens, prefix)
        assert allowed == accepted


@pytest.mark.parametrize(
    ("text", "crashes"),
    [
        ("root ::= root{2}", True),
        ("root ::= r\nr ::= s{0,2}\ns ::= r", True),
        ('root ::= r\nr ::= "" r{0,2}', True),
        ("root ::= r\nr ::= r?", False),
        ('root ::= r\nr ::= r{0,2} "x"', False),
        ('root ::= r\nr ::= r{0,2} | "a"', False),
    ],
)
def test_a_counted_repetition_of_itself_ends_the_process(text: str, crashes: bool):
    xgr = pytest.importorskip("xgrammar")
    info = xgr.TokenizerInfo(["a", "</s>"], vocab_type=xgr.VocabType.RAW, stop_token_ids=[1])
    # importing XGrammar in a process of its own takes seconds
    code = exit_code(lambda: xgr.GrammarCompiler(info, max_threads=1).compile_grammar(text))
    assert (code < 0) == crashes
    assert ("repeated-self" in codes(text, Engine.XGRAMMAR)) == crashes


def test_lookahead_narrows_masks_of_xgrammar_and_is_refused_here():
    text = 'root ::= "[" a "x"\na ::= "b" (= "y")'
    allowed, accepted = xgrammar_masks(text, ["b", "x", "bx", "[b"], "[")
    assert allowed < accepted
    assert {"lookahead", "refused", "unsupported"} <= codes(text, *Engine)
    assert "lookahead" not in codes('root ::= "a"', *Engine)


@pytest.mark.parametrize(
    ("text", "large"),
    [
        ('root ::= "\\"" [^"]{0,200} "\\""', True),
        ('root ::= c{0,16}\nc ::= [^"] | "x" "y"', True),
        ("root ::= [^\\n]{0,8}", False),
        ("root ::= [0-9]{0,1000}", False),
        ('root ::= d{0,1000}\nd ::= [0-9] "a"?', True),
        ("root ::= [0-9a-f]{64}", False),
    ],
)
def test_large_counts(text: str, large: bool):
    assert ("large-count" in codes(text, Engine.XGRAMMAR)) == large


@pytest.mark.parametrize(
    "text",
    [
        'root[lazy] ::= "a" | "(" root ")"',
        'root ::= a\na[max_tokens=3] ::= "x" a "y" | "x"',
        'root ::= a "y"\na ::= "y" (= "x")',
    ],
)
def test_what_tokfold_refuses_is_told_with_its_place(text: str):
    report = lint(text, engines=[Engine.OWN], quick=True)
    (finding,) = [f for f in report.findings if f.code == "refused"]
    with pytest.raises(tokfold.UnsupportedGrammarError) as caught:
        tokfold.compile(
            tokfold.Grammar.from_ebnf(text), tokfold.Vocabulary([b"a"]), classes="never"
        )
    assert finding.place is not None
    assert (finding.place.line, finding.place.column) == (caught.value.line, caught.value.column)
    assert finding.details["construct"] == caught.value.construct


def test_limits_are_told():
    grammar = tokfold.Grammar.from_ebnf(
        "root ::= " + " ".join(f'"{i}x"' for i in range(300)),
        limits=tokfold.Limits(max_network_states=100),
    )
    (finding,) = [f for f in lint(grammar, engines=[Engine.OWN]).findings if f.code == "refused"]
    assert finding.details["limit"] == "max_network_states"


def test_tokens_by_id_wait_for_a_vocabulary():
    text = 'root ::= "a" Token(700)'
    report = lint(text, engines=[Engine.OWN], quick=True)
    assert report.findings == ()
    assert "not compiled without a tokenizer" in report.notes[0]
    report = lint(text, tokfold.Vocabulary([b"a", b"b"]), engines=[Engine.OWN], quick=True)
    assert [f.code for f in report.findings] == ["refused"]


# --- llguidance -----------------------------------------------------------------------------------

TOKENS = [bytes([byte]) for byte in range(128)] + [b"</s>"]

GUIDANCE = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, (6, 7))
import sys, llguidance
from llguidance.gbnf_to_lark import any_to_lark
tokens = [bytes([b]) for b in range(128)] + [b"</s>"]
class Words:
    eos_token_id, bos_token_id, unk_token_id = 128, None, None
    special_token_ids = [128]
    def __init__(self): self.tokens = tokens
    def __call__(self, text): return list(text.encode() if isinstance(text, str) else text)
tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Words()))
grammar = llguidance.LLMatcher.grammar_from_lark(any_to_lark(sys.argv[1]))
matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
if matcher.get_error(): sys.exit(3)
for byte in sys.argv[2].encode():
    if not matcher.consume_token(byte): sys.exit(4)
sys.exit(0 if matcher.is_accepting() else 5)
"""


def guidance(text: str, read: str = "") -> int | None:
    """The exit code of a process that reads a text; None where it takes seconds of a processor."""
    pytest.importorskip("llguidance")
    code = processes.run([sys.executable, "-c", GUIDANCE, text, read]).returncode
    return None if code == -signal.SIGXCPU else code


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "a" []',
        "root ::= [^]",
        'root ::= ("a"?)*',
        'root ::= a "y"\na ::= "y" (= "x")',
        'root ::= TagDispatch(("<f>", a))\na ::= "x"',
        'root[capture] ::= "a"',
        'root ::= start\nstart ::= "a"',
    ],
)
def test_what_llguidances_converter_does_not_read(text: str):
    assert guidance(text, "a") in (1, 3)
    assert "unsupported" in codes(text, Engine.LLGUIDANCE)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('root ::= name "x"\nname ::= [a-z]+', "ax"),
        ('root ::= number ".." number\nnumber ::= [0-9]+ ("." [0-9]*)?', "1..2"),
    ],
)
def test_greedy_lexemes_lose_texts(text: str, read: str):
    assert tokfold.recognize(tokfold.Grammar.from_ebnf(text), read).accepted
    assert guidance(text, read) != 0
    assert "greedy-lexeme" in codes(text, Engine.LLGUIDANCE)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('root ::= name "=" name\nname ::= [a-z]+', "ab=c"),
        ('root ::= name " " name\nname ::= [a-z]+ ("-" [a-z]+)*', "a-b c"),
        ('root ::= "(" root ")" | word\nword ::= "ab" | "c"', "((ab))"),
    ],
)
def test_lexemes_that_end_are_not_told(text: str, read: str):
    assert guidance(text, read) == 0
    assert not codes(text, Engine.LLGUIDANCE)


def test_what_a_converter_wrote_is_not_asked_for_its_way_of_writing():
    """Lookahead that the rules imply is left out wherever the grammar is used."""
    text = 'root ::= a "b"\na ::= "x" (= "b")\nrest ::= [^]\n'
    given = tokfold.Grammar.from_ebnf(text)
    implied = tokfold.Grammar.from_ebnf(text, lookahead="implied")
    missed = {"unsupported", "unreachable-rule"}
    assert missed < {finding.code for finding in lint(given).findings}
    for grammar in (implied, Form.of(implied)):
        report = lint(grammar)
        assert not {finding.code for finding in report.findings} & (missed | {"lookahead"})
        assert any(note.startswith("converted to grammar text") for note in report.notes)


def test_a_start_of_another_name_is_told():
    assert "unsupported" in codes('top ::= "a"', Engine.LLGUIDANCE, root="top")
    assert "unsupported" not in codes('root ::= "a"', Engine.LLGUIDANCE)
