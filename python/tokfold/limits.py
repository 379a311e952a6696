"""Bounds on what compilations, masks and texts may use."""

from __future__ import annotations

from dataclasses import dataclass, fields

from tokfold._checks import whole_number, wrong_type
from tokfold._names import with_our_fields
from tokfold._quoting import quoted

__all__ = ["Limits"]


@with_our_fields
@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on a grammar, on the work of compiling it, on masks and on texts.

    A bound that is reached raises :class:`tokfold.LimitExceededError`, which names the field here.
    Fields that say so are no errors: past ``max_token_work``, for one, tokens become classes of
    their own, which is exact but folds less. Work is counted, not timed, so results are the same on
    every machine.

    Example:
        >>> limits = tokfold.Limits(max_rules=1_000)
        >>> grammar = tokfold.Grammar.from_ebnf('root ::= "a"', limits=limits)
        >>> limits.max_rules
        1000
    """

    max_grammar_bytes: int = 16 << 20
    """Bytes of grammar text, and of JSON Schemas with their resources."""
    max_rules: int = 1 << 20
    """Rules of a grammar."""
    max_nesting: int = 1_000
    """Levels of groups in a rule, and of a JSON Schema or structural tag."""
    max_schema_formulas: int = 200_000
    """Formulas of a JSON Schema: conditions that hold or fail together."""
    max_schema_states: int = 100_000
    """States of the objects and arrays of a JSON Schema."""
    max_automaton_states: int = 200_000
    """States of an automaton over characters: of a pattern, a format, a set of texts."""
    max_network_states: int = 2 << 20
    """States of the network, at any stage of its construction."""
    max_network_edges: int = 8 << 20
    """Edges of the network, at any stage of its construction, and pairs of its stack adjacency."""
    max_network_work: int = 80_000_000
    """States and edges made or visited while the network is made. What only makes it smaller is
    left undone before this is reached."""
    max_set_bytes: int = 256 << 20
    """Bytes of the sets of names that one text meets, in objects with members in any order; and of
    those that the ends of all texts meet."""
    max_stack_depth: int = 1_000
    """Levels of a stack, and of the trees in which sets of stacks are kept. A text that is nested
    deeper is not recognized; a token that is, is a class of its own."""
    max_token_work: int = 200_000
    """Work units for each new token, as much again for every 10,000 states of the network; past
    them the token is a class of its own."""
    max_total_work: int = 10_000_000
    """Work units, besides 200 for each state of the network, after which every token that needs
    more work is a class of its own."""
    max_automaton_bytes: int = 1 << 30
    """Bytes of the displacement automaton; past them tokens are classes of their own, too."""
    max_mask_work: int = 5_000_000
    """Work units of one mask of our engine."""
    max_accept_work: int = 5_000_000
    """Work units of one token that a matcher accepts, or of a kilobyte of text."""
    max_memo_bytes: int = 64 << 20
    """Bytes of what the masks of a compiled grammar remember; past them it is forgotten and made
    again when needed. A mask that needs more is made without
    remembering; an error only where the stacks of one token's path take more."""
    max_row_bytes: int = 16 << 20
    """Bytes of token rows that a compiled grammar remembers; never an error."""
    max_matcher_bytes: int = 1 << 30
    """Bytes of a matcher and its forks."""
    max_binary_rules: int = 4 << 20
    """For charts on a device: productions of a grammar written out, rules of its binary form, and
    pairs of its left corners."""
    max_binary_symbols: int = 32_767
    """Symbols of the binary form, for charts on a device. They are numbers of 16 bits there, so a
    larger value is no help."""
    max_tree_nodes: int = 16_384
    """Nodes of the token tree, of all rows together, that a mask of charts on a device reads."""
    max_compile_milliseconds: int | None = None
    """Milliseconds until a grammar is read, converted and made ready, and until classes are made;
    None for no deadline. A deadline that passes raises :class:`tokfold.DeadlineExceededError`. The
    three deadlines are the only bounds that are times: all others end a call at the same place on
    every machine."""
    max_mask_milliseconds: int | None = None
    """Milliseconds of one mask; None for no deadline. Each row of a batch and each node of a draft
    has the deadline for itself."""
    max_accept_milliseconds: int | None = None
    """Milliseconds of one accepted token or text, and of each other call of a matcher that is no
    mask; None for no deadline."""

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if value is None and name in _DEADLINES:
                continue
            number = whole_number(value)
            if number is None:
                raise TypeError(f"{name} must be an int, not {type(value).__name__}")
            if not 0 < number < 1 << 63:
                raise ValueError(f"{name} must be between 1 and 2**63 - 1, not {quoted(number)}")
            object.__setattr__(self, name, number)

    def as_fields(self) -> dict[str, int]:
        """Names and values of the bounds on grammars and classes."""
        return {name: getattr(self, name) for name in _CORE}


_ENGINE = (
    "max_mask_work",
    "max_accept_work",
    "max_memo_bytes",
    "max_row_bytes",
    "max_matcher_bytes",
    "max_mask_milliseconds",
    "max_accept_milliseconds",
)
_DEADLINES = ("max_compile_milliseconds", "max_mask_milliseconds", "max_accept_milliseconds")
_DEVICE = ("max_binary_rules", "max_binary_symbols", "max_tree_nodes")
_CORE = tuple(
    field.name for field in fields(Limits) if field.name not in (*_ENGINE, *_DEVICE, *_DEADLINES)
)

DEFAULT_LIMITS = Limits()
"""Made once: the checks of its fields are a part of the time that a small schema takes."""


def check_limits(limits: Limits | None) -> None:
    """Refuse what are no limits."""
    if limits is not None and not isinstance(limits, Limits):
        raise wrong_type("limits", "tokfold.Limits or None", limits)
