"""Mutants that say the same as their grammar, each by a law that makes it so.

A law rewrites one place and is true of any languages in the place of its letters, so that nothing
needs to be known of the grammar; each says its equation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from random import Random

from laboratory.mutants.changes import Mutant
from laboratory.mutants.places import (
    Path,
    Users,
    choice,
    fresh,
    mapped,
    occurrences,
    replaced,
    sequence,
    with_bodies,
)
from laboratory.mutants.texts import Texts, is_written
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

Rewritten = tuple[str, Path, Expr, dict[str, Expr]]
"""The rule, the place in it, what stands there now, new rules."""
_MANY = 400
"""Parts that one rewriting may make of one."""


def _places(form: Form) -> Iterator[tuple[str, Path, Expr]]:
    for rule in form.rules.values():
        for path, expr in occurrences(rule.body):
            yield rule.name, path, expr


def delegated(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x = r`` where ``r ::= x``, by way of another rule."""
    for rule, path, expr in _places(form):
        if expr is not EMPTY:
            name, end = fresh(form, "given"), fresh(form, "given_on")
            yield rule, path, Ref(name), {name: Ref(end), end: expr}


def inlined(form: Form, random: Random) -> Iterator[Rewritten]:
    """``r = x`` where ``r ::= x``, and x does not come to r."""
    recursive = Users.among(form).recursive
    for rule, path, expr in _places(form):
        if isinstance(expr, Ref) and expr.name not in recursive:
            yield rule, path, form.rules[expr.name].body, {}


def unfolded(form: Form, random: Random) -> Iterator[Rewritten]:
    """``r = x`` where ``r ::= x``, and x comes to r again."""
    recursive = Users.among(form).recursive
    for rule, path, expr in _places(form):
        if isinstance(expr, Ref) and expr.name in recursive:
            yield rule, path, form.rules[expr.name].body, {}


