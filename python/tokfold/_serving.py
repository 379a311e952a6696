"""What the backends of inference servers share: settings, vocabularies, compilers, conversations.

The servers themselves are known to :mod:`tokfold.sglang` and :mod:`tokfold.vllm` alone.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from tokfold.batch import fill_bitmask_batch
from tokfold.compiler import GrammarCompiler
from tokfold.engine import ClassesMode, CompiledGrammar
from tokfold.errors import TokfoldError, UnsupportedGrammarError
from tokfold.limits import Limits
from tokfold.matcher import Matcher
from tokfold.structural_tags.literals import literal
from tokfold.vocabulary import Vocabulary

__all__ = [
    "Conversation",
    "Grammars",
    "Settings",
    "any_tag",
    "checked",
    "choices",
    "fill_rows",
    "grammars_of",
    "vocabulary_of",
]

logger = logging.getLogger("tokfold")

MAX_JSON_NESTING = 100
"""Levels of a schema or tag. XGrammar's converter takes minutes over some thousands."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_BRACKET = re.compile(r"[\[\]{}]")
_ESCAPED_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")

_FIRST_SAVE = 16
"""Grammars compiled before the pool is saved; then after four times as many, and so on."""


@dataclass(frozen=True)
class Settings:
    """What an operator may choose, by arguments or in the environment.

    A server runs in several processes. The environment reaches all of them, so arguments are
    written there.

    Attributes:
        cache_dir: ``TOKFOLD_CACHE_DIR``, as for :class:`tokfold.GrammarCompiler`.
        classes: ``TOKFOLD_CLASSES``, as there.
        limits: ``TOKFOLD_LIMITS``, a JSON object of fields of :class:`tokfold.Limits`.
    """

    cache_dir: Path | None = None
    classes: ClassesMode = "auto"
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def from_environment(cls) -> Settings:
        """Read them.

        Raises:
            ValueError: a variable cannot be read; names it.
        """
        folder = os.environ.get("TOKFOLD_CACHE_DIR")
        classes: Any = os.environ.get("TOKFOLD_CLASSES") or "auto"
        if classes not in get_args(ClassesMode):
            raise ValueError(f"TOKFOLD_CLASSES must be auto, now or never, not {classes!r}")
        text = os.environ.get("TOKFOLD_LIMITS") or "{}"
        try:
            limits = Limits(**json.loads(text))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"TOKFOLD_LIMITS must be a JSON object of fields of tokfold.Limits: {error}"
            ) from error
        return cls(Path(folder) if folder else None, classes, limits)

    @staticmethod
    def publish(
        cache_dir: str | os.PathLike[str] | None,
        classes: ClassesMode | None,
        limits: Limits | None,
    ) -> None:
        """Write those that are given into the environment."""
        if cache_dir is not None:
            os.environ["TOKFOLD_CACHE_DIR"] = str(Path(cache_dir).absolute())
        if classes is not None:
            os.environ["TOKFOLD_CLASSES"] = classes
        if limits is not None:
            os.environ["TOKFOLD_LIMITS"] = json.dumps(asdict(limits))
        Settings.from_environment()


def vocabulary_of(
    tokenizer: Any,  # noqa: ANN401 - of any package
    size: int,
    stop_token_ids: Iterable[int] | None = None,
) -> Vocabulary:
    """The vocabulary of a server's tokenizer.

    Args:
        tokenizer: of transformers, of mistral-common inside, or one that makes XGrammar's
            ``TokenizerInfo`` itself (``init_xgrammar``).
        size: number of ids that the model puts out.
        stop_token_ids: ends of text; those that the model does not have are left out. None or
            none: the tokenizer's.

    Raises:
        VocabularyError: as :meth:`Vocabulary.from_huggingface`.
    """
    stops = sorted({i for i in stop_token_ids or () if 0 <= i < size}) or None
    own = getattr(tokenizer, "init_xgrammar", None)
    if callable(own):
        info, overridden = own()
        if info is not None:
            tokens = list(info.decoded_vocab)[:size]
            stops = stops or list(overridden or info.stop_token_ids)
            return Vocabulary(tokens, stops, size=size, name=type(tokenizer).__name__)
    inner = getattr(tokenizer, "transformers_tokenizer", None) or tokenizer
    return Vocabulary.from_huggingface(inner, size, stops)


