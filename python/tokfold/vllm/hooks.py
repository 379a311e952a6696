"""How vLLM comes to choose tokfold: two of its methods, wrapped."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

__all__ = ["NAME", "unwrap", "wrap"]

NAME = "tokfold"
"""The name of the backend in vLLM's records."""

_MARK = "_tokfold_wraps"
_PLACES = (
    ("vllm.sampling_params", "SamplingParams", "_validate_structured_outputs"),
    ("vllm.v1.structured_output", "StructuredOutputManager", "grammar_init"),
)
_NEEDED = (
    {"self", "model_config", "structured_outputs_config", "tokenizer"},
    {"self", "request"},
)
"""Parameters of these methods that the wrappers look at."""


def wrap() -> None:
    """Wrap both methods, unless they are.

    Raises:
        RuntimeError: there is no such method, or it is another; nothing has changed.
    """
    wrappers: tuple[Callable[..., Any], ...] = (_validating, _choosing)
    found = []
    for (module, owner, name), needed, wrapper in zip(_PLACES, _NEEDED, wrappers, strict=True):
        holder = getattr(importlib.import_module(module), owner, None)
        method = getattr(holder, name, None)
        if method is None or not needed <= set(inspect.signature(method).parameters):
            raise RuntimeError(
                f"this vLLM has no {module}.{owner}.{name}, or another one than tokfold wraps, "
                "which was made for vLLM 0.33"
            )
        found.append((holder, name, method, wrapper))
    for holder, name, method, wrapper in found:
        if not hasattr(method, _MARK):
            wrapped = functools.wraps(method)(wrapper(method))
            setattr(wrapped, _MARK, method)
            setattr(holder, name, wrapped)


def unwrap() -> None:
    """Put vLLM's own methods back."""
    for module, owner, name in _PLACES:
        holder = getattr(importlib.import_module(module), owner)
        method = getattr(getattr(holder, name), _MARK, None)
        if method is not None:
            setattr(holder, name, method)


def _validating(original: Callable[..., None]) -> Callable[..., None]:
    """Check a request in the process that received it: a wrong one is answered at once."""
    signature = inspect.signature(original)

    def validate(*args: Any, **options: Any) -> None:
        given = signature.bind(*args, **options).arguments
        params = given["self"].structured_outputs
        ours = (
            params is not None
            and getattr(given["structured_outputs_config"], "backend", None) == "auto"
            and (not params._backend or params._backend_was_auto)
            and not getattr(given["model_config"], "is_diffusion", False)
            and given["tokenizer"] is not None
        )
        if not ours:
            original(*args, **options)
            return
        from tokfold.vllm.backend import check_request

        check_request(params)
        params._backend, params._backend_was_auto = NAME, True

    return validate


def _choosing(original: Callable[..., None]) -> Callable[..., None]:
    """Make the backend before vLLM looks for it."""
    signature = inspect.signature(original)

    def grammar_init(*args: Any, **options: Any) -> None:
        given = signature.bind(*args, **options).arguments
        manager, request = given["self"], given["request"]
        params = getattr(request.sampling_params, "structured_outputs", None)
        if request.structured_output_request is not None and params is not None:
            # A frontend without the plugin chooses among vLLM's own.
            free = getattr(manager, "backend_name", None) in (None, NAME)
            if params._backend_was_auto and free:
                params._backend = NAME
            if params._backend == NAME and manager.backend is None:
                from tokfold.vllm.backend import TokfoldBackend

                manager.backend = TokfoldBackend(
                    manager.vllm_config,
                    tokenizer=manager.tokenizer,
                    vocab_size=manager.vllm_config.model_config.get_vocab_size(),
                )
                manager.backend_name = NAME
        original(*args, **options)
        if getattr(manager.backend, "ends_in_time", False) and params is not None:
            from tokfold.vllm.backend import end_in_time

            end_in_time(request)

    return grammar_init
