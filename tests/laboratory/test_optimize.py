"""What `optimize` hands out: the grammar, the log, the certificate, and what it refuses."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import pytest
import tokfold
from hypothesis import given
from oracles.earley import Oracle
from oracles.model import to_ebnf
from strategies.grammars import grammars
from strategies.profiles import examples
from tokfold import Grammar, Limits, Vocabulary
from tokfold.errors import LimitExceededError
from tokfold.laboratory.equivalence import Verdict, compare
from tokfold.laboratory.form import Form
from tokfold.laboratory.instruments import byte_vocabulary, make_engine
from tokfold.laboratory.optimize import (
    PROFILES,
    Measurement,
    OptimizeError,
    RewriteFaultError,
    optimize,
)
from tokfold.laboratory.optimize import search as search_module
from tokfold.laboratory.optimize.algebra import references, seq, star
from tokfold.laboratory.optimize.rewrites.recursion import solved
from tokfold.laboratory.optimize.system import System
from tokfold.recognition import recognize

GRAMMARS = Path(__file__).parents[2] / "grammars"
ENGINES = sorted(PROFILES)
OPERATORS = 'e ::= e "+" e | e "*" e | "-" e | e "!" | "(" e ")" | n\nn ::= [0-9]+\n'


def of(text: str, engine: str = "own", **arguments) -> tokfold.laboratory.optimize.Optimized:
    return optimize(Grammar.from_ebnf(text), engine, **arguments)


def bodies(found) -> dict[str, str]:
    lines = (line.partition(" ::= ") for line in str(found.grammar).splitlines() if line)
    return {name: body for name, _, body in lines}


# --- the same language ----------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@examples(25)
@given(grammar=grammars(max_rules=4))
def test_against_earley_on_nasty_grammars(engine, grammar):
    """Unicode, unproductive and cyclic rules, hidden left recursion."""
    oracle = Oracle(grammar)
    given_grammar = Grammar.from_ebnf(to_ebnf(grammar))
    found = optimize(given_grammar, engine).grammar
    if not oracle.productive:
        return
    pieces = [b"a", b"b", b"(", b")", b"-", b"aa", b"ab", "é".encode(), b"", b"+", b"c"]
    for parts in itertools.product(pieces, repeat=2):
        text = b"".join(parts)
        assert recognize(found, text).accepted == oracle.accepts(text), text


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(p.stem for p in GRAMMARS.glob("*/*.gbnf")))
def test_real_grammars_take_and_refuse_the_same_texts(name, engine):
    folder = GRAMMARS / name
    grammar = Grammar.from_file(folder / f"{name}.gbnf")
    found = optimize(grammar, engine, check=lambda a, b: compare(a, b, max_pairs=100))
    assert found.certificate is not None
    assert found.certificate.kind in ("proved", "bounded")
    assert found.grammar.root == "root"
    texts = sorted((folder / "valid").iterdir(), key=lambda path: path.stat().st_size)[:3]
    for path in texts:
        assert recognize(found.grammar, path.read_bytes()).accepted, path
    expected = json.loads((folder / "invalid" / "EXPECT.json").read_text())
    for path, offset in list(expected.items())[:6]:
        seen = recognize(found.grammar, (folder / "invalid" / path).read_bytes())
        assert not seen.accepted
        assert seen.read == offset, path


def test_masks_stay_the_same_token_by_token():
    grammar = Grammar.from_file(GRAMMARS / "json" / "json.gbnf")
    vocabulary = byte_vocabulary()
    rows = []
    for one in (grammar, optimize(grammar, "xgrammar").grammar):
        walk = make_engine("own", one, vocabulary).begin(cold=True)
        seen = []
        for byte in b'{"a": [1, "\\u00e9"], "b": null}':
            walk.fill()
            seen.append(walk.row.tobytes())
            assert walk.accept(byte)
        rows.append(seen)
    assert rows[0] == rows[1]


# --- what becomes of what -------------------------------------------------------------------------


def test_ambiguity_goes_and_nothing_begins_and_ends_with_itself():
    for engine in ENGINES:
        found = of(f"root ::= e\n{OPERATORS}", engine)
        assert found.certificate.kind == "proved"
        form = Form.of(found.grammar)
        for rule in form.rules.values():
            split = solved(rule.name, rule.body)
            assert split is None or not split.both


def test_a_chain_of_levels_becomes_one():
    levels = "".join(f'e{i} ::= e{i + 1} ("{op}" e{i + 1})*\n' for i, op in enumerate("|^&+*"))
    found = of(f'root ::= e0\n{levels}e5 ::= [0-9] | "(" e0 ")"\n')
    assert list(bodies(found)) == ["root", "e0", "e5"]
    assert bodies(found)["e0"] == r"e5 ([&*+\^|] e5)*"
    assert "flatten a chain of levels" in {rewrite.law for rewrite in found.log}


def test_delegation_bisimilar_rules_and_useless_rules_go():
    found = of(
        "root ::= a b | never\na ::= c\nc ::= d\n"
        'd ::= "x" d "y" | "z"\nb ::= "z" | "x" b "y"\nnever ::= "n" never\nalone ::= "q"\n'
    )
    assert list(bodies(found)) == ["root", "d"]
    assert bodies(found)["root"] == "d d"


def test_rules_that_differ_in_a_count_are_not_merged():
    found = of('root ::= a b c\na ::= "(" [ab]{2,63} a?\nb ::= "(" [ab]{2,64} b?\nc ::= "+"\n')
    assert {"a", "b"} <= set(bodies(found))


def test_optional_runs_become_counts():
    found = of('root ::= x? x? x? "-" (x (x (x)?)?)?\nx ::= [0-9] | "a" root\n')
    assert bodies(found)["root"] == 'x{0,3} "-" x{0,3}'


def test_indirect_recursion_becomes_repetition():
    found = of('root ::= a\na ::= b "x" | "y"\nb ::= a "z" | "w"\n')
    assert found.certificate.kind == "proved"
    assert len(Form.of(found.grammar).rules) < 3


def test_a_loop_over_a_choice_that_calls_is_right_recursion_for_xgrammar():
    text = 'root ::= "<" c* ">"\nc ::= [a-z ] | "\\\\" h\nh ::= "x" | "u" h\n'
    found = of(text, "xgrammar")
    loop = next(name for name, body in bodies(found).items() if body.endswith(f" {name}"))
    assert '">"' in bodies(found)[loop]
    assert found.certificate.kind == "proved"
    assert found.cost[1] < found.cost[0]


def test_a_start_rule_that_is_named_gets_another_above_it_for_xgrammar():
    found = of('root ::= root "d" | "c" | "(" root ")"\n', "xgrammar")
    assert found.grammar.root == "root"
    for rule in Form.of(found.grammar).rules.values():
        assert "root" not in references(rule.body)


def test_the_log_reads():
    found = of(f"root ::= e\n{OPERATORS}")
    texts = [str(rewrite) for rewrite in found.log]
    assert any(text.startswith("e: recursion to repetition\n") for text in texts)
    assert found.is_changed
    again = optimize(found.grammar)
    assert not any("recursion" in rewrite.law for rewrite in again.log)


def test_nothing_is_done_to_what_is_well_already():
    found = of('root ::= "a" [b-d]*\n')
    assert not found.is_changed
    assert str(found.grammar) == str(found.original)


# --- what is left alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_rules_that_say_more_than_a_language_stay(engine):
    text = (
        'root ::= a b TagDispatch(("<t>", t))\n'
        "a[max_tokens=3] ::= a_1 a_1\na_1 ::= one\n"
        'b ::= "x" | b "y" (= "z")\n'
        "t ::= u\nu ::= u [0-9] | [0-9]\none ::= two\ntwo ::= [a-c] | two two\n"
    )
    found = of(text, engine)
    after = bodies(found)
    assert after["root"] == bodies_of(text)["root"]
    assert after["a[max_tokens=3]"] == "a_1 a_1"
    assert after["b"].startswith('"x" | b "y"')
    assert "t" in after  # the macro names it
    assert found.certificate is None
    assert found.uncertified


def bodies_of(text: str) -> dict[str, str]:
    lines = (line.partition(" ::= ") for line in str(Grammar.from_ebnf(text)).splitlines() if line)
    return {name: body for name, _, body in lines}


def test_lookahead_that_is_implied_is_left_out():
    grammar = Grammar.from_ebnf('root ::= a "b"\na ::= "x" | a "y" (= "b")\n', lookahead="implied")
    found = optimize(grammar)
    assert "(=" not in str(found.grammar)
    assert found.certificate.kind == "proved"


def test_no_strings_at_all():
    found = of('root ::= "a" root\n', "xgrammar")
    assert found.certificate.kind == "proved"
    assert found.grammar.root == "root"


# --- faults, limits, misuse -----------------------------------------------------------------------


def test_a_rewrite_that_is_wrong_is_caught_and_nothing_handed_out(monkeypatch):
    def wrong(system: System) -> bool:
        for name in system.open_rules():
            split = solved(name, system.rules[name])
            if split is not None:
                system.put(name, seq((split.unit(), star(split.unit()))), "wrong")
        return True

    profile = replace(PROFILES["own"], recursion=wrong)
    monkeypatch.setitem(PROFILES, "own", profile)
    with pytest.raises(RewriteFaultError, match="fault of tokfold") as caught:
        of(f"root ::= e\n{OPERATORS}")
    assert caught.value.verdict.difference is not None


def test_another_check_may_be_given():
    seen = []

    def check(left, right):
        seen.append((left, right))
        return Verdict("different", b"x", "left", True, None, 1)

    with pytest.raises(RewriteFaultError, match="'x' is in the first language"):
        of('root ::= "a" | "b"\n', check=check)
    assert len(seen) == 1


def test_unknown_engine_and_size():
    with pytest.raises(OptimizeError, match="no engine is named 'nope'"):
        of('root ::= "a"\n', "nope")
    with pytest.raises(LimitExceededError, match="max_parts") as caught:
        of('root ::= "a" "b" [a-c]* ("c" | "dd")\n', max_parts=3)
    assert (caught.value.limit, caught.value.value) == ("max_parts", 3)


@pytest.mark.parametrize(
    ("opening", "closing", "depth"),
    [
        ('"a" (', ")", 10_000),
        ("(", ")?", 10_000),
        ('("x" | "y" ', ")", 2_000),
        ("(", ' "b")*', 2_000),
    ],
)
def test_nested_ten_thousand_deep(opening, closing, depth):
    text = f'root ::= {opening * depth}"c"{closing * depth}\n'
    grammar = Grammar.from_ebnf(text, limits=Limits(max_nesting=3 * depth))
    found = optimize(grammar, "xgrammar", check=lambda a, b: Verdict(*_UNKNOWN))
    assert found.grammar.root == "root"


_UNKNOWN = ("bounded", None, None, False, 0, 0)


def test_a_long_chain_of_names_and_a_large_cycle():
    names = "".join(f"a{i} ::= a{i + 1}\n" for i in range(500))
    found = of(f'root ::= a0 a0\n{names}a500 ::= "x"\n')
    assert len(bodies(found)) == 2
    cycle = "".join(f'c{i} ::= "x" c{(i + 1) % 100} | "y"\n' for i in range(100))
    found = of(f"root ::= c0\n{cycle}")
    assert len(bodies(found)) <= 2
    assert found.certificate.kind == "proved"


# --- times ----------------------------------------------------------------------------------------


def test_measured_on_our_engine():
    vocabulary = Vocabulary([b"1", b"+", b"*", b"(", b")", b"12", b"</s>"], stop_token_ids=[6])
    measure = Measurement(vocabulary, b"1+12*(1+1)", rounds=2, seconds=600.0)
    found = of(f"root ::= e\n{OPERATORS}", measure=measure)
    assert [timing.name for timing in found.times] == [
        "given",
        "as written",
        "canonical",
        "searched",
    ]
    assert found.form in ("as written", "canonical", "searched")
    assert all(len(timing.step_us) == 9 for timing in found.times)
    # Cut greedily: 1 + 12 * ( 1 + 1 )
    assert found.certificate.kind == "proved"


def test_searched_moves_are_kept_only_where_the_cost_falls():
    for engine in ENGINES:
        grammar = Grammar.from_file(GRAMMARS / "smiles" / "smiles.gbnf")
        _, choices = search_module.search(Form.of(grammar), PROFILES[engine])
        assert all(choice.kept == (choice.after < choice.before) for choice in choices)


def test_equivalent_forms_cost_our_engine_alike():
    """No optimization: the engine's own networks make them alike. Counters, not times."""
    families = [
        (['l "," i | i', 'i "," l | i', 'i ("," i)*'], "root ::= l\ni ::= [0-9]+\nl ::= {}\n"),
        (['s s | "a"', 's "a" | "a"', '"a" s | "a"', '"a"+'], "root ::= s\ns ::= {}\n"),
    ]
    for forms, frame in families:
        spent = []
        for form in forms:
            text = b"1,22,3,4,5" if "[0-9]" in frame else b"a" * 40
            walk = make_engine("own", Grammar.from_ebnf(frame.format(form)), byte_vocabulary())
            begun = walk.begin(cold=True, counting=True)
            work = 0
            for byte in text:
                begun.fill()
                work += begun.counters()["mask.sets_visited"]
                assert begun.accept(byte)
                work += begun.counters()["step.work"]
            spent.append(work)
        assert max(spent) <= 1.3 * min(spent), (forms, spent)


