"""XGrammar's grammar objects, read and rewritten through their JSON form.

A grammar reaches the wrapper from any of XGrammar's converters. Two things are made of it: the
text that tokfold computes classes from, and the grammar that XGrammar runs over the
representatives. Both come from ``Grammar.serialize_json``, not from ``str(grammar)``:

* the printer loses NUL inside literals, the JSON form does not;
* ``suffix`` and ``stop`` of Lark rules are not printed at all, so text alone would hide them;
* token ids can be renamed without a second reading of the grammar language.

The grammar that XGrammar runs differs from the original in four ways, none of which changes what
``accept_token`` accepts:

* Lookahead is dropped. It only narrows masks, and the JSON schema converter prints one that is
  wrong for custom separators; without it the mask is what ``accept_token`` accepts.
* A root that occurs in a body gets a fresh start rule above it, or XGrammar masks tokens that
  run past the end of an inner root.
* A negated class that excludes characters beyond ASCII is written without negation, or XGrammar
  masks tokens there that it accepts.
* Token ids are those of the representatives.

Cost: linear in the grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, cached_property
from typing import Any

import xgrammar as xgr

from tokfold.errors import UnsupportedGrammarError

__all__ = ["SERIALIZATION_VERSION", "GrammarForm"]

SERIALIZATION_VERSION = "v16"
"""The form of XGrammar 0.2.8; another one is refused by name, not guessed at."""


class Kind(IntEnum):
    """Kinds of expressions, numbered as XGrammar does."""

    BYTE_STRING = 0
    CHARACTER_CLASS = 1
    CHARACTER_CLASS_STAR = 2
    EMPTY = 3
    RULE_REFERENCE = 4
    SEQUENCE = 5
    CHOICES = 6
    TAG_DISPATCH = 7
    REPEAT = 8
    TOKEN = 9
    EXCLUDE_TOKEN = 10
    TOKEN_TAG_DISPATCH = 11
    REGEX = 12
    SUBSTRING = 13


_TOKEN_KINDS = (Kind.TOKEN, Kind.EXCLUDE_TOKEN)
_CLASS_KINDS = (Kind.CHARACTER_CLASS, Kind.CHARACTER_CLASS_STAR)
_MAX_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Expression:
    """One node: its kind and its operands (code points, bytes or expression ids)."""

    kind: int
    data: tuple[int, ...]


@dataclass(frozen=True)
class Rule:
    """One rule with its options, in the order in which XGrammar writes them."""

    name: str
    body: int
    lookahead: int
    exact_lookahead: bool
    max_tokens: int
    max_chars: int
    capture: str
    lazy: bool
    temperature: float | None

    def as_list(self, *, keep_lookahead: bool) -> list[object]:
        """The JSON row of this rule."""
        return [
            self.name,
            self.body,
            self.lookahead if keep_lookahead else -1,
            self.exact_lookahead and keep_lookahead,
            self.max_tokens,
            self.max_chars,
            self.capture,
            self.lazy,
            self.temperature,
        ]


class GrammarForm:
    """The rules and expressions of one ``xgrammar.Grammar``.

    Args:
        grammar: any grammar object; one that was optimized by a compiler is taken back to its
            expressions.

    Raises:
        UnsupportedGrammarError: XGrammar writes another version of the form.
    """

    def __init__(self, grammar: xgr.Grammar) -> None:
        document: dict[str, Any] = json.loads(grammar.serialize_json())
        version = document.get("__VERSION__")
        if version != SERIALIZATION_VERSION:
            raise UnsupportedGrammarError(
                f"XGrammar writes grammars in form {version}, tokfold reads "
                f"{SERIALIZATION_VERSION}: install the xgrammar release that tokfold names",
                "XGrammar serialization",
                1,
                1,
            )
        data: list[int] = document["grammar_expr_data"]
        self.expressions = [
            Expression(data[start], tuple(data[start + 2 : start + 2 + data[start + 1]]))
            for start in document["grammar_expr_indptr"]
        ]
        self.rules = [Rule(*row) for row in document["rules"]]
        self.root: int = document["root_rule_id"]
        self._suffix_stops: list[Any] = document["suffix_stop_infos"]
        self._document = document

    # ---------------------------------------------------------------- facts

    @property
    def root_name(self) -> str:
        """Name of the rule that matching starts from."""
        return self.rules[self.root].name

    @property
    def has_captures(self) -> bool:
        """Whether some rule records what it matched."""
        return any(rule.capture for rule in self.rules)

    @property
    def token_ids(self) -> frozenset[int]:
        """Ids named by ``Token`` and ``ExcludeToken``."""
        return frozenset(
            token
            for expression in self.expressions
            if expression.kind in _TOKEN_KINDS
            for token in expression.data
        )

    @property
    def token_edges(self) -> list[Expression]:
        """The distinct ``Token`` and ``ExcludeToken``, which take a token whole."""
        edges = (expression for expression in self.expressions if expression.kind in _TOKEN_KINDS)
        return list(dict.fromkeys(edges))

    @property
    def has_exclude_token(self) -> bool:
        """Whether tokens can be taken that no byte of the grammar matches."""
        return any(expression.kind == Kind.EXCLUDE_TOKEN for expression in self.expressions)

    @property
    def root_is_recursive(self) -> bool:
        """Whether the root occurs in a body."""
        return any(self.root in self._references(expression) for expression in self.expressions)

    @cached_property
    def _beginning(self) -> frozenset[int]:
        """The rules that can take a byte or a token, or end at once."""
        nullable: set[int] = set()
        begins: set[int] = set()

        def is_nullable(index: int) -> bool:
            kind, data = self.expressions[index].kind, self.expressions[index].data
            if kind == Kind.RULE_REFERENCE:
                return data[0] in nullable
            if kind == Kind.REPEAT:
                return data[1] == 0 or data[0] in nullable
            if kind == Kind.SEQUENCE:
                return all(map(is_nullable, data))
            if kind == Kind.CHOICES:
                return any(map(is_nullable, data))
            return kind in (Kind.EMPTY, Kind.CHARACTER_CLASS_STAR)

        def can_begin(index: int) -> bool:
            kind, data = self.expressions[index].kind, self.expressions[index].data
            if kind in (Kind.RULE_REFERENCE, Kind.REPEAT):
                return data[0] in begins
            if kind == Kind.CHOICES:
                return any(map(can_begin, data))
            if kind == Kind.SEQUENCE:
                for child in data:
                    if can_begin(child):
                        return True
                    if not is_nullable(child):
                        return False
                return False
            return kind != Kind.EMPTY

        for found, test in ((nullable, is_nullable), (begins, can_begin)):
            grown = True
            while grown:
                new = {i for i, rule in enumerate(self.rules) if test(rule.body)} - found
                found |= new
                grown = bool(new)
        return frozenset(nullable | begins)

    def literals(self) -> Iterator[bytes]:
        """The literals, as bytes."""
        for expression in self.expressions:
            if expression.kind == Kind.BYTE_STRING:
                yield bytes(byte & 0xFF for byte in expression.data)

    @staticmethod
    def _references(expression: Expression) -> tuple[int, ...]:
        data = expression.data
        if expression.kind in (Kind.RULE_REFERENCE, Kind.REPEAT):
            return data[:1]
        if expression.kind == Kind.TAG_DISPATCH:
            return data[1:-2:2]
        if expression.kind == Kind.TOKEN_TAG_DISPATCH:
            return data[2 : 1 + 2 * data[0] : 2]
        return ()

    # ------------------------------------------------------------- refusals

    def refuse_inexact(self, *, trust_lookahead: bool, text: str | None = None) -> None:
        """Raise for what classes cannot express or the text would not show.

        Args:
            trust_lookahead: every lookahead comes from one of XGrammar's converters. Else each
                must be one that those converters write; a lookahead of the user's narrows masks
                on purpose, and dropping it would undo that.
            text: the user's own text, to find places in; the printed grammar if None.

        Raises:
            UnsupportedGrammarError: names the construct, at the rule that holds it.
        """
        text = str(self._original()) if text is None else text
        for rule in self.rules:
            if rule.max_tokens >= 0:
                self._refuse("max_tokens", rule, text)
            if rule.max_chars >= 0:
                self._refuse("max_chars", rule, text)
            if rule.lazy:
                self._refuse("lazy", rule, text)
            if (
                rule.lookahead >= 0
                and not trust_lookahead
                and self.shape(rule.lookahead) not in _converter_lookaheads()
            ):
                self._refuse("lookahead", rule, text)
        if self._suffix_stops:
            self._refuse("suffix/stop", self.rules[self.root], text)
        for index, rule in enumerate(self.rules):
            if index not in self._beginning:
                # XGrammar takes the byte before such a rule, then is stuck; classes leave it out
                self._refuse("rule that cannot begin", rule, text)
        if self.has_captures and self.token_edges:
            self._refuse("capture beside Token", self.rules[self.root], text)
        if self.root_is_recursive and self.token_edges:
            # here a fresh start rule would change what accept_token takes
            self._refuse("recursive root beside Token", self.rules[self.root], text)
        for expression in self.expressions:
            if expression.kind > Kind.SUBSTRING:
                self._refuse(f"expression kind {expression.kind}", self.rules[self.root], text)
            if expression.kind == Kind.BYTE_STRING and not _is_text(expression.data):
                self._refuse("literal that is not UTF-8", self.rules[self.root], text)
        if any(0 in literal for literal in self.literals()) and any(
            expression.kind in (Kind.TAG_DISPATCH, Kind.REGEX, Kind.SUBSTRING)
            for expression in self.expressions
        ):
            self._refuse("NUL beside a macro", self.rules[self.root], text)

    def _refuse(self, construct: str, rule: Rule, text: str) -> None:
        start = re.compile(rf"\s*{re.escape(rule.name)}\s*(\[|::=)")
        lines = enumerate(text.splitlines(), start=1)
        line = next((number for number, line in lines if start.match(line)), 1)
        raise UnsupportedGrammarError(
            f"line {line}: {construct} in rule {rule.name!r} cannot be folded exactly",
            construct,
            line,
            1,
        )

    def _original(self) -> xgr.Grammar:
        return xgr.Grammar.deserialize_json(json.dumps(self._document))

    def shape(self, expression_id: int, depth: int = 1) -> tuple[object, ...]:
        """An expression without ids, names and repetition bounds, to compare across grammars."""
        expression = self.expressions[expression_id]
        if expression.kind in (Kind.SEQUENCE, Kind.CHOICES):
            return (expression.kind, *(self.shape(child, depth) for child in expression.data))
        if expression.kind in (Kind.RULE_REFERENCE, Kind.REPEAT):
            if depth == 0:
                return (expression.kind,)
            body = self.rules[expression.data[0]].body
            return (expression.kind, self.shape(body, depth - 1))
        return (expression.kind, *expression.data)

    # ------------------------------------------------------------ rewriting

    def text(self, markers: Sequence[int] = ()) -> str:
        """Grammar text that tokfold reads, with the same byte language.

        Args:
            markers: a code point for each of :attr:`token_edges`, to stand for "a token taken
                whole here". It becomes the text of that edge, and no character class matches it
                any more, so that it is read there and nowhere else. Edges that take different
                tokens need different ones: else the places after them would be taken for one.
        """
        marker_of = dict(zip(self.token_edges, markers, strict=True))

        def rewrite(expression: Expression) -> Expression:
            if expression in marker_of:
                marker = chr(marker_of[expression]).encode()
                return Expression(Kind.BYTE_STRING, tuple(marker))
            if expression.kind in _CLASS_KINDS:
                data = expression.data
                for marker_code in markers:
                    data = _without(data, marker_code)
                return Expression(expression.kind, data)
            return expression

        expressions = [rewrite(expression) for expression in self.expressions]
        for index in range(len(expressions)):
            if expressions[index].kind == Kind.BYTE_STRING and 0 in expressions[index].data:
                _spell_nul(expressions, index)
        rules = [rule.as_list(keep_lookahead=False) for rule in self.rules]
        return str(self._build(expressions, rules, self.root))

    def over_representatives(self, rename: Callable[[int], int]) -> xgr.Grammar:
        """The grammar for XGrammar to run over representatives.

        Args:
            rename: id of a token named in the grammar, to its id in the inner vocabulary.
        """
        expressions = [
            Expression(expression.kind, tuple(map(rename, expression.data)))
            if expression.kind in _TOKEN_KINDS
            else _positive(expression)
            for expression in self.expressions
        ]
        rules = [rule.as_list(keep_lookahead=False) for rule in self.rules]
        root = self.root
        if self.root_is_recursive:
            # reference, in a sequence, in choices: the shape that XGrammar's normalizer leaves
            count = len(expressions)
            expressions.append(Expression(Kind.RULE_REFERENCE, (root,)))
            expressions.append(Expression(Kind.SEQUENCE, (count,)))
            expressions.append(Expression(Kind.CHOICES, (count + 1,)))
            start = Rule(self._fresh_name(), count + 2, -1, False, -1, -1, "", False, None)
            rules.append(start.as_list(keep_lookahead=False))
            root = len(rules) - 1
        return self._build(expressions, rules, root)

    def _fresh_name(self) -> str:
        taken = {rule.name for rule in self.rules}
        name = "start"
        while name in taken:
            name += "_"
        return name

    def _build(
        self, expressions: list[Expression], rules: list[list[object]], root: int
    ) -> xgr.Grammar:
        data: list[int] = []
        starts: list[int] = []
        for expression in expressions:
            starts.append(len(data))
            data += (expression.kind, len(expression.data), *expression.data)
        document = dict(
            self._document,
            rules=rules,
            root_rule_id=root,
            grammar_expr_data=data,
            grammar_expr_indptr=starts,
            # what a compiler derived from the old expressions
            complete_fsm=None,
            per_rule_fsms=[],
            allow_empty_rule_ids=[],
            optimized=False,
        )
        return xgr.Grammar.deserialize_json(json.dumps(document))


def _positive(expression: Expression) -> Expression:
    r"""The same class without negation, where what it excludes is not ASCII alone.

    After a rule, XGrammar masks ASCII tokens at a negated class that excludes a range beyond
    ASCII, though it accepts them: ``"*"+ [^/\u0100-\u01ff]`` forbids the token ``*,``.
    """
    if expression.kind not in _CLASS_KINDS or not expression.data[0]:
        return expression
    ranges = sorted(zip(expression.data[1::2], expression.data[2::2], strict=True))
    if not ranges:
        return expression
    if max(last for _, last in ranges) < 0x80:
        return expression
    kept: list[int] = []
    following = 0
    for first, last in ranges:
        if following < first:
            kept += (following, first - 1)
        following = max(following, last + 1)
    if following <= _MAX_CODE_POINT:
        kept += (following, _MAX_CODE_POINT)
    # a class of nothing has no positive form
    return Expression(expression.kind, (0, *kept)) if kept else expression


def _is_text(data: tuple[int, ...]) -> bool:
    try:
        bytes(byte & 0xFF for byte in data).decode()
    except UnicodeDecodeError:
        return False
    return True


def _spell_nul(expressions: list[Expression], index: int) -> None:
    r"""Rewrite a literal as a sequence of literals and ``[\0]``, which the printer keeps."""
    data = expressions[index].data
    parts: list[int] = []
    start = 0
    for position in [i for i, byte in enumerate(data) if byte == 0] + [len(data)]:
        if start < position:
            parts.append(len(expressions))
            expressions.append(Expression(Kind.BYTE_STRING, data[start:position]))
        if position < len(data):
            parts.append(len(expressions))
            expressions.append(Expression(Kind.CHARACTER_CLASS, (0, 0, 0)))
        start = position + 1
    expressions[index] = Expression(Kind.SEQUENCE, tuple(parts))


def _without(data: tuple[int, ...], code_point: int) -> tuple[int, ...]:
    """A character class (negation flag, then bounds in pairs) that lacks one code point."""
    negated, bounds = data[0], data[1:]
    if negated:
        return (*data, code_point, code_point)
    kept: list[int] = []
    for low, high in zip(bounds[::2], bounds[1::2], strict=True):
        for part_low, part_high in (
            (low, min(high, code_point - 1)),
            (max(low, code_point + 1), high),
        ):
            if part_low <= part_high:
                kept += (part_low, part_high)
    if not kept:  # the class was the marker alone: negate everything
        return (1, 0, _MAX_CODE_POINT)
    return (0, *kept)


@cache
def _converter_lookaheads() -> frozenset[tuple[object, ...]]:
    """Shapes of the lookahead that XGrammar's converters write of their own accord."""
    shapes = set()
    for grammar in (
        xgr.Grammar.builtin_json_grammar(),
        xgr.Grammar.from_json_schema("{}"),
        xgr.Grammar.from_json_schema({"type": "object"}, strict_mode=False),
        xgr.Grammar.from_json_schema("{}", max_whitespace_cnt=2),
    ):
        form = GrammarForm(grammar)
        shapes |= {form.shape(rule.lookahead) for rule in form.rules if rule.lookahead >= 0}
    return frozenset(shapes)
