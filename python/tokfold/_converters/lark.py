"""What the converter of Lark text would do: terminals written out, schemas within."""

from __future__ import annotations

import re

from tokfold._converters.bounds import (
    CEILING,
    MAX_LARK_LENGTH,
    MAX_LARK_LEVELS,
    MAX_LARK_WORK,
    MAX_PATTERN_NESTING,
    MAX_SCHEMA_WORK,
)
from tokfold._converters.patterns import check_pattern
from tokfold._converters.schemas import check_schema
from tokfold._text_checks import MAX_JSON_NESTING, check_text, place, refuse_size
from tokfold.errors import LimitExceededError, UnsupportedGrammarError

_TERMINAL = re.compile(
    r"^[ \t]*[?!]?(_?[A-Z][A-Z0-9_]*)[ \t]*(?:\.-?\d+)?[ \t]*(?:\[[^\]]*\])?:", re.MULTILINE
)
_DEFINITION = re.compile(r"^[ \t]*[?!]?_?[A-Za-z]\w*[^:\n]*:|^[ \t]*%", re.MULTILINE)
_LARK_WORD = re.compile(
    r'"(?:[^"\\\n]|\\.)*"|/(?:[^/\\\n]|\\.)+/[a-z]*|//[^\n]*|\#[^\n]*|[()\[\]]|(_?[A-Z][A-Z0-9_]*)'
)


_INLINE_SCHEMA = re.compile(r"%json\s*")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]')


def check_lark(text: object) -> int:
    """Count what Lark text comes to; returns levels of groups and of nested terminals."""
    source = check_text(text, "lark")
    if len(source) > MAX_LARK_LENGTH:
        refuse_size(
            f"this Lark grammar has {len(source):,} characters", "MAX_LARK_LENGTH", MAX_LARK_LENGTH
        )
    level = deepest = 0
    for found in _LARK_WORD.finditer(source):
        word = found[0]
        if word[0] == "/" and word[:2] != "//":
            line, column = place(source, found.start())
            where = f"line {line}, column {column}: this pattern"
            deepest = max(deepest, check_pattern(word[1:], where, as_automaton=False).levels)
        elif word in "([":
            level += 1
            deepest = max(deepest, level)
        elif word in ")]":
            level = max(0, level - 1)
    # XGrammar itself goes no deeper than 200 groups.
    return max(min(deepest, 2 * MAX_PATTERN_NESTING), _terminals(source), _inline_schemas(source))


def _inline_schemas(source: str) -> int:
    """Levels of the schemas that stand in Lark text after ``%json``."""
    levels = work = end = 0
    for found in _INLINE_SCHEMA.finditer(source):
        if found.start() < end:
            continue
        line, column = place(source, found.start())
        start = end = found.end()
        depth = 0
        for token in _JSON_TOKEN.finditer(source, start):
            depth += 1 if token[0] in "[{" else -1 if token[0] in "]}" else 0
            end = token.end()
            if depth > MAX_JSON_NESTING or depth == 0:
                break
        try:
            counts = check_schema(source[start:end], "schema after %json")
        except LimitExceededError as error:
            raise LimitExceededError(
                f"line {line}, column {column}: {error}", error.limit, error.value
            ) from error
        except UnsupportedGrammarError:  # it is no JSON: a part of a text, or XGrammar says so
            continue
        levels, work = max(levels, counts.levels), work + counts.work
        if work > MAX_SCHEMA_WORK:
            refuse_size(
                f"line {line}, column {column}: the schemas up to here come to {work:,} rules and "
                "copies; make them smaller",
                "MAX_SCHEMA_WORK",
                MAX_SCHEMA_WORK,
            )
    return levels


def _terminals(source: str) -> int:
    """The longest chain of terminals; refuses those that are too long once written out."""
    starts = [(match.start(), match.end(), match[1]) for match in _TERMINAL.finditer(source)]
    ends = sorted(match.start() for match in _DEFINITION.finditer(source))
    uses: dict[str, list[str]] = {}
    lengths: dict[str, int] = {}
    places: dict[str, int] = {}
    following = 0
    for start, end, name in starts:
        while following < len(ends) and ends[following] < end:
            following += 1
        stop = ends[following] if following < len(ends) else len(source)
        body = [found for found in _LARK_WORD.finditer(source, end, stop) if found[1]]
        uses[name] = uses.get(name, []) + [found[1] for found in body]
        lengths[name] = lengths.get(name, 0) + stop - end
        places[name] = start
    levels: dict[str, int] = {}
    sizes: dict[str, int] = {}
    for first in uses:
        todo = [first]
        while todo:
            name = todo[-1]
            if name in levels:
                todo.pop()
                continue
            missing = [each for each in uses[name] if each in uses and each not in sizes]
            if missing and name not in sizes:
                sizes[name] = 0  # under way: a circle, which XGrammar refuses, ends here
                todo += dict.fromkeys(missing)
                continue
            known = [each for each in uses[name] if each in levels]
            levels[name] = 1 + max((levels[each] for each in known), default=0)
            size = lengths[name] + sum(sizes[each] for each in known)
            sizes[name] = min(size, CEILING)
            if size > MAX_LARK_WORK:
                line, column = place(source, places[name])
                refuse_size(
                    f"line {line}, column {column}: the terminal {name} has {size:,} characters "
                    "when the terminals in it are written out; make it a rule",
                    "MAX_LARK_WORK",
                    MAX_LARK_WORK,
                )
            if levels[name] > MAX_LARK_LEVELS:
                line, column = place(source, places[name])
                refuse_size(
                    f"line {line}, column {column}: the terminal {name} holds terminals that hold "
                    "others, too many levels deep",
                    "MAX_LARK_LEVELS",
                    MAX_LARK_LEVELS,
                )
            todo.pop()
    return max(levels.values(), default=0)
