"""What lint says of a grammar and a vocabulary, against brute force on small ones."""

from __future__ import annotations

from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from strategies.grammars import build_grammar
from strategies.profiles import CASES, examples
from tokfold.laboratory.form import Form
from tokfold.laboratory.lint import Finding, Same, TokenBudget, lint
from tokfold.laboratory.lint.exploring import explore, spoken_bytes

JSON = """
root ::= "{" ws (pair ("," ws pair)*)? "}"
pair ::= string ":" ws (string | [0-9]+) ws
string ::= "\\"" [a-z ]* "\\""
ws ::= [ \\n]*
"""
BYTES = [bytes([byte]) for byte in range(256)]


def found(text: str, tokens: list[bytes], code: str, stops: int = 1, **options) -> list[Finding]:
    vocabulary = tokfold.Vocabulary(
        [*tokens, *[b"</s>"] * stops], stop_token_ids=range(len(tokens), len(tokens) + stops)
    )
    report = lint(text, vocabulary, quick=True, engines=[], **options)
    return [finding for finding in report.findings if finding.code == code]


# --- dead ends ------------------------------------------------------------------------------------


def stuck_by_hand(grammar: tokfold.Grammar, tokens: list[bytes], length: int) -> set[bytes]:
    """Texts of up to so many tokens that are not complete and that no token goes on from."""
    stuck, seen, row = set(), {b""}, [b""]
    for _ in range(length + 1):
        further = []
        for text in row:
            nexts = [
                text + token
                for token in tokens
                if tokfold.recognize(grammar, text + token).read == len(text + token)
            ]
            if not nexts and not tokfold.recognize(grammar, text).accepted:
                stuck.add(text)
            further += [t for t in nexts if t not in seen]
            seen |= set(nexts)
        row = further[:60]
    return stuck


@given(st.integers(0, 1 << 30))
@examples(80)
def test_dead_ends_are_those_of_walks_by_hand(seed: int):
    random = Random(seed)
    grammar = tokfold.Grammar.from_ebnf(
        str(build_grammar(random, rules=random.randint(1, 3), unicode=0.0, unproductive=0.0))
    )
    letters = [b"a", b"b", b"c", b"(", b")", b"-", b"[", b"]", b"+", b",", b'"', b"aa", b"ab"]
    tokens = random.sample(letters, random.randint(2, 8))
    vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    report = lint(grammar, vocabulary, quick=True, engines=[])
    if any(f.code == "unproductive-rule" and f.rule == "root" for f in report.findings):
        return
    ends = [f for f in report.findings if f.code == "dead-end"]
    by_hand = stuck_by_hand(grammar, tokens, 3)
    assert not by_hand or ends
    for finding in ends:
        # The text can be written with the tokens, can go on, and is not complete.
        text = b"".join(vocabulary[i] for i in finding.details["tokens"])
        read = tokfold.recognize(grammar, text)
        assert read.read == len(text)
        assert not read.accepted
        if not finding.details["traps"]:
            assert all(
                tokfold.recognize(grammar, text + token).read < len(text + token)
                for token in tokens
            )
    CASES["lint: dead ends, grammars with" if ends else "lint: dead ends, grammars without"] += 1


def test_a_trap_is_a_dead_end_too():
    (finding,) = found('root ::= "a" ("b" "b")* "c" | "x"', [b"a", b"b", b"x"], "dead-end")
    assert finding.details["traps"]
    assert finding.details["text"] == "a"


def test_there_is_none_where_each_byte_is_a_token():
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=[256])
    report = lint(JSON, vocabulary, quick=True, engines=[])
    assert not [f for f in report.findings if f.code == "dead-end"]
    assert any("each byte of the grammar is a token" in note for note in report.notes)


@given(st.integers(0, 1 << 30))
@examples(60)
def test_spoken_bytes_are_those_that_texts_hold(seed: int):
    random = Random(seed)
    text = str(build_grammar(random, rules=2, unicode=1.0, unproductive=0.0))
    grammar = tokfold.Grammar.from_ebnf(text)
    spoken = spoken_bytes(Form.of(grammar))
    assert spoken is not None
    try:
        vocabulary = tokfold.Vocabulary(BYTES)
        compiled = tokfold.compile(
            grammar, vocabulary, classes="never", options=tokfold.CompileOptions(check_tokens=False)
        )
    except tokfold.UnsupportedGrammarError:
        return  # no text at all
    for _ in range(5):
        matcher = tokfold.Matcher(compiled)
        for _ in range(20):
            allowed = matcher.expected_bytes
            assert set(allowed) <= set(spoken)
            if not allowed:
                break
            matcher.accept_bytes(bytes([random.choice(allowed)]))


# --- other places ---------------------------------------------------------------------------------


def test_no_stop_token():
    tokens = [b"a", b"b"]
    assert found('root ::= "a" "b"', tokens, "no-stop-token", stops=0)
    assert not found('root ::= "a" "b"', tokens, "no-stop-token")
    assert not found('root ::= "a" "b"*', tokens, "no-stop-token", stops=0)


