"""Repetitions as XGrammar takes them best.

XGrammar makes a mask for each place of a rule when it compiles, and leaves open the tokens that
run past the end of the rule: those are tried one by one at every step. A repetition of a choice
that calls rules becomes two rules there, one for a pass and one for the loop, so that in the loop
of a string nearly every token is left open. Written as one rule that ends in itself, nothing is.

Laws: ``(x | y)* z`` is the least T with ``T = z | x T | y T`` (Arden's lemma: the least solution
of ``T = z | w T`` is ``w* z``, for any w), and ``(x | y)+ z = (x | y) T``.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokfold.laboratory.form import EMPTY, Alt, Chars, Expr, Literal, Ref, Repeat, Seq, postorder
from tokfold.laboratory.optimize.algebra import alt, alternatives, parts_of, references, seq, size
from tokfold.laboratory.optimize.facts import Facts, width
from tokfold.laboratory.optimize.system import System

__all__ = ["loops_to_recursion", "spell_repetitions"]

MAX_ALTERNATIVES = 32
WIDE = 16
MAX_SIZE = 160
_LAW = "repetition to right recursion"


MAX_ROUNDS = 3
"""Rules unfolded into a loop may have loops of their own."""


def loops_to_recursion(system: System, least: int = WIDE) -> bool:
    """Write repetitions of choices as rules that end in themselves, with what follows inside.

    Done where a pass can be one character out of ``least`` in ASCII or more, and calls of rules are
    in the way or a literal or class follows.
    """
    rounds = 0
    while rounds < MAX_ROUNDS and _Loops(system, Facts(system), least).run():
        rounds += 1
    return rounds > 0


class _Loops:
    def __init__(self, system: System, facts: Facts, least: int) -> None:
        self.system, self.facts, self.least = system, facts, least
        self.made: dict[tuple[Expr, Expr], str] = {}

    def run(self) -> bool:
        changed = False
        for name in self.system.open_rules():
            before = self.system.rules[name]
            after = self._whole(name, before)
            if after is not before:
                changed |= self.system.put(name, after, _LAW)
        return changed

    def _whole(self, name: str, body: Expr) -> Expr:
        known: dict[Expr, Expr] = {}
        for node in postorder((body,)):
            made: Expr = node
            if isinstance(node, Seq):
                made = self._sequence(name, tuple(known[part] for part in node.parts))
            elif isinstance(node, Alt):
                made = alt(self._sequence(name, parts_of(known[part])) for part in node.parts)
            elif isinstance(node, Repeat):
                # The body's own loops are inside sequences or choices, or it is a choice.
                made = node if known[node.body] is node.body else _again(node, known[node.body])
            known[node] = made
        return self._sequence(name, parts_of(known[body]))

    def _sequence(self, name: str, parts: tuple[Expr, ...]) -> Expr:
        for at, part in enumerate(parts):
            if not (isinstance(part, Repeat) and part.most is None and part.least <= 1):
                continue
            follow = parts[at + 1] if at + 1 < len(parts) else EMPTY
            if not isinstance(follow, Literal | Chars):
                follow = EMPTY
            choices = self._passes(part.body, follow)
            if choices is None:
                continue
            rest = parts[at + 1 + (follow is not EMPTY) :]
            loop = Ref(self._loop(name, part.body, choices, follow))
            tail: list[Expr] = [loop]
            if part.least:
                tail = [alt(seq((choice, loop)) for choice in choices)]
            return seq((*parts[:at], *tail, self._sequence(name, rest)))
        return seq(parts)

    def _loop(self, near: str, body: Expr, choices: list[Expr], follow: Expr) -> str:
        if (body, follow) not in self.made:
            own = self.system.add(near, EMPTY, _LAW)
            self.made[body, follow] = own
            after = alt((follow, *(seq((choice, Ref(own))) for choice in choices)))
            self.system.put(own, after, _LAW)
        return self.made[body, follow]

    def _passes(self, body: Expr, follow: Expr) -> list[Expr] | None:
        """The choices of one pass, if they are to be written into the loop."""
        if isinstance(body, Chars | Literal | Seq):
            return None
        if width(self.facts.of(body).alone) < self.least:
            return None
        choices = self._opened(body)
        if choices is None or sum(map(size, choices)) > MAX_SIZE:
            return None
        plain = all(_is_flat(choice) for choice in choices)
        if plain and (len(choices) == 1 or follow is EMPTY):
            return None
        return choices

    def _opened(self, body: Expr) -> list[Expr] | None:
        """The alternatives of a body, rules that stand alone unfolded."""
        found: dict[Expr, None] = {}
        work, seen = list(reversed(alternatives(body))), set[str]()
        while work:
            top = work.pop()
            if isinstance(top, Ref) and top.name not in self.system.fixed:
                inner = self.system.rules[top.name]
                if top.name in seen:
                    continue  # a cycle of single names adds nothing
                if top.name not in references(inner):
                    seen.add(top.name)
                    work += reversed(alternatives(inner))
                    continue
            if isinstance(top, Alt):
                work += reversed(alternatives(top))
            elif top is not EMPTY:
                found[top] = None
            if len(found) > MAX_ALTERNATIVES:
                return None
        return list(parts_of_choice(alt(found)))


def parts_of_choice(expr: Expr) -> Iterator[Expr]:
    """The alternatives of a choice, or the expression itself."""
    yield from expr.parts if isinstance(expr, Alt) else (expr,)


def _again(node: Repeat, body: Expr) -> Expr:
    return Repeat(body, node.least, node.most)


def _is_flat(expr: Expr) -> bool:
    """Whether XGrammar writes an alternative into the loop by itself."""
    for part in parts_of(expr):
        starred = isinstance(part, Repeat) and (part.least, part.most) == (0, None)
        inner = part.body if isinstance(part, Repeat) and starred else part
        if not isinstance(inner, Chars | Literal) or (starred and not isinstance(inner, Chars)):
            return False
    return True


def spell_repetitions(system: System) -> bool:
    """Write ``[a-z]+`` as ``[a-z] [a-z]*`` and a rule ``(x | y)?`` as ``"" | x | y``.

    XGrammar keeps the one inside the rule, and makes no rule of its own for the other.

    Laws: ``x+ = x x*``, ``x? = "" | x``.
    """
    memo: dict[Expr, Expr] = {}
    changed = False
    for name in system.open_rules():
        after = _spelled(system.rules[name], memo)
        if isinstance(after, Repeat) and (after.least, after.most) == (0, 1):
            after = Alt((EMPTY, *parts_of_choice(after.body)))
        changed |= system.put(name, after, "spell out a repetition")
    return changed


def _spelled(expr: Expr, known: dict[Expr, Expr]) -> Expr:
    for node in postorder((expr,)):
        if node in known:
            continue
        made: Expr = node
        if isinstance(node, Seq):
            made = Seq(piece for part in node.parts for piece in parts_of(known[part]))
        elif isinstance(node, Alt):
            made = Alt(known[part] for part in node.parts)
        elif isinstance(node, Repeat):
            made = Repeat(known[node.body], node.least, node.most)
            if isinstance(node.body, Chars) and (node.least, node.most) == (1, None):
                made = Seq((node.body, Repeat(node.body, 0, None)))
        known[node] = made
    return known[expr]
