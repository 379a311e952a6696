"""The model's vocabulary, and the small one that XGrammar sees in its place.

The inner vocabulary holds, in this order::

    0 .. C-1      the representative of each class of tokens
    C ..          tokens that need a class of their own (named in the grammar), and one for all
                  tokens that no byte of the grammar matches, if the grammar can take those whole
    ..            fillers, see :func:`fillers`
    ..            stop tokens that are text, since XGrammar 0.2.9: one for each class
    ..            witnesses, see :attr:`FoldedVocabulary.witnesses`
    stop          one bit for all stop tokens that are no text: XGrammar treats them alike
    never         a padding id, never allowed: the class of special tokens and of padding

so an inner mask has a few hundred bits where the model's has 128,000, and the model's mask is the
gather ``inner_mask[class_of_token]``. Every entry of ``class_of_token`` is a bit of the inner
mask; there is no -1 that could index the last bit by accident.

Cost: one pass over the vocabulary for a grammar, and 4 bytes a token.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xgrammar as xgr

from tokfold._core import Unfolder
from tokfold._lazy import lazy
from tokfold.xgrammar.forms import IS_028

__all__ = ["FoldedVocabulary", "SourceVocabulary", "StopView", "TokenClasses", "fillers"]

MAX_STOP_CLASSES = 4_096
"""Classes up to which each has a stop token that is text; past them those of the vocabulary have.

XGrammar looks up every token of a vocabulary in the list of its stop tokens.
"""

MAX_REMEMBERED_BYTES = 8 << 20
"""Bytes of unfolded masks that are kept for reuse, for each grammar: some 500 of 128,000 tokens."""

Ids = npt.NDArray[np.int32]
Words = npt.NDArray[np.int32]


class TokenClasses(Protocol):
    """What the wrapper uses of :class:`tokfold.TokenClasses`."""

    @property
    def class_of(self) -> Ids: ...  # noqa: D102

    @property
    def representatives(self) -> list[bytes]: ...  # noqa: D102

    def __len__(self) -> int: ...


class SourceVocabulary:
    """The model's vocabulary as XGrammar reads it.

    Attributes:
        size: number of token ids, padding included.
        num_unpadded: number of token ids without padding.
        token_bytes: bytes of each id; ``b""`` for special tokens and padding.
        stop_token_ids: ids of the stop tokens, all below ``len(decoded_vocab)``.
    """

    def __init__(self, info: xgr.TokenizerInfo) -> None:
        self.info = info
        self.size: int = info.vocab_size
        decoded = [bytes(text) for text in info.decoded_vocab[: self.size]]
        self.num_unpadded = len(decoded)
        self.token_bytes: list[bytes] = decoded + [b""] * (self.size - len(decoded))
        self.stop_token_ids: tuple[int, ...] = tuple(
            token for token in info.stop_token_ids if token < self.size
        )
        self.empty_ids = [token for token, text in enumerate(self.token_bytes) if not text]

    @property
    def empty_stop_token_ids(self) -> frozenset[int]:
        """Stop tokens without bytes."""
        return frozenset(token for token in self.stop_token_ids if not self.token_bytes[token])

    @lazy
    def _by_text(self) -> list[tuple[bytes, int]]:
        """The tokens of which jump-forward is made, in the order of their bytes."""
        ordinary = set(range(self.size)).difference(self.stop_token_ids, self.empty_ids)
        return sorted((self.token_bytes[token], token) for token in ordinary)

    @lazy
    def _longest(self) -> int:
        return max((len(text) for text, _ in self._by_text), default=0)

    def longest_token(
        self, text: bytes, stop_token_ids: Collection[int]
    ) -> tuple[int, bool] | None:
        """The longest token that a text starts with, the lowest id of equal ones.

        Args:
            text: the bytes.
            stop_token_ids: tokens that do not count, beside the stop tokens of the vocabulary.

        Returns:
            The token, and whether a longer one starts with it; None if there is none.
        """
        for length in range(min(len(text), self._longest), 0, -1):
            prefix, found = text[:length], -1
            for at in range(bisect_left(self._by_text, (prefix, -1)), len(self._by_text)):
                other, token = self._by_text[at]
                if not other.startswith(prefix):
                    break
                if token in stop_token_ids:
                    continue
                if len(other) > length:
                    if found >= 0:
                        return found, True
                    break
                if found < 0:
                    found = token
            if found >= 0:
                return found, False
        return None

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the bytes of every id and the stop tokens, in hexadecimal."""
        lengths = np.array([len(text) for text in self.token_bytes], dtype=np.int64)
        digest = sha256(lengths.tobytes())
        digest.update(b"".join(self.token_bytes))
        digest.update(np.array(self.stop_token_ids, dtype=np.int64).tobytes())
        return digest.hexdigest()


