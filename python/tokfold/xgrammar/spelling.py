r"""The text of a grammar form, for tokfold's core to compute classes from.

Text is over characters, but XGrammar's automata are over bytes, and not all that they take is
UTF-8: ``Regex(".")`` takes the overlong ``E0 80 80``. So there are two spellings:

* *characters*: the usual one;
* *bytes*: the byte b is the character U+00b, in the grammar and in the vocabulary alike. Classes
  are a matter of byte strings and of nothing else, so renaming the bytes on both sides, one to
  one, changes no class. Characters from U+0100 on are free then: they mark tokens taken whole.

The second is needed for macros, for literals that are not UTF-8, and for ``Token``.

A state of an automaton becomes a rule that goes on with the rules of the states it leads to; a
loop at one state is written as a repetition. A state that leads nowhere becomes a rule that cannot
begin, so that the byte before it counts as taken.

Cost: linear in the grammar and the automata. Nothing recurses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby

from tokfold._utf8 import utf8_sequences
from tokfold.xgrammar.automata import Automaton, Bytes, Call, automata_of
from tokfold.xgrammar.forms import (
    CLASS_KINDS,
    MACRO_KINDS,
    MAX_CODE_POINT,
    NESTED_KINDS,
    TOKEN_KINDS,
    Expression,
    GrammarForm,
    Kind,
    class_ranges,
)

__all__ = ["in_bytes", "needs_bytes", "spell"]

_FIRST_MARKER = 0x100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def needs_bytes(form: GrammarForm) -> bool:
    """Whether only the byte spelling can say what this grammar says."""
    return any(
        expression.kind in MACRO_KINDS
        or expression.kind in TOKEN_KINDS
        or (expression.kind == Kind.BYTE_STRING and _characters(expression.data) is None)
        for expression in form.expressions
    )


def in_bytes(text: bytes) -> bytes:
    """A text of the vocabulary in the byte spelling."""
    return text.decode("latin-1").encode()


def spell(form: GrammarForm) -> tuple[str, str]:
    """The text of a grammar, and the name of its root there.

    It is in the byte spelling exactly if :func:`needs_bytes`. Lookahead and options of rules are
    left out.
    """
    speller = _Speller(form)
    return "\n".join(speller.lines()), speller.names[form.root]


class _Speller:
    def __init__(self, form: GrammarForm) -> None:
        self._form = form
        self._as_bytes = needs_bytes(form)
        # Edges that take different tokens need different markers: else the places after them
        # would be taken for one.
        self._markers = {
            edge: _escape(_FIRST_MARKER + number) for number, edge in enumerate(form.token_edges)
        }
        names = [rule.name for rule in form.rules]
        plain = len(set(names)) == len(names) and all(map(_NAME.fullmatch, names))
        self.names = names if plain else [f"rule_{index}" for index in range(len(names))]
        self._taken = set(self.names)
        self._numbers = 0

    def lines(self) -> Iterator[str]:
        for index, rule in enumerate(self._form.rules):
            if self._form.body(index).kind in MACRO_KINDS:
                yield from self._macro(index)
            else:
                yield f"{self.names[index]} ::= {self._expression(rule.body)}"

    def _expression(self, root: int) -> str:
        parts: list[str] = []
        todo: list[int | str] = [root]
        while todo:
            item = todo.pop()
            if isinstance(item, str):
                parts.append(item)
                continue
            expression = self._form.expressions[item]
            if expression.kind not in NESTED_KINDS:
                parts.append(self._leaf(expression))
                continue
            if not expression.data:
                parts.append('""')
                continue
            between = " " if expression.kind == Kind.SEQUENCE else " | "
            todo.append(")")
            for child in reversed(expression.data):
                todo += (child, between)
            todo[-1] = "("
        return "".join(parts)

    def _leaf(self, expression: Expression) -> str:
        kind, data = expression.kind, expression.data
        if kind == Kind.BYTE_STRING:
            return self._literal(data)
        if kind in CLASS_KINDS:
            spelled = _class_in_bytes(data) if self._as_bytes else _class(data)
            return spelled + "*" if kind == Kind.CHARACTER_CLASS_STAR else spelled
        if kind == Kind.RULE_REFERENCE:
            return self.names[data[0]]
        if kind == Kind.REPEAT:
            return self.names[data[0]] + _bounds(data[1], data[2])
        if kind in TOKEN_KINDS:
            return f'"{self._markers[expression]}"'
        return '""'

    def _literal(self, data: tuple[int, ...]) -> str:
        codes = [byte & 0xFF for byte in data] if self._as_bytes else _characters(data)
        # Half of a surrogate pair stands in classes only.
        pieces = [
            '"' + "".join(map(_escape, run)) + '"' if is_text else _group_of_halves(run)
            for is_text, run in groupby(codes or (), lambda code: not 0xD800 <= code < 0xE000)
        ]
        return pieces[0] if len(pieces) == 1 else "(" + " ".join(pieces or ['""']) + ")"

    # ----------------------------------------------------------- automata

    def _macro(self, rule: int) -> Iterator[str]:
        automata = automata_of(self._form, rule)
        own = {name: self._fresh() for name in automata if name}
        own[""] = self.names[rule]
        known = {other.name: self.names[index] for index, other in enumerate(self._form.rules)}
        for name, automaton in automata.items():
            yield from self._automaton(own[name], automaton, {**known, **own})

    def _fresh(self) -> str:
        while True:
            name = f"state_{self._numbers}"
            self._numbers += 1
            if name not in self._taken:
                self._taken.add(name)
                return name

    def _automaton(self, name: str, automaton: Automaton, names: dict[str, str]) -> Iterator[str]:
        rules = [
            name if state == automaton.start else self._fresh()
            for state in range(len(automaton.edges))
        ]
        for state, edges in enumerate(automaton.edges):
            onward: dict[int, list[str]] = {}
            spans: dict[int, list[Bytes]] = {}
            for letter, target in edges:
                if isinstance(letter, Bytes):
                    spans.setdefault(target, []).append(letter)
                else:
                    onward.setdefault(target, []).append(_call(letter, names))
            for target, letters in spans.items():
                onward.setdefault(target, []).append(_byte_class(letters))
            loop = onward.pop(state, [])
            choices = [
                f"{_group(letters)} {rules[target]}" for target, letters in sorted(onward.items())
            ]
            if state in automaton.ends:
                choices.insert(0, '""')
            if not choices:
                choices = [rules[state]]  # leads nowhere: a rule that cannot begin
            body = " | ".join(choices)
            yield (
                f"{rules[state]} ::= {_group(loop)}* ({body})"
                if loop
                else (f"{rules[state]} ::= {body}")
            )


def _call(letter: Call, names: dict[str, str]) -> str:
    name = names[letter.rule]
    once = (letter.least, letter.most) == (1, 1)
    return name if once else name + _bounds(letter.least, letter.most)


def _bounds(least: int, most: int) -> str:
    return f"{{{least},}}" if most < 0 else f"{{{least},{most}}}"


def _group(choices: Sequence[str]) -> str:
    return choices[0] if len(choices) == 1 else "(" + " | ".join(choices) + ")"


def _group_of_halves(codes: Iterable[int]) -> str:
    return "(" + " ".join(f"[{_escape(code)}]" for code in codes) + ")"


def _byte_class(letters: Sequence[tuple[int, int]]) -> str:
    return "[" + "".join(f"{_escape(a)}-{_escape(b)}" for a, b in letters) + "]"


# ---------------------------------------------------------------- characters


def _escape(code: int) -> str:
    """One character, in a literal or a class."""
    if code < 0x80 and chr(code).isalnum():
        return chr(code)
    # Half of a surrogate pair in full, as two in a row by `\\u` are one character.
    is_short = code < 0x10000 and not 0xD800 <= code < 0xE000
    return f"\\u{code:04x}" if is_short else f"\\U{code:08x}"


def _characters(data: tuple[int, ...]) -> list[int] | None:
    """The code points of a literal, lone surrogates included; None if it is no such text."""
    text = bytes(byte & 0xFF for byte in data)
    try:
        return [ord(character) for character in text.decode("utf-8", "surrogatepass")]
    except UnicodeDecodeError:
        return None


def _class(data: tuple[int, ...]) -> str:
    ranges = class_ranges(data)
    if not ranges:
        return f"[^{_escape(0)}-{_escape(MAX_CODE_POINT)}]"
    return "[" + "".join(f"{_escape(a)}-{_escape(b)}" for a, b in ranges) + "]"


@lru_cache(maxsize=1_024)
def _class_in_bytes(data: tuple[int, ...]) -> str:
    sequences = [
        " ".join(_byte_class([span]) for span in spans)
        for first, last in class_ranges(data)
        for spans in utf8_sequences(first, last)
    ]
    if not sequences:
        return f"[^{_escape(0)}-{_escape(MAX_CODE_POINT)}]"
    return "(" + " | ".join(sequences) + ")"
