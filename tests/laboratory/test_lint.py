"""Lint's facts against brute force, and its rewrites against the grammars that they mend."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
import tokfold
from hypothesis import given
from hypothesis import strategies as st
from oracles.model import Cfg, Grammar, Production, lower
from oracles.sentences import SentenceSampler
from strategies.grammars import build_grammar, grammars, random_grammar, reachable_rules
from strategies.profiles import CASES, examples
from tokfold.laboratory.form import Form, Ref
from tokfold.laboratory.lint import AmbiguityBudget, Engine, Same, Severity, lint
from tokfold.laboratory.lint.cycles import components
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding

QUICK = AmbiguityBudget(length=4, nodes=4, work=4_000)


# --- oracles: relations over productions, closed by squaring --------------------------------------


def closure(pairs: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The transitive closure, by a walk from everything."""
    after: dict[int, set[int]] = {}
    for a, b in pairs:
        after.setdefault(a, set()).add(b)
    found = set()
    for start in after:
        seen: set[int] = set()
        work = [start]
        while work:
            new = after.get(work.pop(), set()) - seen
            seen |= new
            work += new
        found |= {(start, end) for end in seen}
    return found


def complete(cfg: Cfg) -> list[Production]:
    """The productions in which everything has some string."""
    productive = cfg.productive()
    return [
        p
        for p in cfg.productions
        if all(s in productive if isinstance(s, int) else s for s in p.rhs)
    ]


def rules_of(cfg: Cfg, grammar: Grammar, numbers: set[int]) -> set[str]:
    return {cfg.names[n] for n in numbers if n < len(grammar.rules)}


def cyclic_rules(cfg: Cfg) -> set[int]:
    nullable = cfg.nullable()
    unit = {
        (p.lhs, symbol)
        for p in complete(cfg)
        for at, symbol in enumerate(p.rhs)
        if isinstance(symbol, int)
        and all(s in nullable for i, s in enumerate(p.rhs) if i != at and isinstance(s, int))
        and all(isinstance(s, int) for s in p.rhs)
    }
    return {a for a, b in closure(unit) if a == b}


def left_recursive_rules(cfg: Cfg) -> tuple[set[int], set[int]]:
    """All left-recursive nonterminals, and those with something skipped on a way round."""
    nullable = cfg.nullable()
    reading: set[int] = set()
    while True:
        more = {
            p.lhs
            for p in complete(cfg)
            if any(not isinstance(s, int) or s in reading for s in p.rhs)
        }
        if more <= reading:
            break
        reading |= more
    plain: set[tuple[int, int]] = set()
    skipping: set[tuple[int, int]] = set()
    for p in complete(cfg):
        skipped = False
        for symbol in p.rhs:
            if not isinstance(symbol, int):
                break
            (skipping if skipped else plain).add((p.lhs, symbol))
            if symbol not in nullable:
                break
            skipped = skipped or symbol in reading
    closed = closure(plain | skipping)
    around = {(a, b) for a, b in closed if (b, a) in closed}
    hidden = {
        a for a, b in around for c, d in skipping if (a, c) in around and (c, d) in around
    } | {a for a, b in skipping if a == b}
    return {a for a, b in around}, hidden


@given(grammars(max_rules=5, unproductive=0.5))
@examples(150)
def test_facts_are_those_of_the_productions(grammar: Grammar):
    cfg = lower(grammar)
    facts = Facts(Form.of(str(grammar)))
    nullable, productive = cfg.nullable(), cfg.productive()
    for number, (name, body) in enumerate(facts.bodies.items()):
        assert (body in facts.nullable) == (number in nullable), name
        assert facts.is_productive(name) == (number in productive), name
    assert facts.reachable == reachable_rules(grammar.rules, "root")
    kept = {p.lhs for p in cfg.pruned().productions} if cfg.start in productive else set()
    assert facts.useful == rules_of(cfg, grammar, kept)
    found = {name for names in facts.cyclic for name in names}
    assert found == rules_of(cfg, grammar, cyclic_rules(cfg))
    every, hidden = left_recursive_rules(cfg)
    assert {n for names, _ in facts.left_recursive for n in names} == rules_of(cfg, grammar, every)
    skipped = {n for names, is_hidden in facts.left_recursive if is_hidden for n in names}
    assert skipped == rules_of(cfg, grammar, hidden)
    CASES["lint: facts of a grammar"] += 1


