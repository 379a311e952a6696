"""The cache folder: found again, made once, safe under threads, processes, crashes, full disks."""

from __future__ import annotations

import errno
import mmap
import os
import pickle
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from support import processes
from support.forks import exit_code
from support.processes import DEADLINE_S
from support.script_runner import child, output
from tokfold import CacheWarning, _artifact, _cache
from tokfold._cache import ArtifactCache
from tokfold.errors import ArtifactError

KEY = "ab" * 16
KIND = "token-classes"

pytestmark = pytest.mark.filterwarnings("error")


class Maker:
    """Makes ``{"value": n}`` and counts how often."""

    def __init__(self, value: int = 7, size: int = 4) -> None:
        self.calls = 0
        self.value, self.size = value, size

    def __call__(self):
        self.calls += 1
        array = np.full(self.size, self.value, np.int32)
        return {"value": self.value, "of": "g1"}, {"a": array}


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def in_threads(count: int, work) -> list:
    """Run ``work(i)`` in threads that start together; results or exceptions, by ``i``."""
    results: list = [None] * count
    barrier = threading.Barrier(count)

    def run(i: int) -> None:
        barrier.wait(DEADLINE_S)
        try:
            results[i] = work(i)
        except BaseException as error:
            results[i] = error

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
        assert not thread.is_alive(), "a thread waits for ever"
    return results


# Found again


def test_made_once_and_found_again(tmp_path):
    make = Maker()
    first = ArtifactCache(tmp_path / "c").get_or_make(KEY, KIND, make)
    second = ArtifactCache(str(tmp_path / "c")).get_or_make(KEY, KIND, make)
    assert make.calls == 1
    assert names(tmp_path / "c") == [f"{KIND}-{KEY}.v1.tokfold"]
    for artifact in (first, second):
        assert artifact.header == {"value": 7, "of": "g1"}
        assert artifact.arrays["a"].tolist() == [7] * 4
        assert not artifact.arrays["a"].flags.writeable
    assert isinstance(second.arrays["a"].base, mmap.mmap)


def test_keys_and_kinds_are_apart(tmp_path):
    cache = ArtifactCache(tmp_path)
    for key, kind, value in [(KEY, KIND, 1), (KEY, "pool", 2), ("cd" * 16, KIND, 3)]:
        cache.get_or_make(key, kind, Maker(value))
    assert cache.get_or_make(KEY, KIND, Maker(9)).header["value"] == 1
    assert cache.get_or_make(KEY, "pool", Maker(9)).header["value"] == 2
    assert cache.get_or_make("cd" * 16, KIND, Maker(9)).header["value"] == 3


@pytest.mark.parametrize(
    "key", ["", "ab", "AB" * 16, "../" + KEY, KEY + "/x", KEY + "\n", "é" * 32]
)
def test_malformed_keys(tmp_path, key):
    with pytest.raises(ValueError, match="key must match"):
        ArtifactCache(tmp_path).get_or_make(key, KIND, Maker())


def test_malformed_kinds(tmp_path):
    with pytest.raises(ValueError, match="kind must match"):
        ArtifactCache(tmp_path).path_of(KEY, "../x")


def test_a_changed_header_changes_nobody_elses(tmp_path):
    cache = ArtifactCache(tmp_path)
    cache.get_or_make(KEY, KIND, Maker()).header["value"] = 0
    assert cache.get_or_make(KEY, KIND, Maker()).header["value"] == 7


@pytest.mark.skipif(os.name != "posix", reason="no POSIX permissions here")
def test_the_folder_is_the_owners_alone(tmp_path):
    ArtifactCache(tmp_path / "p" / "c").get_or_make(KEY, KIND, Maker())
    assert (tmp_path / "p" / "c").stat().st_mode & 0o077 == 0


def test_a_cache_can_be_sent_to_another_process(tmp_path):
    cache = pickle.loads(pickle.dumps(ArtifactCache(tmp_path)))
    assert cache.folder == str(tmp_path)
    assert str(tmp_path) in repr(cache)


