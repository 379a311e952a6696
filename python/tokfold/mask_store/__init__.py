"""Mask stores: Lark grammars by their lexer and their LALR(1) table (Mask-Store Streamlining).

For each lexer state, and each sequence of terminals that a token can bring, the tokens that
bring it; which of these are ever, always or jointly legal on the stacks of the parser; and an
engine that decodes with them. Needs the extra ``lark``, which reads the grammar; the automata are
ours.

Files, from the grammar to the matcher: ``lark_reader``, ``grammar``; ``patterns`` over
``charsets``, ``ordered`` (patterns whose alternatives have an order, as Python's ``re`` tries
them), ``byte_automata`` (automata of terminals); ``lalr``, ``stack_graph``,
``stack_classes``, ``witnesses`` (the stacks of the parser); ``transitions`` over ``lexer_types``,
``predicates``, ``streamline``, ``store`` (the rows), ``saved`` (files);
``matcher``; ``errors``. ``lark_reader`` orders the terminals by Lark's priorities.
"""

from tokfold.mask_store.grammar import LarkGrammar
from tokfold.mask_store.lark_reader import open_lark, python_grammar, read_lark
from tokfold.mask_store.lexer_types import LexerLimits
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.predicates import Predicates
from tokfold.mask_store.store import MaskStore
from tokfold.mask_store.transitions import build_transitions

__all__ = [
    "LarkGrammar",
    "LexerLimits",
    "MaskStore",
    "Predicates",
    "StoreMatcher",
    "build_transitions",
    "open_lark",
    "python_grammar",
    "read_lark",
]
