"""What is checked of arguments: an error names the argument, what it must be and what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokfold.errors import ArgumentTypeError

if TYPE_CHECKING:
    from tokfold.limits import Limits
    from tokfold.vocabulary import Vocabulary

__all__ = ["bitmask_error", "check_limits", "check_vocabulary", "wrong_type"]


def wrong_type(name: str, wanted: str, value: object) -> ArgumentTypeError:
    """The error for an argument of a wrong type."""
    return ArgumentTypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def check_vocabulary(vocabulary: Vocabulary) -> None:
    """Refuse what is no vocabulary.

    Raises:
        ArgumentTypeError: it is none.
    """
    from tokfold.vocabulary import Vocabulary

    if isinstance(vocabulary, Vocabulary):
        return
    error = wrong_type("vocabulary", "a tokfold.Vocabulary", vocabulary)
    if hasattr(vocabulary, "get_vocab") or hasattr(vocabulary, "convert_ids_to_tokens"):
        error = ArgumentTypeError(f"{error}; pass Vocabulary.from_huggingface(tokenizer)")
    elif isinstance(vocabulary, str):
        error = ArgumentTypeError(f"{error}; pass Vocabulary.from_file(path)")
    raise error


def check_limits(limits: Limits | None) -> None:
    """Refuse what are no limits.

    Raises:
        ArgumentTypeError: they are none.
    """
    from tokfold.limits import Limits

    if limits is not None and not isinstance(limits, Limits):
        raise wrong_type("limits", "tokfold.Limits or None", limits)


def bitmask_error(bitmask: object, error: TypeError) -> ArgumentTypeError:
    """The error for a bitmask that is no array of numpy, from that of the core."""
    if type(bitmask).__module__.partition(".")[0] != "torch":
        return ArgumentTypeError(str(error))
    device = getattr(bitmask, "device", "cpu")
    dtype = getattr(bitmask, "dtype", "")
    if str(device) != "cpu":
        what = f"is on {device}; masks are written on the CPU: pass a tensor there as "
    elif str(dtype) != "torch.int32":
        what = f"has the dtype {dtype}; pass one of torch.int32 as "
    else:
        what = "shares its memory with numpy: pass "
    return ArgumentTypeError(
        "the bitmask must be a numpy array of dtype int32, not a torch.Tensor. This tensor "
        f"{what}tensor.numpy()"
    )
