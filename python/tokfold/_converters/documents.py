"""What XGrammar reads whole: grammar text and structural tags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from tokfold import _json
from tokfold._converters.bounds import MAX_EXCLUDED, MAX_GRAMMAR_NESTING, MAX_MACRO_WORK
from tokfold._converters.lark import check_lark
from tokfold._converters.patterns import check_macro, check_pattern
from tokfold._converters.schemas import check_schema
from tokfold._text_checks import (
    TAG_LEVELS,
    check_nesting,
    check_text,
    place,
    pointer_to,
    refuse,
    refuse_size,
)
from tokfold.errors import LimitExceededError

_GRAMMAR_WORD = re.compile(
    r'(?P<macro>(?:Regex|Substring)\s*\()|"(?:[^"\\\n]|\\.)*"|\[(?:[^\]\\\n]|\\.)*\]|\#[^\n]*|[()]'
)


def check_grammar(text: object) -> int:
    """Count what grammar text for XGrammar itself comes to; returns levels of groups."""
    source = check_text(text, "grammar")
    level = deepest = work = 0
    for found in _GRAMMAR_WORD.finditer(source):
        word = found[0]
        if found["macro"]:
            name = "Regex" if word[0] == "R" else "Substring"
            ends = source.find("\n", found.end())
            # a macro's texts, up to the end of its line at least
            counts = check_macro(name, source[found.end() : ends if ends >= 0 else None], work)
            work, deepest = counts.work, max(deepest, counts.levels)
            level += 1
        elif word == "(":
            level += 1
            if level > MAX_GRAMMAR_NESTING:
                line, column = place(source, found.start())
                refuse_size(
                    f"line {line}, column {column}: groups are nested too deeply; make rules of "
                    "some",
                    "MAX_GRAMMAR_NESTING",
                    MAX_GRAMMAR_NESTING,
                )
        elif word == ")":
            level = max(0, level - 1)
        deepest = max(deepest, level)
    return deepest


def check_excludes(excludes: Iterable[object]) -> None:
    """Count the texts that strings of a schema must not hold."""
    total = sum(len(each) for each in excludes if isinstance(each, str))
    if total > MAX_EXCLUDED:
        refuse_size(f"'excludes' has {total:,} characters", "MAX_EXCLUDED", MAX_EXCLUDED)


def check_tag(text: object) -> int:
    """Count what a structural tag comes to that XGrammar itself is to convert.

    Returns:
        Levels that its converters recurse.

    Raises:
        TypeError: it is no text.
        UnsupportedGrammarError: a part of it holds NUL or a lone surrogate, or dispatches on tokens
            within a repetition, on which XGrammar ends the process.
        LimitExceededError: it is too much; at the part.
    """
    source = check_text(text, "structural tag")
    check_nesting(source, "structural tag", TAG_LEVELS)
    try:
        tag = _json.read(source)
    except json.JSONDecodeError:
        return 0  # XGrammar says what is wrong with it
    levels = work = 0
    todo: list[tuple[Any, list[object], int, bool]] = [(tag, [], 1, False)]
    while todo:
        node, path, depth, is_repeated = todo.pop()
        levels = max(levels, depth)
        if isinstance(node, list):
            todo += [(each, [*path, i], depth, is_repeated) for i, each in enumerate(node)]
        if not isinstance(node, dict):
            continue
        if is_repeated and _is_token_dispatch(node):
            refuse(
                f"{pointer_to(path)}: 'token_dispatch' stands within a 'repeat'; XGrammar's "
                "converter would end the process on it. Write 'star', 'plus' or 'optional' in "
                "place of 'repeat'",
                "token_dispatch within repeat",
            )
        is_repeated = is_repeated or node.get("type") == "repeat"
        for key, value in node.items():
            here = [*path, key]
            try:
                if key in ("json_schema", "schema"):
                    counts = check_schema(value if isinstance(value, str) else _json.dumps(value))
                    deep, more = counts.levels, counts.work
                elif key == "pattern" and isinstance(value, str):
                    found = check_pattern(value, as_automaton=True)
                    deep, more = found.levels, found.work
                elif key == "excludes" and isinstance(value, list):
                    check_excludes(value)
                    continue
                elif key == "grammar" and isinstance(value, str):
                    deep, more = check_grammar(value), 0
                    if node.get("syntax") == "lark":  # which XGrammar 0.2.8 does not look at
                        deep = max(deep, check_lark(value))
                else:
                    todo.append((value, here, depth + 1, is_repeated))
                    continue
            except LimitExceededError as error:
                raise LimitExceededError(
                    f"{pointer_to(here)}: {error}", error.limit, error.value
                ) from error
            levels, work = max(levels, depth + deep), work + more
            if work > MAX_MACRO_WORK:
                refuse_size(
                    f"{pointer_to(here)}: up to here the schemas and patterns of this structural "
                    f"tag come to {work:,} rules and states",
                    "MAX_MACRO_WORK",
                    MAX_MACRO_WORK,
                )
    return levels


def _is_token_dispatch(node: dict[str, Any]) -> bool:
    """Whether XGrammar takes a format for one, which need not say its type."""
    if "type" in node:
        return bool(node["type"] == "token_dispatch")
    rules = node.get("rules")
    return isinstance(rules, list) and not all(
        isinstance(rule, list) and rule and isinstance(rule[0], str) for rule in rules
    )