@given(grammars(max_rules=5, unproductive=0.5))
@examples(100)
def test_findings_of_rules_are_the_facts(grammar: Grammar):
    report = lint(str(grammar), quick=True, engines=[])
    cfg = lower(grammar)
    reached = reachable_rules(grammar.rules, "root")
    told = {code: {f.rule for f in report.findings if f.code == code} for code in CODES_OF_RULES}
    assert told["unreachable-rule"] == set(grammar.rules) - reached
    dead = set(grammar.rules) - rules_of(cfg, grammar, cfg.productive())
    assert told["unproductive-rule"] == dead & reached
    kept = {p.lhs for p in cfg.pruned().productions} if cfg.start in cfg.productive() else set()
    useful = rules_of(cfg, grammar, kept)
    assert told["cyclic-rule"] <= rules_of(cfg, grammar, cyclic_rules(cfg)) & useful
    assert bool(told["cyclic-rule"]) == bool(rules_of(cfg, grammar, cyclic_rules(cfg)) & useful)


CODES_OF_RULES = ["unreachable-rule", "unproductive-rule", "cyclic-rule"]


@given(grammars(max_rules=5))
@examples(100)
def test_what_follows_is_what_the_productions_let_follow(grammar: Grammar):
    cfg = lower(grammar).pruned()
    facts = Facts(Form.of(str(grammar)))
    reading: set[int] = set()
    while True:
        more = {
            p.lhs
            for p in cfg.productions
            if any(not isinstance(s, int) or s in reading for s in p.rhs)
        }
        if more <= reading:
            break
        reading |= more
    followed: set[int] = set()
    while True:
        more = set()
        for p in cfg.productions:
            for at, symbol in enumerate(p.rhs):
                rest = p.rhs[at + 1 :]
                reads = any(not isinstance(s, int) or s in reading for s in rest)
                if isinstance(symbol, int) and (reads or p.lhs in followed):
                    more.add(symbol)
        if more <= followed:
            break
        followed |= more
    calls = {e.name for n in facts.useful for e in facts.exprs_of[n] if isinstance(e, Ref)}
    ours = {name for name in calls & facts.useful if Ref(name) in facts.followed}
    assert ours == rules_of(lower(grammar), grammar, followed) & calls


def test_components_come_in_the_order_of_their_edges():
    random = Random(3)
    for _ in range(200):
        count = random.randint(1, 8)
        edges = {
            n: sorted({random.randrange(count) for _ in range(random.randint(0, 3))})
            for n in range(count)
        }
        closed = closure({(a, b) for a, after in edges.items() for b in after})
        parts = components(edges)
        assert sorted(n for part in parts for n in part) == list(range(count))
        where = {n: i for i, part in enumerate(parts) for n in part}
        for a in range(count):
            for b in range(count):
                same = a == b or ((a, b) in closed and (b, a) in closed)
                assert same == (where[a] == where[b])
                if (a, b) in closed and not same:
                    assert where[b] < where[a]


# --- rewrites -------------------------------------------------------------------------------------

BYTES = tokfold.Vocabulary([bytes([byte]) for byte in range(256)])


def texts(grammar: tokfold.Grammar, random: Random, count: int = 12) -> list[bytes]:
    """Some texts of a grammar, by random walks of its matcher that are then led to an end."""
    compiled = tokfold.compile(
        grammar, BYTES, classes="never", options=tokfold.CompileOptions(check_tokens=False)
    )
    found = []
    for _ in range(count):
        matcher = tokfold.Matcher(compiled)
        length = random.randint(0, 14)
        for step in range(60):
            if matcher.is_accepting and (step >= length or random.random() < 0.1):
                found.append(matcher.text)
                break
            allowed = matcher.expected_bytes
            if not allowed:
                break
            matcher.accept_bytes(bytes([random.choice(allowed)]))
    return found