XGRAMMAR = [
    f"root ::= e\n{OPERATORS}",
    'root ::= "[" s ("," s)* "]"\ns ::= "\\"" cs "\\""\ncs ::= cs c | ""\n'
    'c ::= [a-z ] | "\\\\" h\nh ::= "n" | "u" h\n',
]


TEXTS = [b"1+2*(3!)*-4", b'["abc d","\\uun"]']


@pytest.mark.parametrize(("text", "data"), list(zip(XGRAMMAR, TEXTS, strict=True)))
def test_xgrammar_leaves_fewer_tokens_open_and_its_masks_are_the_same(text, data):
    pytest.importorskip("xgrammar")
    words = [b"ab", b"abc", b"c d", b'","', b'"]', b"12", b"1+", b"+2*", b"(3", b")*", b"a b c"]
    tokens = [*(bytes((byte,)) for byte in range(256)), *words, b"</s>"]
    vocabulary = Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
    found = of(text, "xgrammar")
    left_open, masks = [], []
    for grammar in (found.original, found.grammar):
        walk = make_engine("xgrammar", grammar, vocabulary).begin(cold=True, counting=True)
        seen, count = [], 0
        for token in vocabulary.encode_greedy(data):
            walk.fill()
            seen.append(walk.row.tobytes())
            counts = walk.counters()
            count += counts["mask.uncertain"] + counts["state.states"]
            assert walk.accept(token)
            walk.counters()
        masks.append(seen)
        left_open.append(count)
    assert masks[0] == masks[1]
    assert left_open[1] < left_open[0], left_open
