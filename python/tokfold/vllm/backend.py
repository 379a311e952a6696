"""The check of a request, and the classes that vLLM's engine calls.

This module imports vLLM; :mod:`tokfold.vllm.hooks` imports it when the first request is there.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.utils import grammar_is_likely_lark

from tokfold import _json
from tokfold._checks import whole_number
from tokfold._serving import (
    Conversation,
    Passed,
    Settings,
    any_tag,
    checked,
    choices,
    grammars_of,
    vocabulary_of,
)
from tokfold._tags.assembly import check_tag
from tokfold._written import is_lark
from tokfold.engine import CompiledGrammar
from tokfold.errors import DeadlineExceededError, TokfoldError
from tokfold.grammar import Grammar
from tokfold.limits import Limits

if TYPE_CHECKING:
    from tokfold._serving import Grammars

__all__ = ["TokfoldBackend", "TokfoldGrammar", "check_request", "end_in_time"]

logger = logging.getLogger("tokfold")

_ANY_OBJECT = '{"type": "object"}'


def _nobody() -> None:
    """The request of a grammar that was told none."""


class TokfoldGrammar(StructuredOutputGrammar):
    """One request.

    Args:
        conversation: where it stands.
        max_drafts: the most tokens that are drafted in a step.
    """

    def __init__(self, conversation: Conversation, max_drafts: int = 0) -> None:
        self.conversation = conversation
        self._max_drafts = max_drafts
        self._request: Callable[[], Any] = _nobody
        self._taken = 0

    def end_within(self, request: Any) -> None:  # noqa: ANN401 - vllm.v1.request.Request
        """Let the text end within the ``max_tokens`` of its request, reasoning included."""
        self.conversation.max_tokens = request.sampling_params.max_tokens
        self._request = weakref.ref(request)

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Read tokens, all or none; those after the end of the text are ignored.

        Returns:
            False where one cannot follow, which makes vLLM end the request with an error; nothing
            has changed.
        """
        self._count_reasoning(len(tokens))
        if self.conversation.accept(tokens):
            return True
        why = self.conversation.failure or "the grammar does not allow them here"
        logger.error("request %s: tokens %s are not accepted: %s", request_id, tokens, why)
        return False

    def _count_reasoning(self, own: int = 0) -> None:
        """Until the text begins: what the request took, but for ``own`` tokens, is reasoning.

        Drafts are no tokens of the request. So where it took no more than when it was last asked,
        tokens that are read are drafts, and there is as much reasoning as there was.
        """
        taken = getattr(self._request(), "num_output_tokens", None)
        if taken is None or self.conversation.matcher.num_steps or (own and taken <= self._taken):
            return
        self._taken = taken
        self.conversation.tokens_before = max(0, taken - own)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest prefix of some tokens that masks would allow; nothing changes."""
        self._count_reasoning()
        return tokens[: self.conversation.valid_prefix(tokens)]

    def rollback(self, num_tokens: int) -> None:
        """Take back the last tokens, over the end of the text too."""
        self.conversation.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the row of the next token.

        Args:
            bitmask: int32, shape ``(rows, words)``, on the CPU.
            batch_index: the row.
        """
        self._count_reasoning()
        held = getattr(self._request(), "structured_output_request", None)
        # A row behind drafts that end the reasoning: of them vLLM says nothing, not how many.
        is_ahead = getattr(held, "reasoning_ended", None) is False
        self.conversation.tokens_in_doubt = self._max_drafts if is_ahead else 0
        self.conversation.fill(bitmask.numpy(), batch_index)

    def is_terminated(self) -> bool:
        """Whether a stop token has been read."""
        return self.conversation.is_terminated

    def reset(self) -> None:
        """Begin again."""
        self.conversation.reset()