def assert_same_texts(one: tokfold.Grammar, other: tokfold.Grammar, random: Random) -> int:
    sampled = texts(one, random) + texts(other, random)
    cut = [t[:-1] for t in sampled if t] + [b + a for a, b in pairwise(sampled)]
    for text in [*sampled, *cut]:
        assert tokfold.recognize(one, text).accepted == tokfold.recognize(other, text).accepted, (
            text
        )
    return len(sampled)


@given(st.integers(0, 1 << 30))
@examples(80)
def test_rewrites_keep_the_texts(seed: int):
    random = Random(seed)
    grammar = tokfold.Grammar.from_ebnf(
        str(build_grammar(random, rules=random.randint(1, 4), unproductive=0.1))
    )
    report = lint(grammar, ambiguity_budget=QUICK)
    for finding in report.findings:
        # Ways out of what is wrong in an engine keep the texts like all others.
        if finding.rewrite is None or finding.rewrite.same is not Same.LANGUAGE:
            continue
        mended = report.mended(finding)
        if finding.code == "lookahead":
            continue
        empty = any(f.code == "unproductive-rule" and f.rule == "root" for f in report.findings)
        if not empty:
            assert assert_same_texts(grammar, mended, random) >= 0
        CASES[f"lint: rewrite of {finding.code}"] += 1


FORMS = {
    "optional-run": [
        'root ::= "b" "a"? "a"{0,3} "a"? "c"',
        'root ::= "(" [a-z]? [a-z]? [a-z]? ")"',
        'root ::= "b" ("a" ("a" "a"?)?)?',
    ],
    "nullable-loop": [
        'root ::= ("a"? "b"*)* "c"',
        'root ::= ("a"*)+ "c"',
        'root ::= ("a" | "b"? | "")* "c"',
        'root ::= ("a"?){2,3} "c"',
        'root ::= ("a"{0,2}){1,2} "c"',
    ],
    "duplicate-alternative": [
        'root ::= "x" ("a" | "b" | "a") | "y"',
        'root ::= [a-c] "x" | y\ny ::= "a" | [a-c] | "zz" | [c-e]',
    ],
    "unfactored-prefix": ['root ::= a "x" | a | a "y" | "b"\na ::= "a" | "(" root ")"'],
    "delegation": ['root ::= "(" a ")" | a\na ::= b\nb ::= c\nc ::= "x" | "(" root ")"'],
    "never-repeated": ['root ::= "a" "b"{0,0} "c"'],
    "empty-class": ['root ::= "a" | [] | "b"'],
    "recursive-root": [
        'root ::= root "d" | "c"',
        'root ::= "[" v "]" | "y"\nv ::= root | "x" v',
    ],
    "ambiguous": [
        'root ::= "=" e\ne ::= e "+" e | e "*" e | "-" e | e "!" | "1" | "(" e ")"',
        'root ::= "=" e\ne ::= e e | "1" | "2"',
        'root ::= "=" e\ne ::= e "?" e ":" e | "1"',
    ],
    "cyclic-rule": [
        'root ::= "=" a\na ::= a | "1" | "(" a ")"',
        'root ::= "=" e\ne ::= e e | "" | "1" | "(" e ")"',
    ],
    "unreachable-rule": ['root ::= "a"\nb ::= c\nc ::= "d" b?'],
}


@pytest.mark.parametrize(("code", "text"), [(c, t) for c, ts in FORMS.items() for t in ts])
def test_each_rewrite_mends_what_it_is_for(code: str, text: str):
    report = lint(text)
    # Of rules that nothing reaches, the first has the rewrite for all.
    findings = [f for f in report.findings if f.code == code and f.rewrite is not None]
    assert findings, [f.code for f in report.findings]
    assert report.form is not None
    for finding in findings:
        mended = report.mended(finding)
        assert assert_same_texts(report.form.source, mended, Random(5)) >= 4
        again = [f for f in lint(mended).findings if f.code == code and f.rule == finding.rule]
        assert not again, (finding.message, str(mended), again)


# --- no surprises ---------------------------------------------------------------------------------


