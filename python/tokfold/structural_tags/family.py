"""What describes a model family: how it reasons, how it calls tools, what its free text leaves out.

The values are plain data. :mod:`family_table` has one for each family, :mod:`family_tags` makes
structural tags of them.

A call and a section of calls may hold three blanks, which the builder fills in: ``{name}`` is the
name of the tool as it is, ``{json_name}`` the name as it stands within a string of JSON,
``{number}`` a number that the model chooses. Other braces are text.

Example:
    >>> from tokfold.structural_tags.family import Call
    >>> Call(begin='{"name": "{json_name}", "parameters": ', end="}").style
    'json'
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Answer", "Call", "Family", "MessageFamily", "Reasoning", "Section"]

THINK = ("<think>", "</think>")
"""The markers of reasoning that most families share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """The block of reasoning with which an output begins."""

    begin: str = "<think>"
    end: str = "</think>"
    after: str = ""
    """What follows the end before the answer."""
    in_prompt: bool = True
    """Whether the prompt ends with ``begin`` where reasoning is enabled."""
    excludes: tuple[str, ...] = THINK
    """What the reasoning never holds."""
    excludes_when_enabled: tuple[str, ...] | None = None
    """The same where reasoning is enabled; ``None`` makes no difference."""
    disabled: str = ""
    """What the model writes first where reasoning is disabled."""
    skipped: str = ""
    """What may stand in place of the block where reasoning is left open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of one tool: ``begin``, the arguments, ``end``."""

    begin: str
    """With a blank for the name, and perhaps one for a number."""
    end: str
    style: str = "json"
    """How arguments are written: a style of the format ``json_schema``."""
    excludes: tuple[str, ...] = ()
    """What strings and names within the arguments never hold."""
    cuts: tuple[str, ...] = ()
    """Texts at which a parser of vLLM or SGLang ends the call or fails, wherever they stand."""
    end_without_arguments: str = ""
    """What may stand in place of ``end`` where no argument is required."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """What stands around all calls of an output."""

    begin: str
    end: str
    separator: str = ""
    """What stands between two calls."""
    before: str = ""
    """What stands before a section with which the answer begins."""
    opens: tuple[str, ...] = ()
    """Texts of which one stands behind ``begin``; none of them where there is none."""
    text_follows: bool = False
    """Whether free text and more sections may follow a section that must come."""
    ends_output: bool = False
    """Whether nothing follows a section with which free text ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A block of its own for the text that a user reads; calls come behind it, or in its place."""

    begin: str
    """Stands in the prompt where reasoning is disabled and calls come behind the block."""
    end: str
    closing: str = ""
    """Ends the output, behind the calls."""
    or_calls: bool = False
    """Whether calls come in place of the block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family that reasons first, and then writes free text with calls in it or behind it."""

    call: Call
    trigger: str = ""
    """With this text a call begins, or a section. Without it there are no calls in free text."""
    reasoning: Reasoning | None = Reasoning()
    section: Section | None = None
    answer: Answer | None = None
    """``None``: free text stands as it is, and calls stand in it."""
    excludes: tuple[str, ...] = THINK
    """What free text never holds, calls aside."""
    excludes_without_calls: tuple[str, ...] | None = None
    """The same where no tool may be called; ``None`` makes no difference."""
    never_without_calls: tuple[str, ...] = ()
    """What free text does not hold where no tool may be called, even if markers are allowed."""
    refuses_server_tools: bool = False
    """Whether tools of the server are an error. Otherwise they are left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFamily:
    """A family that writes a stream of messages: reasoning, calls and the answer."""

    function_calls: tuple[Call, ...]
    """The forms that a call of a function may have."""
    server_calls: tuple[Call, ...]
    """The forms that a call of a tool of the server may have."""
    reasoning: str
    """The beginning of a message that holds reasoning."""
    answer: str
    """The beginning of a message for the user."""
    preamble: str
    """The beginning of a message for the user that announces calls."""
    ends: tuple[str, ...]
    """The texts that end a message which is no call."""
    separator: str
    """What stands between two messages."""
