"""Mutants that say something else than their grammar, or seem to.

Each kind offers, for a grammar, everything that it could do to it, as :class:`Mutant`. Many of them
change nothing (an alternative may be covered by another one): a mutant is one when a judge has seen
a text that one side takes and the other does not. ``probes`` says where to look for such a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Literal as OneOf

from laboratory.mutants.places import (
    Path,
    Users,
    choice,
    fresh,
    mapped,
    occurrences,
    replaced,
    sequence,
    through,
)
from laboratory.mutants.texts import is_written
from tokfold.laboratory.form import (
    EMPTY,
    Alt,
    Chars,
    Expr,
    Form,
    Literal,
    Ref,
    Repeat,
    Seq,
)

Side = OneOf["left", "right"]
LAST = 0x10FFFF
SURROGATES = range(0xD800, 0xE000)


@dataclass(frozen=True)
class Mutant:
    """A change of a grammar, or a pair of them.

    Attributes:
        what: the change in words.
        rule: where it is.
        left: bodies of the left grammar that are not those of the grammar it is made of; mostly
            none.
        right: bodies of the right one.
        root: the start rule of the right grammar, where it is another one.
        probes: what that rule may derive on one side, and perhaps not on the other.
    """

    what: str
    rule: str
    right: Mapping[str, Expr]
    left: Mapping[str, Expr] = field(default_factory=dict)
    root: str | None = None
    probes: tuple[tuple[Side, Expr], ...] = ()


def _change(
    what: str,
    rule: str,
    body: Expr,
    path: Path,
    new: Expr,
    *,
    only_left: Expr | None = None,
    only_right: Expr | None = None,
) -> Mutant:
    """Something else in one place."""
    changed = replaced(body, path, new)
    probes: list[tuple[Side, Expr]] = []
    if only_left is not None:
        probes.append(("left", through(body, path, only_left)))
    if only_right is not None:
        probes.append(("right", through(changed, path, only_right)))
    return Mutant(what, rule, {rule: changed}, probes=tuple(probes))


Place = tuple[str, Expr, Path, Expr]
"""A rule, its body, the way to a part of it, the part."""


def _places(form: Form) -> Iterator[Place]:
    for rule in form.rules.values():
        for path, expr in occurrences(rule.body):
            yield rule.name, rule.body, path, expr


def bound_changed(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if not isinstance(expr, Repeat):
            continue
        inner, least, most = expr.body, expr.least, expr.most
        if most is not None and most > max(least, 1):
            left = Repeat(inner, most, most)
            new = Repeat(inner, least, most - 1)
            yield _change("most, less one", rule, body, path, new, only_left=left)
        if most is not None and most > 1:
            right = Repeat(inner, most + 1, most + 1)
            new = Repeat(inner, least, most + 1)
            yield _change("most, one more", rule, body, path, new, only_right=right)
        if least > 1:
            right = Repeat(inner, least - 1, least - 1)
            new = Repeat(inner, least - 1, most)
            yield _change("least, less one", rule, body, path, new, only_right=right)
        if least > 0 and (most is None or most > least):
            left = Repeat(inner, least, least)
            new = Repeat(inner, least + 1, most)
            yield _change("least, one more", rule, body, path, new, only_left=left)


def bound_64_or_63(form: Form, random: Random) -> Iterator[Mutant]:
    """Grammars have few large bounds, so both sides get one."""
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Repeat) and expr.most is None and expr.least < 2:
            left, right = (Repeat(expr.body, expr.least, most) for most in (64, 63))
            probe = through(body, path, Repeat(expr.body, 64, 64))
            yield Mutant(
                f"{{{expr.least},64}} against {{{expr.least},63}}",
                rule,
                left={rule: replaced(body, path, left)},
                right={rule: replaced(body, path, right)},
                probes=(("left", probe),),
            )


def range_changed(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if not isinstance(expr, Chars) or not expr.ranges:
            continue
        number = random.randrange(len(expr.ranges))
        first, last = expr.ranges[number]
        others = [*expr.ranges[:number], *expr.ranges[number + 1 :]]
        for at, narrow in ((first, (first + 1, last)), (last, (first, last - 1))):
            if first < last:
                new, gone = Chars([*others, narrow]), Chars([(at, at)])
                yield _change("range narrowed by one", rule, body, path, new, only_left=gone)
        for at in (first - 1, last + 1):
            outside = 0 <= at <= LAST and at not in SURROGATES
            if outside and not any(a <= at <= b for a, b in others):
                more = Chars([(at, at)])
                new = Chars([*expr.ranges, (at, at)])
                yield _change("range widened by one", rule, body, path, new, only_right=more)


def literal_changed(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if not isinstance(expr, Literal):
            continue
        text = expr.data.decode("utf-8", "surrogatepass")
        at = random.randrange(len(text))
        others = {
            "one character is the next": text[:at]
            + chr(min(ord(text[at]) + 1, LAST))
            + text[at + 1 :],
            "one character twice": text[:at] + text[at] + text[at:],
            "other case": text.swapcase(),
            "a character less": text[:at] + text[at + 1 :],
            "two characters swapped": text[:at] + text[at : at + 2][::-1] + text[at + 2 :],
        }
        for what, other in others.items():
            data = other.encode("utf-8", "surrogatepass")
            if other not in ("", text) and is_written(data):
                new = Literal(data)
                yield _change(what, rule, body, path, new, only_left=expr, only_right=new)


def alternative_dropped(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Alt):
            number = random.randrange(len(expr.parts))
            gone = expr.parts[number]
            new = choice([*expr.parts[:number], *expr.parts[number + 1 :]])
            what = f"alternative {number + 1} dropped"
            yield _change(what, rule, body, path, new, only_left=gone)


def alternative_added(form: Form, random: Random) -> Iterator[Mutant]:
    names = sorted(form.rules)
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Alt):
            more = random.choice([Ref(random.choice(names)), Literal(b"~"), EMPTY])
            new = Alt([*expr.parts, more])
            yield _change("alternative added", rule, body, path, new, only_right=more)


def repetition_changed(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if not isinstance(expr, Repeat) or (expr.most is not None and expr.most > 1):
            continue
        inner, twice = expr.body, Repeat(expr.body, 2, 2)
        match expr.least, expr.most:
            case 0, None:
                new = Repeat(inner, 1, None)
                yield _change("* to +", rule, body, path, new, only_left=EMPTY)
                new = Repeat(inner, 0, 1)
                yield _change("* to ?", rule, body, path, new, only_left=twice)
            case 1, None:
                new = Repeat(inner, 0, None)
                yield _change("+ to *", rule, body, path, new, only_right=EMPTY)
                yield _change("+ to one", rule, body, path, inner, only_left=twice)
            case 0, 1:
                yield _change("optional to required", rule, body, path, inner, only_left=EMPTY)
                new = Repeat(inner, 0, None)
                yield _change("? to *", rule, body, path, new, only_right=twice)


def made_optional(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Seq):
            number = random.randrange(len(expr.parts))
            new = Repeat(expr.parts[number], 0, 1)
            what = f"part {number + 1} made optional"
            yield _change(what, rule, body, (*path, number), new, only_right=EMPTY)


def parts_swapped(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Seq):
            at = random.randrange(len(expr.parts) - 1)
            parts = list(expr.parts)
            parts[at], parts[at + 1] = parts[at + 1], parts[at]
            new = Seq(parts)
            what = f"parts {at + 1} and {at + 2} swapped"
            yield _change(what, rule, body, path, new, only_left=expr, only_right=new)


def reference_changed(form: Form, random: Random) -> Iterator[Mutant]:
    names = sorted(form.rules)
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Ref) and len(names) > 1:
            new = Ref(random.choice([name for name in names if name != expr.name]))
            what = f"{expr.name} became {new.name}"
            yield _change(what, rule, body, path, new, only_left=expr, only_right=new)


def separator_dropped(form: Form, random: Random) -> Iterator[Mutant]:
    for rule, body, path, expr in _places(form):
        if isinstance(expr, Seq) and any(isinstance(part, Literal) for part in expr.parts):
            literals = [i for i, part in enumerate(expr.parts) if isinstance(part, Literal)]
            at = random.choice(literals)
            new = sequence([*expr.parts[:at], *expr.parts[at + 1 :]])
            what = f"part {at + 1} dropped"
            yield _change(what, rule, body, path, new, only_left=expr, only_right=new)


def depth_bounded(form: Form, random: Random) -> Iterator[Mutant]:
    """A rule that calls itself may do so three times at most: the same, but for deep texts."""
    recursive = Users.among(form).recursive
    for rule in form.rules.values():
        own = [path for path, expr in occurrences(rule.body) if expr is Ref(rule.name)]
        if rule.name not in recursive or not own or not isinstance(rule.body, Alt):
            continue
        ends = [
            part
            for part in rule.body.parts
            if all(expr is not Ref(rule.name) for _, expr in occurrences(part))
        ]
        if not ends:
            continue
        names = [rule.name]
        bodies: dict[str, Expr] = {}
        for _ in range(3):
            names.append(fresh(form, f"{rule.name}_{len(names)}_deep"))
            bodies[names[-2]] = mapped(rule.body, {Ref(rule.name): Ref(names[-1])})
        bodies[names[-1]] = choice(ends)
        probe: Expr = Ref(rule.name)
        for _ in range(4):
            probe = through(rule.body, random.choice(own), probe)
        what = "calls itself at most three deep"
        yield Mutant(what, rule.name, bodies, probes=(("left", probe),))


KINDS: Mapping[str, Callable[[Form, Random], Iterator[Mutant]]] = {
    kind.__name__: kind
    for kind in (
        alternative_added,
        alternative_dropped,
        bound_64_or_63,
        bound_changed,
        depth_bounded,
        literal_changed,
        made_optional,
        parts_swapped,
        range_changed,
        reference_changed,
        repetition_changed,
        separator_dropped,
    )
}