def test_deep_nesting_and_many_rules_are_taken():
    deep = '("x" ' * 900 + '"y"' + ")?" * 900
    report = lint(f"root ::= {deep}", engines=[], ambiguity_budget=QUICK)
    assert [f.code for f in report.findings] == []
    chain = "\n".join(f"d{i} ::= d{i + 1}" for i in range(3_000))
    report = lint(f'root ::= d0\n{chain}\nd3000 ::= "x"', engines=[], ambiguity_budget=QUICK)
    assert [f.code for f in report.findings] == ["delegation"]
    stars = "(" * 900 + '"y"' + ")*" * 900
    report = lint(f"root ::= {stars}", engines=[], ambiguity_budget=QUICK)
    assert len(report.findings) == 20
    assert "root: more than 20 findings nullable-loop or alike" in report.notes
    nest = '("x" ' * 900 + '"x"?' + ")?" * 900
    report = lint(f"root ::= {nest}", engines=[], ambiguity_budget=QUICK)
    assert [f.mend for f in report.findings] == ['write "x"{0,901}']


def test_findings_are_the_same_each_time():
    text = str(random_grammar(11, rules=12))
    one, other = lint(text, ambiguity_budget=QUICK), lint(text, ambiguity_budget=QUICK)
    assert one.document() == other.document()


def test_ignored_codes_and_other_engines_are_left_out():
    text = 'root ::= root "d" | "c" | "c"'
    every = {f.code for f in lint(text).findings}
    assert {"recursive-root", "duplicate-alternative"} <= every
    assert "recursive-root" not in {f.code for f in lint(text, engines=[Engine.OWN]).findings}
    assert "duplicate-alternative" not in {
        f.code for f in lint(text, ignore=["duplicate-alternative"]).findings
    }
    with pytest.raises(ValueError, match="there is no code 'dupes' to ignore"):
        lint(text, ignore=["dupes"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("root ::= a b\nc ::= d", [("a", 1, 10), ("b", 1, 12), ("d", 2, 7)]),
        ('root ::= "a" und', [("und", 1, 14)]),
    ],
)
def test_every_undefined_rule_is_told(text: str, expected: list[tuple[str, int, int]]):
    found = [f for f in lint(text).findings if f.code == "undefined-rule"]
    assert [(f.rule, f.place.line, f.place.column) for f in found if f.place] == expected
    assert all(f.severity is Severity.ERROR for f in found)


def test_other_errors_in_the_text_are_one_finding():
    for text, line, column in [('root ::= "a', 1, 10), ("", 1, 1), ('root ::= "a"{3,2}', 1, 13)]:
        report = lint(text)
        (finding,) = report.findings
        assert finding.code == "syntax-error"
        assert finding.place is not None
        assert (finding.place.line, finding.place.column) == (line, column)
        assert report.form is None


def test_places_are_those_of_what_is_meant():
    text = 'root ::= "a" | b\nb ::= ("x" | "y" | "x")\n  | "z"{0,0} c\nc ::= [] | ("q"?)*'
    found: dict[str, Finding] = {f.code: f for f in lint(text).findings}
    places = {code: str(found[code].place) for code in found}
    assert places["duplicate-alternative"] == "line 2, column 20"
    assert places["never-repeated"] == "line 3, column 5"
    assert places["empty-class"] == "line 4, column 7"
    assert places["nullable-loop"] == "line 4, column 13"


def test_sampled_sentences_are_texts_of_every_rewrite():
    """Rewrites of larger grammars, checked by sentences of the model instead of walks."""
    for seed in range(6):
        model = random_grammar(seed, rules=8)
        grammar = tokfold.Grammar.from_ebnf(str(model))
        sampler = SentenceSampler(lower(model))
        random = Random(seed)
        sentences = [s for s in (sampler.sample(random, 12) for _ in range(20)) if s is not None]
        report = lint(grammar, ambiguity_budget=QUICK)
        for finding in report.findings:
            if finding.rewrite is not None and finding.rewrite.same is Same.LANGUAGE:
                mended = report.mended(finding)
                assert all(tokfold.recognize(mended, s).accepted for s in sentences), finding
