"""The artefact file format: round trips, determinism, damage, hostile files, failed writes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import mmap
import os
import stat
import struct
import sys
import textwrap
import tracemalloc
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
import tokfold
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support import processes
from tokfold import _artifact
from tokfold.errors import ArtifactError

KIND = "token-classes"
DTYPES = ["i1", "u1", "<i2", ">u2", "<i4", ">i4", "u4", "<i8", ">u8", "<f4", ">f8"]

in_tmp_path = settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100
)
headers = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)
array_maps = st.dictionaries(
    st.text(max_size=6),
    hnp.arrays(st.sampled_from(DTYPES).map(np.dtype), hnp.array_shapes(min_dims=0, min_side=0)),
    max_size=4,
)


def small_file(path: Path) -> bytes:
    arrays = {"a": np.arange(5, dtype=np.int32), "b": np.zeros((2, 0), np.uint8)}
    _artifact.write(path, KIND, {"grammar": "ab12"}, arrays)
    return path.read_bytes()


def sealed(data: bytes) -> bytes:
    return data + hashlib.blake2b(data, digest_size=32).digest()


def forged(path: Path, text: bytes, body: bytes = b"") -> None:
    """Write a file whose prefix and checksum are right, whatever its header claims."""
    begin = -(-(24 + len(text)) // 64) * 64
    prefix = struct.pack("<8sIIQ", b"\x93tokfold", 1, len(text), begin + len(body) + 32)
    path.write_bytes(sealed((prefix + text).ljust(begin, b"\0") + body))


def document(*entries: object, **more: object) -> bytes:
    whole = {"arrays": list(entries), "header": {}, "kind": KIND, **more}
    return json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()


def entry(**changes: object) -> dict[str, object]:
    good = {"dtype": "<i4", "name": "a", "nbytes": 8, "offset": 0, "shape": [2]}
    return {**good, **changes}


def in_child(body: str, *arguments: object) -> CompletedProcess[str]:
    """Run a script with another process's fate; ``tokfold`` is the one under test."""
    source = str(Path(tokfold.__file__).parent.parent)
    return processes.run(
        [sys.executable, "-c", textwrap.dedent(body), *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source},
    )


# Round trips and layout


@in_tmp_path
@given(header=headers, arrays=array_maps, mapped=st.booleans())
def test_what_is_written_is_read(tmp_path, header, arrays, mapped):
    path = tmp_path / "x"
    _artifact.write(path, KIND, header, arrays)
    artifact = _artifact.read(path, KIND, mmap=mapped)
    assert artifact.header == header
    assert list(artifact.arrays) == sorted(arrays)
    for name, array in arrays.items():
        found = artifact.arrays[name]
        assert found.dtype == array.dtype.newbyteorder("<")
        assert found.shape == array.shape
        assert found.tobytes() == array.astype(found.dtype).tobytes()
    assert _artifact.encode(KIND, header, arrays).total_bytes == path.stat().st_size


@in_tmp_path
@given(header=headers, arrays=array_maps)
def test_encoded_gives_what_reading_gives(tmp_path, header, arrays):
    encoded = _artifact.encode(KIND, header, arrays)
    encoded.write(tmp_path / "x")
    read = _artifact.read(tmp_path / "x", KIND)
    assert read.header == encoded.artifact.header
    assert list(read.arrays) == list(encoded.artifact.arrays)
    for name, array in encoded.artifact.arrays.items():
        assert not array.flags.writeable
        assert array.dtype == read.arrays[name].dtype
        assert array.tobytes() == read.arrays[name].tobytes()


def test_equal_content_gives_equal_bytes(tmp_path):
    table = np.arange(12, dtype="<i4").reshape(3, 4)
    one = {"t": table, "u": np.ones(3, np.uint8)}
    other = {"u": np.ones(6, np.uint8)[::2], "t": np.asfortranarray(table.astype(">i4"))}
    _artifact.write(tmp_path / "1", KIND, {"p": 1, "q": [2]}, one)
    _artifact.write(tmp_path / "2", KIND, {"q": (2,), "p": 1}, other)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_the_layout_is_the_documented_one(tmp_path):
    data = small_file(tmp_path / "x")
    b = {"dtype": "|u1", "name": "b", "nbytes": 0, "offset": 64, "shape": [2, 0]}
    text = document(entry(nbytes=20, shape=[5]), b, header={"grammar": "ab12"})
    body = np.arange(5, dtype="<i4").tobytes().ljust(64, b"\0")
    forged(tmp_path / "y", text, body)
    assert data == (tmp_path / "y").read_bytes()


