"""The mask store: which tokens are allowed, by lexer state and by what the stack says.

The rows of a lexer state are sequences of letters with the tokens that make them. Rows that the
minimal automaton cannot tell apart are one; what is left is walked down the parser's stack all at
once: a *union* is what remains of the rows after reading a part of the stack, with the tokens
allowed so far. Unions are made when a stack first asks for them and kept, in the core
(``mask_store::decode``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tokfold import _core
from tokfold._checks import check_number, wrong_type
from tokfold.mask_store.grammar import LarkGrammar
from tokfold.mask_store.lexer_types import LexerLimits
from tokfold.mask_store.predicates import Predicates
from tokfold.mask_store.transitions import ROWS, Transitions, build_transitions
from tokfold.vocabulary import Vocabulary, check_vocabulary

__all__ = ["MaskStore"]


class MaskStore:
    """All that decoding needs of a grammar and a vocabulary; shared by any number of matchers.

    Attributes:
        grammar: terminals and rules.
        vocabulary: whose tokens the masks are of.
        transitions: the lexer's side; single transitions were let go of when the rows were made.
        predicates: the parser's side.
        words: length of a bitmask's row in int32 words.
    """

    def __init__(
        self,
        grammar: LarkGrammar,
        vocabulary: Vocabulary,
        *,
        limits: LexerLimits | None = None,
        max_kept: int = 200_000,
        max_bytes: int = 2**28,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        """Build the store.

        Args:
            grammar: as :func:`tokfold.mask_store.lark_reader.read_lark` gives it.
            vocabulary: special tokens are never allowed; stop tokens where the text may end.
            limits: bounds of the lexer's side.
            max_kept: places where walks down the stack begin that are remembered.
            max_bytes: bytes of what is remembered of such walks, about. At either bound all of it
                is forgotten, and made again as it is asked for.
            progress: called with the lexer states done and those known so far, then with the
                sequences of terminals done and their number.

        Raises:
            LarkGrammarError: the grammar cannot be used; the message says why.
            LimitExceededError: a bound was reached.
            ArgumentTypeError, ValueError: an argument has another type, or a bound is negative.
        """
        if not isinstance(grammar, LarkGrammar):
            what = "a LarkGrammar, as tokfold.mask_store.read_lark(text) makes one"
            raise wrong_type("grammar", what, grammar)
        if limits is not None and not isinstance(limits, LexerLimits):
            raise wrong_type("limits", "tokfold.mask_store.LexerLimits or None", limits)
        _check(vocabulary, max_kept, max_bytes, progress)
        transitions = build_transitions(grammar, vocabulary, limits=limits, progress=progress)
        transitions.release()
        self._make(transitions, max_kept, max_bytes, progress)

    def _make(
        self,
        transitions: Transitions,
        max_kept: int,
        max_bytes: int,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        grammar, vocabulary = transitions.grammar, transitions.vocabulary
        self.grammar, self.vocabulary, self.transitions = grammar, vocabulary, transitions
        self.predicates = Predicates(grammar)
        self.words = -(-len(vocabulary) // 32)
        rows: Any = tuple(transitions.rows[name] for name in ROWS)
        self._core = _core.StoreEngine(
            transitions._core,
            vocabulary._compiled,
            self.predicates.graph._core,
            [terminal.is_ignored for terminal in grammar.terminals],
            _indentation(grammar),
            list(grammar.scanner_of_state),
            max_kept,
            max_bytes,
            rows,
            progress,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to a file, all of it or nothing.

        Its grammar, its lexer states and its rows; what texts have asked of it is not kept.

        Raises:
            ArtifactError: the file cannot be written.
        """
        from tokfold.mask_store.saved import write

        if not isinstance(path, str | os.PathLike):
            raise wrong_type("path", "a str or a path", path)
        write(self.transitions, path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        vocabulary: Vocabulary,
        *,
        mmap: bool = True,
        max_kept: int = 200_000,
        max_bytes: int = 2**28,
        progress: Callable[[int, int], object] | None = None,
    ) -> MaskStore:
        """Take up a saved store, after checking all of it; the extra ``lark`` is not needed.

        Args:
            path: the file.
            vocabulary: the one that the store was built for.
            mmap: map the tokens of rows into memory, so that processes share them.
            max_kept: as when it is built.
            max_bytes: the same.
            progress: the same.

        Raises:
            ArtifactError: the file is damaged, of another version, or of another vocabulary.
            ArgumentTypeError, ValueError: as when it is built.
        """
        from tokfold.mask_store.saved import checked, read

        _check(vocabulary, max_kept, max_bytes, progress)
        transitions = read(path, vocabulary, mmap=mmap)
        self = cls.__new__(cls)
        with checked(path):
            self._make(transitions, max_kept, max_bytes, progress)
        return self

    def row_count(self) -> dict[str, int]:
        """How much is there.

        ``shared_rows`` and ``own_rows`` of lexer states, ``sequences`` of letters,
        ``stack_states`` of the minimal automaton, ``readings``, ``unions`` made so far with
        ``union_token_sets`` and ``union_bytes``, ``starts``: places where walks begin;
        ``forgotten``: how often a bound was reached.
        """
        return self._core.counts()

    def __repr__(self) -> str:
        return f"<MaskStore of {self.grammar.source}, {len(self.vocabulary)} tokens>"


def _check(vocabulary: Vocabulary, max_kept: int, max_bytes: int, progress: object) -> None:
    """Refuse arguments of a wrong type, and negative bounds."""
    check_vocabulary(vocabulary)
    check_number("max_kept", max_kept, 0)
    check_number("max_bytes", max_bytes, 0)
    if progress is not None and not callable(progress):
        raise wrong_type("progress", "a function of two numbers, or None", progress)


def _indentation(
    grammar: LarkGrammar,
) -> tuple[int, int | None, int | None, int, list[int], list[int], bool] | None:
    """The post-lexer in numbers."""
    rules = grammar.indentation
    if rules is None:
        return None
    names = {terminal.name: i for i, terminal in enumerate(grammar.terminals)}
    return (
        names[rules.newline],
        names.get(rules.indent),
        names.get(rules.dedent),
        rules.tab_len,
        sorted(names[name] for name in rules.open_parens if name in names),
        sorted(names[name] for name in rules.close_parens if name in names),
        rules.is_balanced(grammar.productions),
    )