def test_forced_tokens():
    (finding,) = found('root ::= "a" "b" ("c" | "d")', [b"a", b"b", b"c", b"d"], "forced-token")
    assert finding.details["states"] == 2
    assert not found('root ::= "ab"', [b"a", b"ab", b"b", b"abc"], "forced-token")[1:]
    assert not found('root ::= ("a" | "b") "c"?', [b"a", b"b", b"c"], "forced-token")


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("root ::= [ \\n]* [a-z]", True),
        ('root ::= ws "x"\nws ::= "" | " " ws', True),
        ('root ::= ws "x"\nws ::= "" | ws b\nb ::= " "', True),
        ('root ::= s* "x"\ns ::= " " | "#" [^\\n]* "\\n"', True),
        ("root ::= [ \\n]{0,4} [a-z]", False),
        ('root ::= "\\"" [^"]* "\\""', False),
        ('root ::= "\\"" ([^"\\\\] | "\\\\" | " ")* "\\""', False),
        ('root ::= (" " "a")*', False),
        ('root ::= "x" | "(" root " "? ")"', False),
    ],
)
def test_runaway_whitespace(text: str, runs: bool):
    ones = found(text, [*BYTES, b"  ", b" \n"], "runaway-whitespace")
    assert bool(ones) == runs
    # The engine agrees: thirty blanks in a row at some place, and still on the way.
    compiled = tokfold.compile(
        tokfold.Grammar.from_ebnf(text),
        tokfold.Vocabulary(BYTES),
        classes="never",
        options=tokfold.CompileOptions(check_tokens=False),
    )
    if runs:
        assert tokfold.Matcher(compiled).accept_string(" " * 30)


def test_bounded_whitespace_gives_up_only_long_runs():
    text = 'root ::= "[" ws "x" ws "]"\nws ::= [ \\n]*'
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=[256])
    report = lint(text, vocabulary, quick=True, engines=[])
    (finding,) = [f for f in report.findings if f.code == "runaway-whitespace"]
    assert finding.rewrite is not None
    assert finding.rewrite.same is Same.SMALLER
    mended = report.mended(finding)
    for count in (0, 1, 16):
        assert tokfold.recognize(mended, f"[{' ' * count}x]").accepted
    assert not tokfold.recognize(mended, f"[{' ' * 17}x]").accepted


# --- tokens across delimiters ---------------------------------------------------------------------


def test_tokens_across_delimiters_are_those_that_a_mark_may_cut():
    tokens = [*BYTES, b'",', b'{"', b'": ', b"ab", b" a", b"a ", b"12", b"}\n", b'":', b"a:"]
    (finding,) = found(JSON, tokens, "straddling-tokens")
    told = {example["text"]: example["cut"] for example in finding.details["examples"]}
    # `"` ends at 1 in `",`; `}` ends the text; `ab`, ` a` and `12` are inside one piece; `a:` never
    # is, as a quote stands between.
    assert told == {'",': 1, '{"': 1, '": ': 1, '":': 1}


@given(st.integers(0, 1 << 30))
@examples(40)
def test_straddling_tokens_are_allowed_and_hold_a_delimiter(seed: int):
    random = Random(seed)
    grammar = tokfold.Grammar.from_ebnf(
        str(build_grammar(random, rules=random.randint(1, 3), unicode=0.0, unproductive=0.0))
    )
    singles = [b"a", b"b", b"c", b"(", b")", b"-", b"[", b"]", b"+", b",", b'"', b" "]
    tokens = singles + [a + b for a in singles[:8] for b in singles[:8]]
    vocabulary = tokfold.Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])
    report = lint(grammar, vocabulary, quick=True, engines=[])
    for finding in report.findings:
        if finding.code != "straddling-tokens":
            continue
        for example in finding.details["examples"]:
            token = vocabulary[example["token"]]
            text = example["after"].encode() + token
            assert tokfold.recognize(grammar, text).read == len(text)
            assert any(byte in b'()-[]+,"' for byte in token)
            CASES["lint: tokens across delimiters"] += 1


# --- exploring ------------------------------------------------------------------------------------


def test_exploring_says_whether_these_are_all_states():
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"</s>"], stop_token_ids=[2])
    for text, closed in [('root ::= ("a" "b")*', True), ('root ::= "a" root "b" | "b"', False)]:
        compiled = tokfold.compile(tokfold.Grammar.from_ebnf(text), vocabulary, classes="now")
        assert explore(compiled, 50, 500).closed == closed
    compiled = tokfold.compile(
        tokfold.Grammar.from_ebnf('root ::= ("a" | "b")*'), vocabulary, classes="now"
    )
    assert not explore(compiled, 50, 0).closed
    assert len(explore(compiled, 1, 500).states) == 1


def test_budgets_are_told():
    vocabulary = tokfold.Vocabulary([*BYTES, b"</s>"], stop_token_ids=[256])
    report = lint(JSON, vocabulary, quick=True, token_budget=TokenBudget(3, 30, 1))
    assert any(
        note.startswith("tokens: 3 states of the matcher were explored") for note in report.notes
    )
    report = lint("root ::= root", vocabulary, quick=True)
    assert "tokens: not looked into, as the grammar has no text" in report.notes
