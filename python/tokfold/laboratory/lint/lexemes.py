"""Rules that llguidance's converter makes into lexemes, and what a lexeme may swallow.

Its converter makes a lexeme of each rule that reads characters and other lexemes only. A lexeme is
read greedily. Where it could go on with a character that, after it, may begin something else, a
text in which the lexeme ends there may be lost.
"""

from __future__ import annotations

from collections.abc import Iterator

from tokfold.laboratory.form import Alt, Chars, Expr, Literal, Macro, Ref, Repeat, Seq, children
from tokfold.laboratory.lint.facts import Facts
from tokfold.laboratory.lint.findings import Finding
from tokfold.laboratory.lint.texts import expr_text, shortened
from tokfold.laboratory.lint.words import meeting

__all__ = ["greedy_lexemes", "lexemes"]

MAX_STATES = 800
MAX_SUBSETS = 200
"""Bounds on the automaton of one lexeme; past them it is not looked into, and told."""


def lexemes(facts: Facts) -> list[str]:
    """The rules that are lexemes and are called by rules that are none."""
    waiting: dict[str, int] = {}
    """For each rule how many of the rules that it calls are not known to be lexemes."""
    above: dict[str, list[str]] = {}
    for name, exprs in facts.exprs_of.items():
        calls = [e.name for e in exprs if isinstance(e, Ref)]
        if name == facts.form.root or any(isinstance(e, Macro) for e in exprs):
            continue
        waiting[name] = len(calls)
        for call in calls:
            above.setdefault(call, []).append(name)
    found: set[str] = set()
    work = [name for name, count in waiting.items() if not count]
    while work:
        lexeme = work.pop()
        found.add(lexeme)
        for name in above.get(lexeme, ()):
            waiting[name] -= 1
            if not waiting[name]:
                work.append(name)
    called = {
        e.name
        for name in facts.bodies
        if name not in found and name in facts.useful
        for e in facts.exprs_of[name]
        if isinstance(e, Ref)
    }
    return [name for name in facts.bodies if name in found and name in called]


def greedy_lexemes(facts: Facts, notes: list[str]) -> Iterator[Finding]:
    """Lexemes that may go on with what may follow them."""
    contexts = _Contexts(facts)
    skipped: list[str] = []
    for name in lexemes(facts):
        if name not in facts.useful:
            continue
        more = _going_on(facts, name)
        if more is None:
            skipped.append(name)
            continue
        both = meeting(more, contexts.after(name))
        if both.ranges:
            shown = shortened(expr_text(facts.form, both), 30)
            yield Finding(
                "greedy-lexeme",
                f"the lexeme {name} can go on with {shown}, which may also follow it",
                facts.place(name),
                name,
                "let one rule read both, or put something between them that the lexeme has not",
                details={"characters": shown},
            )
    if skipped:
        notes.append("llguidance: too large to look into as lexemes: " + ", ".join(skipped[:8]))


