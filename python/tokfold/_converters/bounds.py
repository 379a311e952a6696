"""The bounds past which a converter is not called."""

from __future__ import annotations

MAX_SCHEMA_LEVELS = 16_000
"""Schemas within schemas, through `$ref` too. A level takes 5 KB of stack at most, and the thread
that converts has 16 KiB for each: 250 MiB, of which only what is used is ever real memory."""

MAX_SCHEMA_WORK = 100_000
"""Rules, and copies of subschemas, that the converter makes: some 15 µs each, so 1 to 2 s."""

MAX_PATTERN_NESTING = 200
"""Levels of groups in a pattern. On a stack of 512 KiB XGrammar dies between 300 and 1,000."""

MAX_PATTERN_WORK = 50_000
"""States of the automaton of a pattern, and what it costs to join them: some 20 µs each."""

MAX_PATTERN_LENGTH = 300_000
"""Characters of a pattern by itself; they take 0.2 s, and 0.6 s to be read again."""

MAX_MACRO_WORK = 100_000
"""The same of all macros of a grammar, and 25 for each: XGrammar reads them one by one."""

MAX_LARK_LENGTH = 1_000_000
"""Characters of Lark text."""

MAX_LARK_LEVELS = 16_000
"""Terminals within terminals, on a stack made for them. Without, 512 KiB end between 1,000 and
3,000."""

MAX_LARK_WORK = 200_000
"""Characters of a terminal after the terminals that it names are written out."""

MAX_EXCLUDED = 10_000
"""Characters of texts that strings of a schema must not hold. 20,000 take 1 s, 60,000 eleven."""

MAX_GRAMMAR_NESTING = 200
"""Levels of groups in grammar text that XGrammar reads: as for patterns."""

LEVELS_ON_ANY_STACK = 24
"""Levels that are converted in the caller's thread, whose stack may be small."""

CEILING = 1 << 60
"""Past this counts only say `too much`: they double with every level."""