# -- requests ------------------------------------------------------------------------------------


def checked(text: str, what: str, *, is_json: bool = False) -> str:
    """The text of a request, if converters can be trusted with it.

    Raises:
        UnsupportedGrammarError: it holds NUL, on which some versions of XGrammar end the process,
            or JSON that is nested too deeply, which takes them minutes.
    """
    if not isinstance(text, str):
        raise TypeError(f"a {what} must be a str, not {type(text).__name__}")
    if "\0" in text or (is_json and _ESCAPED_NUL.search(text)):
        raise UnsupportedGrammarError(f"this {what} holds NUL, which no text has", what, 1, 1)
    if is_json and _nesting(text) > MAX_JSON_NESTING:
        raise UnsupportedGrammarError(
            f"this {what} is nested deeper than {MAX_JSON_NESTING} levels", what, 1, 1
        )
    return text


def _nesting(text: str) -> int:
    """Levels of JSON text, whether it is JSON or not: converters do not read it as Python does."""
    deepest = level = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        level += 1 if bracket in "[{" else -1
        deepest = max(deepest, level)
    return deepest


def any_tag(text: str) -> dict[str, Any]:
    """A structural tag of a request as a value; one of the old form in the new one.

    The old form lists ``structures`` of begin, schema and end, and ``triggers``. A schema that is
    missing allows any JSON.

    Raises:
        ValueError: it is no JSON object; UnsupportedGrammarError as :func:`checked`.
    """
    tag = json.loads(checked(text, "structural tag", is_json=True))
    if not isinstance(tag, dict):
        raise ValueError("a structural tag is a JSON object")
    if tag.get("structures") is None:
        if "format" in tag:
            tag["format"] = _with_schemas(tag["format"])
        return tag
    try:
        tags = [
            {
                "type": "tag",
                "begin": structure["begin"],
                "content": {"type": "json_schema", "json_schema": _schema(structure.get("schema"))},
                "end": structure["end"],
            }
            for structure in tag["structures"]
        ]
        triggers = tag["triggers"]
    except (KeyError, TypeError) as error:
        raise ValueError(
            "a structural tag of the old form has triggers, and structures of begin, schema and "
            f"end: {error!r}"
        ) from error
    return {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": triggers,
            "tags": tags,
            "at_least_one": bool(tag.get("at_least_one", False)),
        },
    }


def _schema(schema: object) -> object:
    """A schema of the old form: text or a value, or nothing for any JSON."""
    if schema is None:
        return {}
    return json.loads(schema) if isinstance(schema, str) else schema


