"""``compare`` against trying every text: differences are ones, proofs and bounds hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from laboratory.language_truth import truth
from laboratory.mutants.changes import KINDS, Mutant
from laboratory.mutants.judge import Judge
from laboratory.mutants.laws import LAWS
from laboratory.mutants.places import with_bodies
from laboratory.mutants.recorded import path_of
from oracles.model import to_ebnf
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold import Grammar, Limits
from tokfold.laboratory.equivalence import Verdict, compare
from tokfold.laboratory.form import Form

PAIRS = 2_000
SMALL = Limits(max_total_work=300_000)
RANDOMS = st.randoms(use_true_random=False, note_method_calls=False)
OTHER = {"left": "right", "right": "left", None: None}


def ask(left: Form, right: Form, max_pairs: int = PAIRS) -> Verdict:
    return compare(left.grammar(), right.grammar(), max_pairs=max_pairs, limits=SMALL)


def check(left: Form, right: Form, max_pairs: int = PAIRS) -> Verdict:
    """A verdict that trying every text does not contradict."""
    verdict, tried = ask(left, right, max_pairs), truth(left, right)
    if verdict.kind == "different":
        assert verdict.difference is not None
        takes = [Judge(form).accepts(verdict.difference) for form in (left, right)]
        assert takes == [verdict.accepted_by == "left", verdict.accepted_by == "right"]
        length = len(verdict.difference)
        if tried.shortest is None:
            assert tried.tried_to is not None
            assert length > tried.tried_to
        else:
            assert length >= tried.shortest
            assert length == tried.shortest or not verdict.is_shortest
    elif verdict.kind == "proved":
        assert tried.shortest is None
    else:
        assert verdict.depth is not None
        assert tried.shortest is None or tried.shortest >= verdict.depth
    fields = (verdict.difference, verdict.accepted_by, verdict.depth)
    present = {"different": (1, 1, 0), "proved": (0, 0, 0), "bounded": (0, 0, 1)}[verdict.kind]
    assert [field is not None for field in fields] == [bool(is_there) for is_there in present]
    assert verdict.pairs >= 0
    return verdict


def one_of(offers, form: Form, random: Random) -> Mutant | None:
    """What one of these changes or laws makes of a form, if any of them applies."""
    for name in random.sample(sorted(offers), len(offers)):
        offered: Iterator[Mutant] = offers[name](form, random)
        found = list(islice(offered, 1 if name == "several" else 50))
        if found:
            return random.choice(found)
    return None


@examples(150)
@given(grammars(max_rules=3, unicode=0.2), grammars(max_rules=3, unicode=0.2))
def test_any_two_grammars(left, right):
    verdict = check(Form.of(to_ebnf(left)), Form.of(to_ebnf(right)))
    CASES[f"any two grammars: {verdict.kind}"] += 1


@examples(200)
@given(grammars(max_rules=4, unicode=0.2), RANDOMS, st.sampled_from([2, 5, 10, 20, 50, PAIRS]))
def test_a_grammar_and_a_changed_one(grammar, random, max_pairs):
    """With few pairs, bounds are low and differences often not the shortest."""
    form = Form.of(to_ebnf(grammar))
    mutant = one_of(KINDS, form, random)
    if mutant is None:
        return
    left = with_bodies(form, dict(mutant.left))
    verdict = check(left, with_bodies(form, dict(mutant.right), mutant.root), max_pairs)
    CASES[f"a changed grammar: {verdict.kind}"] += 1


@examples(200)
@given(grammars(max_rules=4, unicode=0.2), RANDOMS)
def test_a_grammar_and_a_rewritten_one(grammar, random):
    form = Form.of(to_ebnf(grammar))
    mutant = one_of(LAWS, form, random)
    if mutant is None:
        return
    verdict = check(form, with_bodies(form, dict(mutant.right), mutant.root))
    assert verdict.kind != "different", mutant
    CASES[f"a rewritten grammar: {verdict.kind}"] += 1


@examples(100)
@given(grammars(max_rules=3, unicode=0.2), grammars(max_rules=3, unicode=0.2))
def test_either_way_round(left, right):
    one = Form.of(to_ebnf(left))
    other = Form.of(to_ebnf(right))
    verdict, back = ask(one, other), ask(other, one)
    assert verdict.kind == back.kind
    if verdict.is_shortest and back.is_shortest:
        assert verdict.difference is not None
        assert back.difference is not None
        assert len(verdict.difference) == len(back.difference)


@examples(100)
@given(grammars(max_rules=4))
def test_a_grammar_is_itself(grammar):
    """Also as read from its own printed text."""
    form = Form.of(to_ebnf(grammar))
    again = Grammar.from_ebnf(str(form))
    assert compare(form.grammar(), again).kind == "proved"


CHAIN = "".join(f"r{i} ::= r{i + 1}\n" for i in range(500))
PROVED = {
    "left and right recursion": ('root ::= "a" | root "a"', 'root ::= "a" | "a" root'),
    "recursion and star": ('root ::= "b" | root "a"', 'root ::= "b" "a"*'),
    "ambiguous and not": ('root ::= "a" | root root', 'root ::= "a" | "a" root'),
    "cyclic": ('root ::= root | "a" | b\nb ::= root', 'root ::= "a"'),
    "epsilon": ('root ::= "" | root root', 'root ::= ""'),
    "empty": ('root ::= "a" root', 'root ::= [] "b"'),
    "empty by cycle": ("root ::= a\na ::= root", "root ::= []"),
    "a^n b^n in two ways": (
        'root ::= "a" root "b" | "ab"',
        'root ::= "a" t\nt ::= "b" | root "b"',
    ),
    "dyck in two ways": (
        'root ::= "" | "(" root ")" root',
        'root ::= ("(" root ")")*',
    ),
    "dyck, ambiguous": ('root ::= "" | root root | "(" root ")"', 'root ::= ("(" root ")")*'),
    "hidden left recursion": (
        'root ::= "x"? root "a" | "b"',
        'root ::= root "a" | "x" root "a" | "b"',
    ),
    "characters": ("root ::= [à-ï]+", "root ::= [à-ê] root | [ë-ï] root | [à-ï]"),
    "bytes of characters": ("root ::= [ߐ-ࠐ]", "root ::= [ߐ-߿] | [ࠀ-ࠐ]"),
    "counted": ('root ::= "a"{0,1000}', 'root ::= "a"{0,400} "a"{0,600}'),
    "a chain of delegations": (
        f'root ::= r0\n{CHAIN}r500 ::= "a" root?',
        'root ::= "a"+',
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_equal_and_not_too_hard(name):
    left, right = map(Form.of, PROVED[name])
    assert compare(left.grammar(), right.grammar()).kind == "proved"
    assert compare(right.grammar(), left.grammar()).kind == "proved"


DIFFERENT = {
    "one byte more": ('root ::= "a"{0,1000}', 'root ::= "a"{0,999}', b"a" * 1000),
    "counted, nested": ('root ::= ("a" "b"?){3}', 'root ::= ("a" "b"?){2,3}', b"aa"),
    "epsilon": ('root ::= "a"*', 'root ::= "a"+', b""),
    "empty and not": ('root ::= "a" root', 'root ::= "a" root | "b"', b"b"),
    "a code point": ("root ::= [à-ï]*", "root ::= [à-î]*", "ï".encode()),
    "the border of lengths": ("root ::= [\u0020-\u07ff]", "root ::= [\u0020-\u0800]", "ࠀ".encode()),
    "a^n b^n against a^n b^m": ('root ::= "a" root "b" | ""', 'root ::= "a"* "b"*', None),
    "a^n b^n c^n, each half": (
        'root ::= "a"* bc\nbc ::= "b" bc "c" | ""',
        'root ::= ab "c"*\nab ::= "a" ab "b" | ""',
        None,
    ),
    "dyck against one bracket kind more": (
        'root ::= ("(" root ")" | "[" root "]")*',
        'root ::= ("(" root ")" | "[" root "]" | "[" root ")")*',
        b"[)",
    ),
    "hidden left recursion": (
        'root ::= "x"? root "a" | "b"',
        'root ::= "x"* root "a" | "b"',
        b"xxba",
    ),
    "far inside": (
        'root ::= "{" root "}" | "a"',
        'root ::= "{" r1 "}" | "a"\nr1 ::= "{" r2 "}" | "a"\nr2 ::= "{" r3 "}" | "a"\nr3 ::= "a"',
        b"{{{{a}}}}",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_and_by_what(name):
    left, right, expected = DIFFERENT[name]
    verdict = compare(Grammar.from_ebnf(left), Grammar.from_ebnf(right))
    assert verdict.kind == "different"
    assert verdict.difference is not None
    if name != "one byte more":  # the oracle would recur a thousand deep
        takes = [Judge(Form.of(text)).accepts(verdict.difference) for text in (left, right)]
        assert takes == [verdict.accepted_by == "left", verdict.accepted_by == "right"]
        tried = truth(Form.of(left), Form.of(right))
        assert tried.shortest in (None, len(verdict.difference))
    assert verdict.is_shortest
    if expected is not None:
        assert verdict.difference == expected


NEVER_CLOSES = {
    "palindromes, unfolded": (
        'root ::= "" | "a" | "b" | "a" root "a" | "b" root "b"',
        'root ::= p | p\np ::= "" | "a" | "b" | "a" q "a" | "b" q "b"\n'
        'q ::= "" | "a" | "b" | "aa" | "bb" | "a" p "a" | "b" p "b" | "aba" | "bab"',
    ),
    "twice as deep": (
        'root ::= "a" root "b" | ""',
        'root ::= "a" "a" root "b" "b" | "ab" | "" | "aaaabbbb"',
    ),
    "sums in two ways": (
        'root ::= "a" root "b" | "a" root "bb" | ""',
        'root ::= "a" root "bb" | "a" s "b" | ""\ns ::= "a" s "b" | "a" root "bb" | ""',
    ),
}


@pytest.mark.parametrize("name", NEVER_CLOSES)
def test_equal_and_hard(name):
    """Neither hangs nor says a wrong word; the bound holds, and is the same either way round."""
    left, right = map(Form.of, NEVER_CLOSES[name])
    assert truth(left, right).shortest is None
    verdict, back = ask(left, right, 3_000), ask(right, left, 3_000)
    assert verdict.kind in ("proved", "bounded")
    assert verdict.kind == back.kind
    if verdict.kind == "bounded":
        assert verdict.depth is not None
        assert verdict.depth > 4


def test_a_small_budget_gives_a_bound():
    grammar = path_of("json").read_text(encoding="utf-8")
    left, right = Form.of(grammar), Form.of(grammar.replace("value_separator value)*", "value)*"))
    full = compare(left.grammar(), right.grammar())
    assert full.kind == "different"
    assert full.difference is not None
    depths = []
    for most in (1, 10, 100):
        verdict = compare(left.grammar(), right.grammar(), max_pairs=most)
        if verdict.kind == "bounded":
            assert verdict.depth is not None
            assert verdict.depth <= len(full.difference)
            depths.append(verdict.depth)
        else:
            assert verdict.kind == "different"
    assert depths
    assert depths == sorted(depths)


def test_deep_nesting():
    depth = 900
    left = f'root ::= {"(" * depth}"a"{")?" * depth}'
    verdict = compare(Grammar.from_ebnf(left), Grammar.from_ebnf('root ::= "a"?'))
    assert verdict.kind == "proved"
    rules = "".join(f'r{i} ::= "(" r{i + 1} ")"\n' for i in range(3_000))
    texts = [f'root ::= r0\n{rules}r3000 ::= "{end}"\n' for end in "ab"]
    verdict = compare(*map(Grammar.from_ebnf, texts))
    if verdict.kind == "bounded":  # the stack is deeper than the limits allow
        assert verdict.depth is not None
        assert verdict.depth <= 3_001
    else:
        assert verdict.kind == "different"
        assert verdict.difference in (
            b"(" * 3000 + b"a" + b")" * 3000,
            b"(" * 3000 + b"b" + b")" * 3000,
        )


DISPATCH = 'root ::= TagDispatch(("<a>", call))\ncall ::= {}\n'


def test_tag_dispatch_on_both_sides():
    left = Grammar.from_ebnf(DISPATCH.format('[0-9]+ "</a>"'))
    same = Grammar.from_ebnf(DISPATCH.format('[0-9] [0-9]* "</a>"'))
    other = Grammar.from_ebnf(DISPATCH.format('[0-8]+ "</a>"'))
    assert compare(left, same).kind == "proved"
    verdict = compare(left, other)
    assert verdict.kind == "different"
    assert verdict.difference is not None
    assert [tokfold.recognize(g, verdict.difference).accepted for g in (left, other)] == [
        verdict.accepted_by == "left",
        verdict.accepted_by == "right",
    ]


def test_lookahead_is_refused_by_name():
    plain = Grammar.from_ebnf('root ::= a "b"\na ::= "a"')
    ahead = Grammar.from_ebnf('root ::= a "b"\na ::= "a" (= "c")')
    for pair in ((plain, ahead), (ahead, plain)):
        side = "first" if pair[0] is ahead else "second"
        says = f'line 2, column 1: lookahead: in the {side} grammar: rule "a": '
        with pytest.raises(tokfold.UnsupportedGrammarError, match=re.escape(says)):
            compare(*pair)
    implied = Grammar.from_ebnf(str(ahead), lookahead="implied")
    assert compare(plain, implied).kind == "proved"


def test_tokens_taken_whole_are_refused_by_name():
    plain = Grammar.from_ebnf('root ::= "a"')
    tokens = Grammar.from_ebnf("root ::= Token(5)")
    with pytest.raises(tokfold.UnsupportedGrammarError, match="Token"):
        compare(plain, tokens)


def test_an_error_is_of_the_grammar_that_has_it():
    """A grammar without any string can be compared: what is wrong is in the other one."""
    empty, tokens = Grammar.from_ebnf("root ::= root"), Grammar.from_ebnf("root ::= Token(5)")
    with pytest.raises(tokfold.UnsupportedGrammarError, match="in the second grammar: "):
        compare(empty, tokens)


def test_limits_name_the_rule_as_it_was_written():
    plain = Grammar.from_ebnf('root ::= "a"')
    large = Grammar.from_ebnf(f'top ::= word\nword ::= "{"ab" * 50}"', "top")
    limits = tokfold.Limits(max_network_states=60)
    for pair, side in (((plain, large), "second"), ((large, plain), "first")):
        with pytest.raises(tokfold.LimitExceededError) as caught:
            compare(*pair, limits=limits)
        assert f'in the {side} grammar: rule "word" needs more states' in str(caught.value)
        assert "left" not in str(caught.value)
        assert "right" not in str(caught.value)


def test_no_pairs_are_no_search():
    grammar = Grammar.from_ebnf('root ::= "a"')
    with pytest.raises(ValueError, match="max_pairs"):
        compare(grammar, grammar, max_pairs=0)


def test_progress_is_told_and_stops_it():
    left, right = (Form.of(text).grammar() for text in NEVER_CLOSES["twice as deep"])
    told: list[tuple[int, int]] = []

    def stop(done: int, of: int) -> None:
        told.append((done, of))
        if done > 1_000:
            raise KeyboardInterrupt

    try:
        verdict = compare(left, right, max_pairs=50_000, progress=stop)
    except KeyboardInterrupt:
        assert told[-1][0] > 1_000
    else:
        assert verdict.kind in ("proved", "bounded")
    assert all(of == 50_000 for _, of in told)


def test_lengths_that_are_counted_have_shortest_differences():
    """A difference that takes many characters to complete is a shortest one, and is found."""

    def grammar(pattern: str, **lengths: int) -> Grammar:
        return Grammar.from_json_schema({"type": "string", "pattern": pattern, **lengths})

    lengths = {"minLength": 41, "maxLength": 300}
    verdict = compare(grammar("^x(aab|c)*d$", **lengths), grammar("^y(aab|c)*d$", **lengths))
    assert verdict.kind == "different"
    assert verdict.is_shortest
    assert len(verdict.difference) == 41 + 2
    endless = compare(grammar("^x(c*d)+$", minLength=41), grammar("^y(c*d)+$", minLength=41))
    assert endless.is_shortest
    assert len(endless.difference) == 41 + 2
    same = grammar("^x(aab|c)*d$", **lengths)
    assert compare(same, grammar("^x(aab|c)*d$", **lengths)).kind == "proved"
