"""From a Lark file to a :class:`LarkGrammar`: the Lark package reads, nothing is parsed here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokfold._checks import is_one_of, wrong_type
from tokfold._extras import require
from tokfold._quoting import quoted
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.grammar import (
    Indentation,
    LarkGrammar,
    LexerKind,
    ParseTable,
    Production,
    Terminal,
)

__all__ = ["open_lark", "python_grammar", "read_lark"]

_UNBOUNDED = 2**31
"""Lark's widths above this are its way to say that there is no bound."""


def open_lark(
    path: str | os.PathLike[str],
    start: str | Sequence[str] = "start",
    *,
    lexer: LexerKind = "contextual",
    postlex: object = None,
    import_paths: Sequence[str] = (),
    g_regex_flags: int = 0,
) -> LarkGrammar:
    """Read a ``.lark`` file. Arguments and errors as :func:`read_lark`.

    Raises:
        OSError: the file cannot be read.
    """
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("path", "a str or a path", path)
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise LarkGrammarError(
            f"{path} is not UTF-8 at byte {error.start}: save the grammar as UTF-8"
        ) from None
    return read_lark(
        text,
        start,
        lexer=lexer,
        postlex=postlex,
        import_paths=[*import_paths, str(path.parent)],
        g_regex_flags=g_regex_flags,
        source=str(path),
    )


def python_grammar(start: str = "file_input", lexer: LexerKind = "contextual") -> LarkGrammar:
    """Lark's own grammar of Python 3, with its indentation: ``lark/grammars/python.lark``.

    Args:
        start: ``file_input``, ``single_input`` or ``eval_input``.
        lexer: see :func:`read_lark`.
    """
    lark = require("lark", "lark", "a mask store of a Lark grammar")
    indenter = require("lark.indenter", "lark", "a mask store of a Lark grammar")
    path = Path(str(lark.__file__)).parent / "grammars" / "python.lark"
    return open_lark(path, start, lexer=lexer, postlex=indenter.PythonIndenter())


def read_lark(
    text: str,
    start: str | Sequence[str] = "start",
    *,
    lexer: LexerKind = "contextual",
    postlex: object = None,
    import_paths: Sequence[str] = (),
    g_regex_flags: int = 0,
    source: str = "grammar",
) -> LarkGrammar:
    """Read the text of a Lark grammar.

    Args:
        text: the grammar.
        start: the start symbol; of several, texts are decoded from the first.
        lexer: ``"contextual"``, or ``"basic"`` for one scanner in all states of the parser.
        postlex: an object such as ``lark.indenter.PythonIndenter()``: with ``NL_type``,
            ``INDENT_type``, ``DEDENT_type``, ``OPEN_PAREN_types``, ``CLOSE_PAREN_types`` and
            ``tab_len``. Only its attributes are read; a post-lexer that does something else than
            ``lark.indenter.Indenter`` cannot be told from its attributes.
        import_paths: where ``%import`` looks, besides Lark's own grammars.
        g_regex_flags: flags of :mod:`re` for all terminals.
        source: what to call the grammar in messages.

    Raises:
        LarkGrammarError: Lark refuses the grammar (its message is kept), a file that it imports
            cannot be read, or the post-lexer has not the attributes of an indenter.
        ArgumentTypeError: an argument has another type.
        MissingExtraError: the package ``lark`` is not installed.
    """
    lark = require("lark", "lark", "a mask store of a Lark grammar")
    if not is_one_of(lexer, ("basic", "contextual")):
        raise LarkGrammarError(
            f"{quoted(lexer)} is no lexer that a mask store can be made for: "
            "pass 'contextual' or 'basic' (the dynamic lexers need Earley)"
        )
    if not isinstance(text, str):
        raise wrong_type("text", "a str", text)
    if isinstance(g_regex_flags, bool) or not isinstance(g_regex_flags, int):
        raise wrong_type("g_regex_flags", "flags of re, such as re.IGNORECASE", g_regex_flags)
    if isinstance(import_paths, str) or not isinstance(import_paths, Iterable):
        raise wrong_type("import_paths", "a list of folders", import_paths)
    starts = (start,) if isinstance(start, str) or not isinstance(start, Iterable) else (*start,)
    for name in starts:
        if not isinstance(name, str):
            raise wrong_type("start", "a name of a rule, or a list of them", name)
    if not starts:
        raise LarkGrammarError("no start symbol: pass at least one")
    indentation = _indentation(postlex)
    options: dict[str, Any] = {
        "parser": "lalr",
        "lexer": lexer,
        "start": list(starts),
        "postlex": postlex,
        "import_paths": list(import_paths),
        "g_regex_flags": g_regex_flags,
        "source_path": source,
    }
    try:
        made = lark.Lark(text, **options)
    except (lark.exceptions.LarkError, AssertionError, RecursionError) as error:
        reason = str(error) or type(error).__name__
        raise LarkGrammarError(f"Lark cannot compile {source}: {reason}") from error
    except OSError as error:
        raise LarkGrammarError(
            f"Lark cannot compile {source}: there is no file {error.filename} to import from, or "
            "it cannot be read; pass its folder in import_paths, or read a grammar that is a file "
            "with open_lark(path)"
        ) from error
    return _converted(made, starts, lexer, indentation, g_regex_flags, source)