def _with_schemas(node: Any) -> Any:  # noqa: ANN401 - JSON
    """Formats in which a schema that is null, as frontends send it, allows any JSON."""
    if isinstance(node, list):
        return [_with_schemas(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {
        key: value if key == "json_schema" else _with_schemas(value) for key, value in node.items()
    }
    if made.get("type") == "json_schema" and made.get("json_schema") is None:
        made["json_schema"] = {}
    return made


def choices(texts: object) -> str:
    """Grammar text of a list of texts, one of which is to be written.

    Raises:
        ValueError: it is no list of texts, or empty.
    """
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise ValueError("choices are a list of texts, at least one")
    return f"root ::= {' | '.join(literal(text) for text in texts)}"


# -- compiling -----------------------------------------------------------------------------------


class Grammars:
    """The grammars of all requests of a server, compiled once.

    Two readings of one vocabulary: in ``text``, special tokens are never text, so that no JSON
    string holds one; in ``tags``, they are text, so that a structural tag can have them as its
    markers. The second compiler is made when first needed.

    Safe between threads.
    """

    def __init__(self, vocabulary: Vocabulary, settings: Settings) -> None:
        self.vocabulary = vocabulary
        self.settings = settings
        self.text = self.compiler(vocabulary)
        self._lock = threading.Lock()
        self._tags: GrammarCompiler | None = None
        self._next_save = _FIRST_SAVE

    def compiler(self, vocabulary: Vocabulary) -> GrammarCompiler:
        """One more compiler with the settings."""
        settings = self.settings
        return GrammarCompiler(
            vocabulary,
            limits=settings.limits,
            classes=settings.classes,
            cache_dir=settings.cache_dir,
        )

    @property
    def tags(self) -> GrammarCompiler:
        """The compiler to which special tokens are text."""
        with self._lock:
            if self._tags is None:
                special = bool(self.vocabulary.special_token_ids)
                vocabulary = self.vocabulary.replace(special_token_ids=())
                self._tags = self.compiler(vocabulary) if special else self.text
            return self._tags

    def made(self, compile: Callable[[], CompiledGrammar]) -> CompiledGrammar:
        """Compile, and save the pool now and then: servers seldom end in peace."""
        compiled = compile()
        if self.settings.cache_dir is not None:
            with self._lock:
                made = sum(compiler.statistics().misses for compiler in self._compilers())
                due = made >= self._next_save
                if due:
                    self._next_save *= 4
            if due:
                self.save()
        return compiled

    def save(self) -> None:
        """Write the pools where there is a ``cache_dir``; a failure is logged."""
        if self.settings.cache_dir is None:
            return
        for compiler in self._compilers():
            try:
                compiler.save()
            except (OSError, TokfoldError) as error:
                logger.warning("the masks were not saved: %s", error)

    def clear(self) -> None:
        """Forget the compiled grammars and the pools."""
        for compiler in self._compilers():
            compiler.clear_cache()

    def _compilers(self) -> set[GrammarCompiler]:
        return {self.text} if self._tags is None else {self.text, self._tags}


_grammars: weakref.WeakValueDictionary[tuple[str, Settings], Grammars] = (
    weakref.WeakValueDictionary()
)
_grammars_lock = threading.Lock()


def grammars_of(vocabulary: Vocabulary, settings: Settings) -> Grammars:
    """The one :class:`Grammars` of this process for a vocabulary and settings."""
    with _grammars_lock:
        key = (vocabulary.fingerprint, settings)
        found = _grammars.get(key)
        if found is None:
            found = _grammars[key] = Grammars(vocabulary, settings)
        return found


@atexit.register
def _save_all() -> None:
    for grammars in list(_grammars.values()):
        grammars.save()


# -- one request ---------------------------------------------------------------------------------


class Conversation:
    """One request on its way through its grammar; never raises where a server could not go on.

    A mask that takes more than the limits allow makes the conversation *failed*: its row allows
    ``last_resort`` alone, and every token is refused, so that the server ends the request with an
    error. :meth:`rollback` to before that takes the failure back.

    Args:
        compiled: the grammar.
        stop_token_ids: those of the request, in place of the vocabulary's; those that the
            vocabulary does not have are left out, and none means the vocabulary's.
        last_resort: the tokens of the row of a failure.
    """

    def __init__(
        self,
        compiled: CompiledGrammar,
        stop_token_ids: Iterable[int] | None = None,
        last_resort: Sequence[int] = (),
    ) -> None:
        size = len(compiled.vocabulary)
        stops = sorted({i for i in stop_token_ids or () if 0 <= i < size})
        self._stops = stops or None
        self._last_resort = tuple(last_resort)
        self.matcher = Matcher(compiled, stop_token_ids=self._stops)
        self._ignored = 0
        self.failure: str | None = None

    @property
    def is_terminated(self) -> bool:
        """Whether the text has ended by a stop token."""
        return self.matcher.is_terminated

    def accept(self, token_ids: Sequence[int]) -> bool:
        """Read tokens, all or none; what follows the end of the text is read and ignored.

        Returns:
            False where one cannot follow, takes more than the limits allow, or is no token; nothing
            has changed then.
        """
        if self.failure is not None:
            return False
        taken = self._take(self.matcher, token_ids)
        if taken < len(token_ids) and not self.matcher.is_terminated:
            self.matcher.rollback(taken)
            return False
        self._ignored += len(token_ids) - taken
        return True

    def valid_prefix(self, token_ids: Sequence[int]) -> int:
        """How many tokens could be read, up to the end of the text; nothing changes."""
        if self.failure is not None or self.matcher.is_terminated:
            return 0
        return self._take(self.matcher.fork(), token_ids)

    @staticmethod
    def _take(matcher: Matcher, token_ids: Sequence[int]) -> int:
        size = len(matcher.compiled.vocabulary)
        for taken, token_id in enumerate(token_ids):
            if matcher.is_terminated or not 0 <= token_id < size:
                return taken
            try:
                if not matcher.accept_token(token_id):
                    return taken
            except TokfoldError as error:
                logger.error("token %d is refused: %s", token_id, error)
                return taken
        return len(token_ids)

    def rollback(self, count: int) -> None:
        """Take back the last tokens, those that were ignored included.

        Raises:
            MatcherStateError: there are fewer; nothing has changed.
        """
        ignored = min(count, self._ignored)
        self.matcher.rollback(count - ignored)
        self._ignored -= ignored
        if count > 0:
            self.failure = None

    def reset(self) -> None:
        """Take back all tokens."""
        self.matcher.reset()
        self._ignored, self.failure = 0, None

    def copy(self) -> Conversation:
        """One at the same place that goes its own way."""
        same = object.__new__(Conversation)
        same.__dict__.update(self.__dict__)
        # A fork shares its memory, and the bound on it, with all forks: not from the start on.
        if self.matcher.num_steps:
            same.matcher = self.matcher.fork()
        else:
            same.matcher = Matcher(self.matcher.compiled, stop_token_ids=self._stops)
            same.failure = None
        return same

    def fill(self, bitmask: npt.NDArray[np.int32], row: int) -> None:
        """Write the row of the next token.

        Args:
            bitmask: int32, C-contiguous, shape ``(rows, words)``; words past the vocabulary's
                become 0.
            row: the row.
        """
        words = -(-len(self.matcher.compiled.vocabulary) // 32)
        if self.matcher.is_terminated:
            self._only(bitmask[row], self.matcher.stop_token_ids)
            return
        if self.failure is None:
            try:
                if bitmask.shape[1] == words:
                    self.matcher.fill_bitmask(bitmask, row)
                else:
                    narrow = np.zeros((1, words), dtype=np.int32)
                    self.matcher.fill_bitmask(narrow, 0)
                    fitting = min(words, bitmask.shape[1])
                    bitmask[row] = 0
                    bitmask[row, :fitting] = narrow[0, :fitting]
                return
            except TokfoldError as error:
                self.failure = str(error)
                logger.error("a request fails: %s", error)
        self._only(bitmask[row], self._last_resort or self.matcher.stop_token_ids or (0,))

    @staticmethod
    def _only(row: npt.NDArray[np.int32], token_ids: Iterable[int]) -> None:
        row[:] = 0
        bits = row.view(np.uint32)
        for token_id in token_ids:
            if token_id >> 5 < len(bits):
                bits[token_id >> 5] |= np.uint32(1 << (token_id & 31))

    def forced_text(self) -> str:
        """What must come next, whole characters only; empty where there is a choice."""
        if self.failure is not None or self.matcher.is_terminated:
            return ""
        try:
            forced = self.matcher.forced_bytes()
        except TokfoldError as error:
            logger.warning("no jump: %s", error)
            return ""
        try:
            return forced.decode()
        except UnicodeDecodeError as error:
            return forced[: error.start].decode()

    def replace(self, old: Sequence[int], new: Sequence[int]) -> bool:
        """Read other tokens in place of the last ones.

        Args:
            old: the last tokens read.
            new: what to have read instead.

        Returns:
            False where one of the new cannot follow, or there were not as many old ones; nothing
            has changed then.
        """
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        trial = self.copy()
        try:
            trial.rollback(len(old) - same)
        except TokfoldError:
            return False
        if not trial.accept(new[same:]):
            return False
        self.__dict__.update(trial.__dict__)
        return True


def fill_rows(
    conversations: Sequence[Conversation], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
) -> None:
    """Write the rows of many conversations, without the GIL; as :meth:`Conversation.fill`."""
    plain = [
        (each, row)
        for each, row in zip(conversations, rows, strict=True)
        if each.failure is None and not each.is_terminated
    ]
    if len(plain) == len(conversations) > 1:
        try:
            fill_bitmask_batch([each.matcher for each, _ in plain], bitmask, list(rows))
            return
        except (TokfoldError, ValueError):
            pass  # one of them fails, or the width is another: row by row says which
    for each, row in zip(conversations, rows, strict=True):
        each.fill(bitmask, row)
