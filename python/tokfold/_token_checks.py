"""Whether the tokens of a vocabulary can begin, write and end a text of a grammar.

Masks are exact over bytes: a token is allowed where bytes complete the text after it. Where no
tokens have these bytes, a mask is empty, or a text never ends. Vocabularies in which each byte is a
token have nothing to check but their stop tokens, so this costs them nothing.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tokfold import _core
from tokfold._quoting import quoted
from tokfold.bitmask import allocate_bitmask
from tokfold.errors import (
    LimitExceededError,
    StopTokenWarning,
    UnwritableTextError,
    VocabularyWarning,
)

if TYPE_CHECKING:
    from tokfold.vocabulary import Vocabulary

SHOWN = 8
"""Bytes, and spans of bytes, that a message names at most."""

_OUT = "options=CompileOptions(check_tokens=False) leaves it to the masks"

_END = (
    "Give it one, Vocabulary(..., stop_token_ids=[...]) or "
    "vocabulary.replace(stop_token_ids=[...]); or compile with "
    "options=CompileOptions(terminate_without_stop_token=True), which ends a text as soon as it is "
    "complete"
)


def check_end(
    core: _core.Engine,
    vocabulary: Vocabulary,
    terminate: bool,
    depth: int,
    interrupt: _core.Interrupt | None,
) -> None:
    """Refuse a vocabulary that ends no text of a grammar whose texts all come to their end.

    Where the grammar may have endless texts, the function warns instead: a decoding loop can end
    such a text by itself.

    Warns:
        StopTokenWarning: the vocabulary has no stop token.
    """
    if vocabulary.stop_token_ids or terminate:
        return
    if core.is_finite(interrupt):
        raise UnwritableTextError(
            f"the vocabulary {quoted(vocabulary.name)} has no stop token, and the grammar has "
            "finitely many texts: each comes to its end, and nothing can end it, so the mask is "
            f"empty there. {_END}; {_OUT}"
        )
    warnings.warn(
        f"the vocabulary {quoted(vocabulary.name)} has no stop token, so nothing ends a text: "
        "where it is complete and nothing can follow, the mask is empty; any other text never "
        f"ends. {_END}",
        StopTokenWarning,
        stacklevel=depth + 1,
    )


def check_tokens(
    core: _core.Engine, vocabulary: Vocabulary, depth: int, interrupt: _core.Interrupt | None
) -> None:
    """Refuse a vocabulary of which no token begins a text; warn of bytes that no token has.

    Warns:
        VocabularyWarning: every text has bytes that no token has.
    """
    single, written = vocabulary._spelled_bytes
    if len(single) == 256:
        return
    needed = core.needed_bytes(written, interrupt)
    if _begins(core, vocabulary, single, interrupt):
        if needed is not None:
            warnings.warn(
                f"no text can be completed: {_lacking(vocabulary, needed)}. Write the grammar "
                "without, or take a vocabulary with a token for each byte; " + _OUT,
                VocabularyWarning,
                stacklevel=depth + 1,
            )
        return
    why = f"; {_lacking(vocabulary, needed)}" if needed is not None else ""
    raise UnwritableTextError(
        f"no token of the vocabulary {quoted(vocabulary.name)} begins a text of the grammar{why}. "
        f"{_spelling(core, vocabulary) or _expected(core)}; {_OUT}"
    )


def unwritable(matcher: object) -> UnwritableTextError:
    """The error for a text that no token goes on with: a model cannot choose from its empty row."""
    expected = getattr(matcher, "expected_bytes", b"")
    said = f"spells what must come next, {_bytes(expected)}" if expected else ""
    if getattr(matcher, "is_accepting", False):
        said += f"{' or ' if said else ''}ends the text, which is complete"
    return UnwritableTextError(
        f"no token of the vocabulary {said or 'spells what must come next'}: take a vocabulary "
        "that has it, or have the grammar say something else"
    )


def _begins(
    core: _core.Engine,
    vocabulary: Vocabulary,
    single: frozenset[int],
    interrupt: _core.Interrupt | None,
) -> bool:
    """Whether a token begins a text, or the empty text is one."""
    matcher = _core.Matcher(core)
    if matcher.is_accepting() or not single.isdisjoint(matcher.expected()):
        return True
    row = allocate_bitmask(1, len(vocabulary))
    try:
        restricted = matcher.fill(row, 0, interrupt, None)
    except LimitExceededError as error:
        if error.limit == "max_mask_work":
            return True  # the mask says so when it is asked for
        raise
    return not restricted or bool(row.any())


def _spelling(core: _core.Engine, vocabulary: Vocabulary) -> str:
    """What to do where special or stop tokens have the bytes that the text begins with."""
    for kind, ids, cure in (
        (
            "special",
            vocabulary.special_token_ids,
            "a special token is no text: name it in the grammar, <[{token}]>, or "
            "make it text with vocabulary.replace(special_token_ids=[...]), without it",
        ),
        (
            "stop",
            vocabulary.stop_token_ids,
            "a stop token ends the text and is none of it: make it text with "
            "vocabulary.replace(stop_token_ids=[...], special_token_ids=[...]), without it",
        ),
    ):
        for token in ids:
            text = vocabulary[token]
            if text and _core.Matcher(core).accept_bytes(text, None):
                said = cure.format(token=token)
                return (
                    f"The {kind} token {token} has the bytes {quoted(text)}, with which a text "
                    f"begins; {said}"
                )
    return ""


def _expected(core: _core.Engine) -> str:
    return f"A text begins with {_bytes(bytes(_core.Matcher(core).expected()))}"


def _lacking(vocabulary: Vocabulary, needed: list[bytes]) -> str:
    shown = ", and ".join(map(_bytes, needed[:SHOWN]))
    more = f", and {len(needed) - SHOWN} more" if len(needed) > SHOWN else ""
    return f"no token of {quoted(vocabulary.name)} has {shown}{more}, which every text needs"


def _bytes(values: bytes) -> str:
    """Bytes as a message shows them: ``'}'``, or ``one of '0' to '9'``."""
    spans: list[tuple[int, int]] = []
    for value in values:
        if spans and spans[-1][1] == value - 1:
            spans[-1] = (spans[-1][0], value)
        else:
            spans.append((value, value))
    shown = [_byte(a) if a == b else f"{_byte(a)} to {_byte(b)}" for a, b in spans[:SHOWN]]
    more = f" and {len(spans) - SHOWN} more" if len(spans) > SHOWN else ""
    many = "" if len(values) == 1 else "one of "
    return f"{many}{', '.join(shown)}{more}"


def _byte(value: int) -> str:
    return repr(chr(value)) if 0x20 < value < 0x7F else f"0x{value:02X}"
