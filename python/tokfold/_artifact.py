r"""The format of every file that tokfold saves: a JSON header and numpy arrays.

One file holds one artefact of one *kind* (``"token-classes"``, a mask store, ...). All numbers
are little-endian, on every platform::

    offset  bytes
         0      8  magic, b"\x93tokfold"
         8      4  format version
        12      4  H, length of the JSON header
        16      8  length of the whole file
        24      H  canonical JSON (ASCII, sorted keys, no white space):
                   {"arrays": [{"dtype", "name", "nbytes", "offset", "shape"}, ...],
                    "header": {...}, "kind": "..."}
         B      -  the arrays, C order, each at the next multiple of 64; B itself is the first
                   multiple of 64 after the header, and offsets count from B
    last 32        BLAKE2b-256 of everything before it

Magic and version keep their place in all versions. Arrays stand in the order of their names, and
nothing depends on time, machine or Python version: equal content, equal bytes.

**Trust.** Reading is safe on a file from a stranger: nothing is executed, and every length is
checked against the true size of the file before it is used. The checksum finds damage; it is no
signature, so whether the content is *right* is for the caller to decide. A memory-mapped file
must be replaced, never edited or cut short in place: on most systems, touching a page that is
gone kills the process. :func:`write` replaces. Where others edit in place, use ``mmap=False``.

**Cost.** The checksum reads the whole file on every load: 1.2 ms for 1 MB, 0.11 s for 100 MB on a
server core. (SHA-256 is as fast only where the processor has instructions for it.)
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap as mapping
import os
import re
import secrets
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tokfold._checks import missing_file, wrong_type
from tokfold._quoting import named, quoted
from tokfold.errors import ArtifactError

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None

FORMAT_VERSION = 1
MAX_HEADER_BYTES = 1 << 20
MAX_HEADER_DEPTH = 64
ASIDE_NAME = re.compile(r"\.tokfold-[0-9a-f]{32}\.part")  # what an interrupted write leaves

_MAGIC = b"\x93tokfold"
_PREFIX = struct.Struct("<8sIIQ")
_DIGEST_BYTES = 32
_ALIGNMENT = 64
_CHUNK = 1 << 22
_MAX_DIMENSIONS = 32
_MAX_ARRAY_BYTES = (1 << 62) - 1
# No bool: bytes other than 0 and 1 in a bool array are undefined behaviour in numpy.
_DTYPES = frozenset({"|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8"})
_KIND = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
StrPath: TypeAlias = str | os.PathLike[str]
AnyArray: TypeAlias = npt.NDArray[Any]
_Spec: TypeAlias = tuple[str, str, tuple[int, ...]]  # name, dtype, shape of an array


class _FlawError(Exception):
    """What is wrong with a file, without its name."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a file holds.

    Attributes:
        header: the caller's own entries.
        arrays: read-only arrays by name, little-endian.

    """

    header: dict[str, Any]
    arrays: dict[str, AnyArray]


@dataclass(frozen=True, slots=True)
class Encoded:
    """An artefact laid out for writing; made by :func:`encode`.

    Attributes:
        artifact: what :func:`read` would return after :meth:`write`, without a copy of the arrays.
        total_bytes: size of the file.

    """

    artifact: Artifact
    total_bytes: int
    _head: bytes

    def write(self, path: StrPath) -> None:
        """Write the file, all of it or nothing: see :func:`write`."""
        destination = _name_of(path)
        _check_regular(destination)
        folder = os.path.dirname(destination) or os.curdir
        aside = os.path.join(folder, f".tokfold-{secrets.token_hex(16)}.part")
        try:
            self._write_aside(aside)
            os.replace(aside, destination)
        except BaseException as error:  # KeyboardInterrupt too must leave nothing behind
            with contextlib.suppress(OSError):
                os.unlink(aside)
            if not isinstance(error, OSError | ValueError):  # the latter: no file has such a name
                raise
            reason = getattr(error, "strerror", None) or error
            raise ArtifactError(
                f"{named(destination)}: cannot be written: {reason}. What stood there is "
                "untouched; save to an existing folder that you may write to and that has space"
            ) from error
        _sync_folder(folder)

    def _write_aside(self, aside: str) -> None:
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        with open(aside, "xb") as file:
            for chunk in self._chunks():
                digest.update(chunk)
                file.write(chunk)
            file.write(digest.digest())
            file.flush()
            os.fsync(file.fileno())

    def _chunks(self) -> Iterator[memoryview]:
        yield memoryview(self._head)
        position = 0
        for array in self.artifact.arrays.values():
            yield memoryview(bytes(-position % _ALIGNMENT))
            raw = array.reshape(-1).view(np.uint8)
            for start in range(0, raw.size, _CHUNK):
                yield raw[start : start + _CHUNK].data
            position = _aligned(position) + raw.size


def encode(kind: str, header: Mapping[str, JSON], arrays: Mapping[str, AnyArray]) -> Encoded:
    """Check and lay out an artefact; parameters and errors as in :func:`write`."""
    check_kind(kind)
    plain_header = _plain(header, MAX_HEADER_DEPTH)
    if not isinstance(plain_header, dict):
        raise TypeError(f"the header must be a mapping, not {type(header).__name__}")
    stored = {name: _storable(name, arrays[name]) for name in sorted(arrays)}
    entries, end = _layout([(name, a.dtype.str, a.shape) for name, a in stored.items()])
    text = _canonical({"arrays": entries, "header": plain_header, "kind": kind})
    if len(text) > MAX_HEADER_BYTES:
        message = f"the header takes {len(text)} bytes as JSON, allowed are {MAX_HEADER_BYTES}"
        raise ValueError(f"{message}; large content belongs in an array")
    begin = _aligned(_PREFIX.size + len(text))
    total = begin + end + _DIGEST_BYTES
    head = _PREFIX.pack(_MAGIC, FORMAT_VERSION, len(text), total) + text
    return Encoded(Artifact(plain_header, stored), total, head.ljust(begin, b"\0"))


def _name_of(path: object) -> str:
    if not isinstance(path, str | os.PathLike):
        raise wrong_type("path", "a str or a path", path)
    return os.fsdecode(path)


def _check_regular(path: str) -> None:
    """Refuse to take the place of a device, a pipe or a socket, or of a link to one."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return  # nothing stands there; writing says what else is wrong
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise ArtifactError(
            f"{path}: is no regular file, and saving would replace it: save to a file"
        )