class TokfoldBackend(StructuredOutputBackend):
    """Compiles the grammars of an engine's requests.

    Args:
        vllm_config: vLLM's.
        tokenizer: the tokenizer of the model.
        vocab_size: number of ids that the model puts out.

    Raises:
        VocabularyError: the tokens of this tokenizer have no bytes of their own.
        ValueError: a variable of the environment cannot be read.
    """

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:  # noqa: ANN401
        super().__init__(vllm_config, tokenizer, vocab_size)
        vocabulary = vocabulary_of(tokenizer, vocab_size)
        settings = Settings.from_environment()
        self.grammars: Grammars | None = grammars_of(vocabulary, settings)
        self.grammars.prepare()
        self.ends_in_time = settings.end_in_time
        self._max_drafts = int(getattr(vllm_config, "num_speculative_tokens", 0) or 0)
        self._json: dict[str, Any] = {}
        if settings.whitespace is not None:
            self._json["whitespace"] = settings.whitespace

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> StructuredOutputGrammar:
        """Compile what a request asks for.

        Args:
            request_type: what ``grammar_spec`` is.
            grammar_spec: a JSON schema, nothing for a JSON object, a pattern, grammar text (Lark's
                too), a JSON list of choices, or a structural tag.
            stop_token_ids: the ends of text of the request; none: the tokenizer's.

        Raises:
            ValueError: the grammar cannot be used, which makes vLLM refuse this request alone;
                many of tokfold's errors are ValueErrors, and the others are its cause.
        """
        grammars = self.grammars
        if grammars is None:
            raise ValueError("the backend has been destroyed")
        try:
            compiled = grammars.made(lambda: self._compiled(grammars, request_type, grammar_spec))
        except ValueError:
            raise
        except Exception as error:  # whatever a stranger sends, the engine goes on
            raise ValueError(f"{type(error).__name__}: {error}") from error
        if self.ends_in_time:
            with contextlib.suppress(TokfoldError):  # a text that is not counted goes on without
                compiled.shortest()  # here and not in a mask
        stops = compiled.vocabulary.stop_token_ids
        conversation = Conversation(compiled, stop_token_ids, stops)
        conversation.prefer_end = grammars.settings.prefer_end
        return TokfoldGrammar(conversation, self._max_drafts)

    def _compiled(
        self, grammars: Grammars, request_type: StructuredOutputOptions, spec: str
    ) -> CompiledGrammar:
        text = grammars.text
        options = StructuredOutputOptions
        if request_type == options.JSON:
            checked(spec, "JSON schema", is_json=True)
            return text.compile_json_schema(spec, **self._json)
        if request_type == options.JSON_OBJECT:
            return text.compile_json_schema(_ANY_OBJECT, **self._json)
        if request_type == options.REGEX:
            return text.compile_regex(checked(spec, "regex"))
        if request_type == options.CHOICE:
            return text.compile_grammar(choices(_listed(spec)))
        if request_type == options.GRAMMAR:
            checked(spec, "grammar")
            # In Lark's grammars tokens have names, special ones too.
            lark = _is_lark(spec)
            return grammars.tags.compile_lark(spec) if lark else text.compile_grammar(spec)
        if request_type == options.STRUCTURAL_TAG:
            return grammars.tags.compile_structural_tag(_json.dumps(any_tag(spec)))
        raise ValueError(f"tokfold does not know requests of type {request_type}")

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows in which all is allowed: int32, ``(max_num_seqs, ceil(vocab_size / 32))``."""
        return torch.full(
            (max_num_seqs, -(-self.vocab_size // 32)),
            -1,
            dtype=torch.int32,
            pin_memory=torch.cuda.is_available(),
        )

    def destroy(self) -> None:
        """Save what masks remember, and let all go."""
        if self.grammars is not None:
            self.grammars.save()
            self.grammars = None


def end_in_time(request: Any) -> None:  # noqa: ANN401 - vllm.v1.request.Request
    """Tell the grammar of a request its ``max_tokens``: now, or when it is compiled."""
    if whole_number(request.sampling_params.max_tokens) is None:
        return
    held = request.structured_output_request
    made = getattr(held, "_grammar", None) or getattr(held, "grammar", None)

    def tell(done: Future[StructuredOutputGrammar]) -> None:
        if not done.cancelled() and done.exception() is None:
            done.result().end_within(request)

    if isinstance(made, Future):
        made.add_done_callback(tell)
    elif isinstance(made, TokfoldGrammar):
        made.end_within(request)


def _is_lark(text: str) -> bool:
    """Whether a grammar is Lark; vLLM alone says no of all that holds ``::=``, in a literal too."""
    return grammar_is_likely_lark(text) or is_lark(text)


# -- in the frontend -----------------------------------------------------------------------------


def check_request(params: Any) -> None:  # noqa: ANN401 - StructuredOutputsParams
    """Read what a request asks for, without a vocabulary.

    Raises:
        VLLMValidationError: it cannot be used; vLLM answers with status 400.
    """
    try:
        limits = Settings.from_environment().request_limits
        kind, text = _asked(params)
        _passed.check((kind, text, repr(limits)), lambda: _read_briefly(kind, text, limits))
    except Exception as error:
        raise _validation_error()(f"Invalid structured outputs: {error}") from error


_passed = Passed()

FRONTEND_MILLISECONDS = 50
"""How long the frontend reads one request. It reads on the event loop, so all other requests wait
meanwhile; a request that takes longer is checked by the engine alone, in a thread."""


def _read_briefly(kind: str, text: str, limits: Limits) -> None:
    """Read what is asked for, and let pass what takes longer than the frontend may."""
    most = limits.max_compile_milliseconds
    brief = min(most or FRONTEND_MILLISECONDS, FRONTEND_MILLISECONDS)
    try:
        _read(kind, text, replace(limits, max_compile_milliseconds=brief))
    except DeadlineExceededError:
        if most == brief:
            raise


def _asked(params: Any) -> tuple[str, str]:  # noqa: ANN401
    """What is asked for, by the names of the parameters, and its text."""
    if params.json is not None:
        text = params.json if isinstance(params.json, str) else _json.dumps(params.json)
        return "json", checked(text, "JSON schema", is_json=True)
    if params.json_object is not None:
        if not params.json_object:
            raise ValueError("json_object must be true; leave it out for none")
        return "json", _ANY_OBJECT
    if params.regex is not None:
        return "regex", checked(params.regex, "regex")
    if params.choice is not None:
        texts = _listed(params.choice) if isinstance(params.choice, str) else params.choice
        return "grammar", choices([*texts] if isinstance(texts, tuple) else texts)
    if params.grammar is not None:
        text = checked(params.grammar, "grammar")
        return ("lark" if _is_lark(text) else "grammar"), text
    if params.structural_tag is not None:
        return "structural_tag", checked(params.structural_tag, "structural tag", is_json=True)
    raise ValueError("nothing is asked for")


def _listed(text: str) -> object:
    return _json.loads(checked(text, "list of choices", is_json=True))


def _read(kind: str, text: str, limits: Limits) -> None:
    if kind == "json":
        Grammar.from_json_schema(text, limits=limits)
    elif kind == "regex":
        Grammar.from_regex(text, limits=limits)
    elif kind == "grammar":
        Grammar.from_ebnf(text, limits=limits)
    elif kind == "lark":
        Grammar.from_lark(text, limits=limits)
    else:
        check_tag(_json.dumps(any_tag(text)), limits)


def _validation_error() -> type[Exception]:
    try:
        from vllm.exceptions import VLLMValidationError
    except ImportError:
        return ValueError
    error: type[Exception] = VLLMValidationError
    return error
