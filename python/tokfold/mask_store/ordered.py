"""Automata of terminals: what `re.match` matches, character by character.

A state is a list of threads in the order in which backtracking would try them. Where a thread
comes to the end of the pattern, those after it are dropped: `re` would never try them. So the
match that `re` finds on a text is the last end that the automaton passes before it dies: lazy
repetitions and "first branch first" included. (The way of Pike's and of RE2's matchers.)

A lookahead runs beside the thread that met it. A thread may come to the end before its lookahead is
decided, as in ``0(?![1-9])``: that end then holds under a condition on what follows.
"""

from __future__ import annotations

from dataclasses import dataclass

from tokfold._quoting import quoted
from tokfold.mask_store.charsets import EVERYTHING, Intervals, contains, union
from tokfold.mask_store.errors import LarkGrammarError, UnsupportedPatternError, inexact
from tokfold.mask_store.patterns import Behind, Char, Look, Match, Program, Split

__all__ = ["CharAutomaton", "Condition", "LookAutomaton", "character_classes", "ordered_automaton"]

_Pending = tuple[bool, frozenset[int]]
"""Whether a lookahead is negated, and where in its program it stands."""
_Thread = tuple[int, frozenset[_Pending]]
_State = tuple[_Thread, ...]


@dataclass(frozen=True)
class Condition:
    """What must follow an end: the text goes on with a match of a look automaton, or does not."""

    negated: bool
    look_state: int


@dataclass
class LookAutomaton:
    """The lookaheads of a terminal that an end can leave open: is a match ahead?

    Attributes:
        moves: for each state the next for each character class; -1 where there is no match.
        accepting: whether a match has been found; such a state needs no moves.
    """

    moves: list[list[int]]
    accepting: list[bool]


@dataclass
class CharAutomaton:
    """A terminal over classes of characters. State 0 is the start.

    Attributes:
        classes: the class of characters for each class number.
        moves: for each state the next for each class; -1 where the terminal goes on no further.
        ends: for each state ``None``: no match ends here; ``True``: one does; or the condition
            under which one does.
        look: the automaton that the conditions speak of.
    """

    classes: list[Intervals]
    moves: list[list[int]]
    ends: list[Condition | bool]
    look: LookAutomaton


def character_classes(sets: list[Intervals]) -> list[Intervals]:
    """The coarsest partition of all characters that no given set cuts; class 0 may be empty."""
    events: list[tuple[int, int]] = []
    for number, intervals in enumerate(sets):
        for low, high in intervals:
            events += [(low, number), (high + 1, number)]
    for low, high in EVERYTHING:
        events += [(low, -1), (high + 1, -1)]
    events.sort()
    members: set[int] = set()
    pieces: dict[frozenset[int], list[tuple[int, int]]] = {}
    before = 0
    for point, number in events:
        if point > before and -1 in members:
            pieces.setdefault(frozenset(members), []).append((before, point - 1))
        members ^= {number}
        before = point
    return [union(parts) for parts in pieces.values()]


def ordered_automaton(
    program: Program, terminal: str, pattern: str, *, max_states: int = 20_000
) -> CharAutomaton:
    """The automaton of a program.

    Raises:
        UnsupportedPatternError: the pattern looks behind its own beginning, or a match ends while
            an earlier end still waits for what its lookahead says.
        LarkGrammarError: the automaton is larger than ``max_states``.
    """
    return _Builder(program, terminal, pattern, max_states).built()


