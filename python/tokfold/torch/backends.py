"""Which kernel writes masks onto logits: our own on the CPU, Triton's on a GPU, or plain torch."""

from __future__ import annotations

import importlib
import os
import warnings
from functools import cache
from types import ModuleType
from typing import Literal, TypeAlias, get_args

import torch

from tokfold._extras import require
from tokfold._quoting import quoted
from tokfold.errors import FallbackWarning

__all__ = ["Backend", "chosen_backend", "kernels_of"]

Backend: TypeAlias = Literal["auto", "cpu", "triton", "torch"]

_BACKENDS = get_args(Backend)


def chosen_backend(backend: Backend, device: torch.device) -> Backend:
    """The kernel for a device, where the caller leaves it open."""
    if not isinstance(backend, str) or backend not in _BACKENDS:
        raise ValueError(
            f'backend must be "auto", "cpu", "triton" or "torch", not {quoted(backend)}'
        )
    if backend == "auto":
        if device.type == "cpu":
            return "cpu"
        return "triton" if device.type == "cuda" and _has_triton() else "torch"
    if backend == "cpu" and device.type != "cpu":
        raise ValueError(f'backend="cpu" cannot write logits on {device}')
    if backend == "triton":
        require("triton", "torch", 'backend="triton"')
        if device.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
            raise ValueError(
                'backend="triton" writes logits on a GPU, and these are on cpu (there it runs in '
                "Triton's interpreter only: TRITON_INTERPRET=1)"
            )
    return backend


def kernels_of(backend: Backend) -> ModuleType:
    """The module with the functions of a backend, other than our own on the CPU."""
    name = "kernels" if backend == "triton" else "plain"
    return importlib.import_module(f"tokfold.torch.{name}")


@cache
def _has_triton() -> bool:
    try:
        import triton  # noqa: F401
    except ImportError:
        warnings.warn(
            "Triton is not installed: plain torch applies the masks, in more passes",
            FallbackWarning,
            stacklevel=4,
        )
        return False
    return True