def write(
    path: StrPath, kind: str, header: Mapping[str, JSON], arrays: Mapping[str, AnyArray]
) -> None:
    """Write an artefact, all of it or nothing.

    The bytes go to a new file beside ``path``, reach the disk, and only then take the place of
    what stood at ``path``; whoever has the old file open or mapped keeps it. A crash leaves at
    most a file whose name matches :data:`ASIDE_NAME`.

    Args:
        path: the file; its folder must exist. A symbolic link is replaced, not followed; a device,
            a pipe or a socket is left alone, and so is a link to one.
        kind: what the artefact is: lower-case letters, digits and hyphens.
        header: JSON values, at most 64 levels and 1 MiB of text. Tuples come back as lists.
        arrays: arrays of integers or floats of fixed width; anything else is refused.

    Raises:
        ArtifactError: the file cannot be written; its cause is the ``OSError``. Or it is no regular
            file.
        TypeError: a header entry or an array is of a type that the format does not hold.
        ValueError: ``kind`` is malformed; the header is too long or too deep, or holds NaN.

    """
    encode(kind, header, arrays).write(path)


def read(path: StrPath, kind: str, *, mmap: bool = True, follow_symlinks: bool = True) -> Artifact:
    """Read an artefact, after checking all of it.

    Args:
        path: the file.
        kind: the kind that it must be of.
        mmap: map the file into memory, so that processes share its pages and nothing is copied.
            A file system that cannot map is read instead.
        follow_symlinks: whether ``path`` itself may be a symbolic link.

    Raises:
        MissingFileError: there is no such file; it is a ``FileNotFoundError`` too.
        ArtifactError: the file cannot be read, is no artefact, is damaged, or is of another
            format version or kind.

    """
    check_kind(kind)
    name = _name_of(path)
    try:
        contents, header_bytes = _contents(name, mmap, follow_symlinks)
        _check_digest(contents)
        return _parsed(contents, header_bytes, kind)
    except _FlawError as flaw:
        message = f"{name}: {flaw}. Compile it again and replace the file"
        raise ArtifactError(message) from flaw.__cause__
    except (OSError, ValueError) as error:
        if not isinstance(error, OSError) or isinstance(error, FileNotFoundError):
            raise missing_file(name, error) from error
        message = (
            f"{named(name)}: cannot be read: {error.strerror or error}. Check path and permissions"
        )
        raise ArtifactError(f"{message}, or compile it again and save it elsewhere") from error