# Damage


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "kind", "symlink"])
def test_a_damaged_entry_is_named_and_made_again(tmp_path, damage):
    cache = ArtifactCache(tmp_path / "c")
    cache.get_or_make(KEY, KIND, Maker(1))
    path = Path(cache.path_of(KEY, KIND))
    data = path.read_bytes()
    target = tmp_path / "target"
    if damage == "cut":
        path.write_bytes(data[:-9])
    elif damage == "flip":
        path.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    elif damage == "empty":
        path.write_bytes(b"")
    elif damage == "kind":
        _artifact.write(path, "pool", {}, {})
    elif os.name == "posix":
        path.rename(target)
        path.symlink_to(target)
    else:
        pytest.skip("symbolic links need rights here")
    with pytest.warns(CacheWarning) as caught:
        assert cache.get_or_make(KEY, KIND, Maker(2)).header["value"] == 2
    assert len(caught) == 1
    assert str(path) in str(caught[0].message)
    assert cache.get_or_make(KEY, KIND, Maker(3)).header["value"] == 2
    assert not path.is_symlink()
    if damage == "symlink":
        assert target.read_bytes() == data


def test_a_damaged_entry_goes_even_if_making_it_again_fails(tmp_path):
    cache = ArtifactCache(tmp_path)
    Path(cache.path_of(KEY, KIND)).write_bytes(b"?")
    with pytest.warns(CacheWarning), pytest.raises(ZeroDivisionError):
        cache.get_or_make(KEY, KIND, lambda: 1 // 0)
    assert names(tmp_path) == []


def test_an_entry_made_for_something_else_is_made_again(tmp_path):
    cache = ArtifactCache(tmp_path)
    cache.get_or_make(KEY, KIND, Maker(1))
    make = Maker(2)
    assert cache.get_or_make(KEY, KIND, make, expect={"of": "g1"}).header["value"] == 1
    _artifact.write(cache.path_of(KEY, KIND), KIND, {"of": "g2"}, {})
    with pytest.warns(CacheWarning, match="made for something else: of is 'g2', not 'g1'"):
        assert cache.get_or_make(KEY, KIND, make, expect={"of": "g1"}).header["value"] == 2
    assert make.calls == 1


def test_what_was_made_must_be_what_was_expected(tmp_path):
    cache = ArtifactCache(tmp_path)
    for expect in ({"of": "g2"}, {"no": "entry"}):
        with pytest.raises(ValueError, match="not the one asked for"):
            cache.get_or_make(KEY, KIND, Maker(), expect=expect)
    assert names(tmp_path) == []


def test_an_entry_that_cannot_be_opened_just_now_is_kept(tmp_path, monkeypatch):
    cache = ArtifactCache(tmp_path)
    cache.get_or_make(KEY, KIND, Maker(1))

    def refused(*_args, **_kwargs):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("builtins.open", refused)
    with pytest.warns(CacheWarning, match="Too many open files"):
        assert cache.get_or_make(KEY, KIND, Maker(2)).header["value"] == 2
    monkeypatch.undo()
    assert cache.get_or_make(KEY, KIND, Maker(3)).header["value"] == 1


# Folders that cannot be used


def test_a_file_is_no_cache(tmp_path):
    (tmp_path / "c").write_text("")
    with pytest.raises(ArtifactError, match="not a folder"):
        ArtifactCache(tmp_path / "c")


def unusable_folders(tmp_path: Path) -> list[Path]:
    (tmp_path / "file").write_text("")
    folders = [tmp_path / "file" / "c"]  # neither root can write there
    if Path("/proc/self").exists():
        folders.append(Path("/proc/tokfold-cache"))
    return folders


def test_an_unusable_folder_does_not_fail_the_request(tmp_path):
    for folder in unusable_folders(tmp_path):
        cache = ArtifactCache(folder)
        make = Maker()
        with pytest.warns(CacheWarning) as caught:
            artifacts = [cache.get_or_make(KEY, KIND, make) for _ in range(3)]
        for artifact in artifacts:
            assert artifact.arrays["a"].tolist() == [7] * 4
            assert not artifact.arrays["a"].flags.writeable
        assert make.calls == 3
        assert len(caught) == 1
        assert str(folder) in str(caught[0].message)


def test_a_full_disk_does_not_fail_the_request(tmp_path, monkeypatch):
    cache = ArtifactCache(tmp_path)

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(CacheWarning, match="No space left") as caught:
        artifacts = [cache.get_or_make(KEY, KIND, Maker()) for _ in range(3)]
    assert [artifact.header["value"] for artifact in artifacts] == [7] * 3
    assert len(caught) == 1
    assert names(tmp_path) == []
    monkeypatch.undo()
    cache.get_or_make(KEY, KIND, Maker())
    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(CacheWarning, match="No space left"):  # trouble after success is news
        cache.get_or_make("cd" * 16, KIND, Maker())


def test_a_folder_in_place_of_an_entry(tmp_path):
    cache = ArtifactCache(tmp_path)
    os.mkdir(cache.path_of(KEY, KIND))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert cache.get_or_make(KEY, KIND, Maker()).header["value"] == 7
    assert caught
    assert all(w.category is CacheWarning for w in caught)


# Threads


def test_one_maker_for_many_threads(tmp_path):
    making = Maker()
    caches = [ArtifactCache(tmp_path), ArtifactCache(tmp_path)]

    def make():
        time.sleep(0.05)
        return making()

    results = in_threads(16, lambda i: caches[i % 2].get_or_make(KEY, KIND, make))
    assert making.calls == 1
    assert [r.header["value"] for r in results] == [7] * 16
    assert len({id(r.header) for r in results}) == 16


def test_one_maker_even_if_nothing_can_be_stored(tmp_path):
    (tmp_path / "file").write_text("")
    cache = ArtifactCache(tmp_path / "file" / "c")
    cache._has_warned = True  # warnings are not the subject, and pytest.warns is not for threads
    making = Maker()

    def make():
        waiting = _cache._flights.by_path[cache.path_of(KEY, KIND)].done._cond._waiters
        processes.until(lambda: len(waiting) == 7)
        return making()

    results = in_threads(8, lambda _: cache.get_or_make(KEY, KIND, make))
    assert [r.header["value"] for r in results] == [7] * 8
    assert making.calls == 1


def test_other_keys_do_not_wait(tmp_path):
    cache = ArtifactCache(tmp_path)
    both = threading.Barrier(2)

    def make():
        both.wait(DEADLINE_S)  # passes only while both are being made
        return {}, {}

    results = in_threads(2, lambda i: cache.get_or_make(f"{i:032x}", KIND, make))
    assert [r.header for r in results] == [{}, {}]


@pytest.mark.parametrize("failure", [OSError("not of the cache"), KeyboardInterrupt()])
def test_a_makers_exception_is_its_own_and_others_try(tmp_path, failure):
    cache = ArtifactCache(tmp_path)
    calls = []

    def make():
        calls.append(threading.get_ident())
        time.sleep(0.05)
        if len(calls) == 1:
            raise failure
        return {"value": 7}, {}

    results = in_threads(6, lambda _: cache.get_or_make(KEY, KIND, make))
    assert [r for r in results if isinstance(r, BaseException)] == [failure]
    assert len(calls) == 2
    assert sum(not isinstance(r, BaseException) for r in results) == 5


def test_waiting_for_another_content_under_the_same_key(tmp_path):
    cache = ArtifactCache(tmp_path)
    making, waits = threading.Event(), threading.Event()

    def first():
        making.set()
        waits.wait(DEADLINE_S)
        return {"of": "g1"}, {}

    def work(i):
        if i == 0:
            return cache.get_or_make(KEY, KIND, first, expect={"of": "g1"})
        making.wait(DEADLINE_S)
        threading.Timer(0.1, waits.set).start()
        return cache.get_or_make(KEY, KIND, lambda: ({"of": "g2"}, {}), expect={"of": "g2"})

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CacheWarning)
        assert [r.header["of"] for r in in_threads(2, work)] == ["g1", "g2"]


