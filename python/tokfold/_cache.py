"""A folder of artefacts that are made once and found again by key.

**Names.** An entry is ``<kind>-<key>.v<format version>.tokfold``; the key is a hex digest of all
that the content depends on, chosen by the caller. Versions of tokfold share a folder in peace.

**Concurrency.** Entries appear by renaming, whole or not at all. Within a process one thread makes
an entry and the others wait for it; processes may make the same entry twice, which costs time and
nothing else. A process that is killed leaves at most an aside file, swept after some hours.

**Trouble.** A cache must not make a request fail: when an entry cannot be stored, its maker's
result is returned all the same, with a :class:`CacheWarning`. A damaged entry is named in a
warning, removed and made again.

**Size.** The entries of a folder take :data:`MOST_BYTES` at most, or what the variable
``TOKFOLD_MAX_CACHE_BYTES`` of the environment says. Where a new one takes them past it, those that
were not asked for the longest are removed, by the times of their files.

**Trust.** Entries are trusted as much as whoever can write to the folder: the checksum finds
damage, not forgery. So the folder is created for its owner alone, and entries that are symbolic
links are not followed. Do not point it at a folder that strangers can write to. ``expect`` guards
against a wrong key: header entries that must match.
"""

from __future__ import annotations

import contextlib
import copy
import errno
import os
import re
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from tokfold import _artifact
from tokfold._artifact import JSON, AnyArray, Artifact, Encoded
from tokfold._checks import wrong_type
from tokfold._quoting import encodable, quoted
from tokfold.errors import ArtifactError, CacheWarning

__all__ = ["ArtifactCache", "CacheWarning", "check_folder", "most_bytes", "usable_folder"]

Make: TypeAlias = Callable[[], tuple[Mapping[str, JSON], Mapping[str, AnyArray]]]
Check: TypeAlias = Callable[[Artifact, str], object]

_Folder: TypeAlias = "str | os.PathLike[str] | None"

_KEY = re.compile(r"[0-9a-f]{16,128}")
_ENTRY = re.compile(r"[^/]+-[0-9a-f]{16,128}\.v[0-9]+\.tokfold")
_STALE_SECONDS = 6 * 3600.0
MOST_BYTES = 1 << 30
"""Bytes of the entries of a folder: some 2,000 grammars over Llama 3."""
BYTES_VARIABLE = "TOKFOLD_MAX_CACHE_BYTES"
_KEPT = 0.75
"""How much of the bound is kept where entries are removed, so that this is rare."""


@dataclass
class _Flight:
    """One thread making one entry, and what those who wait for it get."""

    thread: int = field(default_factory=threading.get_ident)
    done: threading.Event = field(default_factory=threading.Event)
    artifact: Artifact | None = None