def test_the_bytes_never_change(tmp_path):
    """Another digest means another format: raise FORMAT_VERSION, then change it here."""
    data = small_file(tmp_path / "x")
    assert hashlib.sha256(data).hexdigest() == (
        "e49442ac9e4a072eb940b8c9d240f60f077c2fcd44aaa807e0378f5410cda4c4"
    )


@pytest.mark.parametrize("mapped", [True, False])
def test_arrays_are_aligned_and_cannot_be_changed(tmp_path, mapped):
    arrays = {"a": np.arange(3, dtype=np.uint8), "b": np.arange(70, dtype=np.float64)}
    _artifact.write(tmp_path / "x", KIND, {}, arrays)
    for array in _artifact.read(tmp_path / "x", KIND, mmap=mapped).arrays.values():
        assert array.ctypes.data % 64 == 0
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
        assert isinstance(array.base, mmap.mmap) == mapped


def test_mapping_copies_nothing(tmp_path):
    _artifact.write(tmp_path / "x", KIND, {}, {"a": np.zeros(1 << 24, np.uint8)})
    tracemalloc.start()
    try:
        _artifact.read(tmp_path / "x", KIND)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_many_chunks(tmp_path):
    array = np.random.default_rng(0).integers(0, 256, (3 << 22) + 17, dtype=np.uint8)
    _artifact.write(tmp_path / "x", KIND, {}, {"a": array, "b": array[:5]})
    for mapped in (True, False):
        found = _artifact.read(tmp_path / "x", KIND, mmap=mapped).arrays
        assert np.array_equal(found["a"], array)
        assert np.array_equal(found["b"], array[:5])


@pytest.mark.skipif(os.name != "posix", reason="a mapped file cannot be replaced here")
def test_replacing_a_file_leaves_what_was_read_alone(tmp_path):
    path = tmp_path / "x"
    _artifact.write(path, KIND, {}, {"a": np.full(9, 1, np.int32)})
    before = _artifact.read(path, KIND)
    _artifact.write(path, KIND, {}, {"a": np.full(2, 7, np.int32)})
    assert before.arrays["a"].tolist() == [1] * 9
    assert _artifact.read(path, KIND).arrays["a"].tolist() == [7, 7]


# Damage


@pytest.mark.parametrize("mapped", [True, False])
def test_cut_short_anywhere(tmp_path, mapped):
    data = small_file(tmp_path / "x")
    for length in range(len(data)):
        (tmp_path / "x").write_bytes(data[:length])
        with pytest.raises(ArtifactError, match=r"x: (not a tokfold artefact|damaged).*again"):
            _artifact.read(tmp_path / "x", KIND, mmap=mapped)


def test_any_flipped_bit(tmp_path):
    data = small_file(tmp_path / "x")
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        (tmp_path / "x").write_bytes(changed)
        with pytest.raises(ArtifactError, match=r"not a tokfold|in format version|damaged"):
            _artifact.read(tmp_path / "x", KIND, mmap=bit % 2 == 0)


def test_bytes_at_the_end(tmp_path):
    data = small_file(tmp_path / "x")
    (tmp_path / "x").write_bytes(data + b"\0")
    with pytest.raises(ArtifactError, match="damaged: it has 353 bytes and should have 352"):
        _artifact.read(tmp_path / "x", KIND)


def test_cut_short_while_it_is_read(tmp_path, monkeypatch):
    data = small_file(tmp_path / "x")
    check = _artifact._check_prefix

    def check_then_cut(prefix, size):
        (tmp_path / "x").write_bytes(data[:100])
        return check(prefix, size)

    monkeypatch.setattr(_artifact, "_check_prefix", check_then_cut)
    for mapped in (True, False):
        (tmp_path / "x").write_bytes(data)
        with pytest.raises(ArtifactError, match="cut short while it was read"):
            _artifact.read(tmp_path / "x", KIND, mmap=mapped)


