"""Prompts whose last tokens a tokenizer would have written otherwise: token healing.

A prompt is cut into tokens without what follows it. Where it ends with ``{"name": "`` and the text
goes on with ``A``, a tokenizer may have a token ``"A``, which a model expects and which the prompt,
as it was cut, rules out. So the last tokens are taken back, and the model writes their bytes anew,
in tokens that may reach into the text.

What is taken back is defined by bytes. Let ``end`` be the bytes of the last tokens of the prompt,
as far back as they are text; the first token is none of them, since a model needs one.
A suffix ``r`` of ``end`` is unsettled where a token of text is ``r + s``, with a non-empty ``s``
that may come next in the text. The tokens that have a byte of the longest such suffix are taken
back. Then exactly the tokens are allowed that are a beginning of what is left of their bytes, and
those that are all that is left and bytes that may come next in the text. A text that ends by
itself ends behind a token, not within one: a token may have the bytes of a whole text and of a
longer one.

Where the matcher has ``max_tokens``, the tokens that write ``end`` anew count, since the model
writes them. A token is allowed where the tokens left after it can write the rest of ``end`` and a
text behind it.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tokfold._checks import bitmask_row, check_number, checked_token, whole_numbers
from tokfold._protocols import TextMatcher
from tokfold._quoting import quoted
from tokfold.errors import MatcherStateError, TokenBudgetError, VocabularyError
from tokfold.interrupt import Interrupt
from tokfold.vocabulary import Vocabulary

__all__ = ["HealedPrompt", "PromptMatcher", "heal"]


class HealedPrompt(NamedTuple):
    """What :meth:`tokfold.Matcher.process_prompt` makes of a prompt.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> matcher = tokfold.Matcher(tokfold.compile('root ::= "b"+', vocabulary))
        >>> prompt = matcher.process_prompt([1, 0])
        >>> prompt.token_ids, prompt.matcher.left
        ([1], b'a')
    """

    token_ids: list[int]
    """The prompt for the model: its first tokens."""
    matcher: PromptMatcher
    """Reads the bytes of the others anew, and then the text."""


class PromptMatcher:
    """The end of a prompt, and behind it one text on its way through a grammar.

    It has the methods that batches and logits processors need. Once the end of the prompt is
    written, :attr:`matcher` is the matcher of the text, with all methods of
    :class:`tokfold.Matcher`.

    Safe between threads as matchers are.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "b"+', vocabulary)
        >>> matcher = tokfold.Matcher(compiled).process_prompt([1, 0]).matcher
        >>> bitmask = tokfold.allocate_bitmask(1, len(vocabulary))
        >>> matcher.fill_bitmask(bitmask)
        True
        >>> f"{bitmask[0, 0]:04b}"  # "a", and "ab"
        '0101'
        >>> matcher.accept_token(2), matcher.left, matcher.text
        (True, b'', b'b')
    """

    def __init__(self, matcher: TextMatcher, end: bytes, most: int | None) -> None:
        self._inner = matcher
        self._end = end
        self._steps: list[_Step] = []
        self._behind = matcher.num_steps
        self._most = most
        """The tokens for the end of the prompt and the text, which the matcher of the text counts
        once the end is written: it reads bytes before."""
        if most is not None and not end:
            matcher._allow_tokens(most)

    @property
    def left(self) -> bytes:
        """What of the end of the prompt is still to be written."""
        return self._end[sum(step.shared for step in self._steps) :]

    @property
    def tokens_left(self) -> int | None:
        """The tokens that may still come, the stop token counted; None without a bound."""
        if not self.left or self._most is None:
            return self._inner.tokens_left
        return self._most - sum(step.tokens for step in self._steps)

    @property
    def matcher(self) -> TextMatcher:
        """The matcher of the text, a :class:`tokfold.Matcher`; read on with this one or that one.

        Raises:
            MatcherStateError: the end of the prompt is not written yet.
        """
        if self.left:
            raise MatcherStateError(
                f"{quoted(self.left)} of the prompt is still to be written: read on with this "
                "matcher, and take the matcher of the text once `left` is empty"
            )
        return self._inner

    def fill_bitmask(self, bitmask: npt.NDArray[np.int32], row: int = 0) -> bool:
        """Write which tokens may come next into a row of a bitmask.

        Args:
            bitmask: as for :meth:`tokfold.Matcher.fill_bitmask`.
            row: the row.

        Returns:
            False where every token is allowed.

        Raises:
            As :meth:`tokfold.Matcher.fill_bitmask`.
        """
        left = self.left
        if not left:
            return self._inner.fill_bitmask(bitmask, row)
        words = -(-len(self.vocabulary) // 32)
        chosen = bitmask_row(bitmask, row, words)
        bits = np.zeros(32 * words, np.uint8)
        bits[self._allowed(left)] = 1
        chosen.view(np.uint8)[:] = np.packbits(bits, bitorder="little")
        return True

    def _allowed(self, left: bytes) -> list[int]:
        tokens = _TokenEnds(self._inner)
        begun = [end for end in range(1, len(left) + 1) if tokens.ids(left[:end])]
        bound = self._bound(left)
        after = None if bound is None else bound - 1
        if after is not None and begun:
            needed = tokens.fewest(left, range(begun[0], len(left) + 1), after)
            begun = [end for end in begun if needed[end] <= after]
        found = [i for end in begun for i in tokens.ids(left[:end])]
        return found + tokens.behind(left, after)

    def accept_token(self, token_id: int) -> bool:
        """Read a token; False where it cannot follow, and nothing has changed.

        Raises:
            As :meth:`tokfold.Matcher.accept_token`.
        """
        left = self.left
        if not left:
            return self._inner.accept_token(token_id)
        vocabulary = self.vocabulary
        token_id = checked_token(token_id, vocabulary)
        token = vocabulary[token_id]
        if token_id in silent_tokens(vocabulary, self.stop_token_ids):
            return False
        return self._read(token, left, 1)

    def accept_bytes(self, data: bytes) -> bool:
        """Read bytes as one step, however they would be tokenized; as :meth:`accept_token`.

        They are no tokens of ``max_tokens``.
        """
        left = self.left
        return self._read(data, left, 0) if left else self._inner.accept_bytes(data)

    def _read(self, data: bytes, left: bytes, count: int) -> bool:
        shared = min(len(data), len(left))
        if not data or data[:shared] != left[:shared]:
            return False
        rest, inner = data[shared:], self._inner
        if rest and not inner.accept_bytes(rest):
            return False
        behind = 1 if rest else 0
        try:
            fits = self._fits(left, shared, count)
        except BaseException:  # the text stays where it was, whatever ends the call
            inner.rollback(behind)
            raise
        if fits:
            self._steps.append(_Step(shared, behind, count))
        else:
            inner.rollback(behind)
        return fits

    def _fits(self, left: bytes, shared: int, count: int) -> bool:
        """Whether the tokens left after a step complete the text; the text counts from the end."""
        if self.tokens_left is None:
            return True
        bound = self.tokens_left if count == 0 else self._bound(left)
        assert bound is not None
        after, inner = bound - count, self._inner
        tokens = _TokenEnds(inner)
        if tokens.fewest(left, range(shared, len(left) + 1), after)[shared] > after:
            return False
        if shared == len(left):
            inner._allow_tokens(self.tokens_left - count)
        return True

    def _bound(self, left: bytes) -> int | None:
        """The tokens that may still come; of the last ones those with which nothing new begins."""
        most = self.tokens_left
        if most is None or most > getattr(self._inner, "prefer_end", 0):
            return most
        # Before the step, so that the matcher of the text stands behind the end of the prompt.
        inner = self._inner.fork()
        inner.rollback(inner.num_steps - self._behind)
        tokens = _TokenEnds(inner)
        return min(most, tokens.fewest(left, range(len(left) + 1), 0)[0] + 1)

    def rollback(self, count: int = 1) -> None:
        """Take back the last steps, over a stop token too.

        Raises:
            MatcherStateError: there are fewer steps; nothing has changed.
        """
        count = check_number("count", count, 0)
        if count > self.num_steps:
            raise MatcherStateError(
                f"{quoted(count)} steps cannot be taken back: {self.num_steps} were accepted"
            )
        kept = self.num_steps - count
        within = min(kept, len(self._steps))
        behind = self._behind + sum(step.behind for step in self._steps[:within])
        self._inner.rollback(self._inner.num_steps - behind - (kept - within))
        was_written = not self.left
        del self._steps[within:]
        if was_written and self.left and self._most is not None:
            self._inner._allow_tokens(None)

    def fork(self) -> PromptMatcher:
        """A matcher at the same place that goes its own way from here."""
        forked = object.__new__(PromptMatcher)
        forked._inner, forked._end, forked._steps = self._inner.fork(), self._end, [*self._steps]
        forked._behind, forked._most = self._behind, self._most
        return forked

    __copy__ = fork

    @property
    def is_accepting(self) -> bool:
        """Whether the text may end here: not before the end of the prompt is written."""
        return not self.left and self._inner.is_accepting

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended."""
        return not self.left and self._inner.is_terminated

    @property
    def num_steps(self) -> int:
        """Steps accepted, which is how many can be rolled back."""
        within = sum(step.behind for step in self._steps)
        return len(self._steps) + self._inner.num_steps - self._behind - within

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """The stop tokens in force, ascending."""
        return self._inner.stop_token_ids

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary whose tokens are read."""
        return self._inner.vocabulary

    @property
    def text(self) -> bytes:
        """The text, without the prompt."""
        return self._inner.text

    def __repr__(self) -> str:
        return f"<PromptMatcher before {self.left!r}, after {self.num_steps} steps>"


@runtime_checkable
class _WalksTokens(Protocol):
    """A matcher that finds the tokens behind some bytes in one walk, under its limits."""

    def _tokens_behind(self, begin: bytes) -> list[int] | None: ...
    def _tokens_behind_in_time(self, begin: bytes, most: int) -> list[tuple[int, int]] | None: ...
    def _mask_deadline(self) -> Interrupt: ...


class _Step(NamedTuple):
    """What a step read that began within the end of the prompt."""

    shared: int
    """Its bytes of the end."""
    behind: int
    """Its steps of the matcher of the text: 1 where it reaches over the end."""
    tokens: int


def heal(matcher: TextMatcher, token_ids: Sequence[int]) -> HealedPrompt:
    """As :meth:`tokfold.Matcher.process_prompt`; ``matcher`` becomes part of what is returned."""
    if matcher.is_terminated:
        raise MatcherStateError("the text has ended: heal the prompt of a text that goes on")
    most = matcher.tokens_left
    if most is not None:
        matcher._allow_tokens(None)  # what may come next is asked of the grammar
    vocabulary, ids = matcher.vocabulary, whole_numbers("token_ids", token_ids)
    for token_id in ids:
        if not 0 <= token_id < len(vocabulary):
            raise VocabularyError(
                f"the prompt has the token {token_id}, which is outside the vocabulary of "
                f"{len(vocabulary)} tokens"
            )
    tokens = _TokenEnds(matcher)
    last = ids[:0:-1]
    texts = [vocabulary[i] for i in takewhile(lambda i: i not in tokens.silent, last)]
    end = b"".join(reversed(texts))
    unsettled = next(
        (
            count
            for count in range(min(len(end), tokens.longest), 0, -1)
            if next(tokens.continued(end[-count:]), None) is not None
        ),
        0,
    )
    taken, count = b"", 0
    while len(taken) < unsettled:
        taken, count = texts[count] + taken, count + 1
    if taken and most is not None:
        needed = tokens.fewest(taken, range(len(taken) + 1), most)[0]
        if needed > most:
            raise TokenBudgetError(
                f"{most} tokens are left, and the end {quoted(taken)} of the prompt and the "
                f"shortest text behind it take {needed}: raise max_tokens, or do not heal this "
                "prompt",
                needed if needed < sys.maxsize else None,
                most,
            )
    return HealedPrompt(ids[: len(ids) - count], PromptMatcher(matcher, taken, most))


def silent_tokens(vocabulary: Vocabulary, stops: tuple[int, ...]) -> frozenset[int]:
    """The tokens that are no text beside some stop tokens."""
    return frozenset((*vocabulary.stop_token_ids, *vocabulary.special_token_ids, *stops))


def _lengths(vocabulary: Vocabulary) -> list[int]:
    """The lengths of the tokens of a vocabulary, ascending."""
    return sorted({*map(len, vocabulary.token_bytes)} - {0})


def _needed(matcher: TextMatcher, enough: int = 0) -> int:
    """The fewest tokens that end a text, or ``enough`` where these do."""
    needed = 0 if matcher.is_terminated else matcher._tokens_to_end(enough)
    return sys.maxsize if needed is None else needed


class _TokenEnds:
    """The tokens that are text, where a matcher stands: which may come next, and what they need.

    Raises:
        DeadlineExceededError: finding out takes longer than a mask may.
    """

    def __init__(self, matcher: TextMatcher) -> None:
        vocabulary = matcher.vocabulary
        self._matcher, self._compiled = matcher, vocabulary._compiled
        self.silent = silent_tokens(vocabulary, matcher.stop_token_ids)
        self.lengths: list[int] = vocabulary._keep("_lengths_of_tokens", _lengths)
        self.longest = self.lengths[-1] if self.lengths else 0
        self._walks = matcher if isinstance(matcher, _WalksTokens) else None
        self._within = self._walks._mask_deadline() if self._walks else Interrupt()

    def ids(self, token: bytes) -> list[int]:
        """The ids with these bytes."""
        return [i for i in self._compiled.ids_of(token, False) if i not in self.silent]

    def behind(self, begin: bytes, most: int | None) -> list[int]:
        """The ids of the tokens that begin so and go on, and need no more than ``most`` then."""
        if self._walks and most is None:
            walked = self._walks._tokens_behind(begin)
            if walked is not None:
                return [i for i in walked if i not in self.silent]
        elif self._walks and most is not None:
            ended = self._walks._tokens_behind_in_time(begin, max(most, 0))
            if ended is not None:
                return [i for _, i in ended if i not in self.silent]
        return [
            i
            for token, behind in self.continued(begin)
            if most is None or _needed(behind, most) <= most
            for i in self.ids(token)
        ]

    def fewest(self, end: bytes, places: range, enough: int) -> list[int]:
        """The fewest tokens that write the rest of ``end`` and end the text behind it.

        Returns:
            By the place in ``end``. Numbers of the ``places`` up to ``enough`` may be more than the
            fewest, but are no more than ``enough``; those before the first of them are no answer.
        """
        fewest = [sys.maxsize] * len(end) + [_needed(self._matcher)]
        for reaches_over in (False, True):
            for place in reversed(range(places.start, len(end))):
                within = [
                    fewest[place + length]
                    for length in self.lengths
                    if place + length <= len(end) and self.ids(end[place : place + length])
                ]
                over = self._fewest_over(end[place:]) if reaches_over else sys.maxsize
                fewest[place] = min([fewest[place], *(1 + n for n in (*within, over))])
            if all(fewest[place] <= enough for place in places):
                break
        return fewest

    def _fewest_over(self, begin: bytes) -> int:
        """The fewest tokens behind a token that begins so and goes on."""
        walked = self._walks._tokens_behind_in_time(begin, sys.maxsize) if self._walks else None
        if walked is not None:
            needed = (n for n, i in walked if i not in self.silent)
        else:
            needed = (_needed(behind) for _, behind in self.continued(begin))
        return min(needed, default=sys.maxsize)

    def continued(self, begin: bytes) -> Iterator[tuple[bytes, TextMatcher]]:
        """The tokens that begin so and go on with bytes that may come next.

        A matcher behind each comes with it. They come in order, so they are read as a trie: what
        two of them share is read once. A step ends where bytes are whole texts, of which a matcher
        that ends them by itself reads no more: there the step is taken back, and read anew with the
        bytes behind.
        """
        ahead = self._matcher.fork()
        ends: list[int] = []
        """Where the steps of ``ahead`` end, in the bytes that it has read."""
        read, refused, before = b"", None, begin
        for token_id in self._compiled.ids_of(begin, True):
            self._within.check()
            token = self._matcher.vocabulary[token_id]
            if token == before or token_id in self.silent:
                continue
            before = token
            rest = token[len(begin) :]
            if refused is not None and rest.startswith(refused):
                continue
            shared = 0
            while shared < min(len(read), len(rest)) and read[shared] == rest[shared]:
                shared += 1
            kept = bisect.bisect_right(ends, shared)
            ahead.rollback(len(ends) - kept)
            del ends[kept:]
            refused = None
            for place in range(ends[-1] if ends else 0, len(rest)):
                if ends and ahead.is_terminated:
                    ahead.rollback()
                    ends.pop()
                if not ahead.accept_bytes(rest[ends[-1] if ends else 0 : place + 1]):
                    refused = rest[: place + 1]
                    break
                ends.append(place + 1)
            read = rest[: ends[-1] if ends else 0]
            if refused is None:
                yield token, ahead
