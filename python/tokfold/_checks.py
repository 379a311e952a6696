"""What is checked of arguments: an error names the argument, what it must be and what it is."""

from __future__ import annotations

import errno
import operator
from collections.abc import Iterable, Sequence, Sized
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

from tokfold._quoting import named, quoted
from tokfold.errors import (
    ArgumentTypeError,
    MatcherStateError,
    MissingFileError,
    TokfoldError,
    VocabularyError,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

E = TypeVar("E", bound=TokfoldError)

ANY_NUMBER = 2**32 - 1
"""Of tokens, bytes or steps: more than a text can have."""


def wrong_type(name: str, wanted: str, value: object) -> ArgumentTypeError:
    """The error for an argument of a wrong type."""
    return ArgumentTypeError(f"{name} must be {wanted}, not {type(value).__name__}")


def missing_file(path: str, error: OSError | ValueError) -> MissingFileError:
    """The error for a file that is not there, or whose name no file can have."""
    if isinstance(error, ValueError):  # NUL, or half of a pair
        return MissingFileError(errno.ENOENT, f"No file has such a name ({error})", path)
    shown = named(path) if error.errno == errno.ENAMETOOLONG else path
    return MissingFileError(error.errno, error.strerror, shown)


def check_number(name: str, value: object, least: int, note: str = "") -> int:
    """The whole number, if it is not below the least; ``note`` stands behind it in an error."""
    number = whole_number(value)
    if number is None:
        raise ArgumentTypeError(
            f"{name} must be a whole number, not {type(value).__name__} ({quoted(value)}){note}"
        )
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {quoted(number)}{note}")
    return number


def whole_number(value: Any) -> int | None:  # noqa: ANN401 - whatever has an index
    """A whole number as an int; None for all else: truth values, and arrays of several numbers."""
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    try:
        number = operator.index(value)
    except TypeError:  # an array has the method, and refuses where it is not one number
        return None
    is_truth = type(value).__name__ == "Tensor" and str(value.dtype) == "torch.bool"
    return None if is_truth else number


def whole_numbers(name: str, values: Any) -> list[int]:  # noqa: ANN401
    """Whole numbers as a list."""
    listed = _items(name, "a list of whole numbers", values)
    if set(map(type, listed)) <= {int}:
        return listed
    numbers: list[int] = []
    for index, one in enumerate(listed):
        number = whole_number(one)
        if number is None:
            raise wrong_type(f"{name}[{index}]", "a whole number", one)
        numbers.append(number)
    return numbers


def _items(name: str, wanted: str, values: Any) -> list[Any]:  # noqa: ANN401
    """What is listed; an array of numpy without dimensions lists nothing."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise wrong_type(name, wanted, values)
    if getattr(values, "shape", None) == ():
        raise wrong_type(name, wanted, values)
    return list(values)


def is_one_of(value: object, texts: Iterable[str]) -> TypeGuard[str]:
    """Whether a value is one of some texts; what is no text is none, however it compares."""
    return isinstance(value, str) and value in texts


def utf8_of(text: str) -> bytes | None:
    """The UTF-8 of a text; None of one with a lone surrogate, which has none."""
    if not isinstance(text, str):
        raise wrong_type("text", "a str", text)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def checked_tokens(token_ids: Any, vocabulary: Sized) -> list[int]:  # noqa: ANN401
    """The ids of tokens, each as :func:`checked_token`."""
    listed = _items("token_ids", "a list of ids", token_ids)
    are_ints = set(map(type, listed)) == {int}  # as in most calls
    if are_ints and min(listed) >= 0 and max(listed) < len(vocabulary):
        return listed
    return [checked_token(token_id, vocabulary) for token_id in listed]


def checked_token(token_id: Any, vocabulary: Sized) -> int:  # noqa: ANN401
    """The id of a token, if the vocabulary has it."""
    number, size = whole_number(token_id), len(vocabulary)
    if number is None:
        raise wrong_type("a token", f"its id, a whole number{_how_found(token_id)}", token_id)
    if not 0 <= number < size:
        raise VocabularyError(
            f"token {quoted(number)} is outside the vocabulary of {size} tokens: pass ids from 0 "
            f"to {size - 1}"
        )
    return number


def _how_found(token: object) -> str:
    """How the id of a token is found by its text."""
    if not isinstance(token, str | bytes):
        return ""
    text = token.encode(errors="surrogatepass") if isinstance(token, str) else token
    return f" (vocabulary.token_bytes.index({quoted(text)}) finds it by its bytes)"


def of_row(error: E, row: int) -> E:
    """The error, which says now in which row of a batch it is; nothing else of it changes.

    The row takes the place of one that the error has already, of a batch of some rows.
    """
    said = str(error).removeprefix(f"row {error.row}: ")
    error.args = (f"row {row}: {said}", *error.args[1:])
    error.row = row
    return error


def shared(bitmask: object) -> npt.NDArray[np.int32] | None:
    """The memory of a torch tensor on the CPU as an array; None for all else."""
    if type(bitmask).__module__.partition(".")[0] != "torch":
        return None
    tensor: Any = bitmask
    if str(tensor.device) != "cpu" or str(tensor.dtype) != "torch.int32":
        return None
    array: npt.NDArray[np.int32] = tensor.detach().numpy()
    return array


def bitmask_error(bitmask: object, error: TypeError, row: object = 0) -> ArgumentTypeError:
    """The error for a bitmask that is no array of numpy, or a row, from that of the core."""
    if whole_number(row) is None:
        return wrong_type("row", "a whole number", row)
    if type(bitmask).__module__.partition(".")[0] != "torch":
        found = type(bitmask).__name__
        if hasattr(bitmask, "dtype") and hasattr(bitmask, "shape"):
            found = f"an array of {bitmask.dtype} and shape {bitmask.shape}"
        return ArgumentTypeError(f"{error}, not {found}: tokfold.allocate_bitmask makes one")
    device = getattr(bitmask, "device", "cpu")
    dtype = getattr(bitmask, "dtype", "")
    if str(device) != "cpu":
        what = f"is on {device}; masks are written on the CPU: pass a tensor there"
    else:
        what = f"has the dtype {dtype}; pass one of torch.int32"
    return ArgumentTypeError(
        "the bitmask must be a numpy array or a torch.Tensor of dtype int32 on the CPU. This "
        f"tensor {what}"
    )


def bitmask_row(bitmask: object, row: int, words: int) -> npt.NDArray[np.int32]:
    """A row of a bitmask, for matchers whose rows the core does not check."""
    import numpy as np

    tensor = shared(bitmask)
    array = bitmask if tensor is None else tensor
    if not isinstance(array, np.ndarray) or array.dtype != np.int32:
        raise bitmask_error(bitmask, TypeError("the bitmask must be a numpy array of dtype int32"))
    if not array.flags.c_contiguous or array.ndim not in (1, 2):
        raise ValueError("the bitmask must be C-contiguous, of one or two dimensions")
    if not array.flags.writeable:
        raise ValueError("the bitmask cannot be written: it is read-only")
    if array.shape[-1] != words:
        raise ValueError(f"the bitmask has rows of {array.shape[-1]} words, not {words}")
    if whole_number(row) is None:
        raise wrong_type("row", "a whole number", row)
    rows = array.reshape(-1, words)
    if not 0 <= row < len(rows):
        raise ValueError(f"the bitmask has {len(rows)} rows, not one of index {quoted(row)}")
    chosen: npt.NDArray[np.int32] = rows[row]
    return chosen


def checked_count(number: Any, name: str) -> int:  # noqa: ANN401 - whatever has an index
    """A number for the core, where more than it counts are as good as no bound."""
    found = whole_number(number)
    if found is None:
        raise wrong_type(name, "a whole number", number)
    if found < 0:
        raise ValueError(f"{name} must be 0 or more, not {quoted(found)}")
    return min(found, ANY_NUMBER)


def checked_stops(stop_token_ids: object, vocabulary: Sized) -> list[int] | None:
    """Stop tokens in place of the vocabulary's, or None; errors as :func:`checked_token`."""
    if stop_token_ids is None:
        return None
    if whole_number(stop_token_ids) is not None:
        stop_token_ids = [stop_token_ids]
    if isinstance(stop_token_ids, str | bytes) or not isinstance(stop_token_ids, Iterable):
        raise wrong_type("stop_token_ids", "a token id or a list of them", stop_token_ids)
    return checked_tokens(stop_token_ids, vocabulary)


def no_bytes(data: object, of_text: str = "pass a str to accept_string") -> ArgumentTypeError:
    """The error for what is not taken as bytes; ``of_text`` says what to do with a str."""
    hint = ""
    if isinstance(data, str):
        hint = f": {of_text}"
    elif isinstance(data, bytearray | memoryview):
        hint = ": pass bytes(data), which is a copy"
    return ArgumentTypeError(f"data must be bytes, not {type(data).__name__}{hint}")


def checked_parents(parents: Sequence[int]) -> list[int]:
    """The nodes before the nodes of a draft, each an earlier one, or -1."""
    nodes = whole_numbers("parents", parents)
    for index, node in enumerate(nodes):
        if node < -1:
            raise ValueError(
                f"parents[{index}] is {quoted(node)}: pass an earlier node, or -1 for the place of "
                "the matcher"
            )
        if node >= index:
            raise MatcherStateError(
                f"node {index} of the draft follows node {quoted(node)}, which does not stand "
                f"before it: parents[{index}] must be an earlier node, or -1 for the place of the "
                "matcher"
            )
    return nodes