def test_other_version_and_other_kind_are_named(tmp_path):
    data = small_file(tmp_path / "x")
    with pytest.raises(ArtifactError, match="x: of the wrong kind: 'token-classes', not 'pool'"):
        _artifact.read(tmp_path / "x", "pool")
    (tmp_path / "x").write_bytes(sealed(data[:8] + b"\x07\0\0\0" + data[12:-32]))
    with pytest.raises(ArtifactError, match=r"in format version 7; this tokfold reads 1\. "):
        _artifact.read(tmp_path / "x", KIND)


@pytest.mark.parametrize("content", [b"", b"\x80\x04pickle", b"PK\3\4" * 99, bytes(500)])
def test_other_files(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ArtifactError, match="x: not a tokfold artefact"):
        _artifact.read(tmp_path / "x", KIND)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        _artifact.read(tmp_path / "x", KIND)
    with pytest.raises(ArtifactError, match=r"cannot be (read|written)|not a regular file"):
        _artifact.read(tmp_path, KIND)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
def test_a_fifo_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "x")
    with pytest.raises(ArtifactError, match="not a regular file"):
        _artifact.read(tmp_path / "x", KIND)


def test_a_file_system_that_cannot_map_is_read(tmp_path, monkeypatch):
    small_file(tmp_path / "x")

    def refused(*_args, **_kwargs):
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(_artifact.mapping, "mmap", refused)
    assert _artifact.read(tmp_path / "x", KIND).arrays["a"].tolist() == [0, 1, 2, 3, 4]


# Hostile files: the checksum is right, the content is not


def test_the_forgery_used_below_is_otherwise_right(tmp_path):
    forged(tmp_path / "x", document(entry()), np.array([3, 4], "<i4").tobytes())
    assert _artifact.read(tmp_path / "x", KIND).arrays["a"].tolist() == [3, 4]


TWO = [entry(), entry(name="b", offset=64)]
HOSTILE = {
    "claims 2^60 elements": document(entry(shape=[1 << 60], nbytes=1 << 62)),
    "claims 2^60 elements, few bytes": document(entry(shape=[1 << 60])),
    "claims 2^63 bytes": document(entry(shape=[1 << 61], nbytes=1 << 63)),
    "product wraps at 2^64": document(entry(shape=[1 << 32, 1 << 32], nbytes=0)),
    "integer of 4000 digits": document(entry(shape=[10**4000])),
    "empty, yet too large": document(entry(shape=[0, 1 << 62], nbytes=0)),
    "longer than the file": document(entry(shape=[3], nbytes=12)),
    "shorter than the file": document(entry(shape=[1], nbytes=4)),
    "negative dimension": document(entry(shape=[-2])),
    "two negative dimensions": document(entry(shape=[-1, -2])),
    "dimension true": document(entry(shape=[True, 2])),
    "dimension 2.0": document(entry(shape=[2.0])),
    "dimension text": document(entry(shape="2")),
    "shape is an object": document(entry(shape={})),
    "33 dimensions": document(entry(shape=[1] * 32 + [2])),
    "offset beyond the end": document(entry(offset=1 << 40)),
    "negative offset": document(entry(offset=-64)),
    "offset into the header": document(entry(offset=-8)),
    "offset true": document(entry(offset=False)),
    "unaligned offset": document(entry(offset=4)),
    "arrays overlap": document(entry(), entry(name="b")),
    "arrays overlap in part": document(entry(shape=[32], nbytes=128), TWO[1]),
    "names repeated": document(entry(), entry(offset=64)),
    "names out of order": document(entry(name="b"), entry(offset=64)),
    "name is a number": document(entry(name=1)),
    "no name": document({k: v for k, v in entry().items() if k != "name"}),
    "object dtype": document(entry(dtype="|O", nbytes=16)),
    "structured dtype": document(entry(dtype="i4,O", nbytes=24)),
    "dtype is a list": document(entry(dtype=[["a", "|O"]])),
    "big-endian": document(entry(dtype=">i4")),
    "not little-endian by name": document(entry(dtype="int32")),
    "more keys": document(entry(more=1)),
    "entry is no object": document([1, 2]),
    "arrays is an object": document(arrays={"a": 1}),
    "arrays is a number": document(arrays=3),
    "header is a list": document(entry(), header=[]),
    "kind is a number": document(entry(), kind=3),
    "no kind": b'{"arrays":[],"header":{}}',
    "more top keys": document(entry(), more=1),
    "a list at the top": b"[]",
    "nothing": b"",
    "not JSON": b"{",
    "not ASCII": document(entry()).replace(b'"a"', '"é"'.encode()),
    "white space": document(entry()).replace(b",", b", ", 1),
    "NaN": document(entry(), header={"x": float("nan")}),
    "number out of range": document(entry(), header={"x": 7}).replace(b"7", b"1e999"),
    "key repeated": document(entry(), header={"x": 1}).replace(b'"x":1', b'"x":1,"x":1'),
    "nested 300 levels": document(entry(), header={"x": 7}).replace(b"7", b"[" * 300 + b"]" * 300),
    "nested 400,000 levels": b"[" * 400_000,
    "400,000 objects": b'{"a":' * 200_000,
}


