"""How vLLM comes to choose tokfold: two of its methods, wrapped."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from tokfold.vllm import NAME

__all__ = ["unwrap", "wrap"]

_PLACES = (
    ("vllm.sampling_params", "SamplingParams", "_validate_structured_outputs"),
    ("vllm.v1.structured_output", "StructuredOutputManager", "grammar_init"),
)


def wrap() -> None:
    """Wrap both methods, unless they are.

    Raises:
        RuntimeError: there is no such method; nothing has changed.
    """
    wrappers: tuple[Callable[..., Any], ...] = (_validating, _choosing)
    found = []
    for (module, owner, name), wrapper in zip(_PLACES, wrappers, strict=True):
        holder = getattr(importlib.import_module(module), owner, None)
        method = getattr(holder, name, None)
        if method is None:
            raise RuntimeError(
                f"this vLLM has no {module}.{owner}.{name}, which tokfold wraps: it was made for "
                "vLLM 0.33"
            )
        found.append((holder, name, method, wrapper))
    for holder, name, method, wrapper in found:
        if not hasattr(method, "_tokfold_wraps"):
            wrapped = functools.wraps(method)(wrapper(method))
            wrapped._tokfold_wraps = method
            setattr(holder, name, wrapped)


def unwrap() -> None:
    """Put vLLM's own methods back."""
    for module, owner, name in _PLACES:
        holder = getattr(importlib.import_module(module), owner)
        method = getattr(getattr(holder, name), "_tokfold_wraps", None)
        if method is not None:
            setattr(holder, name, method)


def _validating(original: Callable[..., None]) -> Callable[..., None]:
    """Check a request in the process that received it: a wrong one is answered at once."""

    def validate(
        self: Any,  # noqa: ANN401 - SamplingParams
        model_config: Any,  # noqa: ANN401
        structured_outputs_config: Any,  # noqa: ANN401
        tokenizer: Any,  # noqa: ANN401
    ) -> None:
        params = self.structured_outputs
        ours = (
            params is not None
            and getattr(structured_outputs_config, "backend", None) == "auto"
            and (not params._backend or params._backend_was_auto)
            and not getattr(model_config, "is_diffusion", False)
            and tokenizer is not None
        )
        if not ours:
            original(self, model_config, structured_outputs_config, tokenizer)
            return
        from tokfold.vllm.backend import check_request

        check_request(params)
        params._backend, params._backend_was_auto = NAME, True

    return validate


def _choosing(original: Callable[..., None]) -> Callable[..., None]:
    """Make the backend before vLLM looks for it."""

    def grammar_init(self: Any, request: Any) -> None:  # noqa: ANN401
        params = getattr(request.sampling_params, "structured_outputs", None)
        if request.structured_output_request is not None and params is not None:
            chosen = params._backend == NAME
            # A frontend without the plugin chooses among vLLM's own.
            if params._backend_was_auto and getattr(self, "backend_name", None) in (None, NAME):
                params._backend, chosen = NAME, True
            if chosen and self.backend is None:
                from tokfold.vllm.backend import TokfoldBackend

                self.backend = TokfoldBackend(
                    self.vllm_config,
                    tokenizer=self.tokenizer,
                    vocab_size=self.vllm_config.model_config.get_vocab_size(),
                )
                self.backend_name = NAME
        original(self, request)

    return grammar_init
