"""Every rewrite keeps the language: against all strings up to a length, on random grammars."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from laboratory.optimize_language import expressions, forms, language, languages, strings
from strategies.profiles import CASES, examples
from tokfold.laboratory.form import Form, Ref, Repeat, Seq
from tokfold.laboratory.optimize.algebra import (
    alt,
    alternatives,
    repeat,
    seq,
    simplified,
    star,
)
from tokfold.laboratory.optimize.profiles import PROFILES
from tokfold.laboratory.optimize.rewrites import (
    chain,
    cleanup,
    factor,
    inline,
    loops,
    merge,
    recursion,
    root,
)
from tokfold.laboratory.optimize.search import search
from tokfold.laboratory.optimize.system import System

LONGEST = 4
KNOWN = {
    "r1": frozenset({b"", b"a", b"ab"}),
    "r2": frozenset({b"b", b"+b"}),
    "r3": frozenset({b""}),
}
REWRITES: dict[str, Callable[[System], object]] = {
    function.__name__: function
    for function in (
        cleanup.drop_cycles,
        cleanup.drop_unproductive,
        cleanup.drop_unreachable,
        merge.merge_equal,
        merge.remove_delegation,
        inline.inline_root,
        inline.inline_small,
        recursion.expose_recursion,
        recursion.normalize_recursion,
        chain.denest_chains,
        factor.factor_prefixes,
        factor.factor_suffixes,
        loops.spell_repetitions,
        root.fresh_root,
    )
} | {
    "inline_wide": lambda system: inline.inline_wide(system, 1),
    "ambiguity": lambda system: recursion.normalize_ambiguity(system, lambda expr: False),
    "ambiguity, loops": lambda system: recursion.normalize_ambiguity(system, lambda expr: True),
    "loops_to_recursion": lambda system: loops.loops_to_recursion(system, 1),
}
"""All of them. Those of one engine are tried on any grammar too."""

names = list(KNOWN)


@examples(120)
@given(expressions(names))
def test_canonical_form_of_an_expression(expr):
    assert strings(simplified(expr), 6, KNOWN) == strings(expr, 6, KNOWN)
    again = simplified(simplified(expr))
    assert strings(again, 6, KNOWN) == strings(expr, 6, KNOWN)


@examples(80)
@given(st.lists(expressions(names), max_size=4), st.sampled_from([(0, None), (1, None), (2, 3)]))
def test_constructors(parts, bounds):
    joined = strings(seq(map(simplified, parts)), 5, KNOWN)
    assert joined == (strings(Seq(parts), 5, KNOWN) if len(parts) > 1 else _alone(parts, b""))
    either = strings(alt(map(simplified, parts)), 5, KNOWN)
    assert either == frozenset().union(*(strings(part, 5, KNOWN) for part in parts))
    for part in parts:
        looped = strings(repeat(simplified(part), *bounds), 5, KNOWN)
        assert looped == strings(Repeat(part, *bounds), 5, KNOWN)
        split = frozenset().union(*(strings(a, 5, KNOWN) for a in alternatives(part)))
        assert split == strings(part, 5, KNOWN)


def _alone(parts, empty):
    return strings(parts[0], 5, KNOWN) if parts else frozenset({empty})


@examples(80)
@given(expressions(names))
def test_laws_of_sequences_and_choices(expr):
    for change in (
        chain.denested,
        factor.factored,
        lambda e: factor.factored(e, at_end=True),
        lambda e: factor.factored(e, calls=True),
    ):
        assert strings(change(simplified(expr)), 5, KNOWN) == strings(expr, 5, KNOWN)


@examples(160)
@given(form=forms())
def test_each_rewrite_keeps_the_language(form):
    """One grammar goes through each rewrite by itself; what changed it is counted."""
    expected = language(form, LONGEST)
    assert language(System(form).form(), LONGEST) == expected
    for name, rewrite in REWRITES.items():
        system = System(form)
        before = dict(system.rules)
        rewrite(system)
        if system.rules != before:
            CASES[f"grammars that {name} changed"] += 1
            assert language(system.form(), LONGEST) == expected, name


@examples(40)
@given(form=forms(), order=st.lists(st.sampled_from(sorted(REWRITES)), min_size=2, max_size=6))
def test_rewrites_in_any_order_keep_the_language(form, order):
    system = System(form)
    for name in order:
        REWRITES[name](system)
    assert language(system.form(), LONGEST) == language(form, LONGEST)


@pytest.mark.parametrize("engine", PROFILES)
@examples(30)
@given(form=forms())
def test_search_keeps_the_language(engine, form):
    found, _ = search(form, PROFILES[engine])
    assert language(found.form(), LONGEST) == language(form, LONGEST)


LISTS = {"o": expressions(["z"]), "s": expressions(["z"]), "p": expressions(["z"])}


@examples(40)
@given(
    between=st.lists(expressions(["z"]), max_size=2),
    after=st.lists(expressions(["z"]), max_size=2),
    before=st.lists(expressions(["z"]), max_size=2),
    base=st.lists(expressions(["z"]), max_size=2),
)
def test_the_law_of_recursion(between, after, before, base):
    """``X = X O X | X S | P X | B`` is ``U (O U)*`` with ``U = P* B S*``, by brute force.

    Nullable and empty parts are among them; z is another rule.
    """
    z = frozenset({b"", b"+a"})
    own = Ref("x")
    recursive = [
        *(Seq((own, part, own)) for part in between),
        *(Seq((own, part)) for part in after),
        *(Seq((part, own)) for part in before),
    ]
    raw = alt([*recursive, *base])
    unit = seq((star(alt(before)), alt(base), star(alt(after))))
    closed = seq((unit, star(seq((alt(between), unit))))) if between else unit
    expected = _solved(raw, z)
    assert strings(closed, 5, {"z": z}) == expected
    found = recursion.solved("x", raw)
    assume(found is not None)
    unit = found.unit()
    again = seq((unit, star(alt((*found.after, *(seq((op, unit)) for op in found.both))))))
    assert strings(again, 5, {"z": z}) == expected
    left = alt((unit, *(seq((own, s)) for s in after), *(seq((own, o, unit)) for o in between)))
    assert _solved(left, z) == expected


def _solved(body, z):
    """The least solution of x = body."""
    found = {"x": frozenset(), "z": z}
    while True:
        after = strings(body, 5, found)
        if after == found["x"]:
            return after
        found["x"] = after


@examples(40)
@given(one=expressions(["z"]), other=expressions(["z"]), atom=expressions(["z"]))
def test_the_law_of_chains(one, other, atom):
    """``A = B (O B)*``, ``B = C (Q C)*`` is ``C ((O | Q) C)*``."""
    z = {"z": frozenset({b"", b"b"})}
    level = Seq((atom, Repeat(Seq((other, atom)), 0, None)))
    nested = Seq((level, Repeat(Seq((one, level)), 0, None)))
    flat = seq((atom, star(seq((alt((one, other)), atom)))))
    assert strings(flat, 5, z) == strings(nested, 5, z)


def test_the_oracle_counts_a_language_by_hand():
    rules = Form.of('root ::= "a" root "b" | ""\nother ::= [ab]{2,3}\n').rules.values()
    found = languages({rule.name: rule.body for rule in rules}, 5)
    assert found["root"] == {b"", b"ab", b"aabb"}
    assert len(found["other"]) == 4 + 8