def fillers(texts: Sequence[bytes]) -> list[bytes]:
    """Token texts that keep XGrammar from mistaking a substring for a prefix.

    It walks the sorted vocabulary with a stack and takes a token T for a descendant of the token
    P on top of the stack when P occurs anywhere in T. If P is then rejected, T is skipped with it.
    ``T[:n + 1]``, n the length of the longest common prefix of P and T, sorts between them, does
    not hold P, and is a prefix of T.

    Args:
        texts: texts of the vocabulary, in any order, duplicates allowed.

    Returns:
        Texts to add, none of which is in ``texts``.
    """
    added: list[bytes] = []
    stack: list[bytes] = []

    def push(text: bytes) -> None:
        while stack and stack[-1] not in text:
            stack.pop()
        if stack and not text.startswith(stack[-1]):
            common = 0
            for left, right in zip(stack[-1], text, strict=False):
                if left != right:
                    break
                common += 1
            added.append(text[: common + 1])
            push(added[-1])
        stack.append(text)

    for text in sorted(set(texts)):
        push(text)
    return added


class StopView:
    """The folded vocabulary under one set of stop tokens.

    Attributes:
        class_of_token: int32, shape ``(size,)``: bit of each token in an inner mask.
        inner_ids: the same for reading one entry: quick, and a Python int.
        inner_stops: the stop tokens of an inner matcher.
        unfolder: writes the model's mask from an inner one.
        always_applies: some token can never be allowed, so every mask has to be applied.
    """

    def __init__(
        self, folded: FoldedVocabulary, stop_token_ids: Collection[int], *, as_text: bool
    ) -> None:
        class_of_token = folded.byte_class_of.copy()
        stop_of = folded.stop_of if as_text else {}
        for token in stop_token_ids:
            class_of_token[token] = stop_of.get(int(class_of_token[token]), folded.stop)
        self.inner_stops: list[int] = sorted(
            {folded.stop, *class_of_token[list(stop_token_ids)].tolist()}
        )
        self.inner_ids = class_of_token.data
        never = class_of_token == folded.never
        self.always_applies = bool(never.any())
        used = np.zeros(folded.num_words * 32, dtype=np.uint8)
        used[class_of_token] = 1
        self._used_words: Words = np.packbits(used, bitorder="little").view(np.int32)
        self.unfolder = Unfolder(
            np.where(never, np.int32(-1), class_of_token), folded.size, MAX_REMEMBERED_BYTES
        )
        class_of_token.flags.writeable = False
        self.class_of_token: Ids = class_of_token

    def needs_apply(self, class_words: Words) -> bool:
        """XGrammar's return value of a fill: False when every token is allowed.

        Args:
            class_words: int32, shape ``(num_words,)``, a filled inner mask.
        """
        if self.always_applies:
            return True
        return not np.array_equal(class_words & self._used_words, self._used_words)


