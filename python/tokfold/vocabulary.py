"""The vocabulary of a language model: the exact bytes of each token.

What a token *is* for a grammar depends on three disjoint groups of ids:

* **stop tokens** end the text. They never stand for their bytes.
* **special tokens** are those that the tokenizer marks as such (``<|im_start|>``, ``[INST]``),
  less the stop tokens. tokfold's own engine never takes them for their bytes. XGrammar has no
  such notion: to it ``<|im_start|>`` is ordinary text, and only ids without bytes are special.
  So a vocabulary keeps both the mark and the bytes, and ``tokfold.xgrammar`` goes by the bytes.
  ``vocabulary.replace(special_token_ids=())`` makes special tokens text for tokfold's engine too.
* **ids without bytes** (gaps in the numbering, padding of the model's output layer) are never
  allowed by any grammar. They are not listed in ``special_token_ids``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from tokfold import _core
from tokfold._checks import no_bytes, whole_number, whole_numbers, wrong_type
from tokfold._lazy import lazy
from tokfold._loaders import Kind, LoadedVocabulary, load_path, transformers_tokenizer
from tokfold._loaders.checks import checked_ids, checked_size, checked_tokens
from tokfold._loaders.companions import (
    Companions,
    add_tokens,
    known_stop_ids,
    read_companions,
)
from tokfold._loaders.resolve import checked_special, final_size, named_stop_ids
from tokfold._names import Named, missing, with_our_options
from tokfold._quoting import named, quoted
from tokfold.errors import ArgumentTypeError, StopTokenWarning, VocabularyError

__all__ = ["Vocabulary", "byte_vocabulary", "check_vocabulary"]

_T = TypeVar("_T")


class Vocabulary(metaclass=Named):
    """An immutable vocabulary: bytes of each token, stop tokens, special tokens.

    Two vocabularies are equal when sizes, bytes, stop and special tokens are; ``name`` and
    ``kind`` do not count. Safe to share between threads, hashable, picklable.

    Args:
        token_bytes: bytes of token 0, 1, ...; ``None`` or ``b""`` for an id that is no token.
            Several ids may have the same bytes.
        stop_token_ids: tokens that end the text, or one of them; empty for none.
        special_token_ids: tokens that a grammar does not take for their bytes. Those that are
            stop tokens too count as stop tokens.
        size: number of ids that the model puts out, if more than ``len(token_bytes)``; the rest
            is padding.
        name: for messages.
        kind: how the tokenizer spelled bytes; for information.

    Raises:
        VocabularyError: no token has bytes, a token is not ``bytes``, ``size`` is less than the
            number of tokens, or an id is no integer in ``[0, size)`` or comes twice.


    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> len(vocabulary), vocabulary[2], vocabulary.stop_token_ids
        (4, b'ab', (3,))
        >>> vocabulary.encode_greedy(b"abba")
        [2, 1, 0]
    """

    __slots__ = ("__dict__", "_blob", "_kind", "_name", "_offsets", "_special", "_stop")

    _blob: bytes
    """The bytes of all tokens, one after the other."""
    _offsets: npt.NDArray[np.int64]
    """Shape ``(size + 1,)``, read-only: token i is ``_blob[_offsets[i]:_offsets[i + 1]]``."""

    if not TYPE_CHECKING:  # a checker would believe that there is every name
        __getattr__ = missing

    @with_our_options("Vocabulary")
    def __init__(
        self,
        token_bytes: Sequence[bytes | None],
        stop_token_ids: int | Iterable[int] = (),
        special_token_ids: Iterable[int] = (),
        size: int | None = None,
        *,
        name: str = "vocabulary",
        kind: Kind = "raw",
    ) -> None:
        tokens = checked_tokens(token_bytes)
        total = len(tokens) if size is None else checked_size(size)
        if total < len(tokens):
            raise VocabularyError(
                f"size {total} is less than the {len(tokens)} tokens given; "
                f"pass token_bytes[:{total}] to leave the others out"
            )
        lengths = np.zeros(total + 1, dtype=np.int64)
        lengths[1 : len(tokens) + 1] = np.fromiter(map(len, tokens), np.int64, len(tokens))
        self._set(
            b"".join(tokens),
            np.cumsum(lengths),
            checked_ids(stop_token_ids, total, "stop_token_ids"),
            checked_ids(special_token_ids, total, "special_token_ids"),
            name,
            kind,
        )

    def _set(
        self,
        blob: bytes,
        offsets: npt.NDArray[np.int64],
        stop: tuple[int, ...],
        special: tuple[int, ...],
        name: str,
        kind: Kind,
    ) -> None:
        if not blob:
            raise VocabularyError("the vocabulary is empty: no token has bytes")
        offsets.setflags(write=False)
        self._blob, self._offsets = blob, offsets
        self._stop = stop
        self._special = tuple(sorted(set(special) - set(stop)))
        self._name, self._kind = name, kind

    @classmethod
    @with_our_options("Vocabulary.from_file")
    def from_file(
        cls,
        path: str | os.PathLike[str],
        size: int | None = None,
        stop_token_ids: int | Iterable[int] | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """Read the vocabulary of a tokenizer file, or of a model folder. Needs no other package.

        Formats: ``tokenizer.json`` (Hugging Face), ``tekken.json`` (Mistral), ``*.tiktoken``,
        SentencePiece ``tokenizer.model``. A folder is searched for them in the order
        tokenizer.json, tekken.json, tokenizer.model, *.tiktoken.

        Whether the file or its folder is named, the files beside it count:

        * *stop tokens*: all that generation_config.json, config.json, tokenizer_config.json,
          special_tokens_map.json and the tokenizer file itself call end of sequence; if none
          does, the tokens among eight well-known texts that XGrammar looks for as well.
        * *size*: ``vocab_size`` of config.json, which may pad the vocabulary or cut off added
          tokens that the model does not have.
        * *added tokens*: those of tokenizer_config.json.

        Args:
            path: the file or folder.
            size: number of ids that the model puts out; overrules config.json. Ids from there
                on are left out, with a warning unless they are added tokens alone.
            stop_token_ids: overrules all that the files say; empty for none.
            special_tokens: further special tokens, text to id; a .tiktoken file holds none.

        Raises:
            VocabularyError: a file is missing, damaged, truncated or of another format, the
                bytes of a token depend on its neighbours (WordPiece), or an id is out of range.
            ArgumentTypeError: ``path`` is no path, or ``special_tokens`` no mapping.

        Warns:
            StopTokenWarning: nothing says which tokens end a text, and those with well-known texts
                are taken.
            VocabularyWarning: ``size`` leaves out tokens that are no added ones.

        """
        if not isinstance(path, str | os.PathLike):
            raise wrong_type("path", "a str or a path", path)
        if isinstance(path, str) and _names_a_model(path):
            raise VocabularyError(
                f"{named(path)}: there is no such file or folder here, and from_file reads local "
                "paths only: pass the folder of a model that was downloaded, or load the "
                "tokenizer, Vocabulary.from_huggingface(transformers.AutoTokenizer.from_pretrained("
                f"{quoted(path)}))"
            )
        if special_tokens is not None and not isinstance(special_tokens, Mapping):
            raise wrong_type(
                "special_tokens", 'a mapping of text to id, {"<|end|>": 7}', special_tokens
            )
        loaded, folder = load_path(Path(os.fsdecode(path)))
        companions = read_companions(folder, stop_tokens=stop_token_ids is None, size=size is None)
        add_tokens(loaded, companions.added, str(folder))
        if special_tokens:
            add_tokens(loaded, checked_special(loaded, special_tokens), "special_tokens")
        return cls._from_loaded(loaded, companions, size, stop_token_ids)

    @classmethod
    @with_our_options("Vocabulary.from_huggingface")
    def from_huggingface(
        cls,
        tokenizer: object,
        size: int | None = None,
        stop_token_ids: int | Iterable[int] | None = None,
    ) -> Vocabulary:
        """Take the vocabulary of a tokenizer of transformers, fast or slow, or of tokenizers.

        Args:
            tokenizer: the tokenizer object.
            size: number of ids that the model puts out (``model.config.vocab_size``), if other
                than the tokenizer's; ids from there on are left out, with a warning as in
                :meth:`from_file`.
            stop_token_ids: ``None``: the tokenizer's ``eos_token_id``; if it has none, the tokens
                among eight well-known texts. Empty for none. Pass the ids of the model's
                generation config where it has several.

        Raises:
            VocabularyError: the object is no tokenizer, the bytes of its tokens depend on their
                neighbours, or an id is out of range.

        """
        loaded = transformers_tokenizer.load(tokenizer)
        return cls._from_loaded(loaded, Companions(), size, stop_token_ids)

    @classmethod
    @with_our_options("Vocabulary.from_tiktoken")
    def from_tiktoken(
        cls,
        encoding: object,
        size: int | None = None,
        stop_token_ids: int | Iterable[int] | None = None,
    ) -> Vocabulary:
        """Take the vocabulary of a ``tiktoken.Encoding``.

        Args:
            encoding: the encoding.
            size: number of ids that the model puts out, if other than the encoding's.
            stop_token_ids: ``None``: the tokens among eight well-known texts.

        Raises:
            VocabularyError: the object is no encoding, or an id is out of range.

        """
        loaded = transformers_tokenizer.load_tiktoken(encoding)
        return cls._from_loaded(loaded, Companions(), size, stop_token_ids)

    @classmethod
    def _from_loaded(
        cls,
        loaded: LoadedVocabulary,
        companions: Companions,
        size: int | None,
        stop_token_ids: int | Iterable[int] | None,
    ) -> Vocabulary:
        total = final_size(loaded, companions, size)
        del loaded.tokens[total:]
        special = [token_id for token_id in loaded.special_ids if token_id < total]
        if stop_token_ids is None:
            stop_token_ids = named_stop_ids(loaded, companions, total)
            if not stop_token_ids:
                stop_token_ids = known_stop_ids(loaded)
                if stop_token_ids and loaded.kind != "raw":  # files of ranks name none
                    _warn_of_a_guess(loaded, stop_token_ids)
        return cls(
            loaded.tokens, stop_token_ids, special, total, name=loaded.name, kind=loaded.kind
        )

    def replace(
        self,
        *,
        size: int | None = None,
        stop_token_ids: int | Iterable[int] | None = None,
        special_token_ids: Iterable[int] | None = None,
    ) -> Vocabulary:
        """Copy with other stop tokens, special tokens or size; ``None`` keeps what is.

        The bytes of the tokens are shared. A token that was a stop token and is none any more
        becomes a special token, unless ``special_token_ids`` is given.

        Args:
            size: only larger than now, for padding.
            stop_token_ids: as for the constructor.
            special_token_ids: as for the constructor; ``()`` makes all special tokens text.

        Raises:
            VocabularyError: as for the constructor.

        """
        stop = self._stop if stop_token_ids is None else stop_token_ids
        special = {*self._special, *self._stop} if special_token_ids is None else special_token_ids
        total = len(self) if size is None else checked_size(size)
        more = total - len(self)
        if more < 0:
            raise VocabularyError(
                f"size {total} is less than the {len(self)} ids there are: no id can be left out"
            )
        replaced = Vocabulary.__new__(Vocabulary)
        replaced._set(
            self._blob,
            np.pad(self._offsets, (0, more), "edge") if more else self._offsets,
            checked_ids(stop, total, "stop_token_ids"),
            checked_ids(special, total, "special_token_ids"),
            self._name,
            self._kind,
        )
        return replaced

    def __len__(self) -> int:
        """Return the number of ids, padding included: the width of a bitmask row."""
        return len(self._offsets) - 1

    def __getitem__(self, token_id: SupportsIndex) -> bytes:
        """Bytes of a token, ``b""`` for padding.

        Raises:
            IndexError: not in ``[0, size)``; negative ids do not count from the end.

        """
        index = whole_number(token_id)
        if index is None:
            raise wrong_type("a token", "its id, a whole number", token_id)
        if not 0 <= index < len(self):
            raise IndexError(f"token id {index} is outside [0, {len(self)})")
        return self._blob[self._offsets[index] : self._offsets[index + 1]]

    def __iter__(self) -> Iterator[bytes]:
        """Bytes of each id, in order."""
        return iter(self.token_bytes)

    @property
    def token_bytes(self) -> tuple[bytes, ...]:
        """Bytes of each id, in order; ``b""`` where there is no token."""
        return self._token_bytes

    @lazy
    def _token_bytes(self) -> tuple[bytes, ...]:
        bounds = self._offsets.tolist()
        blob = self._blob
        return tuple(blob[start:end] for start, end in itertools.pairwise(bounds))

    @property
    def stop_token_ids(self) -> tuple[int, ...]:
        """Tokens that end the text, ascending."""
        return self._stop

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        """Tokens marked as special by the tokenizer that are no stop tokens, ascending."""
        return self._special

    @property
    def kind(self) -> Kind:
        """How the tokenizer spelled bytes.

        ``"byte_level"``: GPT-2's alphabet. ``"byte_fallback"``: text, with pieces ``<0xHH>`` for
        single bytes. ``"raw"``: neither. For information: ``token_bytes`` are bytes in any case.
        """
        return self._kind

    @property
    def name(self) -> str:
        """Short name, for messages."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """Hex digest of size, bytes, stop and special tokens; the same on every platform."""
        return self._fingerprint

    @lazy
    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(b"tokfold vocabulary 1", digest_size=16)
        lengths = np.array(
            [len(self._offsets), len(self._stop), len(self._special)], dtype=np.int64
        )
        ids = np.array([*self._stop, *self._special], dtype=np.int64)
        for numbers in (lengths, self._offsets, ids):
            digest.update(numbers.astype("<i8").tobytes())
        digest.update(self._blob)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __getstate__(self) -> tuple[Any, ...]:
        return self._blob, self._offsets, self._stop, self._special, self._name, self._kind

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self._set(*state)

    def __repr__(self) -> str:
        return (
            f"<Vocabulary {self._name!r}: {len(self)} tokens, {len(self._stop)} stop, "
            f"{len(self._special)} special, {self._kind}>"
        )

    def decode(self, ids: Iterable[int]) -> bytes:
        """Bytes of a sequence of tokens, those of special and stop tokens included.

        Raises:
            IndexError: an id is outside ``[0, size)``.
            ArgumentTypeError: ``ids`` is no list of whole numbers.

        """
        return b"".join([self[token_id] for token_id in whole_numbers("ids", ids)])

    def encode_greedy(self, data: bytes) -> list[int]:
        """Split bytes into tokens, each the longest that fits; the lowest id on ties.

        For demonstrations and tests without a tokenizer: the split is not the tokenizer's. Stop
        and special tokens are never used.

        Raises:
            VocabularyError: no token fits at some place. (Another split might exist; only in
                vocabularies that lack single bytes.)
            ArgumentTypeError: ``data`` is no bytes.

        """
        if not isinstance(data, bytes):
            raise no_bytes(data, "pass text.encode()")
        ids, read = self._compiled.encode_greedy(data)
        if read < len(data):
            raise VocabularyError(
                f"no token of {quoted(self._name)} fits at byte {read}: "
                f"{quoted(data[read : read + 16])}"
            )
        return ids

    @lazy
    def _spelled_bytes(self) -> tuple[frozenset[int], bytes]:
        """The bytes that are tokens by themselves; unless all are, the bytes that tokens have."""
        excluded = {*self._stop, *self._special}
        (ids,) = np.nonzero(np.diff(self._offsets) == 1)
        ids = np.array([i for i in ids.tolist() if i not in excluded], np.int64)
        places = self._offsets[ids]
        single = frozenset(np.frombuffer(self._blob, np.uint8)[places].tolist())
        if len(single) == 256:
            return single, b""
        texts = (token for i, token in enumerate(self.token_bytes) if i not in excluded)
        return single, bytes(sorted({*b"".join(texts)}))

    def _keep(self, name: str, make: Callable[[Vocabulary], _T]) -> _T:
        """What is made of the vocabulary when first asked for, and then kept under a name.

        It is one and the same to all threads: two may both make it, and keep the first.
        """
        kept: _T | None = self.__dict__.get(name)
        return self.__dict__.setdefault(name, make(self)) if kept is None else kept

    @property
    def _compiled(self) -> _core.Vocabulary:
        """The vocabulary as the core walks it: sorted once."""
        return self._keep("_core", _core_of)


def _names_a_model(path: str) -> bool:
    """Whether a text is the name of a model on the Hugging Face Hub, and no file or folder here."""
    if not re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", path):
        return False
    return Path(path).suffix not in (".json", ".model", ".tiktoken") and not os.path.exists(path)


def _core_of(vocabulary: Vocabulary) -> _core.Vocabulary:
    stop, special = list(vocabulary._stop), list(vocabulary._special)
    return _core.Vocabulary(vocabulary._blob, vocabulary._offsets, stop, special)


def _warn_of_a_guess(loaded: LoadedVocabulary, stop_token_ids: list[int]) -> None:
    listed = ", ".join(f"{quoted(loaded.tokens[token_id].decode())}" for token_id in stop_token_ids)
    warnings.warn(
        f"{loaded.name} does not say which tokens end a text, and those with well-known texts are "
        f"taken: {listed}. A model that ends with another one cannot end: pass the folder of the "
        "model, whose generation_config.json names them, or stop_token_ids=[...]",
        StopTokenWarning,
        stacklevel=5,
    )


def byte_vocabulary() -> Vocabulary:
    """For who has no tokenizer: the 256 bytes as tokens 0 to 255, and token 256 to end the text."""
    return Vocabulary([*(bytes([b]) for b in range(256)), b"</s>"], [256], name="bytes")


def check_vocabulary(vocabulary: Vocabulary) -> None:
    """Refuse what is no vocabulary."""
    if isinstance(vocabulary, Vocabulary):
        return
    error = wrong_type("vocabulary", "a tokfold.Vocabulary", vocabulary)
    if hasattr(vocabulary, "get_vocab") or hasattr(vocabulary, "convert_ids_to_tokens"):
        error = ArgumentTypeError(f"{error}; pass Vocabulary.from_huggingface(tokenizer)")
    elif isinstance(vocabulary, str):
        error = ArgumentTypeError(f"{error}; pass Vocabulary.from_file(path)")
    raise error