def check_kind(kind: str) -> None:
    """Refuse a malformed kind."""
    if not _KIND.fullmatch(kind):
        raise ValueError(f"kind must match {_KIND.pattern}, not {quoted(kind)}")


def _aligned(position: int) -> int:
    return position + -position % _ALIGNMENT


def _canonical(document: object) -> bytes:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _plain(value: object, depth: int) -> Any:  # noqa: ANN401 - JSON
    """Copy a JSON value into dicts and lists, so that writing and reading give equal headers."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if depth == 0:
        raise ValueError(f"the header is nested more than {MAX_HEADER_DEPTH} levels deep")
    if isinstance(value, Mapping):
        # json.dumps would turn 1 and "1" into the same key.
        if odd := [key for key in value if not isinstance(key, str)]:
            raise TypeError(f"header keys must be str, not {type(odd[0]).__name__}")
        return {key: _plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth - 1) for item in value]
    raise TypeError(f"{type(value).__name__} is no JSON value and cannot stand in a header")


def _storable(name: object, array: object) -> AnyArray:
    """Give the array as it is stored: little-endian, C order, read-only; a copy only if needed."""
    if not isinstance(name, str):
        raise TypeError(f"names of arrays must be str, not {type(name).__name__}")
    if not isinstance(array, np.ndarray):
        raise TypeError(f"array {quoted(name)} must be a numpy array, not {type(array).__name__}")
    dtype = array.dtype.newbyteorder("<")
    if dtype.str not in _DTYPES or array.ndim > _MAX_DIMENSIONS:
        raise TypeError(
            f"array {quoted(name)} has dtype {array.dtype} and {array.ndim} dimensions; possible "
            f"are integers (uint8 for bool), float32, float64, and {_MAX_DIMENSIONS} dimensions"
        )
    stored = np.asarray(array, dtype=dtype, order="C").view()
    stored.flags.writeable = False
    return stored


def _layout(specs: Sequence[_Spec]) -> tuple[list[JSON], int]:
    """Give the one layout of these arrays, and where it ends; counted from the first array."""
    entries: list[JSON] = []
    end = 0
    for name, dtype, shape in specs:
        offset = _aligned(end)
        nbytes = math.prod(shape) * np.dtype(dtype).itemsize
        entries.append(
            {"name": name, "dtype": dtype, "shape": shape, "offset": offset, "nbytes": nbytes}
        )
        end = offset + nbytes
    return entries, end


def _sync_folder(folder: str) -> None:
    """Bring the new name to the disk, where the system can; the content is there already."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)  # Windows opens no folders
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _contents(name: str, use_mmap: bool, follow_symlinks: bool) -> tuple[memoryview, int]:
    """Return the whole file, its prefix checked against its true size, and the header's length."""
    if not follow_symlinks and os.path.islink(name):
        raise _FlawError("a symbolic link, which is not followed here")
    # Without O_NONBLOCK a FIFO in place of the file would block for ever.
    extra = getattr(os, "O_NONBLOCK", 0) | (0 if follow_symlinks else getattr(os, "O_NOFOLLOW", 0))
    with open(name, "rb", buffering=0, opener=lambda p, flags: os.open(p, flags | extra)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise _FlawError("not a tokfold artefact: not a regular file")
        header_bytes = _check_prefix(file.read(_PREFIX.size), status.st_size)
        if use_mmap:
            # ValueError: the file has just been cut short; reading it below says so.
            with contextlib.suppress(OSError, ValueError):
                mapped = mapping.mmap(file.fileno(), status.st_size, access=mapping.ACCESS_READ)
                return memoryview(mapped), header_bytes
        file.seek(0)
        return _copied(file.readinto, status.st_size), header_bytes


def _copied(readinto: Any, size: int) -> memoryview:  # noqa: ANN401 - FileIO.readinto
    # Over-allocated by one alignment, so that arrays are aligned in memory as in a mapped file.
    buffer = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    start = -buffer.ctypes.data % _ALIGNMENT
    view = buffer[start : start + size].data
    position = 0
    while position < size:
        count = readinto(view[position : position + _CHUNK])
        if not count:
            raise _FlawError("damaged: it was cut short while it was read")
        position += count
    buffer.flags.writeable = False  # nor can a reader make its arrays writable again
    return view.toreadonly()


def _check_prefix(prefix: bytes, size: int) -> int:
    if not prefix or prefix[: len(_MAGIC)] != _MAGIC[: len(prefix)]:
        raise _FlawError("not a tokfold artefact")
    if len(prefix) < _PREFIX.size:
        raise _FlawError(f"damaged: cut short after {size} bytes")
    _, version, header_bytes, total = _PREFIX.unpack(prefix)
    if version != FORMAT_VERSION:
        raise _FlawError(f"in format version {version}; this tokfold reads {FORMAT_VERSION}")
    if total != size:
        raise _FlawError(f"damaged: it has {size} bytes and should have {total}")
    if header_bytes > MAX_HEADER_BYTES or _PREFIX.size + header_bytes + _DIGEST_BYTES > size:
        raise _FlawError(f"damaged: a header of {header_bytes} bytes is not possible")
    return int(header_bytes)


def _check_digest(contents: memoryview) -> None:
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    end = len(contents) - _DIGEST_BYTES
    for start in range(0, end, _CHUNK):  # in pieces, so that Ctrl-C is answered
        digest.update(contents[start : min(start + _CHUNK, end)])
    if digest.digest() != contents[end:]:
        raise _FlawError("damaged: the checksum does not match")


def _parsed(contents: memoryview, header_bytes: int, kind: str) -> Artifact:
    """Lay arrays over the file.

    The header must be, byte for byte, the one that :func:`encode` gives for the names, types and
    shapes that it claims. So no key comes twice, no array overlaps another, and nothing is
    allocated from a claimed length.
    """
    text = bytes(contents[_PREFIX.size : _PREFIX.size + header_bytes])
    try:
        document = json.loads(text.decode("ascii"))
        specs = [(e["name"], e["dtype"], tuple(e["shape"])) for e in document["arrays"]]
        _check_specs(specs)
        entries, end = _layout(specs)
        header = _plain(document["header"], MAX_HEADER_DEPTH)
        found = document["kind"]
        expected = _canonical({"arrays": entries, "header": header, "kind": found})
        if expected != text or not isinstance(header, dict) or not isinstance(found, str):
            raise ValueError("it is not as tokfold writes it")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise _FlawError(f"damaged: its header cannot be used ({error})") from error
    if found != kind:
        raise _FlawError(f"of the wrong kind: {quoted(found[:64])}, not {quoted(kind)}")
    begin = _aligned(_PREFIX.size + header_bytes)
    if begin + end + _DIGEST_BYTES != len(contents):
        raise _FlawError("damaged: its arrays do not fill the file")
    arrays = {}
    for (name, dtype, shape), entry in zip(specs, document["arrays"], strict=True):
        arrays[name] = np.ndarray(shape, dtype, contents, begin + entry["offset"])
    return Artifact(header, arrays)


def _check_specs(specs: Sequence[_Spec]) -> None:
    """Check claims of an unknown file about its arrays; messages quote at most 64 characters."""
    names = [name for name, _, _ in specs]
    if not all(isinstance(name, str) for name in names) or names != sorted(set(names)):
        raise ValueError("names of arrays are repeated or out of order")
    for name, dtype, shape in specs:
        if dtype not in _DTYPES:
            raise ValueError(f"array {quoted(name[:64])} has a dtype that is not allowed")
        # An empty dimension does not excuse the others: numpy cannot make (0, 2**62) either.
        if (
            len(shape) > _MAX_DIMENSIONS
            or not all(type(size) is int and size >= 0 for size in shape)
            or math.prod(max(size, 1) for size in shape) * 8 > _MAX_ARRAY_BYTES
        ):
            raise ValueError(f"array {quoted(name[:64])} has a shape that is not possible")