def reordered(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x | y = y | x``."""
    for rule, path, expr in _places(form):
        if isinstance(expr, Alt):
            yield rule, path, Alt(random.sample(expr.parts, len(expr.parts))), {}


def factored(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x y | x z = x (y | z)``, and from the right."""
    for rule, path, expr in _places(form):
        if not isinstance(expr, Alt):
            continue
        parts = [part.parts if isinstance(part, Seq) else (part,) for part in expr.parts]
        for end in (0, -1):
            joint = [part for part in parts if part[end] is parts[-1][end]]
            if len(joint) > 1 and parts[-1][end] is not EMPTY:
                rest = [sequence(part[1:] if end == 0 else part[:-1]) for part in joint]
                both = [parts[-1][end], choice(rest)]
                others = [sequence(part) for part in parts if part not in joint]
                yield rule, path, choice([*others, Seq(both if end == 0 else both[::-1])]), {}


def distributed(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x (y | z) = x y | x z``."""
    for rule, path, expr in _places(form):
        if not isinstance(expr, Seq):
            continue
        for at, part in enumerate(expr.parts):
            if isinstance(part, Alt):
                before, after = expr.parts[:at], expr.parts[at + 1 :]
                made = [sequence([*before, option, *after]) for option in part.parts]
                yield rule, path, Alt(made), {}


def repetition_split(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x* = (x+)? = (x x)* x?``, ``x+ = x x*``, ``x? = x | ""``, ``x{m,n} = x{m,k} x{0,n-k}``."""
    for rule, path, expr in _places(form):
        if not isinstance(expr, Repeat):
            continue
        x, least, most = expr.body, expr.least, expr.most
        optional = Repeat(x, 0, 1)
        if (least, most) == (0, None):
            yield rule, path, Repeat(Repeat(x, 1, None), 0, 1), {}
            yield rule, path, Seq([Repeat(Seq([x, x]), 0, None), optional]), {}
            yield rule, path, Repeat(optional, 0, None), {}
        elif (least, most) == (1, None):
            parts: list[Expr] = [x, Repeat(x, 0, None)]
            random.shuffle(parts)
            yield rule, path, Seq(parts), {}
        elif (least, most) == (0, 1):
            yield rule, path, Alt([x, EMPTY]), {}
        elif most is not None and most > 1:
            cut = random.randint(max(least, 1), most)
            tail = [Repeat(x, 0, most - cut)] if most > cut else []
            yield rule, path, sequence([Repeat(x, least, cut), *tail]), {}
            nested = [x] * least
            optionals: Expr = EMPTY
            for _ in range(most - least):
                optionals = Repeat(sequence([x, optionals]), 0, 1)
            yield rule, path, sequence([*nested, optionals]), {}


def recursion_turned(form: Form, random: Random) -> Iterator[Rewritten]:
    """``r ::= r x | y`` is ``y x*``; ``r ::= x r | y`` is ``x* y``.

    The star is written as one, or as a rule that recurs on the other side. x and y may call r too.
    """
    for rule in form.rules.values():
        own = Ref(rule.name)
        parts = rule.body.parts if isinstance(rule.body, Alt) else (rule.body,)
        split = [part.parts if isinstance(part, Seq) else (part,) for part in parts]
        for end in (0, -1):
            again = [part for part in split if len(part) > 1 and part[end] is own]
            stops = [sequence(part) for part in split if part[end] is not own]
            if not again or not stops or len(again) + len(stops) != len(split):
                continue
            step = choice(sequence(part[1:] if end == 0 else part[:-1]) for part in again)
            more = fresh(form, f"{rule.name}_more")
            stepped = [step, Ref(more)] if end == 0 else [Ref(more), step]
            both = [choice(stops), Repeat(step, 0, None)]
            yield rule.name, (), Seq(both if end == 0 else both[::-1]), {}
            both = [choice(stops), Ref(more)]
            new = {more: Alt([EMPTY, sequence(stepped)])}
            yield rule.name, (), Seq(both if end == 0 else both[::-1]), new


def star_recursive(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x*`` is ``r`` where ``r ::= "" | x r``, ``"" | r x`` or ``"" | x | r r``."""
    for rule, path, expr in _places(form):
        if isinstance(expr, Repeat) and expr.most is None and expr.least < 2:
            name = fresh(form, "again")
            again, x = Ref(name), expr.body
            ends = [EMPTY] if expr.least == 0 else [x]
            yield rule, path, again, {name: choice([*ends, sequence([x, again])])}
            yield rule, path, again, {name: choice([*ends, sequence([again, x])])}
            twice = [*dict.fromkeys([*ends, x]), Seq([again, again])]
            yield rule, path, again, {name: choice(twice)}


def duplicated(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x = x | x``."""
    for rule, path, expr in _places(form):
        if isinstance(expr, Alt):
            more = random.choice(expr.parts)
            yield rule, path, Alt([*expr.parts, more]), {}
        elif isinstance(expr, Ref | Repeat):
            yield rule, path, Alt([expr, expr]), {}


def made_redundant(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x = x | y`` where y is a part of x: a text of it, a range of it, an alternative of it."""
    texts = Texts(form)
    for rule, path, expr in _places(form):
        if isinstance(expr, Chars) and expr.ranges and expr.ranges[0][0] < expr.ranges[0][1]:
            yield rule, path, Alt([expr, Chars([expr.ranges[0]])]), {}
        elif isinstance(expr, Ref):
            inner = form.rules[expr.name].body
            if isinstance(inner, Alt):
                yield rule, path, Alt([random.choice(inner.parts), expr]), {}
        elif isinstance(expr, Repeat) and expr.most is None:
            fixed = Repeat(expr.body, max(expr.least, 2), 3)
            yield rule, path, Alt([expr, fixed]), {}
        elif isinstance(expr, Alt):
            sample = texts.sample(expr, random, 8)
            if sample and is_written(sample):
                yield rule, path, Alt([*expr.parts, Literal(sample)]), {}


def denested(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x | r = x | y | z`` where ``r ::= y | z``; ``(x | y) | z = x | y | z``."""
    for rule, path, expr in _places(form):
        if not isinstance(expr, Alt):
            continue
        flat: list[Expr] = []
        for part in expr.parts:
            inner = form.rules[part.name].body if isinstance(part, Ref) else part
            flat.extend(inner.parts if isinstance(inner, Alt) else [part])
        if len(expr.parts) < len(flat) < _MANY:
            yield rule, path, Alt(flat), {}


def characters_split(form: Form, random: Random) -> Iterator[Rewritten]:
    """``[a-z] = [a-m] | [n-z]``, ``"ab" = "a" [b]``."""
    for rule, path, expr in _places(form):
        if isinstance(expr, Chars) and expr.ranges:
            number = random.randrange(len(expr.ranges))
            first, last = expr.ranges[number]
            if first < last:
                middle = random.randrange(first, last)
                low = [*expr.ranges[:number], (first, middle)]
                high = [(middle + 1, last), *expr.ranges[number + 1 :]]
                yield rule, path, Alt([Chars(high), Chars(low)]), {}
        elif isinstance(expr, Literal):
            text = expr.data.decode("utf-8", "surrogatepass")
            each: list[Expr] = [Chars([(ord(char), ord(char))]) for char in text]
            yield rule, path, sequence(each), {}


def endless_added(form: Form, random: Random) -> Iterator[Rewritten]:
    """``x = x | y r`` where ``r ::= z r`` has no text."""
    for rule, path, expr in _places(form):
        if isinstance(expr, Alt):
            name = fresh(form, "endless")
            end = Seq([expr.parts[0], Ref(name)])
            yield rule, path, Alt([*expr.parts, end]), {name: Seq([Literal(b"~"), Ref(name)])}


_ONE_PLACE: tuple[Callable[[Form, Random], Iterator[Rewritten]], ...] = (
    characters_split,
    delegated,
    denested,
    distributed,
    duplicated,
    endless_added,
    factored,
    inlined,
    made_redundant,
    recursion_turned,
    reordered,
    repetition_split,
    star_recursive,
    unfolded,
)


def _as_mutants(
    law: Callable[[Form, Random], Iterator[Rewritten]],
) -> Callable[[Form, Random], Iterator[Mutant]]:
    def kind(form: Form, random: Random) -> Iterator[Mutant]:
        for rule, path, new, more in law(form, random):
            body = replaced(form.rules[rule].body, path, new)
            if body is not form.rules[rule].body:
                yield Mutant(law.__name__.replace("_", " "), rule, {rule: body, **more})

    return kind


def renamed(form: Form, random: Random) -> Iterator[Mutant]:
    """Other names, in another order."""
    names = [f"rule_{number}" for number in range(len(form.rules))]
    random.shuffle(names)
    new = dict(zip(form.rules, names, strict=True))
    change: dict[Expr, Expr] = {Ref(old): Ref(name) for old, name in new.items()}
    rules = random.sample(list(form.rules.values()), len(form.rules))
    bodies = {new[rule.name]: mapped(rule.body, change) for rule in rules}
    yield Mutant("renamed", form.root, bodies, root=new[form.root])


def several(form: Form, random: Random) -> Iterator[Mutant]:
    """Four laws, one after the other."""
    while True:
        now, done = form, []
        for law in random.sample(_ONE_PLACE, 8):
            mutants = list(_as_mutants(law)(now, random))
            if mutants and len(done) < 4:
                now = with_bodies(now, dict(random.choice(mutants).right))
                done.append(law.__name__)
        yield Mutant(", ".join(done).replace("_", " "), form.root, changed_bodies(form, now))


def changed_bodies(form: Form, other: Form) -> dict[str, Expr]:
    """What the other form has that this one has not."""
    return {
        rule.name: rule.body
        for rule in other.rules.values()
        if rule.name not in form.rules or form.rules[rule.name].body is not rule.body
    }


LAWS: Mapping[str, Callable[[Form, Random], Iterator[Mutant]]] = {
    **{law.__name__: _as_mutants(law) for law in _ONE_PLACE},
    "renamed": renamed,
    "several": several,
}
