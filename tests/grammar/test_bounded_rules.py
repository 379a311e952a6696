"""Rules of at most so many characters, and lazy ones: the options ``max_chars`` and ``lazy``."""

from __future__ import annotations

import re
from itertools import product
from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from oracles.bounded import expanded
from oracles.earley import Oracle
from oracles.model import (
    CharClass,
    Choice,
    Empty,
    Expr,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    to_ebnf,
    walk,
)
from strategies.engine import compiled_with, mask_of
from strategies.grammars import build_grammar
from strategies.profiles import CASES, examples
from tokfold import Matcher, Vocabulary
from tokfold.errors import UnsupportedGrammarError

PIECES = ["a", "b", "c", "(", ")", "-", ",", " ", "é", "日", "😀"]
CUT = ["é".encode()[:1], "é".encode()[1:], "日".encode()[:2], "日".encode()[1:], b"\x80", b"\xff"]
TEXTS = [*PIECES, *(left + right for left in PIECES for right in PIECES), "abc", "aaa", "aaaa"]
TOKENS = [*(text.encode() for text in TEXTS), *CUT, b"a" + CUT[0], CUT[1] + b"a", b"abcab"]
TOKENS += [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*TOKENS, b"</s>"], stop_token_ids=[len(TOKENS)])


def written(grammar: Grammar, options: dict[str, str]) -> str:
    lines = to_ebnf(grammar).splitlines()
    for place, name in enumerate(grammar.rules):
        if name in options:
            assert lines[place].startswith(f"{name} ::=")
            lines[place] = f"{name}[{options[name]}]" + lines[place][len(name) :]
    return "\n".join(lines)


def without_recursion(grammar: Grammar) -> Grammar:
    """The same, but a rule names only those behind it."""
    names = list(grammar.rules)

    def changed(expr: Expr, later: list[str]) -> Expr:
        match expr:
            case Ref(name) if name not in later:
                return Literal(b"a")
            case Seq(items):
                return Seq(tuple(changed(item, later) for item in items))
            case Choice(items):
                return Choice(tuple(changed(item, later) for item in items))
            case Repeat(body, low, high):
                return Repeat(changed(body, later), low, high)
        return expr

    rules = {
        name: changed(body, names[place + 1 :])
        for place, (name, body) in enumerate(grammar.rules.items())
    }
    return Grammar(rules, grammar.root)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Grammar, dict[str, int], Random]:
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    grammar = build_grammar(random, rules=draw(st.integers(1, 3)), unicode=0.5)
    if draw(st.integers(0, 3)):
        grammar = without_recursion(grammar)
    names = draw(st.lists(st.sampled_from(list(grammar.rules)), min_size=1, max_size=2))
    return (
        grammar,
        {name: draw(st.sampled_from([0, 1, 2, 2, 3, 3, 4, 5])) for name in names},
        random,
    )


@examples(300)
@given(cases())
def test_random_grammars(case):
    grammar, bounds, random = case
    text = written(grammar, {name: f"max_chars={most}" for name, most in bounds.items()})
    check(text, expanded(grammar, bounds), random)


@st.composite
def lazy_cases(draw: st.DrawFn) -> tuple[Grammar, str, int, Random]:
    random = draw(st.randoms(use_true_random=False, note_method_calls=False))
    texts = draw(st.sampled_from([["a", "b"], ["a", "ab"], ["a", "bb", "c"], ["aa", "b", "abc"]]))
    grammar = build_grammar(random, rules=draw(st.integers(1, 3)), texts=texts)
    if draw(st.integers(0, 3)):
        grammar = without_recursion(grammar)
    return grammar, draw(st.sampled_from(list(grammar.rules))), draw(st.integers(1, 5)), random


@examples(300)
@given(lazy_cases())
def test_random_lazy_grammars(case):
    """A lazy rule with a bound has few texts: the oracle has them all in its place."""
    grammar, name, most, random = case
    body = Oracle(Grammar(grammar.rules, name))
    letters = sorted({byte for expr in grammar.rules.values() for byte in letters_of(expr)})
    alone: list[bytes] = []
    for count in range(most + 1):
        for word in map(bytes, product(letters, repeat=count)):
            begins = any(word.startswith(shorter) for shorter in alone)
            if not begins and body.accepts(word):
                alone.append(word)
    short = Choice(tuple(Literal(word) if word else Empty() for word in alone))
    oracle = Grammar({**grammar.rules, name: short}, grammar.root)
    check(written(grammar, {name: f"lazy, max_chars={most}"}), oracle, random)


