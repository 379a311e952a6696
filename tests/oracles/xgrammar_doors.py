"""Schemas and patterns as XGrammar's own converters write them.

Tests that compare engines need one grammar for both of them. Tokfold's own converters make other
grammars of the same schema or pattern, so these tests take the text that XGrammar prints.
"""

from __future__ import annotations

import json
from typing import Any

import tokfold
import xgrammar
from tokfold import _core


def as_ours(grammar: xgrammar.Grammar) -> tokfold.Grammar:
    """The same grammar for our engine.

    XGrammar prints hexadecimal escapes that run into the next character, and lookahead that its
    rules imply anyway.
    """
    return tokfold.Grammar.from_ebnf(_core.repair_printed(str(grammar)), lookahead="implied")


def schema_grammar(schema: object, **options: Any) -> tokfold.Grammar:
    """What ``xgrammar.Grammar.from_json_schema`` makes of a schema."""
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return as_ours(xgrammar.Grammar.from_json_schema(text, **options))


def regex_grammar(pattern: str) -> tokfold.Grammar:
    """What ``xgrammar.Grammar.from_regex`` makes of a pattern."""
    return as_ours(xgrammar.Grammar.from_regex(pattern))