class _Flights:
    """Who makes what in this process, by path, so that caches on one folder share it."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.lock = threading.Lock()
        self.by_path: dict[str, _Flight] = {}

    @contextlib.contextmanager
    def join(self, path: str) -> Iterator[tuple[_Flight, bool]]:
        """Begin the flight for this path, or wait until the one under way has ended.

        Yields the flight, and ``True`` where it began.

        Raises:
            RuntimeError: this thread itself is making this entry.

        """
        own = _Flight()
        try:
            with self.lock:
                flight = self.by_path.setdefault(path, own)
            if flight is not own:
                if flight.thread == own.thread:
                    raise RuntimeError(f"make() asked the cache for what it is making: {path}")
                flight.done.wait()
            yield flight, flight is own
        finally:
            with self.lock:
                if self.by_path.get(path) is own:
                    del self.by_path[path]
            own.done.set()


_flights = _Flights()
if hasattr(os, "register_at_fork"):
    # A forked child has none of the threads that these flights wait for.
    os.register_at_fork(after_in_child=_flights.reset)


def _is_no_folder(folder: str | os.PathLike[str]) -> bool:
    return os.path.exists(folder) and not os.path.isdir(folder)


def check_folder(folder: str | os.PathLike[str] | None) -> None:
    """Refuse what can never be a cache folder, where it is named; None is no cache.

    Raises:
        ArgumentTypeError: it is no path.
        ValueError: it is empty, which would be the folder that the process is in; or it begins with
            ``~``, which would be the name of a folder there.
        ArtifactError: it is a file, or no folder can have its name.
    """
    if folder is None:
        return
    if not isinstance(folder, str | os.PathLike):
        raise wrong_type("cache_dir", "a path or None", folder)
    if not os.fspath(folder):
        raise ValueError("cache_dir is empty; pass a folder, or None for no cache")
    named = os.fsdecode(folder)
    if Path(named).parts[:1] == ("~",):
        raise ValueError(
            f"cache_dir={quoted(named)} would be a folder of the name '~' where the process is: "
            "pass os.path.expanduser(...) of it"
        )
    try:
        os.stat(named)
    except (OSError, ValueError) as error:
        if getattr(error, "errno", errno.ENAMETOOLONG) == errno.ENAMETOOLONG:
            raise ArtifactError(
                f"cache_dir={quoted(named)}: no folder can have this name: "
                f"{getattr(error, 'strerror', None) or error}; choose another path"
            ) from error
    if _is_no_folder(named):
        path = os.path.abspath(named)
        raise ArtifactError(f"{path}: not a folder, so it cannot be a cache; choose another path")


def most_bytes(environ: Mapping[str, str] = os.environ) -> int:
    """The bound on the entries of a folder, in bytes."""
    said = environ.get(BYTES_VARIABLE, "").strip()
    if said and not (said.isdecimal() and len(said) < 19):
        raise ValueError(f"{BYTES_VARIABLE} must be a number of bytes, not {quoted(said)}")
    return int(said) if said else MOST_BYTES


def usable_folder(folder: _Folder) -> _Folder:
    """The folder; None, and a warning, where a file has come in its place since it was named."""
    if folder is None or not _is_no_folder(folder):
        return folder
    _warn(f"{os.path.abspath(folder)} is no folder any more; nothing is kept there")
    return None


class ArtifactCache:
    """Artefacts in a folder, made when first asked for. Safe to share between threads.

    Args:
        folder: where entries are kept; created, for its owner alone, when the first is stored.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        check_folder(folder)
        self.folder = os.path.abspath(os.fsdecode(folder))
        self._most_bytes = most_bytes()
        self._has_warned = False

    def __repr__(self) -> str:
        return f"ArtifactCache({self.folder!r})"

    def path_of(self, key: str, kind: str) -> str:
        """Return where the entry is or would be."""
        _artifact.check_kind(kind)
        if not _KEY.fullmatch(key):
            raise ValueError(f"key must match {_KEY.pattern}, not {quoted(key)}")
        return os.path.join(self.folder, f"{kind}-{key}.v{_artifact.FORMAT_VERSION}.tokfold")

    def get_or_make(
        self,
        key: str,
        kind: str,
        make: Make,
        *,
        expect: Mapping[str, str] | None = None,
        check: Check | None = None,
    ) -> Artifact:
        """Return the entry, after making and storing it where there is none.

        Args:
            key: hex digest of all that the content depends on, ``kind`` aside.
            kind: as for :func:`tokfold._artifact.write`.
            make: returns header and arrays, and leaves the arrays unchanged from then on. Runs
                without any lock held; asking for the same entry in it is an error.
            expect: header entries that must have these values; an entry that differs counts as
                damaged.
            check: looks at an entry that is there, with its path; one at which it raises an
                ArtifactError counts as damaged.

        Raises:
            ValueError: ``key`` or ``kind`` is malformed, or what ``make`` returned contradicts
                ``expect`` or cannot be an artefact (then also ``TypeError``).
            Exception: whatever ``make`` raises. Threads that waited for it try themselves.

        """
        wanted = dict(expect or {})
        path = self.path_of(key, kind)
        while True:
            with contextlib.suppress(ArtifactError):  # whoever makes the entry reports it
                if (found := self._find(path, kind, wanted, check)) is not None:
                    return found
            with _flights.join(path) as (flight, is_maker):
                if is_maker:
                    flight.artifact = self._find_or_make(path, kind, make, wanted, check)
                    return _own_header(flight.artifact)
            made = flight.artifact
            if made is not None and not _contradiction(made, wanted):
                return _own_header(made)

    def _find(
        self, path: str, kind: str, wanted: Mapping[str, str], check: Check | None
    ) -> Artifact | None:
        """Read the entry, if there is one."""
        try:
            artifact = _artifact.read(path, kind, follow_symlinks=False)
        except FileNotFoundError:
            return None
        except ArtifactError as error:
            # Not readable just now (permissions, too many open files) is not damaged: keep it.
            if isinstance(error.__cause__, OSError):
                return None
            raise
        if contradiction := _contradiction(artifact, wanted):
            raise ArtifactError(f"{path}: made for something else: {contradiction}")
        if check is not None:
            check(artifact, path)
        with contextlib.suppress(OSError):
            os.utime(path)  # it was asked for
        return artifact

    def _find_or_make(
        self,
        path: str,
        kind: str,
        make: Make,
        wanted: Mapping[str, str],
        check: Check | None,
    ) -> Artifact:
        try:
            # Again: it may have been stored between the first look and the start of this flight.
            if (found := self._find(path, kind, wanted, check)) is not None:
                return found
        except ArtifactError as error:
            with contextlib.suppress(OSError):
                os.unlink(path)
            _warn(f"an entry of the cache is removed and made again: {error}")
        header, arrays = make()
        encoded = _artifact.encode(kind, header, arrays)
        if contradiction := _contradiction(encoded.artifact, wanted):
            raise ValueError(
                f"the {quoted(kind)} artefact just made is not the one asked for: {contradiction}"
            )
        self._store(path, encoded)
        return encoded.artifact

    def _store(self, path: str, encoded: Encoded) -> None:
        """Keep the entry if possible; say so once if not."""
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            encoded.write(path)
        except (OSError, ArtifactError) as error:
            if not self._has_warned:
                self._has_warned = True
                _warn(f"nothing can be stored in the cache {self.folder}: {error}")
            return
        self._has_warned = False
        with contextlib.suppress(OSError):
            self._sweep(path)

    def _sweep(self, stored: str) -> None:
        """Remove what writes left behind hours ago, and entries past the bound but ``stored``."""
        oldest = time.time() - _STALE_SECONDS
        kept: list[tuple[float, int, str]] = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                is_aside = _artifact.ASIDE_NAME.fullmatch(entry.name)
                if not is_aside and not _ENTRY.fullmatch(entry.name):
                    continue
                # Another process may remove it at any moment.
                with contextlib.suppress(OSError):
                    status = os.stat(entry.path, follow_symlinks=False)
                    if not is_aside:
                        kept.append((status.st_mtime, status.st_size, entry.path))
                    elif status.st_mtime < oldest:
                        os.unlink(entry.path)
        held = sum(size for _, size, _ in kept)
        if held <= self._most_bytes:
            return
        for _, size, path in sorted(kept):
            if held > self._most_bytes * _KEPT and path != stored:
                with contextlib.suppress(OSError):
                    os.unlink(path)
                    held -= size


def _own_header(artifact: Artifact) -> Artifact:
    """Give each caller a header to change; arrays are read-only and shared."""
    return Artifact(copy.deepcopy(artifact.header), dict(artifact.arrays))


def _contradiction(artifact: Artifact, wanted: Mapping[str, str]) -> str | None:
    for name, value in wanted.items():
        if (found := artifact.header.get(name)) != value:
            return f"{name} is {quoted(str(found)[:80])}, not {quoted(value)}"
    return None


def _warn(message: str) -> None:
    warnings.warn(encodable(message), CacheWarning, stacklevel=5)