def letters_of(expr: Expr) -> set[int]:
    found: set[int] = set()
    for one in walk(expr):
        match one:
            case Literal(data):
                found.update(data)
            case CharClass() as letters:
                found.update(
                    code for low, high in letters.code_points() for code in range(low, high + 1)
                )
    return found


def check(text: str, by_definition: Grammar, random: Random) -> None:
    """Masks along a walk, against the oracle."""
    oracle = Oracle(by_definition)
    try:
        compiled = compiled_with(
            tokfold.Grammar.from_ebnf(text), VOCABULARY, classes=random.choice(["never", "now"])
        )
    except UnsupportedGrammarError as error:
        if error.construct in ("max_chars", "lazy"):
            what = "no short text" if "shortest" in str(error) else "refused"
            CASES[f"bounded rules: {what}"] += 1
        else:
            assert not oracle.productive, text
        return
    matcher, state = Matcher(compiled), oracle.initial(prune=True)
    for _ in range(8):
        found, _ = mask_of(matcher, len(VOCABULARY))
        assert found == [*state.mask(TOKENS), state.accepting], (text, matcher.text)
        CASES["bounded rules: masks"] += 1
        allowed = [place for place in range(len(TOKENS)) if found[place]]
        if not allowed:
            return
        token = random.choice(allowed)
        assert matcher.accept_token(token)
        state = state.feed(TOKENS[token])


def accepted(grammar: tokfold.Grammar, *texts: str) -> list[bool]:
    found = []
    for text in texts:
        read = tokfold.recognize(grammar, text)
        found.append(read.accepted and read.complete)
    return found


def test_a_bound_costs_nothing_whatever_its_size():
    """A counter: the network of a large bound is that of a small one."""
    sizes = []
    for most in (100, 1_000_000_000):
        text = f'root ::= t ";"\nt[max_chars={most}] ::= TagDispatch(excludes=("</think>"))'
        compiled = compiled_with(tokfold.Grammar.from_ebnf(text), VOCABULARY, classes="never")
        sizes.append(compiled.num_bytes)
    assert sizes[0] == sizes[1]


def test_a_rule_that_calls_itself_last():
    grammar = tokfold.Grammar.from_ebnf(
        'root ::= list ";"\nlist[max_chars=5] ::= [a-z] | [a-z] "," list'
    )
    assert accepted(grammar, "a;", "a,b,c;", "a,b,c,d;") == [True, True, False]


def test_bounds_within_bounds():
    grammar = tokfold.Grammar.from_ebnf(
        'root ::= "<" list ">"\nlist[max_chars=9] ::= (word ",")*\nword[max_chars=2] ::= [a-zé]*'
    )
    texts = ("<>", "<é,éé,,>", "<aa,aa,aa,>", "<aa,aa,aa,a,>", "<aaa,>")
    assert accepted(grammar, *texts) == [True, True, True, False, False]
    lazy = tokfold.Grammar.from_ebnf(
        'root ::= "<" all ">"\nall[max_chars=6] ::= part*\npart[lazy] ::= [ab]* "b"'
    )
    assert accepted(lazy, "<abb>", "<ababab>", "<aba>", "<abababb>") == [True, True, False, False]


def test_a_lazy_rule_without_a_bound():
    ours = tokfold.Grammar.from_ebnf('root ::= c "x"\nc[lazy] ::= "/*" [^]* "*/"')
    assert accepted(ours, "/* a */x", "/* a */ */x", "/**/x") == [True, False, True]
    empty = tokfold.Grammar.from_ebnf('root ::= c "x"\nc[lazy] ::= "a"*')
    assert accepted(empty, "x", "ax") == [True, False]


def test_lark_and_parts_of_tags():
    lark = tokfold.Grammar.from_lark('start: "<" body ">"\nbody[max_chars=3]: /[a-zé]*/\n')
    assert accepted(lark, "<ééé>", "<>", "<abcd>") == [True, True, False]
    text = 'root[max_chars=2] ::= "a"+ "b"?'
    leaf = {"type": "grammar", "grammar": text}
    tags = {"type": "tag", "begin": "<", "content": leaf, "end": ">"}
    whole = tokfold.Grammar.from_structural_tag({"type": "structural_tag", "format": tags})
    compiled = compiled_with(whole, VOCABULARY, classes="never")
    for written_text, is_text in (("<ab>", True), ("<aa>", True), ("<aab>", False)):
        matcher = Matcher(compiled)
        assert (matcher.accept_bytes(written_text.encode()) and matcher.is_accepting) is is_text