# Each header is tried with files of several sizes, so that the size alone does not give it away.
@pytest.mark.parametrize("size", [0, 8, 72, 136])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_headers(tmp_path, text, size):
    forged(tmp_path / "x", text, bytes(size))
    tracemalloc.start()
    try:
        with pytest.raises(ArtifactError, match="x: damaged: its") as caught:
            _artifact.read(tmp_path / "x", KIND)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 1000


def test_a_header_that_claims_to_be_long(tmp_path):
    forged(tmp_path / "x", b"[" * ((1 << 20) + 1))
    with pytest.raises(ArtifactError, match="a header of 1048577 bytes is not possible"):
        _artifact.read(tmp_path / "x", KIND)
    data = bytearray(small_file(tmp_path / "x"))
    data[12:16] = struct.pack("<I", len(data) - 24 - 31)
    (tmp_path / "x").write_bytes(sealed(bytes(data[:-32])))
    with pytest.raises(ArtifactError, match="is not possible"):
        _artifact.read(tmp_path / "x", KIND)


@in_tmp_path
@given(data=st.data())
def test_any_header_either_reads_or_is_refused(tmp_path, data):
    text = bytearray(document(*TWO, header={"x": [1, "y"]}))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from(
                [b"", b"0", b"-", b"9", b"[", b"]", b'"', b"{", b",", b"e", b"\\", b"1"]
            )
        )
    forged(tmp_path / "x", bytes(text), bytes(64 + 8))
    with contextlib.suppress(ArtifactError):
        _artifact.read(tmp_path / "x", KIND)


# Writing that fails


