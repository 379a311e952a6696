"""The classes that SGLang calls; imported when a server chooses the backend."""

from __future__ import annotations

import dataclasses
import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarStats,
    InvalidGrammarObject,
)

from tokfold import _json
from tokfold._serving import (
    Conversation,
    Settings,
    any_tag,
    checked,
    fill_rows,
    grammars_of,
    vocabulary_of,
)
from tokfold.compiler import DEFAULT_MAX_BYTES, GrammarCompiler
from tokfold.engine import CompiledGrammar
from tokfold.vocabulary import Vocabulary

__all__ = ["TokfoldGrammar", "TokfoldGrammarBackend", "with_reasoning"]

logger = logging.getLogger("tokfold")

MAX_CACHED = 1_000
"""Grammars that SGLang's own cache holds. Without a bound every schema ever seen stays."""

MAX_CACHED_BYTES = DEFAULT_MAX_BYTES
"""Bytes of these grammars: what the compiler lets go is not to live on here."""

MAX_WAITING = 256
"""Threads in which requests wait for their grammars; how many of them compile at once is the
compiler's to say. With SGLang's few, a small request would wait for a thread, not for its turn."""


class _Recent(dict[Any, Any]):
    """A cache in the place of SGLang's dict: what was not asked for longest goes first.

    Sizes are looked at when a grammar comes, which was compiled then: some microseconds for each.
    """

    def get(self, key: Any, default: Any = None) -> Any:  # noqa: ANN401
        if key not in self:
            return default
        value = self.pop(key)
        super().__setitem__(key, value)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:  # noqa: ANN401
        super().__setitem__(key, value)
        sizes = {key: _bytes_of(value) for key, value in self.items()}
        held = sum(sizes.values())
        for key, size in sizes.items():
            if len(self) > MAX_CACHED or (held > MAX_CACHED_BYTES and size):
                held -= size
                del self[key]


def _prepare(backend: BaseGrammarBackend) -> None:
    """Put a bounded cache, and threads enough, in the place of SGLang's."""
    backend.cache = _Recent()
    backend.executor = ThreadPoolExecutor(MAX_WAITING, "tokfold-request")


def _bytes_of(value: Any) -> int:  # noqa: ANN401
    """Bytes of a grammar, in the reasoning wrapper or not; 0 for an invalid one."""
    conversation = getattr(getattr(value, "grammar", value), "conversation", None)
    return conversation.matcher.compiled.num_bytes if isinstance(conversation, Conversation) else 0


# -- masks ---------------------------------------------------------------------------------------