class FoldedVocabulary:
    """The inner vocabulary for one partition of the model's tokens.

    Args:
        source: the model's vocabulary.
        classes: its partition by the bytes of every token, stop tokens included.
        singletons: tokens that need an inner id of their own.
        keep_dead: give the tokens without a class an inner id too; the grammar can take tokens
            whole that none of its bytes match.

    Attributes:
        info: the inner tokenizer info, for XGrammar.
        size: number of inner ids.
        num_words: int32 words of an inner mask.
        stop: inner id of the stop tokens that are no text.
        stop_of: inner ids of stop tokens that are text, by the inner ids of tokens with the same
            bytes.
        witnesses: tokens that the grammar takes where it takes some token whole. Their bytes
            differ in the first: where one byte alone may come next, the grammar takes both
            exactly if it takes tokens whole there.
        never: inner id that is never allowed.
        byte_class_of: int32, shape ``(source.size,)``: inner id of each token when it is no stop
            token.
    """

    def __init__(
        self,
        source: SourceVocabulary,
        classes: TokenClasses,
        *,
        singletons: Collection[int] = (),
        keep_dead: bool = False,
    ) -> None:
        self.source = source
        self.classes = classes
        texts = list(classes.representatives)
        inner = np.array(classes.class_of, dtype=np.int32)
        for token in sorted(set(singletons)):
            # one without bytes may be a stop token, which is taken whole since XGrammar 0.2.9
            if source.token_bytes[token] or (not IS_028 and token < source.num_unpadded):
                inner[token] = len(texts)
                texts.append(source.token_bytes[token])
        if keep_dead:
            dead = inner < 0
            dead[source.empty_ids] = False
            if dead.any():
                inner[dead] = len(texts)
                texts.append(source.token_bytes[int(np.argmax(dead))])
        self.stop_of: dict[int, int] = {}
        self.witnesses: tuple[int, ...] = ()
        count = len(texts)
        texts += fillers([text for text in texts if text])
        first_stop = len(texts)
        if not IS_028:
            ids = inner[list(source.stop_token_ids)].tolist()
            classes_of_stops = range(count) if count <= MAX_STOP_CLASSES else sorted({*ids} - {-1})
            self.stop_of = {number: len(texts) + n for n, number in enumerate(classes_of_stops)}
            texts += [texts[number] for number in classes_of_stops]
            self.witnesses = (len(texts), len(texts) + 1)
            texts += [b"0", b"1"]
        self.stop = len(texts)  # without bytes, which may not be text
        self.never = self.stop + 1
        self.size = self.never + 1
        self.num_words = -(-self.size // 32)
        inner[inner < 0] = self.never
        self.byte_class_of: Ids = inner
        self.info = xgr.TokenizerInfo(
            [*texts, b""],
            xgr.VocabType.RAW,
            vocab_size=self.size,
            # which of these stop is up to each matcher
            stop_token_ids=list(range(first_stop, self.stop + 1)),
        )
        self._views: dict[tuple[bool, tuple[int, ...]], StopView] = {}
        self._lock = threading.Lock()

    def inner_ids(self, token: int) -> tuple[int, ...]:
        """Inner ids of a token named in a grammar; the one never allowed if there is none."""
        inner = int(self.byte_class_of[token]) if 0 <= token < self.source.size else self.never
        stop = self.stop_of.get(inner)
        return (inner, *self.witnesses) if stop is None else (inner, stop, *self.witnesses)

    def lacks(self, stop_token_ids: Collection[int]) -> list[int]:
        """Stop tokens that are text and have no inner id."""
        known = {self.never, *self.stop_of}
        return [] if IS_028 else [t for t in stop_token_ids if self.byte_class_of[t] not in known]

    def view(self, stop_token_ids: Collection[int], *, as_text: bool = True) -> StopView:
        """The view under these stop tokens, made when first asked for.

        ``as_text``: take one where its bytes complete the text, as XGrammar 0.2.9 does.
        """
        stops = tuple(sorted(set(stop_token_ids)))
        with self._lock:
            view = self._views.get((as_text, stops))
            if view is None:
                view = self._views[as_text, stops] = StopView(self, stops, as_text=as_text)
            return view

    @property
    def memory_size_bytes(self) -> int:
        """Bytes held for the ids, all views included."""
        per_view = 2 * self.byte_class_of.nbytes + MAX_REMEMBERED_BYTES
        return int(self.byte_class_of.nbytes) + per_view * len(self._views)
