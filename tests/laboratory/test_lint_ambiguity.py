"""Witnesses of ambiguity against a count of all parses by another method."""

from __future__ import annotations

import glob
from itertools import product
from pathlib import Path
from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from oracles.model import (
    Cfg,
    CharClass,
    Choice,
    Empty,
    Grammar,
    Literal,
    Ref,
    Repeat,
    Seq,
    lower,
)
from strategies.grammars import grammars
from strategies.profiles import CASES, examples
from tokfold.laboratory import form as form_
from tokfold.laboratory.form import Form
from tokfold.laboratory.lint import AmbiguityBudget, lint
from tokfold.laboratory.lint.ambiguity import Witness, witnesses
from tokfold.laboratory.lint.facts import Facts

DIGITS = "012345678"
SMALL = AmbiguityBudget(length=4, nodes=5, work=20_000)


def parses(cfg: Cfg, text: bytes) -> int:
    """How many parses a text has, by the productions, two at most: two says many.

    A least fixpoint over all spans at once, from no parse at all. Cycles count up to two by
    themselves.
    """
    size = len(text)
    counts: dict[tuple[int, int, int], int] = {}

    def written(rhs: tuple, begin: int, end: int) -> int:
        ways = {begin: 1}
        for symbol in rhs:
            after: dict[int, int] = {}
            for at, count in ways.items():
                if not isinstance(symbol, int):
                    if at < end and text[at] in symbol:
                        after[at + 1] = min(2, after.get(at + 1, 0) + count)
                    continue
                for stop in range(at, end + 1):
                    here = counts.get((symbol, at, stop), 0)
                    if here:
                        after[stop] = min(2, after.get(stop, 0) + count * here)
            ways = after
        return ways.get(end, 0)

    by_lhs: dict[int, list[tuple]] = {}
    for p in cfg.productions:
        by_lhs.setdefault(p.lhs, []).append(p.rhs)
    for length in range(size + 1):
        changed = True
        while changed:
            changed = False
            for begin in range(size - length + 1):
                for lhs, rights in by_lhs.items():
                    key = (lhs, begin, begin + length)
                    total = min(2, sum(written(rhs, begin, begin + length) for rhs in rights))
                    if total > counts.get(key, 0):
                        counts[key] = total
                        changed = True
    return counts.get((cfg.start, 0, size), 0)


def test_the_count_is_that_of_the_trees():
    def count(text: str, data: bytes) -> int:
        return parses(lower(Grammar(RULES[text])), data)

    assert count("sums", b"1") == count("sums", b"1+1") == 1
    assert count("sums", b"1+1+1") == 2
    assert count("sums", b"1+") == 0
    assert count("cycle", b"x") == 2


RULES = {
    "sums": {"root": Choice((Seq((Ref("root"), Literal(b"+"), Ref("root"))), Literal(b"1")))},
    "cycle": {"root": Choice((Ref("root"), Literal(b"x")))},
}


def check(cfg: Cfg, witness: Witness) -> None:
    whole = witness.whole.encode("utf-8", "surrogatepass")
    assert parses(cfg, whole) == 2, witness


@given(grammars(max_rules=4, unproductive=0.1))
@examples(120)
def test_every_witness_has_two_parses(grammar: Grammar):
    cfg = lower(grammar)
    found, _ = witnesses(Facts(Form.of(str(grammar))), SMALL)
    for witness in found:
        if len(witness.whole) <= 14 and len(cfg.productions) <= 150:
            check(cfg, witness)
            CASES["lint: witnesses of ambiguity counted"] += 1


PIECES = ["a", "b", "a", "ab", "b a", "x", "y", "x", "y", "x?", "y*", "[ab]", "a?"]


def small_grammar(random: Random) -> str:
    """Rules over two letters, without recursion in itself: half of them are ambiguous."""

    def piece() -> str:
        text = random.choice(PIECES)
        return " ".join(f'"{p}"' if p in ("a", "b", "ab") else p for p in text.split())

    def rule(names: str) -> str:
        parts = [
            " ".join(p for p in (piece() for _ in range(random.randint(1, 3))) if p[0] not in names)
            for _ in range(random.randint(1, 2))
        ]
        return " | ".join(part or '"b"' for part in parts).replace("a?", '"a"?')

    return f"root ::= {rule('')}\nx ::= {rule('x')}\ny ::= {rule('xy')}\n"


@given(st.integers(0, 1 << 30))
@examples(400)
def test_none_is_missed_within_the_length_that_was_searched(seed: int):
    text = small_grammar(Random(seed))
    report = lint(text, quick=True, engines=[])
    others = {"cyclic-rule", "nullable-loop", "duplicate-alternative", "unproductive-rule"}
    if others & {finding.code for finding in report.findings}:
        return  # these have many parses for other reasons
    found, notes = witnesses(Facts(Form.of(text)), SMALL)
    if found:
        CASES["lint: small ambiguous grammars"] += 1
        return
    assert "all texts of each rule of up to 4 characters" in notes[0]
    cfg = productions(Form.of(text))
    for length in range(5):
        for letters in product(b"ab", repeat=length):
            assert parses(cfg, bytes(letters)) < 2, (text, bytes(letters))
    CASES["lint: small unambiguous grammars"] += 1


def productions(form: Form) -> Cfg:
    """The productions of a form, by the model's own lowering."""

    def model(expr):
        match expr:
            case form_.Literal():
                return Literal(expr.data)
            case form_.Chars():
                return CharClass(expr.ranges)
            case form_.Ref():
                return Ref(expr.name)
            case form_.Seq():
                return Seq(tuple(map(model, expr.parts)))
            case form_.Alt():
                return Choice(tuple(map(model, expr.parts)))
            case form_.Repeat():
                return Repeat(model(expr.body), expr.least, expr.most)
        return Empty()

    return lower(Grammar({name: model(rule.body) for name, rule in form.rules.items()}))