class _Builder:
    def __init__(self, program: Program, terminal: str, pattern: str, bound: int) -> None:
        self.code = program.code
        self.start = program.start
        self.terminal, self.pattern, self.bound = terminal, pattern, bound
        sets: dict[Intervals, int] = {}
        self.uses: dict[int, int] = {}
        for place, instruction in enumerate(self.code):
            if isinstance(instruction, Char | Behind):
                self.uses[place] = sets.setdefault(instruction.chars, len(sets))
        self.classes = character_classes(list(sets))
        # For each set which classes it holds.
        starts = [intervals[0][0] for intervals in self.classes]
        self.holds = [[contains(chars, point) for point in starts] for chars in sets]
        self.look_states: dict[frozenset[int], int] = {}
        self.look = LookAutomaton([], [])

    def refuse(self, construct: str, advice: str) -> UnsupportedPatternError:
        return inexact(self.terminal, self.pattern, construct, advice)

    def reads(self, place: int, cls: int) -> bool:
        return self.holds[self.uses[place]][cls]

    def built(self) -> CharAutomaton:
        first, end = self.closed([(self.start, frozenset())], None)
        if end is not False:
            raise LarkGrammarError(
                f"terminal {self.terminal}: its pattern {quoted(self.pattern)} matches the empty "
                "string"
            )
        states: dict[_State, int] = {first: 0}
        # The same threads with another end are another state.
        numbered: dict[tuple[_State, Condition | bool], int] = {(first, False): 0}
        order: list[_State] = list(states)
        ends: list[Condition | bool] = [False]
        moves: list[list[int]] = []
        done = 0
        while done < len(order):
            row = []
            for cls in range(len(self.classes)):
                after, end = self.step(order[done], cls)
                if not after and end is False:
                    row.append(-1)
                    continue
                key = (after, end)
                if key not in numbered:
                    if len(order) >= self.bound:
                        raise LarkGrammarError(
                            f"terminal {self.terminal}: its automaton has more than {self.bound} "
                            "states: simplify the pattern or raise the bound"
                        )
                    numbered[key] = len(order)
                    order.append(after)
                    ends.append(end)
                row.append(numbered[key])
            moves.append(row)
            done += 1
        self.finish_look()
        return CharAutomaton(self.classes, moves, ends, self.look)

    def step(self, state: _State, cls: int) -> tuple[_State, Condition | bool]:
        """The threads after one more character, and whether the terminal may end there."""
        seeds: list[_Thread] = []
        for place, pending in state:
            kept = self.looked(pending, cls)
            if kept is None:
                continue
            if isinstance(self.code[place], Match):
                if not kept:
                    break  # The end holds: what stands after it is never tried.
                seeds.append((-1 - place, kept))  # It waits on.
            elif self.reads(place, cls):
                seeds.append((place + 1, kept))
        return self.closed(seeds, cls)

    def looked(self, pending: frozenset[_Pending], cls: int) -> frozenset[_Pending] | None:
        """Lookaheads after one more character; ``None`` if one of them fails."""
        kept: set[_Pending] = set()
        for negated, places in pending:
            after = self.look_step(places, cls)
            found = any(isinstance(self.code[place], Match) for place in after)
            if found or not after:
                if found == negated:
                    return None
            else:
                kept.add((negated, after))
        return frozenset(kept)

    def look_step(self, places: frozenset[int], cls: int) -> frozenset[int]:
        ahead = [p + 1 for p in places if isinstance(self.code[p], Char) and self.reads(p, cls)]
        return self.look_closed(ahead, cls)

    def look_closed(self, seeds: list[int], cls: int | None) -> frozenset[int]:
        seen: set[int] = set()
        work = list(seeds)
        while work:
            place = work.pop()
            if place in seen:
                continue
            seen.add(place)
            instruction = self.code[place]
            if isinstance(instruction, Split):
                work += instruction.targets
            elif isinstance(instruction, Behind):
                if cls is None:
                    raise self.refuse("a lookbehind at its beginning", "look behind later")
                if self.reads(place, cls) != instruction.negated:
                    work.append(place + 1)
        return frozenset(p for p in seen if isinstance(self.code[p], Char | Match))

    def closed(self, seeds: list[_Thread], cls: int | None) -> tuple[_State, Condition | bool]:
        """Follows all that reads nothing, in order of preference.

        A seed is a thread, or ``-1 - place`` for one that has come to an end before and waits.
        """
        threads: list[_Thread] = []
        seen: dict[int, list[frozenset[_Pending]]] = {}
        end: Condition | bool = False
        blocked = False  # An end before in the list still waits for its lookahead.
        work = list(reversed(seeds))
        while work:
            place, pending = work.pop()
            if place < 0:
                blocked = True
                threads.append((-1 - place, pending))
                continue
            if any(known <= pending for known in seen.get(place, ())):
                continue
            seen.setdefault(place, []).append(pending)
            instruction = self.code[place]
            if isinstance(instruction, Split):
                work += [(target, pending) for target in reversed(instruction.targets)]
            elif isinstance(instruction, Char):
                threads.append((place, pending))
            elif isinstance(instruction, Look):
                more = self.looking(instruction.start, instruction.negated, pending, cls)
                if more is not None:
                    work.append((place + 1, more))
            elif isinstance(instruction, Behind):
                more = self.behind(place, instruction, pending, cls)
                if more is not None:
                    work.append((place + 1, more))
            else:
                if blocked or (end is not False and pending):
                    raise self.refuse(
                        "a lookahead that is still open where another match ends",
                        "let what follows the lookahead be longer, or the lookahead shorter",
                    )
                if not pending:
                    end = True
                    break
                end = self.condition(pending)
                threads.append((place, pending))
        # An end that waits decides only about threads after it.
        while threads and isinstance(self.code[threads[-1][0]], Match):
            threads.pop()
        return tuple(threads), end

    def looking(
        self, start: int, negated: bool, pending: frozenset[_Pending], cls: int | None
    ) -> frozenset[_Pending] | None:
        places = self.look_closed([start], cls)
        found = any(isinstance(self.code[place], Match) for place in places)
        if found or not places:
            return None if found == negated else pending
        return pending | {(negated, places)}

    def behind(
        self, place: int, look: Behind, pending: frozenset[_Pending], cls: int | None
    ) -> frozenset[_Pending] | None:
        if cls is None:
            raise self.refuse(
                "a lookbehind or word boundary at its beginning",
                "what stands before a terminal is not its own: look behind later",
            )
        inside = self.reads(place, cls)
        if look.word is None:
            return pending if inside != look.negated else None
        # A boundary: after a word character none may follow, after another one must.
        return self.looking(look.word, inside != look.negated, pending, cls)

    def condition(self, pending: frozenset[_Pending]) -> Condition:
        if len(pending) > 1:
            raise self.refuse(
                "an end with several open lookaheads", "write one lookahead at the end"
            )
        [(negated, places)] = pending
        return Condition(negated, self.look_state(places))

    def look_state(self, places: frozenset[int]) -> int:
        number = self.look_states.get(places)
        if number is None:
            number = len(self.look_states)
            if number >= self.bound:
                raise LarkGrammarError(
                    f"terminal {self.terminal}: a lookahead has more than {self.bound} states: "
                    "simplify it or raise the bound"
                )
            self.look_states[places] = number
        return number

    def finish_look(self) -> None:
        done = 0
        while done < len(self.look_states):
            places = list(self.look_states)[done]
            done += 1
            found = any(isinstance(self.code[place], Match) for place in places)
            self.look.accepting.append(found)
            row = []
            for cls in range(len(self.classes)):
                after = frozenset() if found else self.look_step(places, cls)
                row.append(self.look_state(after) if after else -1)
            self.look.moves.append(row)
