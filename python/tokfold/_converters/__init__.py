r"""The one door to XGrammar's converters: what could end the process or take minutes stays outside.

Only :mod:`tokfold.xgrammar` calls the converters. XGrammar converts JSON schemas, patterns,
Lark text and structural tags by recursion, without bounds of its own. What it would do is counted
here first, in time linear in the text and without recursion, and what is too much is refused by
name. What is deep but not too deep is converted in a thread whose stack is made for it, so that a
small stack of the caller is no danger.

The counts are of what the converter does: how often it copies a subschema (to compute the name
under which it remembers it, at every level anew), how many rules it writes (``$ref`` once for each
spelling, lists of types once for each type), how deep it recurses (through every ``$ref`` it meets
first), and how many states the automaton of a pattern gets. They are upper bounds, not exact.

- ``bounds``: the bounds; ``tokfold._text_checks`` has those of texts and JSON, and the refusals.
- ``schemas``, ``patterns`` (and macros), ``lark``: what each converter would do.
- ``documents``: what XGrammar reads whole: grammar text, structural tags.
- ``conversion``: the stack on which a converter is called.
"""

from tokfold._converters.conversion import is_deep, with_stack
from tokfold._converters.documents import check_grammar, check_tag
from tokfold._converters.lark import check_lark
from tokfold._converters.patterns import check_pattern
from tokfold._converters.schemas import check_schema

__all__ = [
    "check_grammar",
    "check_lark",
    "check_pattern",
    "check_schema",
    "check_tag",
    "is_deep",
    "with_stack",
]
