"""The language of a schema, asked text by text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import tokfold
from strategies.engine import compiled_with
from tokfold import (
    CompiledGrammar,
    Grammar,
    LimitExceededError,
    Matcher,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    Vocabulary,
)

BYTES = Vocabulary([b"</s>", *(bytes([i]) for i in range(256))], stop_token_ids=[0])
"""With a token for each byte a matcher recognizes texts; no mask is made for that."""


class RefusedError(Exception):
    """The schema is refused by name, or a limit is; never anything else.

    Attributes:
        reason: the keyword, or the name of the limit.
        pointer: to the subschema at fault; empty for a limit.
    """

    def __init__(self, error: UnsupportedSchemaError | LimitExceededError) -> None:
        super().__init__(str(error))
        if isinstance(error, LimitExceededError):
            self.reason, self.pointer = error.limit, ""
        else:
            self.reason, self.pointer = error.keyword, error.pointer


@dataclass(frozen=True)
class Language:
    """The texts that a schema allows under some options."""

    grammar: Grammar | None
    """None where the schema allows nothing."""
    compiled: CompiledGrammar | None

    def accepts(self, text: str | bytes) -> bool:
        """Whether the whole text is one of them."""
        if self.compiled is None:
            return False
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        matcher = Matcher(self.compiled)
        return matcher.accept_bytes(data) and matcher.is_accepting

    def prefix(self, text: str | bytes) -> int:
        """How many bytes of a text are the beginning of one of them."""
        if self.grammar is None:
            return 0
        return tokfold.recognize(self.grammar, text).read

    def sample(self, random: Random, budget: int = 60, names: Sequence[str] = ()) -> str | None:
        """A random one of them; None where the walk finds no end soon.

        Args:
            random: chooses.
            budget: the number of bytes after which the walk hurries to an end.
            names: those that may be required, which a walk over bytes hardly spells.
        """
        if self.compiled is None:
            return None
        walk = _Walk(Matcher(self.compiled), random, budget, names)
        return walk.run()


def language(schema: Any, **options: Any) -> Language:
    """Compile a schema.

    Args:
        schema: a JSON Schema, as text or as a value.
        options: those of ``Grammar.from_json_schema``; objects are open unless they say otherwise,
            as the standard has it.

    Raises:
        RefusedError: the schema is refused, or a limit is reached.
    """
    text = schema if isinstance(schema, str) else json.dumps(schema)
    try:
        grammar = Grammar.from_json_schema(text, **{"additional_properties": True, **options})
        return Language(grammar, compiled_with(grammar, BYTES, classes="never", pool=None))
    except UnsatisfiableSchemaError:
        return Language(None, None)
    except (UnsupportedSchemaError, LimitExceededError) as error:
        raise RefusedError(error) from error


CLOSERS = b"}],:"
"""Bytes that lead to an end: a comma, where nothing may be closed yet."""
STARTERS = b'0123456789ntf"[{-'
"""Bytes that a value begins with, the shortest values first."""
ENDS = {False: b'"', True: b'u0"'}
"""Bytes that lead out of a string, behind a backslash and elsewhere."""


class _Walk:
    """A walk over bytes, each of them allowed."""

    def __init__(
        self, matcher: Matcher, random: Random, budget: int, names: Sequence[str] = ()
    ) -> None:
        self.matcher, self.random, self.budget = matcher, random, budget
        quoted = [json.dumps(name, ensure_ascii=False).encode() for name in names]
        self.names = [begin + name for name in quoted for begin in (b"", b",", b", ")]
        self.is_in_string = self.is_escape = False

    def run(self) -> str | None:
        text = bytearray()
        while len(text) < 20 * self.budget:
            hurries = len(text) > self.budget
            if self.matcher.is_accepting and (hurries or self.random.random() < 0.3):
                break
            allowed = self.matcher.expected_bytes
            if not allowed:
                if not self.matcher.is_accepting:
                    raise AssertionError(f"no byte may follow, and no end: {bytes(text)!r}")
                break
            if hurries and not self.is_in_string and (name := self._name(allowed)):
                text += name
                continue
            byte = self._hurried(allowed) if hurries else self._any(allowed)
            if not self.matcher.accept_bytes(bytes([byte])):
                raise AssertionError(f"{byte:#04x} is expected and refused after {bytes(text)!r}")
            text.append(byte)
            self._read(byte)
        return bytes(text).decode() if self.matcher.is_accepting else None

    def _name(self, allowed: bytes) -> bytes | None:
        """A name that can be read, where nothing can be closed; it is read then."""
        if not self.names or not set(allowed).isdisjoint(b"}]"):
            return None
        chosen = self.random.sample(self.names, len(self.names))
        return next((name for name in chosen if self.matcher.accept_bytes(name)), None)

    def _any(self, allowed: bytes) -> int:
        draw = self.random.random()
        if draw < 0.5:
            marks = [b for b in allowed if b in b'"\\,}]:' or 0x30 <= b <= 0x39]
            if marks:
                return self.random.choice(marks)
        elif draw < 0.95:
            plain = [b for b in allowed if b > 0x20] or allowed
            return self.random.choice(plain)
        return self.random.choice(allowed)

    def _hurried(self, allowed: bytes) -> int:
        order = CLOSERS + STARTERS if not self.is_in_string else ENDS[self.is_escape]
        return next((b for b in order if b in allowed), self.random.choice(allowed))

    def _read(self, byte: int) -> None:
        """What a JSON reader knows: whether it is in a string."""
        if not self.is_in_string:
            self.is_in_string = byte == 0x22
        elif self.is_escape:
            self.is_escape = False
        elif byte == 0x5C:
            self.is_escape = True
        elif byte == 0x22:
            self.is_in_string = False