class _Contexts:
    """What may follow a rule."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.above: dict[Expr, list[Expr]] = {}
        self.next: dict[Expr, list[Expr]] = {}
        for name in facts.useful:
            for expr in facts.exprs_of[name]:
                if expr not in facts.productive or (isinstance(expr, Repeat) and expr.most == 0):
                    continue
                if isinstance(expr, Ref):
                    self.above.setdefault(facts.bodies[expr.name], []).append(expr)
                elif isinstance(expr, Seq):
                    self._row(expr)
                elif isinstance(expr, Alt | Repeat):
                    for child in children(expr):
                        self.above.setdefault(child, []).append(expr)
                    if isinstance(expr, Repeat) and (expr.most is None or expr.most > 1):
                        self.next.setdefault(expr.body, []).append(expr.body)

    def _row(self, expr: Seq) -> None:
        for position, part in enumerate(expr.parts):
            for after in expr.parts[position + 1 :]:
                self.next.setdefault(part, []).append(after)
                if after not in self.facts.nullable:
                    break
            else:
                self.above.setdefault(part, []).append(expr)

    def after(self, name: str) -> Chars:
        """The characters that may come after a rule."""
        seen: set[Expr] = set()
        begins: list[Expr] = []
        work: list[Expr] = [self.facts.bodies[name]]
        while work:
            expr = work.pop()
            if expr not in seen:
                seen.add(expr)
                begins.extend(self.next.get(expr, ()))
                work.extend(self.above.get(expr, ()))
        return self.first(begins)

    def first(self, begins: list[Expr]) -> Chars:
        """The characters that some expressions may begin with."""
        seen: set[Expr] = set()
        ranges: list[tuple[int, int]] = []
        work = list(begins)
        while work:
            expr = work.pop()
            if expr in seen:
                continue
            seen.add(expr)
            if isinstance(expr, Chars):
                ranges.extend(expr.ranges)
            elif isinstance(expr, Literal):
                point = ord(expr.data.decode("utf-8", "surrogatepass")[0])
                ranges.append((point, point))
            work.extend(below for below, _ in self.facts.left_edges.get(expr, ()))
        return Chars(ranges)


def _going_on(facts: Facts, name: str) -> Chars | None:
    """The characters by which a text of a lexeme can become the beginning of a longer one."""
    automaton = _Automaton(facts)
    start = automaton.state()
    end = automaton.build(start, facts.bodies[name])
    if end is None:
        return None
    found: list[tuple[int, int]] = []
    first = automaton.closed({start})
    seen = {first}
    work = [first]
    while work:
        subset = work.pop()
        edges = [edge for state in subset for edge in automaton.edges[state]]
        if end in subset:
            found.extend(pair for chars, _ in edges for pair in chars.ranges)
        ends = sorted({e for c, _ in edges for a, b in c.ranges for e in (a, b + 1)})
        for point in ends:
            after = {to for c, to in edges if any(a <= point <= b for a, b in c.ranges)}
            if after:
                closed = automaton.closed(after)
                if closed not in seen:
                    if len(seen) >= MAX_SUBSETS:
                        return None
                    seen.add(closed)
                    work.append(closed)
    return Chars(found)


class _Automaton:
    """A nondeterministic automaton over characters, of a rule without recursion."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.edges: list[list[tuple[Chars, int]]] = []
        self.empty: list[list[int]] = []

    def state(self) -> int:
        self.edges.append([])
        self.empty.append([])
        return len(self.edges) - 1

    def build(self, start: int, expr: Expr) -> int | None:
        """Read an expression from a state on; the state after it, ``None`` where it is large."""
        end = self.state()
        work: list[tuple[Expr, int, int]] = [(expr, start, end)]
        while work:
            if len(self.edges) > MAX_STATES:
                return None
            top, begin, stop = work.pop()
            if isinstance(top, Ref):
                work.append((self.facts.bodies[top.name], begin, stop))
            elif isinstance(top, Chars):
                self.edges[begin].append((top, stop))
            elif isinstance(top, Alt):
                work.extend((part, begin, stop) for part in top.parts)
            elif isinstance(top, Literal | Seq | Repeat):
                parts, loop = self._row(top)
                if len(parts) > MAX_STATES:
                    return None
                here = begin
                for part, may_skip in parts:
                    after = self.state()
                    work.append((part, here, after))
                    if may_skip:
                        self.empty[here].append(after)
                    here = after
                if loop is not None:
                    again = self.state()
                    self.empty[here].append(again)
                    work.append((loop, again, again))
                    here = again
                self.empty[here].append(stop)
            else:
                self.empty[begin].append(stop)
        return end

    def _row(self, top: Literal | Seq | Repeat) -> tuple[list[tuple[Expr, bool]], Expr | None]:
        """The parts of an expression, whether each may be left out, and what loops after them."""
        if isinstance(top, Literal):
            text = top.data.decode("utf-8", "surrogatepass")
            return [(Chars([(ord(char), ord(char))]), False) for char in text], None
        if isinstance(top, Seq):
            return [(part, False) for part in top.parts], None
        if top.most is None:
            return [(top.body, False)] * min(top.least, MAX_STATES + 1), top.body
        count = min(top.most, MAX_STATES + 1)
        return [(top.body, number >= top.least) for number in range(count)], None

    def closed(self, states: set[int]) -> frozenset[int]:
        found = set(states)
        work = list(states)
        while work:
            for after in self.empty[work.pop()]:
                if after not in found:
                    found.add(after)
                    work.append(after)
        return frozenset(found)