def test_asking_for_an_entry_while_making_it(tmp_path):
    cache = ArtifactCache(tmp_path)
    with pytest.raises(RuntimeError, match="asked the cache for what it is making"):
        cache.get_or_make(KEY, KIND, lambda: cache.get_or_make(KEY, KIND, Maker()))
    assert cache.get_or_make(KEY, KIND, Maker()).header["value"] == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_its_parents_threads(tmp_path):
    cache = ArtifactCache(tmp_path)
    making, go_on = threading.Event(), threading.Event()

    def make():
        making.set()
        go_on.wait(DEADLINE_S)
        return {}, {}

    thread = threading.Thread(target=cache.get_or_make, args=(KEY, KIND, make), daemon=True)
    thread.start()
    making.wait(DEADLINE_S)
    code = exit_code(lambda: cache.get_or_make(KEY, KIND, Maker()).header["value"] == 7)
    go_on.set()
    thread.join(DEADLINE_S)
    assert code == 0


# Processes and crashes

WRITER = """
    import sys, time, warnings
    import numpy as np
    from tokfold._cache import ArtifactCache
    warnings.simplefilter("error")
    cache = ArtifactCache(sys.argv[1])
    def make(n):
        return {"n": n}, {"a": np.full(200_000 + n, n, np.int32)}
    print("ready", flush=True)
    sys.stdin.readline()
    for round in range(30):
        n = round % 10
        found = cache.get_or_make(f"{n:032x}", "pool", lambda: make(n))
        assert found.header == {"n": n}
        assert found.arrays["a"].shape == (200_000 + n,) and (found.arrays["a"] == n).all()
"""


