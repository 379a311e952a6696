"""Regular expressions of Python's :mod:`re` as small programs.

The standard library's own parser reads the pattern. Its tree becomes a program of the kind that
Thompson and Pike describe: instructions that read a character, and splits whose first branch is
preferred. So what `re` prefers, lazy and greedy, first branch before second, is kept, and
:mod:`tokfold.mask_store.ordered` can make an automaton that finds the same match as `re` does.
"""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from tokfold._quoting import quoted
from tokfold.mask_store.charsets import (
    EVERYTHING,
    Intervals,
    category,
    complement,
    ignoring_case,
    union,
)
from tokfold.mask_store.errors import LarkGrammarError, inexact

__all__ = ["Behind", "Char", "Look", "Match", "Program", "Split", "compile_pattern"]

_sre: Any = importlib.import_module("re._parser")
_const: Any = importlib.import_module("re._constants")

_LINE_END: Intervals = ((10, 10),)


@dataclass(frozen=True, slots=True)
class Char:
    """Reads one character of a set."""

    chars: Intervals


@dataclass(frozen=True, slots=True)
class Split:
    """Goes on at each target; the first is preferred. One target is a jump."""

    targets: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Look:
    """What follows must, or must not, begin with a match of the program at ``start``."""

    start: int
    negated: bool


@dataclass(frozen=True, slots=True)
class Behind:
    """The character before must be in a set; with ``word`` a boundary of words is meant."""

    chars: Intervals
    negated: bool
    word: int | None = None
    """For a boundary: where the program of one word character begins."""


@dataclass(frozen=True, slots=True)
class Match:
    """The end of the pattern or of a lookahead."""


Instruction = Char | Split | Look | Behind | Match


@dataclass
class Program:
    """Instructions; each but :class:`Split` and :class:`Match` goes on with the next.

    Attributes:
        code: the instructions; the pattern begins at ``start``.
        start: where the pattern begins.
    """

    code: list[Instruction] = field(default_factory=list)
    start: int = 0


def compile_pattern(
    pattern: str, terminal: str, flags: int = 0, *, max_instructions: int = 20_000
) -> Program:
    """The program of a pattern; ``flags`` are of :mod:`re`, for the whole.

    A pattern that has no exact automaton here is refused: back references, atomic groups, anchors,
    lookarounds other than those of one character behind and of anything ahead.
    """
    try:
        tree = _sre.parse(pattern, flags)
    except (re.error, OverflowError) as error:
        raise LarkGrammarError(
            f"terminal {terminal}: re cannot read its pattern {quoted(pattern)}: {error}"
        ) from None
    except RecursionError:
        raise LarkGrammarError(
            f"terminal {terminal}: its pattern is nested too deeply for re to read"
        ) from None
    compiler = _Compiler(pattern, terminal, max_instructions)
    try:
        # Lark's scanner joins all patterns in one expression: it cannot read such flags either.
        _sre.parse(f"(?:{pattern})", flags)
    except re.error as error:
        if "global flags" not in str(error):
            raise
        compiler.refuse("a flag for the whole expression", "write it behind the pattern: /.../i")
    return compiler.compiled(tree)


_Job = tuple[Literal["node", "seq", "patch", "match"], Any, int]


