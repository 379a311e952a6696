"""Is this text in the language, and if not, where does it leave it?"""

from __future__ import annotations

from dataclasses import dataclass

from tokfold import _core
from tokfold._checks import wrong_type
from tokfold.errors import ArgumentTypeError
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt, governing
from tokfold.limits import DEFAULT_LIMITS, Limits, check_limits

__all__ = ["Recognition", "recognize"]


@dataclass(frozen=True, slots=True)
class Recognition:
    """What a grammar says of a text.

    Example:
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "a" [0-3]')
        >>> found = tokfold.recognize(grammar, "ax")
        >>> found.accepted, found.read, found.column, found.expected
        (False, 1, 2, b'0123')
    """

    accepted: bool
    """The text is a string of the grammar."""
    read: int
    """How many bytes of the text are the beginning of some string of the grammar."""
    complete: bool
    """Whether the bytes read, alone, are a string of the grammar."""
    line: int
    """1-based line of the first byte that cannot be (or of the end)."""
    column: int
    """1-based column there, in code points."""
    expected: bytes
    """The bytes that may come there, ascending."""


def recognize(
    grammar: Grammar,
    text: str | bytes,
    limits: Limits | None = None,
    *,
    interrupt: Interrupt | None = None,
) -> Recognition:
    """Recognize a text, byte by byte, for any context-free grammar. Ctrl-C stops it.

    Args:
        grammar: the grammar.
        text: the text; a ``str`` as UTF-8.
        limits: bounds on size, work and depth; see :class:`Limits`. Of the work bounds
            ``max_total_work`` counts, which grows with the text.
        interrupt: ends the call early; by default the deadline of ``limits`` does.

    Raises:
        UnsupportedGrammarError: the grammar holds something that is not context-free.
        LimitExceededError: a bound of ``limits`` was reached: the text is nested too deeply
            (``max_stack_depth``), or the grammar is too large or too ambiguous.
        CancelledError, DeadlineExceededError: ``interrupt`` ended the call.
        KeyboardInterrupt: Ctrl-C.

    Example:
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "(" root ")" | ""')
        >>> tokfold.recognize(grammar, "(())").accepted
        True
        >>> tokfold.recognize(grammar, "(()").accepted
        False
    """
    if not isinstance(grammar, Grammar):
        error = wrong_type("grammar", "a tokfold.Grammar", grammar)
        if hasattr(grammar, "grammar"):
            raise ArgumentTypeError(f"{error}: pass its .grammar")
        raise error
    if not isinstance(text, str | bytes | bytearray | memoryview):
        raise wrong_type("text", "a str or bytes", text)
    check_limits(limits)
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else bytes(text)
    limits = limits or DEFAULT_LIMITS
    ends = Interrupt._of(interrupt, limits)
    with governing(ends):
        made = grammar._compilable
    read, complete, expected = _core.recognize(
        made,
        data,
        skip_lookahead=grammar.lookahead == "implied",
        limits=limits,
        interrupt=ends,
    )
    # Inside a character the place is that of the character: its first bytes are no column.
    before = data[:read].decode("utf-8", "ignore")
    return Recognition(
        accepted=complete and read == len(data),
        read=read,
        complete=complete,
        line=before.count("\n") + 1,
        column=len(before) - (before.rfind("\n") + 1) + 1,
        expected=expected,
    )