def remaining(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize(
    "failure",
    [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt(), MemoryError()],
)
def test_a_failed_write_leaves_all_as_it_was(tmp_path, monkeypatch, function, failure):
    before = small_file(tmp_path / "x")

    def fail(*_args):
        raise failure

    monkeypatch.setattr(os, function, fail)
    expected = ArtifactError if isinstance(failure, OSError) else type(failure)
    with pytest.raises(expected) as caught:
        _artifact.write(tmp_path / "x", KIND, {}, {"a": np.zeros(99, np.int32)})
    monkeypatch.undo()
    if isinstance(failure, OSError):
        assert caught.value.__cause__ is failure
        for part in (str(tmp_path / "x"), "No space left on device", "has space"):
            assert part in str(caught.value)
    assert remaining(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == before


@pytest.mark.skipif(sys.platform == "win32", reason="no file size limits here")
def test_a_disk_that_fills_up_half_way(tmp_path):
    before = small_file(tmp_path / "x")
    child = in_child(
        """
        import resource, sys
        import numpy as np
        from tokfold import _artifact
        from tokfold.errors import ArtifactError
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, 5_000_000))
        try:
            _artifact.write(sys.argv[1], "token-classes", {}, {"a": np.zeros(9_000_000, np.uint8)})
        except ArtifactError as error:
            print(error.__cause__.errno, error)
        """,
        tmp_path / "x",
    )
    assert child.stdout.startswith(f"{errno.EFBIG} {tmp_path / 'x'}: cannot be written"), child
    assert remaining(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == before


def test_a_crash_half_way_leaves_only_an_aside_file(tmp_path):
    before = small_file(tmp_path / "x")
    child = in_child(
        """
        import os, sys
        import numpy as np
        from tokfold import _artifact
        os.fsync = lambda _: os._exit(9)
        _artifact.write(sys.argv[1], "token-classes", {}, {"a": np.zeros(9_000_000, np.uint8)})
        """,
        tmp_path / "x",
    )
    assert child.returncode == 9, child
    aside, destination = remaining(tmp_path)
    assert _artifact.ASIDE_NAME.fullmatch(aside)
    assert destination == "x"
    assert (tmp_path / "x").read_bytes() == before


def test_no_folder(tmp_path):
    with pytest.raises(ArtifactError, match=r"No such file.*existing folder") as caught:
        _artifact.write(tmp_path / "no" / "x", KIND, {}, {})
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ArtifactError, match="cannot be written"):
        _artifact.write(tmp_path / "folder", KIND, {}, {})
    assert remaining(tmp_path) == ["folder"]


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights here")
def test_symbolic_links(tmp_path):
    before = small_file(tmp_path / "target")
    (tmp_path / "link").symlink_to("target")
    assert _artifact.read(tmp_path / "link", KIND).header == {"grammar": "ab12"}
    with pytest.raises(ArtifactError, match="a symbolic link, which is not followed here"):
        _artifact.read(tmp_path / "link", KIND, follow_symlinks=False)
    _artifact.write(tmp_path / "link", KIND, {}, {})
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="there are no named pipes")
def test_what_is_no_file_stays_in_its_place(tmp_path):
    """As root, saving to ``/dev/null`` would replace it for all."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(ArtifactError, match=f"{name}: is no regular file"):
            _artifact.write(tmp_path / name, KIND, {}, {})
    assert stat.S_ISFIFO(os.lstat(tmp_path / "pipe").st_mode)
    assert (tmp_path / "link").is_symlink()
    assert remaining(tmp_path) == ["link", "pipe"]


def test_a_relative_path_without_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _artifact.write("x", KIND, {}, {})
    assert remaining(tmp_path) == ["x"]
    assert _artifact.read("x", KIND) == _artifact.Artifact({}, {})


# Misuse

CYCLE: list[object] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("kind", "header", "arrays", "error"),
    [
        ("Token Classes", {}, {}, ValueError),
        ("../x", {}, {}, ValueError),
        (KIND, [], {}, TypeError),
        (KIND, {1: 2}, {}, TypeError),
        (KIND, {"x": {1, 2}}, {}, TypeError),
        (KIND, {"x": np.int32(1)}, {}, TypeError),
        (KIND, {"x": float("nan")}, {}, ValueError),
        (KIND, {"x": [float("inf")]}, {}, ValueError),
        (KIND, {"x": CYCLE}, {}, ValueError),
        (KIND, {"x": "y" * (1 << 20)}, {}, ValueError),
        (KIND, {}, {1: np.zeros(1, np.int32)}, TypeError),
        (KIND, {}, {"x": [1, 2]}, TypeError),
        (KIND, {}, {"x": np.array([1, "y"], dtype=object)}, TypeError),
        (KIND, {}, {"x": np.array([True])}, TypeError),
        (KIND, {}, {"x": np.array(["y"])}, TypeError),
        (KIND, {}, {"x": np.array(["2020-01-01"], "M8[D]")}, TypeError),
        (KIND, {}, {"x": np.zeros(1, "i4,i4")}, TypeError),
        (KIND, {}, {"x": np.zeros(1, np.float16)}, TypeError),
        (KIND, {}, {"x": np.zeros(1, np.complex64)}, TypeError),
    ],
)
def test_misuse_writes_nothing(tmp_path, kind, header, arrays, error):
    with pytest.raises(error):
        _artifact.write(tmp_path / "x", kind, header, arrays)
    assert remaining(tmp_path) == []


def test_the_deepest_header_that_may_be_written_can_be_read(tmp_path):
    header: object = 1
    for _ in range(63):
        header = [header]
    _artifact.write(tmp_path / "x", KIND, {"x": header}, {})
    assert _artifact.read(tmp_path / "x", KIND).header == {"x": header}
    with pytest.raises(ValueError, match="64 levels"):
        _artifact.write(tmp_path / "x", KIND, {"x": [header]}, {})