@pytest.mark.skipif(os.name != "posix", reason="a mapped file cannot be replaced here")
def test_processes_that_write_at_once(tmp_path):
    children = [child(WRITER, tmp_path, stdin=processes.PIPE) for _ in range(6)]
    for process in children:
        assert process.line() == "ready"
    for process in children:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in children:
        assert output(process) == ""
    assert names(tmp_path) == [f"pool-{n:032x}.v1.tokfold" for n in range(10)]


def test_entries_past_the_bound_go_the_longest_unused_first(tmp_path, monkeypatch):
    make = lambda: ({"value": 1}, {"a": np.zeros(10_000, np.uint8)})  # noqa: E731
    keys = [f"{number:032x}" for number in range(8)]
    monkeypatch.setenv("TOKFOLD_MAX_CACHE_BYTES", "70000")
    cache = ArtifactCache(tmp_path)
    (tmp_path / "notes.txt").write_bytes(bytes(50_000))  # not ours
    for age, key in enumerate(keys[:6]):
        cache.get_or_make(key, KIND, make)
        os.utime(cache.path_of(key, KIND), (1e9 + age, 1e9 + age))
    assert len(names(tmp_path)) == 7
    cache.get_or_make(keys[0], KIND, Maker())  # found, and asked for just now
    cache.get_or_make(keys[6], KIND, make)
    kept = {key for key in keys if os.path.exists(cache.path_of(key, KIND))}
    assert kept == {keys[place] for place in (0, 3, 4, 5, 6)}  # three quarters of the bound
    assert (tmp_path / "notes.txt").exists()
    monkeypatch.setenv("TOKFOLD_MAX_CACHE_BYTES", "1")
    ArtifactCache(tmp_path).get_or_make(keys[7], KIND, make)  # it is kept, whatever it takes
    assert set(names(tmp_path)) == {f"{KIND}-{keys[7]}.v1.tokfold", "notes.txt"}
    monkeypatch.setenv("TOKFOLD_MAX_CACHE_BYTES", "much")
    with pytest.raises(ValueError, match="TOKFOLD_MAX_CACHE_BYTES must be a number of bytes"):
        ArtifactCache(tmp_path)


CRASH = """
    import os, sys
    import numpy as np
    from tokfold._cache import ArtifactCache
    os.fsync = lambda _: os._exit(9)
    make = lambda: ({}, {"a": np.zeros(9_000_000, np.uint8)})
    ArtifactCache(sys.argv[1]).get_or_make(sys.argv[2], sys.argv[3], make)
"""


def test_a_crash_leaves_no_entry_and_is_swept_after_hours(tmp_path):
    process = child(CRASH, tmp_path, KEY, KIND)
    process.communicate(timeout=processes.DEADLINE_S)
    assert process.returncode == 9
    (aside,) = names(tmp_path)
    assert _artifact.ASIDE_NAME.fullmatch(aside)
    (tmp_path / ".tokfold-notes.part").write_text("not ours")
    os.utime(tmp_path / ".tokfold-notes.part", (0, 0))

    ArtifactCache(tmp_path).get_or_make(KEY, KIND, Maker())
    assert aside in names(tmp_path)  # it may be another process, still writing

    long_ago = time.time() - 7 * 3600
    os.utime(tmp_path / aside, (long_ago, long_ago))
    ArtifactCache(tmp_path).get_or_make("cd" * 16, KIND, Maker())
    assert aside not in names(tmp_path)
    assert ".tokfold-notes.part" in names(tmp_path)
    assert len(names(tmp_path)) == 3