class _Compiler:
    def __init__(self, pattern: str, terminal: str, bound: int) -> None:
        self.pattern, self.terminal, self.bound = pattern, terminal, bound
        self.program = Program()
        self.inside_look = False

    def refuse(self, construct: str, advice: str) -> NoReturn:
        raise inexact(self.terminal, self.pattern, construct, advice)

    def compiled(self, tree: Any) -> Program:  # noqa: ANN401
        main = self.emit(Split((0,)))
        self.program.code[main] = Split((main + 1,))
        self.sequence(tree, tree.state.flags)
        self.emit(Match())
        return self.program

    def emit(self, instruction: Instruction) -> int:
        code = self.program.code
        if len(code) >= self.bound:
            raise LarkGrammarError(
                f"terminal {self.terminal}: its pattern is more than {self.bound} instructions "
                "when counted repetitions are written out: use smaller counts or raise the bound"
            )
        code.append(instruction)
        return len(code) - 1

    # Recursion here is over the tree of `re`, whose own parser recurses in the same way and gives
    # up first: a pattern that it reads is read here.
    def sequence(self, items: Any, flags: int) -> None:  # noqa: ANN401
        for op, argument in items:
            self.node(op, argument, flags)

    def node(self, op: Any, argument: Any, flags: int) -> None:  # noqa: ANN401
        name = str(op)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            self.emit(Char(self.charset(name, argument, flags)))
        elif name == "SUBPATTERN":
            _, added, removed, inner = argument
            self.sequence(inner, (flags | added) & ~removed)
        elif name == "BRANCH":
            self.branch(argument[1], flags)
        elif name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = argument
            self.repeat(name == "MIN_REPEAT", low, high, inner, flags)
        elif name in ("ASSERT", "ASSERT_NOT"):
            self.look(argument[0], argument[1], name == "ASSERT_NOT", flags)
        elif name == "AT":
            self.at(str(argument), flags)
        elif name == "FAILURE":
            self.emit(Char(()))
        else:
            words = {
                "GROUPREF": "a back reference",
                "GROUPREF_EXISTS": "a group that depends on another",
                "POSSESSIVE_REPEAT": "a possessive repetition",
                "ATOMIC_GROUP": "an atomic group",
            }
            self.refuse(words.get(name, name), "write the pattern without it")

    def charset(self, name: str, argument: Any, flags: int) -> Intervals:  # noqa: ANN401
        if name == "ANY":
            return EVERYTHING if flags & re.DOTALL else complement(_LINE_END)
        ascii_only = bool(flags & re.ASCII)
        negated = name == "NOT_LITERAL"
        pieces: list[tuple[int, int]] = []
        for kind, value in [(None, argument)] if name != "IN" else argument:
            kind_name = "LITERAL" if kind is None else str(kind)
            if kind_name == "NEGATE":
                negated = True
            elif kind_name == "LITERAL":
                pieces.append((value, value))
            elif kind_name == "RANGE":
                pieces.append(value)
            elif kind_name == "CATEGORY":
                negative, letter = re.fullmatch(
                    r"CATEGORY_(NOT_)?(DIGIT|WORD|SPACE)", str(value)
                ).groups()  # type: ignore[union-attr]
                lower = letter[0].lower()
                pieces += category(lower.upper() if negative else lower, ascii_only)
            else:  # pragma: no cover - there is no other kind
                self.refuse(f"a set with {kind_name}", "write the set without it")
        chars = union(pieces)
        if flags & re.IGNORECASE:
            chars = ignoring_case(chars, ascii_only)
        return complement(chars) if negated else chars

    def branch(self, branches: list[Any], flags: int) -> None:
        split = self.emit(Match())
        starts, ends = [], []
        for items in branches:
            starts.append(len(self.program.code))
            self.sequence(items, flags)
            ends.append(self.emit(Match()))
        self.program.code[split] = Split(tuple(starts))
        for end in ends:
            self.program.code[end] = Split((len(self.program.code),))

    def repeat(self, lazy: bool, low: int, high: Any, items: Any, flags: int) -> None:  # noqa: ANN401
        unbounded = high is _const.MAXREPEAT
        if items.getwidth()[0] == 0 and (unbounded or int(high) > 1):
            self.refuse(
                "the repetition of a part that may match nothing",
                "let the part match at least one character",
            )

        def split(body: int, after: int) -> Split:
            return Split((after, body) if lazy else (body, after))

        for _ in range(low):
            self.sequence(items, flags)
        if unbounded:
            loop = self.emit(Match())
            self.sequence(items, flags)
            self.emit(Split((loop,)))
            self.program.code[loop] = split(loop + 1, len(self.program.code))
            return
        skips = []
        for _ in range(int(high) - low):
            skips.append(self.emit(Match()))
            self.sequence(items, flags)
        for skip in skips:
            self.program.code[skip] = split(skip + 1, len(self.program.code))

    def look(self, direction: int, items: Any, negated: bool, flags: int) -> None:  # noqa: ANN401
        if self.inside_look:
            self.refuse("a lookaround inside another", "write one lookaround")
        if direction < 0:
            self.behind(items, negated, flags)
            return
        self.inside_look = True
        start = self.aside(lambda: self.sequence(items, flags))
        self.inside_look = False
        self.emit(Look(start, negated))

    def aside(self, write: Any) -> int:  # noqa: ANN401
        """Writes a program of its own that ends in a match, and jumps over it."""
        jump = self.emit(Match())
        start = len(self.program.code)
        write()
        self.emit(Match())
        self.program.code[jump] = Split((len(self.program.code),))
        return start

    def behind(self, items: Any, negated: bool, flags: int) -> None:  # noqa: ANN401
        single = list(items)
        while len(single) == 1 and str(single[0][0]) == "SUBPATTERN":
            _, added, removed, inner = single[0][1]
            flags, single = (flags | added) & ~removed, list(inner)
        one = len(single) == 1 and str(single[0][0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN")
        if not one:
            self.refuse(
                "a lookbehind of other than one character", "look one character behind, or ahead"
            )
        self.emit(Behind(self.charset(str(single[0][0]), single[0][1], flags), negated))

    def at(self, where: str, flags: int) -> None:
        if where in ("AT_BOUNDARY", "AT_NON_BOUNDARY"):
            if self.inside_look:
                self.refuse("a lookaround inside another", "write one lookaround")
            word = category("w", bool(flags & re.ASCII))
            start = self.aside(lambda: self.emit(Char(word)))
            self.emit(Behind(word, where == "AT_NON_BOUNDARY", start))
        elif where == "AT_END" and flags & re.MULTILINE and not self.inside_look:
            start = self.aside(lambda: self.emit(Char(complement(_LINE_END))))
            self.emit(Look(start, True))
        else:
            words = {"AT_BEGINNING": "the anchor ^", "AT_END": "the anchor $"}
            self.refuse(words.get(where, f"the anchor {where}"), "leave it away")
