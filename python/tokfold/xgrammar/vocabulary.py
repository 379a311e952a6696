"""The model's vocabulary, and the small one that XGrammar sees in its place.

The inner vocabulary holds, in this order::

    0 .. C-1      the representative of each class of tokens
    C ..          tokens that need a class of their own (named in the grammar), and one for all
                  tokens that no byte of the grammar matches, if the grammar can take those whole
    ..            fillers, see :func:`fillers`
    stop          one bit for all stop tokens: XGrammar treats them alike in every state
    never         a padding id, never allowed: the class of special tokens and of padding

so an inner mask has a few hundred bits where the model's has 128,000, and the model's mask is the
gather ``inner_mask[class_of_token]``. Every entry of ``class_of_token`` is a bit of the inner
mask; there is no -1 that could index the last bit by accident.

Cost: one pass over the vocabulary for a grammar, and 4 bytes a token.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from hashlib import sha256
from typing import Protocol

import numpy as np
import numpy.typing as npt
import xgrammar as xgr

from tokfold._core import Unfolder

__all__ = ["FoldedVocabulary", "SourceVocabulary", "StopView", "TokenClasses", "fillers"]

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

    Args:
        info: the tokenizer info that the user made.

    Attributes:
        size: number of token ids, padding included.
        token_bytes: bytes of each id; ``b""`` for special tokens and padding.
        stop_token_ids: ids of the stop tokens, all below ``len(decoded_vocab)``.
    """

    def __init__(self, info: xgr.TokenizerInfo) -> None:
        self.info = info
        self.size: int = info.vocab_size
        decoded = [bytes(text) for text in info.decoded_vocab[: self.size]]
        self.token_bytes: list[bytes] = decoded + [b""] * (self.size - len(decoded))
        self.stop_token_ids: tuple[int, ...] = tuple(
            token for token in info.stop_token_ids if token < self.size
        )
        self.empty_ids = [token for token, text in enumerate(self.token_bytes) if not text]

    @property
    def empty_stop_token_ids(self) -> frozenset[int]:
        """Stop tokens without bytes."""
        return frozenset(token for token in self.stop_token_ids if not self.token_bytes[token])

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the bytes of every id and the stop tokens, in hexadecimal."""
        lengths = np.array([len(text) for text in self.token_bytes], dtype=np.int64)
        digest = sha256(lengths.tobytes())
        digest.update(b"".join(self.token_bytes))
        digest.update(np.array(self.stop_token_ids, dtype=np.int64).tobytes())
        return digest.hexdigest()


def fillers(texts: Sequence[bytes]) -> list[bytes]:
    """Token texts that keep XGrammar 0.2.8 from mistaking a substring for a prefix.

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
        unfolder: writes the model's mask from an inner one.
        always_applies: some token can never be allowed, so every mask has to be applied.
    """

    def __init__(self, folded: FoldedVocabulary, stop_token_ids: Collection[int]) -> None:
        class_of_token = folded.byte_class_of.copy()
        class_of_token[list(stop_token_ids)] = folded.stop
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
        stop: inner id of the stop tokens.
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
            if source.token_bytes[token]:
                inner[token] = len(texts)
                texts.append(source.token_bytes[token])
        if keep_dead:
            dead = inner < 0
            dead[source.empty_ids] = False
            if dead.any():
                inner[dead] = len(texts)
                texts.append(source.token_bytes[int(np.argmax(dead))])
        texts += fillers(texts)
        self.stop = len(texts)
        self.never = self.stop + 1
        self.size = self.never + 1
        self.num_words = -(-self.size // 32)
        inner[inner < 0] = self.never
        self.byte_class_of: Ids = inner
        self.info = xgr.TokenizerInfo(
            [*texts, b"</s>"],
            xgr.VocabType.RAW,
            vocab_size=self.size,
            stop_token_ids=[self.stop],
        )
        self._views: dict[tuple[int, ...], StopView] = {}
        self._lock = threading.Lock()

    def inner_id(self, token: int) -> int:
        """Inner id of a token named in a grammar; the one never allowed if there is none."""
        return int(self.byte_class_of[token]) if 0 <= token < self.source.size else self.never

    def view(self, stop_token_ids: Collection[int]) -> StopView:
        """The view under these stop tokens, made when first asked for."""
        key = tuple(sorted(set(stop_token_ids)))
        with self._lock:
            view = self._views.get(key)
            if view is None:
                view = self._views[key] = StopView(self, key)
            return view

    @property
    def memory_size_bytes(self) -> int:
        """Bytes held for the ids, all views included."""
        per_view = 2 * self.byte_class_of.nbytes + MAX_REMEMBERED_BYTES
        return int(self.byte_class_of.nbytes) + per_view * len(self._views)