def _allocate(vocab_size: int, batch_size: int) -> torch.Tensor:
    """int32, shape ``(batch_size, ceil(vocab_size / 32))``, all allowed; pinned beside a GPU."""
    return torch.full(
        (batch_size, -(-vocab_size // 32)),
        -1,
        dtype=torch.int32,
        pin_memory=torch.cuda.is_available(),
    )


def _apply(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
    """Write -inf over the logits that a mask does not allow; mask bits past them are not read."""
    from tokfold.torch import apply_token_bitmask_

    size = min(logits.shape[-1], 32 * vocab_mask.shape[-1])
    apply_token_bitmask_(logits, vocab_mask[:, : -(-size // 32)].contiguous(), size)


class TokfoldGrammar(BaseGrammarObject):
    """One request.

    Args:
        conversation: where it stands.
        content: the same as the ``format`` of a structural tag, for grammars around it; None where
            there is none.
        grammar_stats: SGLang's record of it.
    """

    def __init__(
        self,
        conversation: Conversation,
        content: dict[str, Any] | None,
        grammar_stats: GrammarStats | None,
    ) -> None:
        super().__init__()
        self.conversation = conversation
        self.content = content
        self.grammar_stats = grammar_stats

    def accept_token(self, token: int) -> None:
        """Read a token; after the end of the text it is ignored.

        Raises:
            ValueError: it cannot follow, which makes SGLang end the request with an error; nothing
                has changed. One that takes more than the limits allow does so at the next token:
                where SGLang walks over drafts, an error would end the scheduler.
        """
        if not self.conversation.accept([token], fail_later=True):
            why = self.conversation.failure or "the grammar does not allow it here"
            raise ValueError(f"token {token} is not accepted: {why}")
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Take back the last ``k`` tokens, over the end of the text too."""
        self.conversation.rollback(k)

    def is_terminated(self) -> bool:
        """Whether a stop token has been read."""
        return self.conversation.is_terminated

    def copy(self) -> TokfoldGrammar:
        """For another request with the same grammar."""
        stats = self.grammar_stats
        if stats is not None:
            stats = dataclasses.replace(stats, is_cache_hit=True, tree_traversal_time=[])
        return TokfoldGrammar(self.conversation.copy(), self.content, stats)

    # -- masks

    def allocate_vocab_mask(
        self,
        vocab_size: int,
        batch_size: int,
        device: Any,  # noqa: ANN401
    ) -> torch.Tensor:
        """Rows in which all is allowed: int32, ``(batch_size, ceil(vocab_size / 32))``, on the CPU.

        :meth:`move_vocab_mask` takes them to the device.
        """
        return _allocate(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the row of the next token."""
        self.conversation.fill(vocab_mask.numpy(), idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: Sequence[Any], vocab_mask: torch.Tensor) -> None:
        """Write the rows of a batch, without the GIL."""
        if all(isinstance(entry.grammar, TokfoldGrammar) for entry in entries):
            conversations = [entry.grammar.conversation for entry in entries]
            fill_rows(conversations, vocab_mask.numpy(), [entry.row for entry in entries])
        else:
            for entry in entries:
                entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow all."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:  # noqa: ANN401
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Write -inf over the logits that are not allowed, in place."""
        _apply(logits, vocab_mask)

    # -- jump-forward

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:  # noqa: ANN401
        """The text that must come next, or None where there is a choice."""
        text = self.conversation.forced_text()
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of a jump, and a state, which :meth:`jump_and_retokenize` does not need."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: list[int], new_output_ids: list[int], next_state: int
    ) -> None:
        """Read the tokens of the text with the jump in place of those before it.

        Raises:
            ValueError: they cannot follow; nothing has changed.
        """
        if not self.conversation.replace(old_output_ids, new_output_ids):
            raise ValueError(
                f"the tokens {new_output_ids} are not accepted in place of {old_output_ids}"
            )

    def __repr__(self) -> str:
        return f"<TokfoldGrammar, {self.conversation.matcher!r}>"


class TokfoldGrammarBackend(BaseGrammarBackend):
    """Compiles the grammars of requests; as :func:`tokfold.sglang.create_backend`."""

    def __init__(
        self,
        server_args: Any,  # noqa: ANN401
        tokenizer: Any,  # noqa: ANN401
        vocab_size: int,
        eos_token_ids: Iterable[int] | None = None,
    ) -> None:
        super().__init__()
        _prepare(self)
        vocabulary = vocabulary_of(tokenizer, vocab_size, eos_token_ids)
        settings = Settings.from_environment()
        self.grammars = grammars_of(vocabulary, settings)
        self.grammars.prepare()
        self._last_resort = _last_resort(vocabulary)
        self._framing: GrammarCompiler | None = None
        serving = _serving(server_args)
        self._json: dict[str, Any] = {}
        if settings.whitespace is not None:
            self._json["whitespace"] = settings.whitespace
        elif getattr(serving, "constrained_json_disable_any_whitespace", False):
            self._json["whitespace"] = "spaced"
        most = getattr(serving, "constrained_json_max_whitespace_cnt", None)
        if most is not None:
            self._json["max_whitespace"] = most

    # -- requests

    def _init_value_dispatch(
        self, key: tuple[str, str], require_reasoning: bool
    ) -> BaseGrammarObject:
        # A grammar of the whole output has the markers of the model in it, as text.
        if key[0] == "full_assistant_ebnf":
            return self._made("ebnf", key[1], self._whole_output)
        try:
            return cast(BaseGrammarObject, super()._init_value_dispatch(key, require_reasoning))
        except Exception as error:  # SGLang reads a schema itself, whatever its nesting
            logger.error("invalid %s %.500r: %s", key[0], key[1], error)
            return InvalidGrammarObject(str(error))

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON schema; ``$$ANY$$`` for any JSON."""
        return self._made("json", key_string, self._schema)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A regular expression."""
        return self._made("regex", key_string, self._regex)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """Grammar text."""
        return self._made("ebnf", key_string, self._ebnf)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """A structural tag, of the new form or the old one."""
        return self._made("structural_tag", key_string, self._tag)

    def _made(
        self,
        kind: str,
        text: str,
        read: Callable[[str], tuple[CompiledGrammar, dict[str, Any] | None]],
    ) -> BaseGrammarObject:
        """The grammar, or SGLang's object for one that cannot be used."""
        content: dict[str, Any] | None = None

        def compile() -> CompiledGrammar:
            nonlocal content
            compiled, content = read(text)
            return compiled

        try:
            compiled = self.grammars.made(compile)
        except Exception as error:  # whatever a stranger sends, the server goes on
            logger.error("invalid %s %.500r: %s", kind, text, error)
            return InvalidGrammarObject(str(error))
        return TokfoldGrammar(
            Conversation(compiled, last_resort=self._last_resort),
            content,
            GrammarStats(dispatch_type=kind),
        )

    def _schema(self, text: str) -> tuple[CompiledGrammar, dict[str, Any] | None]:
        compiler = self.grammars.text
        if text == "$$ANY$$":
            return compiler.compile_builtin_json_grammar(), None
        checked(text, "JSON schema", is_json=True)
        compiled = compiler.compile_json_schema(text, **self._json)
        if self._json:
            return compiled, None
        return compiled, {"type": "json_schema", "json_schema": _json.read(text)}

    def _regex(self, text: str) -> tuple[CompiledGrammar, dict[str, Any] | None]:
        compiled = self.grammars.text.compile_regex(checked(text, "regex"))
        return compiled, {"type": "regex", "pattern": text}

    def _ebnf(self, text: str) -> tuple[CompiledGrammar, dict[str, Any] | None]:
        compiled = self.grammars.text.compile_grammar(checked(text, "grammar"))
        return compiled, {"type": "grammar", "grammar": text}

    def _whole_output(self, text: str) -> tuple[CompiledGrammar, dict[str, Any] | None]:
        return self.grammars.tags.compile_grammar(checked(text, "grammar")), None

    def _tag(self, text: str) -> tuple[CompiledGrammar, dict[str, Any] | None]:
        tag = any_tag(text)
        return self.grammars.tags.compile_structural_tag(_json.dumps(tag)), tag.get("format")

    def reset(self) -> None:
        """Forget all grammars."""
        super().reset()
        self.grammars.clear()

    # -- what the reasoning wrapper needs

    @staticmethod
    def allocate_vocab_mask(
        vocab_size: int,
        batch_size: int,
        device: Any,  # noqa: ANN401
    ) -> torch.Tensor:
        """As :meth:`TokfoldGrammar.allocate_vocab_mask`."""
        return _allocate(vocab_size, batch_size)

    move_vocab_mask = staticmethod(TokfoldGrammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(TokfoldGrammar.apply_vocab_mask)

    @property
    def is_support_token_filter(self) -> bool:
        """Strict thinking may forbid tokens."""
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: Sequence[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow or forbid some tokens in a row.

        Args:
            vocab_mask: as from :meth:`allocate_vocab_mask`, on any device.
            token_ids: the tokens.
            batch_idx: the row.
            is_allowed: whether to allow them.
            reset_vocab_mask: forbid all others first, or allow them.
        """
        row = vocab_mask[batch_idx]
        if reset_vocab_mask:
            row.fill_(0 if is_allowed else -1)
        for token_id in set(token_ids):
            bit = 1 << (token_id & 31)
            bit = bit - (1 << 32) if bit >> 31 else bit
            word = row[token_id >> 5 : (token_id >> 5) + 1]
            if is_allowed:
                word.bitwise_or_(bit)
            else:
                word.bitwise_and_(~bit)

    def reserve_framing_tokens(self, token_ids: Sequence[int]) -> None:
        """From now on these tokens are never text of framed grammars."""
        vocabulary = self.grammars.vocabulary.replace(special_token_ids=tuple(set(token_ids)))
        self._framing = self.grammars.compiler(vocabulary)

    def compile_framed_grammar(
        self,
        grammar: BaseGrammarObject,
        frame: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> BaseGrammarObject | None:
        """A grammar with the frame of a model's answer around it; None where it has no format."""
        content = grammar.content if isinstance(grammar, TokfoldGrammar) else None
        if content is None:
            return None

        def read(text: str) -> tuple[CompiledGrammar, None]:
            compiler = self._framing or self.grammars.tags
            return compiler.compile_structural_tag(text), None

        return self._made("structural_tag", _json.dumps(frame(content)), read)


def _serving(server_args: Any) -> Any:  # noqa: ANN401
    """What the server was told about serving: in a record of its own, or in its arguments."""
    try:
        context = importlib.import_module("sglang.srt.runtime_context")
        return context.get_serving()
    except (ImportError, AttributeError, ValueError):
        return server_args


def _last_resort(vocabulary: Vocabulary) -> tuple[int, ...]:
    """A token that no draft proposes: a row that fails allows it, and accepting it fails too."""
    for token_id in range(len(vocabulary) - 1, -1, -1):
        if not vocabulary[token_id]:
            return (token_id,)
    return (vocabulary.special_token_ids or vocabulary.stop_token_ids or (0,))[-1:]


def with_reasoning(
    backend: TokfoldGrammarBackend,
    server_args: Any,  # noqa: ANN401
    tokenizer: Any,  # noqa: ANN401
) -> BaseGrammarBackend:
    """The backend in SGLang's wrapper where the server has a reasoning parser.

    SGLang wraps its own backends and leaves registered ones to themselves. Its wrapper leaves the
    output free until the end of the reasoning, and knows budgets and strict thinking.
    """
    serving = _serving(server_args)
    name = getattr(serving, "reasoning_parser", None)
    if not name:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=name, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):
        return backend
    wrapped = ReasonerGrammarBackend(
        backend,
        parser,
        tokenizer,
        enable_strict_thinking=bool(getattr(serving, "enable_strict_thinking", False)),
    )
    _prepare(wrapped)
    return cast(BaseGrammarBackend, wrapped)
