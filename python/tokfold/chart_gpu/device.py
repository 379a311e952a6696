"""Which device there is, and errors that say what it lacks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from tokfold._extras import require
from tokfold.errors import DeviceError

__all__ = ["chosen_device", "on_device"]


def chosen_device(device: torch.device | str | int | None) -> torch.device:
    """The device that is asked for, or the one there is.

    Triton's interpreter (``TRITON_INTERPRET=1``) runs on the CPU.

    Raises:
        MissingExtraError: Triton is not installed.
        DeviceError: there is no such device, or none that Triton runs on.
    """
    require("triton", "torch", "tokfold.chart_gpu")
    is_interpreted = os.environ.get("TRITON_INTERPRET") == "1"
    if device is None:
        if is_interpreted:
            return torch.device("cpu")
        if not torch.cuda.is_available():
            raise DeviceError(
                "there is no GPU that torch can use: torch.cuda.is_available() is False",
                "missing",
            )
        return torch.device("cuda", torch.cuda.current_device())
    chosen = torch.device(device)
    if chosen.type == "cpu" and not is_interpreted:
        raise DeviceError(
            'charts on a device run on a GPU, not on "cpu" (there in Triton\'s interpreter only: '
            "TRITON_INTERPRET=1)",
            "missing",
        )
    with on_device(chosen, "nothing yet"):
        torch.empty(1, device=chosen)
    return chosen


@contextmanager
def on_device(device: torch.device | str | int, what: str) -> Iterator[None]:
    """What goes wrong with a device, as one error."""
    try:
        yield
    except torch.cuda.OutOfMemoryError as error:
        raise DeviceError(
            f"the memory of {device} is used up by {what}: make fewer rows, columns or nodes "
            f"({str(error).splitlines()[0]})",
            "memory",
        ) from error
    except (RuntimeError, AssertionError) as error:
        # Torch without CUDA, or a number of a device that is not there.
        raise DeviceError(
            f"the device {device} cannot be used: {str(error).splitlines()[0]}", "missing"
        ) from error
