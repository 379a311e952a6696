"""XGrammar's matcher over classes of tokens.

A token is accepted by its class; a mask is filled over the classes and unfolded. Everything that
does not name a token passes through. Over an uncompressed grammar the same object runs plain
XGrammar, so that callers need not tell the two apart.

Cost of a mask over that of XGrammar's own over the representatives: one gather, or one copy where
the same class mask was unfolded before. No Python loop runs over tokens.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import torch
import tvm_ffi
import xgrammar as xgr

from tokfold._forced import whole_characters
from tokfold._quoting import quoted
from tokfold.errors import FallbackWarning, MatcherStateError
from tokfold.xgrammar.bitmask import Words, mask_array, mask_row
from tokfold.xgrammar.compiled import CompiledGrammar
from tokfold.xgrammar.ending import EndingMatcher
from tokfold.xgrammar.forms import IS_028
from tokfold.xgrammar.vocabulary import MAX_STOP_CLASSES, StopView

__all__ = ["GrammarMatcher"]

MAX_TRIED = 1_024
"""Bytes that jump-forward follows where they may have no end, by trying one after the other."""


class GrammarMatcher:
    """Follow a compiled grammar along tokens, and say which may come next.

    Names, arguments, results and errors are those of :class:`xgrammar.GrammarMatcher`; a mask
    equals its mask, save for tokens that XGrammar masks though its own ``accept_token`` takes
    them (or the other way about): there the mask agrees with ``accept_token``.

    Not for use by two threads at once; :meth:`fork` gives each its own.

    Args:
        compiled_grammar: from :class:`tokfold.xgrammar.GrammarCompiler`.
        override_stop_tokens: stop tokens in place of the vocabulary's. An ordinary token may be
            named; a stop token that is left out becomes an ordinary one.
        terminate_without_stop_token: terminate as soon as the grammar is complete.
        max_rollback_tokens: deprecated by XGrammar, always unlimited.
        default_temperature: see :attr:`temperature`.
        max_tokens: tokfold's own: the tokens that the text may take, the stop token counted. A
            token is allowed exactly when the text can still be completed with those that are left;
            text of :meth:`accept_string` is no token.

    Raises:
        ValueError: not a compiled grammar of this package, or ``max_tokens`` is negative.
        RuntimeError: no stop token to override with, one out of range, or a bad temperature.
        TokenBudgetError: even the shortest text takes more than ``max_tokens``.
        UnsupportedGrammarError, LimitExceededError: the tokens of this grammar are not counted:
            it is not compressed, or takes tokens by their ids.
    """

    def __init__(
        self,
        compiled_grammar: CompiledGrammar,
        *,
        override_stop_tokens: int | list[int] | None = None,
        terminate_without_stop_token: bool = False,
        max_rollback_tokens: int = -1,
        default_temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        if not isinstance(compiled_grammar, CompiledGrammar):
            raise ValueError(
                "The grammar should be compiled before passing it to GrammarMatcher, by the "
                f"GrammarCompiler of tokfold.xgrammar: this is a {type(compiled_grammar)}"
            )
        if max_rollback_tokens != -1:
            warnings.warn(
                "max_rollback_tokens is deprecated. You don't need to set it and it's always "
                "unlimited (-1).",
                DeprecationWarning,
                stacklevel=2,
            )
        source = compiled_grammar.source
        stops = _checked_stops(override_stop_tokens, source.size)
        self._compiled = compiled_grammar
        self._size = source.size
        self._num_words = -(-source.size // 32)
        self._stop_token_ids = list(source.stop_token_ids) if stops is None else stops
        self._view: StopView | None = None
        inner_grammar = compiled_grammar.inner
        if compiled_grammar.is_compressed:
            folded = compiled_grammar.folded
            dropped = source.empty_stop_token_ids.difference(self._stop_token_ids)
            lacking = folded.lacks(self._stop_token_ids) if max_tokens is None else []
            reason = ""
            if dropped:
                # XGrammar takes such a token in any state, as a step over no bytes; no class
                # of tokens does that
                reason = (
                    f"stop token {min(dropped)} has no bytes and override_stop_tokens leaves it out"
                )
            elif lacking:
                reason = (
                    f"stop token {lacking[0]} is text and no stop token of the vocabulary, and "
                    f"the grammar has more than {MAX_STOP_CLASSES} classes of tokens"
                )
            if reason:
                warnings.warn(
                    f"{reason}: this matcher runs XGrammar over the full vocabulary",
                    FallbackWarning,
                    stacklevel=2,
                )
                inner_grammar = compiled_grammar.plain
            else:
                # tokens are counted by an engine for which a stop token is no text
                self._view = folded.view(self._stop_token_ids, as_text=max_tokens is None)
        self._terminates_alone = terminate_without_stop_token
        self._inner = xgr.GrammarMatcher(
            inner_grammar,
            override_stop_tokens=stops if self._view is None else self._view.inner_stops,
            terminate_without_stop_token=terminate_without_stop_token,
            default_temperature=default_temperature,
        )
        # Captures are the bytes that were accepted, not a representative's: a second matcher
        # reads the bytes, which costs only where the grammar records captures.
        self._recorder: xgr.GrammarMatcher | None = None
        if self._view is not None and compiled_grammar.has_captures:
            self._recorder = xgr.GrammarMatcher(
                compiled_grammar.byteless, terminate_without_stop_token=True
            )
        self._ending: EndingMatcher | None = None
        if max_tokens is not None:
            self._require_view()
            self._ending = compiled_grammar.counting(
                self._stop_token_ids,
                max_tokens,
                terminate_without_stop_token=terminate_without_stop_token,
            )
        self._bind()

    def _bind(self) -> None:
        """Hold what every step needs: methods of the FFI object and one row of class words."""
        handle: Any = self._inner._handle
        self._accept = handle.accept_token
        self._fill = handle.fill_next_token_bitmask
        words = 0 if self._view is None else self._compiled.folded.num_words
        self._class_words: Words = np.zeros(words, dtype=np.int32)
        self._class_row = tvm_ffi.from_dlpack(self._class_words) if words else None

    # ------------------------------------------------------------------ steps

    def accept_token(self, token_id: int, *, debug_print: bool = False) -> bool:
        """Take one token.

        Args:
            token_id: id in the model's vocabulary.
            debug_print: print XGrammar's state; it names the token's representative.

        Returns:
            False, with the state unchanged, for a token that the grammar refuses, a special
            token, an id out of range, after termination, and where ``max_tokens`` leaves too few
            tokens to complete the text after it.
        """
        view = self._view
        if view is None:
            if not 0 <= operator.index(token_id) < self._size:
                return False  # XGrammar wraps ids at 32 bits before it checks them
            return bool(self._accept(token_id, debug_print))
        token_id = operator.index(token_id)
        if not 0 <= token_id < self._size:
            return False
        inner = view.inner_ids[token_id]
        if inner == self._compiled.folded.never:
            return False
        ending = self._ending
        if ending is not None and (self.is_terminated() or not ending.accept_token(token_id)):
            return False
        ends = self._recorder is not None and self._ends_with(inner)
        if not self._accept(inner, debug_print):
            if ending is not None:
                ending.rollback(1)
            return False
        if self._recorder is not None:
            self._recorder.accept_string(
                b"" if ends else self._compiled.source.token_bytes[token_id]
            )
        return True

    def _ends_with(self, inner: int) -> bool:
        """Whether a token ends the text here, and is no part of it."""
        stops = self._require_view().inner_stops
        return inner in stops and not self._terminates_alone and self.is_completed()

    def accept_string(self, input_str: str | bytes, *, debug_print: bool = False) -> bool:
        """Take text, as one step.

        Returns:
            False, with the state unchanged, if the grammar refuses it.
        """
        accepted = bool(self._inner.accept_string(input_str, debug_print=debug_print))
        if accepted and self._ending is not None and not self._ending.accept_string(input_str):
            self._inner.rollback(1)
            return False
        if accepted and self._recorder is not None:
            self._recorder.accept_string(input_str)
        return accepted

    def rollback(self, num_tokens: int = 1) -> None:
        """Undo the last steps, the stop token included.

        Raises:
            RuntimeError: more steps than were taken.
        """
        self._inner.rollback(num_tokens)
        if self._ending is not None:
            self._ending.rollback(num_tokens)
        if self._recorder is not None:
            self._recorder.rollback(num_tokens)

    def reset(self) -> None:
        """Go back to the start."""
        self._inner.reset()
        if self._ending is not None:
            self._ending.reset()
        if self._recorder is not None:
            self._recorder.reset()

    def fork(self) -> GrammarMatcher:
        """A matcher in the same state, with a life of its own."""
        forked = object.__new__(type(self))
        forked.__dict__.update(self.__dict__)
        forked._stop_token_ids = list(self._stop_token_ids)
        forked._inner = self._inner.fork()
        if self._recorder is not None:
            forked._recorder = self._recorder.fork()
        if self._ending is not None:
            forked._ending = self._ending.fork()
        forked._bind()
        return forked

    # ------------------------------------------------------------------ masks

    def fill_next_token_bitmask(
        self,
        bitmask: Any,  # noqa: ANN401 - whatever offers DLPack
        index: int = 0,
        *,
        debug_print: bool = False,
    ) -> bool:
        """Write which tokens may come next.

        Args:
            bitmask: int32, on the CPU, shape ``(ceil(vocab_size / 32),)`` or
                ``(batch, ceil(vocab_size / 32))``; bit j of word i is token 32 i + j, 1 is
                allowed, bits past the vocabulary become 0 over a compressed grammar. Strides
                are honoured.
            index: row to write.
            debug_print: print XGrammar's mask, over the classes.

        Returns:
            Whether it has to be applied: False when every token is allowed.

        Raises:
            RuntimeError: terminated by a stop token, or the bitmask does not fit.
        """
        return self._fill_row(mask_row(mask_array(bitmask), index, self._num_words), debug_print)

    def _fill_row(self, row: Words, debug_print: bool) -> bool:
        view = self._view
        if view is None:
            if row.flags.c_contiguous:
                return bool(self._fill(row, 0, debug_print))
            whole = np.empty_like(row, order="C")
            needs_apply = bool(self._fill(whole, 0, debug_print))
            row[...] = whole
            return needs_apply
        self._fill(self._class_row, 0, debug_print)
        is_narrowed = self.unfold(self._class_words, row)
        return is_narrowed or view.needs_apply(self._class_words)

    def unfold(self, inner_row: Words, row: Words) -> bool:
        """Write the model's mask from XGrammar's; whether ``max_tokens`` takes tokens out of it.

        Args:
            inner_row: int32, shape ``(inner_words,)``, contiguous: filled by :attr:`inner`.
            row: int32, shape ``(num_words,)``, of any stride.
        """
        if self._view is None:
            row[...] = inner_row
        elif row.flags.c_contiguous:
            self._view.unfolder.unfold(inner_row, row)
        else:
            whole = np.empty_like(row, order="C")
            self._view.unfolder.unfold(inner_row, whole)
            row[...] = whole
        return self._ending is not None and self._ending.narrow(row)

    def fill_next_class_bitmask(
        self,
        class_bitmask: Any,  # noqa: ANN401 - whatever offers DLPack
        index: int = 0,
    ) -> bool:
        """Write which classes may come next; :attr:`class_of_token` says how to read it.

        Args:
            class_bitmask: from :func:`tokfold.xgrammar.allocate_class_bitmask`.
            index: row to write.

        Returns:
            Whether it has to be applied: False when every token is allowed.

        Raises:
            UnsupportedGrammarError, LimitExceededError: the grammar is not compressed, and why.
            RuntimeError: terminated by a stop token, or the bitmask does not fit; or the matcher
                has ``max_tokens``, which tell tokens of one class apart.
        """
        if self._ending is not None:
            raise RuntimeError(
                "max_tokens tells tokens of one class apart: fill masks of tokens, with "
                "fill_next_token_bitmask"
            )
        row = mask_row(mask_array(class_bitmask), index, self._compiled.folded.num_words)
        view = self._require_view()
        self._fill(self._class_row, 0, False)
        row[...] = self._class_words
        return view.needs_apply(self._class_words)

    @property
    def class_of_token(self) -> np.typing.NDArray[np.int32]:
        """The bit of each token in a class bitmask of this matcher.

        As :attr:`CompiledGrammar.class_of_token`, but under this matcher's stop tokens.
        """
        return self._require_view().class_of_token

    def _require_view(self) -> StopView:
        if self._view is None:
            _ = self._compiled.folded  # raises the reason where the grammar has one
            raise RuntimeError(
                "This matcher runs over the full vocabulary: its override_stop_tokens leave out "
                "a stop token without bytes"
            )
        return self._view

    def traverse_draft_tree(
        self,
        retrieve_next_token: torch.Tensor,
        retrieve_next_sibling: torch.Tensor,
        draft_tokens: torch.Tensor,
        token_bitmask: torch.Tensor,
        time_threshold: float = -1.0,
        temperatures: torch.Tensor | None = None,
    ) -> bool:
        """Fill a mask for every node of a tree of draft tokens.

        Args:
            retrieve_next_token: int64, shape ``(nodes,)``: first child of each node, or -1.
            retrieve_next_sibling: int64, shape ``(nodes,)``: next sibling, or -1.
            draft_tokens: int64, shape ``(nodes,)``: token of each node.
            token_bitmask: int32, shape ``(nodes, ceil(vocab_size / 32))``. Rows of nodes that
                are not reached stay as they are.
            time_threshold: seconds after which to give up; none if not positive.
            temperatures: float32, shape ``(nodes,)``, to fill, or None.

        Returns:
            False if time ran out.

        Raises:
            RuntimeError: shapes, dtypes or edges that are no tree.
        """
        view = self._view
        if view is None:
            return bool(
                self._inner.traverse_draft_tree(
                    retrieve_next_token,
                    retrieve_next_sibling,
                    draft_tokens,
                    token_bitmask,
                    time_threshold,
                    temperatures,
                )
            )
        rows = mask_array(token_bitmask)
        if rows.ndim != 2:
            raise RuntimeError("The token_bitmask tensor must be a 2D int32 tensor")
        tokens = torch.as_tensor(draft_tokens)
        if tokens.ndim == 1 and tokens.dtype == torch.int64:
            ids = tokens.numpy()
            known = (ids >= 0) & (ids < self._size)
            inner = view.class_of_token[np.where(known, ids, 0)].astype(np.int64)
            # the token of the root is not looked at
            tokens = torch.from_numpy(np.where(known, inner, -1))
        folded = self._compiled.folded
        class_rows = np.full((rows.shape[0], folded.num_words), -1, dtype=np.int32)
        completed = self._inner.traverse_draft_tree(
            _contiguous(retrieve_next_token),
            _contiguous(retrieve_next_sibling),
            tokens,
            torch.from_numpy(class_rows),
            time_threshold,
            temperatures,
        )
        # the bit that is never allowed is still set where no row was written
        word, bit = divmod(folded.never, 32)
        reached: list[int] = np.flatnonzero((class_rows[:, word] >> bit) & 1 == 0).tolist()

        def write(node: int) -> None:
            self.unfold(class_rows[node], mask_row(rows, node, self._num_words))

        if self._ending is None:
            for node in reached:
                write(node)
        else:
            edges = (np.asarray(retrieve_next_token), np.asarray(retrieve_next_sibling))
            self._ending.follow(edges, np.asarray(draft_tokens), reached, write)
        return bool(completed)

    # ----------------------------------------------------------- observations

    def find_jump_forward_string(self) -> str:
        """The text that must come next, whatever is chosen; ``""`` if there is a choice.

        Only whole characters: it ends before one of which a part alone is forced, and is ``""``
        where what was accepted ends inside a character (XGrammar fails there).

        Raises:
            MatcherStateError: bytes are forced one after the other without an end, as by
                ``root ::= "a" root``. XGrammar does not return there.
            RuntimeError: terminated by a stop token.
        """
        may_stop = self._inner.is_terminated() or self._inner.is_completed()
        if may_stop or self._compiled.forced_text_ends:
            return whole_characters(_forced_text(self._inner))
        return whole_characters(self._tried_bytes())

    def find_jump_forward_tokens(self) -> list[int]:
        """Tokens to append where there is no choice of the text that comes next.

        Each is the longest token that the rest of that text starts with, the lowest id of equal
        ones. The last is left out where a longer token starts with it, as the model may prefer
        that one. Stop tokens are none of them. Give each to :meth:`accept_token`.

        Raises:
            MatcherStateError: as for :meth:`find_jump_forward_string`.

        Example:
            >>> from tokfold import xgrammar as xgr
            >>> info = xgr.TokenizerInfo(["ab", "c", "</s>"], stop_token_ids=[2])
            >>> compiled = xgr.GrammarCompiler(info).compile_grammar('root ::= "abab" "c"?')
            >>> xgr.GrammarMatcher(compiled).find_jump_forward_tokens()
            [0, 0]
        """
        if self._inner.is_terminated() or self._inner.is_completed():
            return []
        rest = self._forced_bytes() if self._compiled.forced_text_ends else self._tried_bytes()
        matcher = self.fork()
        tokens: list[int] = []
        is_prefix = False
        while rest:
            found = self._compiled.source.longest_token(rest, self._stop_token_ids)
            if found is None or not matcher.accept_token(found[0]):
                break
            tokens.append(found[0])
            is_prefix = found[1]
            rest = rest[len(self._compiled.source.token_bytes[found[0]]) :]
        return tokens[:-1] if is_prefix else tokens

    def _forced_bytes(self) -> bytes:
        """What XGrammar's jump-forward follows, with parts of characters, which it cuts off."""
        matcher = self._inner.fork()
        forced = b""
        while True:
            text = _forced_text(matcher)
            matcher.accept_string(text)
            byte = self._only_byte(matcher)
            if not byte:
                return forced + text
            matcher.accept_string(byte)
            forced += text + byte

    def _tried_bytes(self) -> bytes:
        """What XGrammar's jump-forward would follow, by trying each byte, up to a bound."""
        matcher = self._inner.fork()
        forced = b""
        while byte := self._only_byte(matcher):
            if len(forced) >= MAX_TRIED:
                raise MatcherStateError(
                    f"find_jump_forward: {MAX_TRIED} bytes are forced here, one after the "
                    f"other, and still no end: {quoted(forced[:40])}... The grammar has a rule "
                    "that cannot be completed, or a very long one; give that rule an end, or do "
                    "not jump forward and sample tokens"
                )
            forced += byte
            matcher.accept_string(byte)
        return forced

    def _only_byte(self, matcher: xgr.GrammarMatcher) -> bytes:
        """The one byte that may come next; none where there is a choice, or the text may end."""
        found = b""
        for byte in b"" if matcher.is_completed() else self._compiled.alphabet:
            if matcher.accept_string(bytes((byte,))):
                matcher.rollback(1)
                if found:
                    return b""
                found = bytes((byte,))
        return b"" if found and self._takes_tokens(matcher) else found

    def _takes_tokens(self, matcher: xgr.GrammarMatcher) -> bool:
        """Whether the grammar takes tokens whole here, where one byte alone may come next."""
        if IS_028 or not self._compiled.takes_tokens:
            return False  # XGrammar 0.2.8 passes such tokens by
        if self._view is None:
            raise MatcherStateError(
                "find_jump_forward: it is not known where forced bytes end, as the grammar takes "
                "tokens by their ids, is not compressed and has a rule that may never be "
                "completed; give that rule an end, or do not jump forward and sample tokens"
            )
        for witness in self._compiled.folded.witnesses:
            if not matcher.accept_token(witness):
                return False
            matcher.rollback(1)
        return True

    def get_captures(self, *, deduplicate: bool = True) -> list[tuple[str, bytes]]:
        """Name and bytes of each captured rule, in the order of completion.

        Args:
            deduplicate: keep the longest completion of each occurrence.
        """
        matcher = self._recorder or self._inner
        return list(matcher.get_captures(deduplicate=deduplicate))

    def is_terminated(self) -> bool:
        """Whether it has stopped."""
        return bool(self._inner.is_terminated())

    def is_completed(self) -> bool:
        """Whether what was accepted is a whole text of the grammar."""
        return bool(self._inner.is_completed())

    @property
    def tokens_left(self) -> int | None:
        """Tokens that the text may still take, the stop token counted; None without a budget."""
        return None if self._ending is None else self._ending.tokens_left

    @property
    def max_rollback_tokens(self) -> int:
        """Always -1, unlimited."""
        return -1

    @property
    def temperature(self) -> float | None:
        """The sampling temperature for the next token, if the grammar or the caller set one."""
        return self._inner.temperature

    @property
    def stop_token_ids(self) -> list[int]:
        """The stop tokens, ids of the model's vocabulary."""
        return list(self._stop_token_ids)

    @property
    def inner(self) -> xgr.GrammarMatcher:
        """XGrammar's own matcher, over representatives or over the full vocabulary."""
        return self._inner

    @property
    def num_words(self) -> int:
        """Words of a row of the model's mask."""
        return self._num_words

    @property
    def inner_words(self) -> int:
        """Words of a row of the mask that :attr:`inner` fills."""
        return self._num_words if self._view is None else self._compiled.folded.num_words

    def _debug_print_internal_state(self) -> str:
        return str(self._inner._debug_print_internal_state())


def _forced_text(matcher: xgr.GrammarMatcher) -> bytes:
    """XGrammar's jump-forward."""
    try:
        return str(matcher.find_jump_forward_string()).encode()
    except UnicodeDecodeError as error:  # XGrammar 0.2.8 stops inside a character
        return bytes(error.object)


def _checked_stops(override: int | list[int] | None, size: int) -> list[int] | None:
    if override is None:
        return None
    given = [override] if isinstance(override, int | np.integer) else override
    stops = [int(operator.index(token)) for token in given]  # of True the index is True
    if not stops:
        raise RuntimeError("The override_stop_tokens should not be empty")
    for token in stops:
        if not 0 <= token < size:
            raise RuntimeError(
                f"The override stop token id {token} is out of the vocabulary range [0, {size})"
            )
    return stops


def _contiguous(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous() if isinstance(tensor, torch.Tensor) else tensor
