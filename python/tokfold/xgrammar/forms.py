"""XGrammar's grammar objects, read and rewritten through their JSON form.

A grammar reaches the wrapper from any of XGrammar's converters. Two things are made of it: the
text that tokfold computes classes from (:mod:`tokfold.xgrammar.spelling`), and the grammar that
XGrammar runs over the representatives. Both come from ``Grammar.serialize_json``, not from
``str(grammar)``:

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

Cost: linear in the grammar. Nothing here recurses on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import xgrammar as xgr

from tokfold import _json
from tokfold._lazy import lazy
from tokfold.errors import UnsupportedGrammarError

__all__ = [
    "CLASS_KINDS",
    "IS_028",
    "MACRO_KINDS",
    "MAX_CODE_POINT",
    "NESTED_KINDS",
    "REFERENCE_KINDS",
    "SERIALIZATION_VERSIONS",
    "TOKEN_KINDS",
    "Expression",
    "GrammarForm",
    "Kind",
    "Rule",
    "class_ranges",
]

SERIALIZATION_VERSIONS = {"v16": "0.2.8", "v18": "0.2.9"}
"""The forms that are read, and whose they are; another one is refused by name, not guessed at."""

IS_028 = xgr.get_serialization_version() == "v16"
"""Whether XGrammar 0.2.8 is installed, which takes no stop token as text, for example."""

MAX_CODE_POINT = 0x10FFFF


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


TOKEN_KINDS = (Kind.TOKEN, Kind.EXCLUDE_TOKEN)
CLASS_KINDS = (Kind.CHARACTER_CLASS, Kind.CHARACTER_CLASS_STAR)
NESTED_KINDS = (Kind.SEQUENCE, Kind.CHOICES)
REFERENCE_KINDS = (Kind.RULE_REFERENCE, Kind.REPEAT)
MACRO_KINDS = (Kind.TAG_DISPATCH, Kind.REGEX, Kind.SUBSTRING)
"""Rules whose body XGrammar compiles to an automaton over bytes, which can be read back."""


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
    lookahead: int = -1
    exact_lookahead: bool = False
    max_tokens: int = -1
    max_chars: int = -1
    capture: str = ""
    lazy: bool = False
    temperature: float | None = None

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
    """

    def __init__(self, grammar: xgr.Grammar) -> None:
        document: dict[str, Any] = _json.loads(grammar.serialize_json())
        version = document.get("__VERSION__")
        if version not in SERIALIZATION_VERSIONS:
            releases = " and ".join(
                f"{form} of xgrammar {release}" for form, release in SERIALIZATION_VERSIONS.items()
            )
            raise UnsupportedGrammarError(
                f"XGrammar writes grammars in form {version}, tokfold reads {releases}: install "
                "one of these",
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
        self.has_suffix_or_stop = bool(document["suffix_stop_infos"])
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
        return frozenset(token for edge in self.token_edges for token in edge.data)

    @lazy
    def token_edges(self) -> list[Expression]:
        """The distinct ``Token`` and ``ExcludeToken``, which take a token whole."""
        edges = (expression for expression in self.expressions if expression.kind in TOKEN_KINDS)
        return list(dict.fromkeys(edges))

    @property
    def has_exclude_token(self) -> bool:
        """Whether tokens can be taken that no byte of the grammar matches."""
        return any(edge.kind == Kind.EXCLUDE_TOKEN for edge in self.token_edges)

    @lazy
    def root_is_recursive(self) -> bool:
        """Whether the root occurs in a body."""
        return any(self.root in self.references(expression) for expression in self.expressions)

    @staticmethod
    def references(expression: Expression) -> tuple[int, ...]:
        """The rules that an expression names itself, not through its children."""
        data = expression.data
        if expression.kind in REFERENCE_KINDS:
            return data[:1]
        if expression.kind == Kind.TAG_DISPATCH:
            return data[1:-2:2]
        if expression.kind == Kind.TOKEN_TAG_DISPATCH:
            return data[2 : 1 + 2 * data[0] : 2]
        return ()

    def body(self, rule: int) -> Expression:
        """What a rule stands for."""
        return self.expressions[self.rules[rule].body]

    def original(self) -> xgr.Grammar:
        """The grammar that was read."""
        return xgr.Grammar.deserialize_json(_json.dumps(self._document))

    # ------------------------------------------------------------ rewriting

    def over_representatives(self, rename: Callable[[int], Iterable[int]]) -> xgr.Grammar:
        """The grammar for XGrammar to run over representatives.

        Args:
            rename: id of a token named in the grammar, to its ids in the inner vocabulary.
        """
        expressions = [
            Expression(
                expression.kind,
                tuple(sorted({inner for token in expression.data for inner in rename(token)})),
            )
            if expression.kind in TOKEN_KINDS
            else _positive(expression)
            for expression in self.expressions
        ]
        rules = list(self.rules)
        root = self.root
        if self.root_is_recursive:
            # reference, in a sequence, in choices: the shape that XGrammar's normalizer leaves
            count = len(expressions)
            expressions.append(Expression(Kind.RULE_REFERENCE, (root,)))
            expressions.append(Expression(Kind.SEQUENCE, (count,)))
            expressions.append(Expression(Kind.CHOICES, (count + 1,)))
            root = len(rules)
            rules.append(Rule(self._fresh_name(), count + 2))
        return self.build(expressions, rules, root)

    def _fresh_name(self) -> str:
        taken = {rule.name for rule in self.rules}
        name = "start"
        while name in taken:
            name += "_"
        return name

    def build(
        self, expressions: Sequence[Expression], rules: Sequence[Rule], root: int
    ) -> xgr.Grammar:
        """A grammar of these parts, without lookahead."""
        data: list[int] = []
        starts: list[int] = []
        for expression in expressions:
            starts.append(len(data))
            data += (expression.kind, len(expression.data), *expression.data)
        document = dict(
            self._document,
            rules=[rule.as_list(keep_lookahead=False) for rule in rules],
            root_rule_id=root,
            grammar_expr_data=data,
            grammar_expr_indptr=starts,
            # what a compiler derived from the old expressions
            complete_fsm=None,
            per_rule_fsms=[],
            allow_empty_rule_ids=[],
            optimized=False,
        )
        return xgr.Grammar.deserialize_json(_json.dumps(document))


def _positive(expression: Expression) -> Expression:
    r"""The same class without negation, where what it excludes is not ASCII alone.

    After a rule, XGrammar masks ASCII tokens at a negated class that excludes a range beyond
    ASCII, though it accepts them: ``"*"+ [^/\u0100-\u01ff]`` forbids the token ``*,``.
    """
    if expression.kind not in CLASS_KINDS or not expression.data[0]:
        return expression
    excluded = expression.data[2::2]
    if not excluded or max(excluded) < 0x80:
        return expression
    kept = [bound for pair in class_ranges(expression.data) for bound in pair]
    # a class of nothing has no positive form
    return Expression(expression.kind, (0, *kept)) if kept else expression


def class_ranges(data: tuple[int, ...]) -> list[tuple[int, int]]:
    """The code points of a character class (negation flag, then bounds in pairs).

    Returns:
        First and last of each run, ascending, disjoint, not adjacent.
    """
    merged: list[tuple[int, int]] = []
    for first, last in sorted(zip(data[1::2], data[2::2], strict=True)):
        if first > last:
            continue
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    if not data[0]:
        return merged
    kept: list[tuple[int, int]] = []
    following = 0
    for first, last in merged:
        if following < first:
            kept.append((following, first - 1))
        following = last + 1
    if following <= MAX_CODE_POINT:
        kept.append((following, MAX_CODE_POINT))
    return kept