def _indentation(postlex: object) -> Indentation | None:
    if postlex is None:
        return None
    names = ("NL_type", "INDENT_type", "DEDENT_type", "OPEN_PAREN_types", "CLOSE_PAREN_types")
    missing = [name for name in (*names, "tab_len") if not hasattr(postlex, name)]
    if missing:
        raise LarkGrammarError(
            f"the post-lexer {type(postlex).__name__} has no {', '.join(missing)}: only those made "
            "as lark.indenter.Indenter can be used"
        )
    newline, indent, dedent, opened, closed = (getattr(postlex, name) for name in names)
    tab_len = postlex.tab_len  # type: ignore[attr-defined]
    return Indentation(newline, indent, dedent, frozenset(opened), frozenset(closed), int(tab_len))


def _converted(
    made: Any,  # noqa: ANN401 - Lark is not typed here
    starts: tuple[str, ...],
    lexer: LexerKind,
    indentation: Indentation | None,
    g_regex_flags: int,
    source: str,
) -> LarkGrammar:
    ignored = frozenset(made.ignore_tokens)
    ordered = sorted(
        made.terminals,
        key=lambda t: (-t.priority, -t.pattern.max_width, -len(t.pattern.value), t.name),
    )
    terminals = [
        Terminal(
            name=t.name,
            pattern=t.pattern.to_regexp(),
            text=t.pattern.value if t.pattern.type == "str" else None,
            flags=frozenset(t.pattern.flags),
            priority=t.priority,
            min_width=t.pattern.min_width,
            max_width=t.pattern.max_width if t.pattern.max_width < _UNBOUNDED else None,
            is_ignored=t.name in ignored,
            is_declared=False,
        )
        for t in ordered
    ]
    known = {t.name for t in terminals}
    declared = sorted({s.name for rule in made.rules for s in rule.expansion if s.is_term} - known)
    terminals += [Terminal(n, "", None, frozenset(), 0, 0, 0, False, True) for n in declared]
    productions = tuple(
        Production(
            origin=str(rule.origin.name),
            expansion=tuple(str(symbol.name) for symbol in rule.expansion),
            priority=rule.options.priority if rule.options else None,
            alias=rule.alias,
        )
        for rule in made.rules
    )
    table = _table(made, {rule: i for i, rule in enumerate(made.rules)})
    always = {indentation.newline} if indentation else set()
    index = {t.name: i for i, t in enumerate(terminals) if not t.is_declared}
    scanners: dict[tuple[int, ...], int] = {}
    scanner_of_state = []
    for state in range(len(table.shifts)):
        names: Iterable[str] = index
        if lexer == "contextual":
            names = table.accepted(state) | ignored | always
        members = tuple(sorted(index[name] for name in names if name in index))
        scanner_of_state.append(scanners.setdefault(members, len(scanners)))
    return LarkGrammar(
        terminals=tuple(terminals),
        productions=productions,
        start=starts[0],
        starts=starts,
        table=table,
        lexer=lexer,
        indentation=indentation,
        scanners=tuple(scanners),
        scanner_of_state=tuple(scanner_of_state),
        source=source,
        global_flags=g_regex_flags,
    )


def _table(made: Any, rule_index: Mapping[Any, int]) -> ParseTable:  # noqa: ANN401
    table = made.parser.parser._parse_table
    rules = {str(rule.origin.name) for rule in rule_index}
    count = len(table.states)
    shifts: list[dict[str, int]] = [{} for _ in range(count)]
    reductions: list[dict[str, int]] = [{} for _ in range(count)]
    gotos: list[dict[str, int]] = [{} for _ in range(count)]
    for state, actions in table.states.items():
        for name, (action, argument) in actions.items():
            if action.name == "Reduce":
                reductions[state][str(name)] = rule_index[argument]
            elif name in rules:
                gotos[state][str(name)] = argument
            else:
                shifts[state][str(name)] = argument
    return ParseTable(
        shifts=tuple(shifts),
        reductions=tuple(reductions),
        gotos=tuple(gotos),
        start_states=dict(table.start_states),
        end_states=dict(table.end_states),
    )