def test_a_long_literal_within_a_bound():
    """The shortest rest of each state is found whatever their number."""
    long = "ab" * 600
    for option in ("max_chars=2000", "max_tokens=2000"):
        grammar = tokfold.Grammar.from_ebnf(f'root ::= t ";"\nt[{option}] ::= "{long}" [ab]*')
        matcher = Matcher(compiled_with(grammar, VOCABULARY, classes="never"))
        assert matcher.accept_bytes(f"{long}a;".encode())
        assert matcher.is_accepting


def test_a_deadline_ends_the_making_of_automata():
    """They are made when the grammar is used first, for the call that uses it."""
    text = "".join(Random(1).choices("abcdefgh", k=30_000))
    rule = f't[max_chars=50] ::= TagDispatch(excludes=("{text}"))'
    grammar = tokfold.Grammar.from_ebnf(f'root ::= t ";"\n{rule}')
    for use in (tokfold.compile, tokfold.compile_classes):
        with pytest.raises(tokfold.DeadlineExceededError):
            use(grammar, VOCABULARY, interrupt=tokfold.Interrupt(20))
    with pytest.raises(tokfold.DeadlineExceededError):
        tokfold.recognize(grammar, "a;", interrupt=tokfold.Interrupt(20))
    brief = tokfold.Limits(max_compile_milliseconds=20)
    with pytest.raises(tokfold.DeadlineExceededError):
        tokfold.compile(grammar, VOCABULARY, brief)


BODIES = ['[a-c]+ "-"', '"a" | "abc" | [^a-] [ab]', '"é"? [a-c]* " "']
REPEATED = [
    "r{17,}",
    "r{20,}",
    "r{0,17}",
    "(r){1,20}",
    'r{1,20} "!"',
    '"!" r{17,40}',
    "(r | r r){3,18}",
]


@pytest.mark.parametrize("option", ["max_chars=2", "max_chars=3", "lazy", "max_tokens=1"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("form", REPEATED)
def test_bounds_hold_however_often_a_rule_is_repeated(form: str, body: str, option: str) -> None:
    """Whether the body of the repetition is the rule itself or holds more."""
    rule = f"r[{option}] ::= {body}"
    one, other = (
        compiled_with(tokfold.Grammar.from_ebnf(f"root ::= {text}\n{rule}"), VOCABULARY)
        for text in (form, re.sub(r"\br\b", '(r "")', form))
    )
    random = Random(f"{form} {body} {option}")
    for _ in range(3):
        left, right = Matcher(one), Matcher(other)
        for _ in range(40):
            found = mask_of(left, len(VOCABULARY))
            assert found == mask_of(right, len(VOCABULARY)), (form, body, option, left.text)
            ways = [place for place, allows in enumerate(found[0][:-1]) if allows]
            if not ways:
                break
            token = random.choice(ways)
            assert left.accept_token(token)
            assert right.accept_token(token)


@pytest.mark.parametrize(
    ("text", "beginning", "expected"),
    [
        ('root ::= r\nr[max_chars=2] ::= "ab" | "xyz"', b"", b"a"),
        ('root ::= "q" r\nr[max_chars=2] ::= "ab" | "xyz" | "é"', b"q", b"a\xc3"),
        ("root ::= r\nr[max_chars=3] ::= [b]+ | [x]{4,}", b"", b"b"),
        ("root ::= (r | [c]){2,40}\nr[max_chars=3] ::= [b]+ | [x]{4,}", b"c", b"bc"),
    ],
)
def test_no_byte_is_expected_that_a_bound_excludes(
    text: str, beginning: bytes, expected: bytes
) -> None:
    """A rule that counts begins with fewer bytes than it would without a bound."""
    for grammar in (tokfold.Grammar.from_ebnf(text), tokfold.Grammar.from_ebnf(text) + END):
        assert tokfold.recognize(grammar, beginning).expected == expected
        matcher = Matcher(compiled_with(grammar, VOCABULARY))
        assert matcher.accept_bytes(beginning) or not beginning
        assert matcher.expected_bytes == expected


END = tokfold.Grammar.choices(["!"])