@pytest.mark.parametrize(
    ("text", "whole", "readings"),
    [
        (
            'root ::= e\ne ::= e "+" e | "1"',
            "1+1+1",
            ('e("1+1") "+" e("1")', 'e("1") "+" e("1+1")'),
        ),
        ('root ::= a | b\na ::= [a-z]\nb ::= "x" | "xy"', "x", ('a("x")', 'b("x")')),
        ('root ::= w w\nw ::= " "*', " ", ('w(" ")', 'w(" ")')),
        ('root ::= ("a" | "aa")*', "aa", None),
        ('root ::= a b\na ::= "a" | "a" [b-c]\nb ::= [a-c] "z" | "z"', "abz", None),
        # Beyond the length that is searched; the optional part must be there for two parses.
        ('root ::= o root "012345678" | "xyzxyzxyz"\no ::= "a"?', f"axyzxyzxyz{DIGITS * 2}", None),
        ('root ::= "a"? "a"?', "a", None),
        ('root ::= s\ns ::= "i" s | "i" s "e" s | "x"', "iixex", None),
    ],
)
def test_known_ambiguities_have_their_shortest_witness(text, whole, readings):
    (found, *_), _ = witnesses(Facts(Form.of(text)))
    assert found.whole == whole
    if readings is not None and readings[0] != readings[1]:
        assert set(found.readings) == set(readings)
    assert found.readings[0] != found.readings[1]


@pytest.mark.parametrize(
    "text",
    [
        'root ::= "[" (root ("," root)*)? "]" | [0-9]+',
        'root ::= t | root "+" t\nt ::= f | t "*" f\nf ::= [a-z]+ | "(" root ")"',
        'root ::= "a" root "a" | "b"',
        'root ::= [a-z]{1,3} "-" [0-9]{2,4}',
        'root ::= x{64} y\nx ::= "a" | "b"\ny ::= "c"{0,3}',
    ],
)
def test_unambiguous_grammars_have_none(text: str):
    found, notes = witnesses(Facts(Form.of(text)))
    assert found == []
    assert notes[0].startswith(
        "ambiguity: no ambiguity was found, which is no proof that there is none: "
    )


def test_an_operand_that_may_be_the_rule_itself_is_not_rewritten():
    text = 'root ::= "=" e\ne ::= e "+" e | u | "1"\nu ::= e "!"'
    (finding,) = [f for f in lint(text).findings if f.code == "ambiguous" and f.rule == "e"]
    assert finding.rewrite is None


def test_a_lexical_ambiguity_needs_no_long_text():
    """A keyword that is an identifier too, deep in a larger grammar."""
    sql = Path(__file__).parents[2] / "grammars/sql/sql.gbnf"
    found, _ = witnesses(Facts(Form.of(sql.read_text(encoding="utf-8"))))
    assert found[0].whole == "select true"


def test_real_grammars_are_as_ambiguous_as_they_say():
    """The folder's README names those that are ambiguous; witnesses are texts of the grammar."""
    folder = Path(__file__).parents[2] / "grammars"
    ambiguous = {}
    for path in sorted(glob.glob(f"{folder}/*/*.gbnf")):
        text = Path(path).read_text(encoding="utf-8")
        found, _ = witnesses(Facts(Form.of(text)), AmbiguityBudget(work=30_000))
        grammar = tokfold.Grammar.from_ebnf(text)
        for witness in found:
            assert tokfold.recognize(grammar, witness.whole).accepted, witness
        ambiguous[Path(path).stem] = len(found)
    named = {"air_travel", "bython", "cpp", "dangling", "deep", "english", "english_tags", "sql"}
    assert {name for name, count in ambiguous.items() if count} == named


def test_the_dangling_else_is_found_among_others():
    path = Path(__file__).parents[2] / "grammars/dangling/dangling.gbnf"
    found, _ = witnesses(Facts(Form.of(path.read_text(encoding="utf-8"))))
    assert {w.rule: w.text for w in found} == {
        "seq": ";;;",
        "expr": "-a+a",
        "args": "a,a,a",
        "stmt": "if aif a;else ;",
    }


def test_budgets_are_counted_and_told():
    text = 'root ::= ("a" | "b" | "c" | "d" | "e" | "f" | "g")* "x" | [h-z]*'
    one = witnesses(Facts(Form.of(text)), AmbiguityBudget(length=6, nodes=3, work=50))
    assert "in part" in one[1][0]
    assert one == witnesses(Facts(Form.of(text)), AmbiguityBudget(length=6, nodes=3, work=50))
    assert lint(text, quick=True).notes == ("ambiguity: not looked for",)


def test_what_is_not_looked_into_is_told():
    form = Form.of('root ::= a b\na ::= TagDispatch(("<f>", b))\nb ::= "x"{100}')
    _, notes = witnesses(Facts(form), SMALL)
    assert notes[1] == "ambiguity: not looked into, for macros or large counts: a, b"


def test_texts_too_long_to_show_are_told():
    chain = "\n".join(f"d{i} ::= d{i + 1} d{i + 1}" for i in range(40))
    text = f'root ::= d0 (e | f)\ne ::= "x"\nf ::= "x"\n{chain}\nd40 ::= "y"'
    found, notes = witnesses(Facts(Form.of(text)), SMALL)
    assert found == []
    assert "1 more have no text of up to 2,000 characters to show" in notes[-1]
