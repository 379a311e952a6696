"""Names of files that no file has, or that name something else: each door says which name it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokfold
from tokfold._serving.settings import Settings

VOCABULARY = tokfold.Vocabulary([b"a", b"b", b"</s>"], [2])
COMPILED = tokfold.compile('root ::= "a"+', VOCABULARY, classes="now")
LONGEST = 700


class Named:
    """A path whose name is bytes."""

    def __init__(self, name: bytes) -> None:
        self.name = name

    def __fspath__(self) -> bytes:
        return self.name


NO_NAMES = {
    "NUL": "a\0b",
    "a path with NUL": Path("a\0b"),
    "bytes with NUL": Named(b"a\0b"),
    "half a pair": "a\ud800b",
}
LONG = {"one long name": "b" * 5_000, "many": "b/" * 5_000}
READING: dict[str, Callable[[Any], object]] = {
    "a grammar": tokfold.Grammar.from_file,
    "a vocabulary": tokfold.Vocabulary.from_file,
    "classes": tokfold.TokenClasses.load,
    "a pool": tokfold.MaskPool(VOCABULARY).load,
}
WRITING: dict[str, Callable[[Any], object]] = {
    "classes": COMPILED.classes.save,
    "a pool": tokfold.MaskPool(VOCABULARY).save,
}
FOLDERS: dict[str, Callable[[Any], object]] = {
    "a compiler": lambda folder: tokfold.GrammarCompiler(VOCABULARY, cache_dir=folder),
    "an argument of a server": lambda folder: Settings.variables(folder, None, None),
    "a variable": lambda folder: Settings.from_environment(
        {"TOKFOLD_CACHE_DIR": os.fsdecode(folder)}
    ),
}


def refused(door: Callable[[Any], object], name: object) -> BaseException:
    with pytest.raises((tokfold.TokfoldError, OSError, ValueError)) as refusal:
        door(name)
    said = str(refusal.value)
    assert said.encode()
    assert not isinstance(refusal.value, UnicodeError)
    assert said != "embedded null byte"
    return refusal.value


@pytest.mark.parametrize("door", READING.values(), ids=READING)
@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_a_name_that_no_file_has(door, name) -> None:
    error = refused(door, name)
    assert isinstance(error, tokfold.MissingFileError | tokfold.VocabularyError)
    assert "a" in str(error)
    assert "embedded null byte" in str(error) or "surrogates not allowed" in str(error)


@pytest.mark.parametrize("door", WRITING.values(), ids=WRITING)
@pytest.mark.parametrize("name", NO_NAMES.values(), ids=NO_NAMES)
def test_a_name_that_no_file_can_get(door, name) -> None:
    assert isinstance(refused(door, name), tokfold.ArtifactError)


@pytest.mark.parametrize("door", [*READING.values(), *WRITING.values()])
@pytest.mark.parametrize("name", LONG.values(), ids=LONG)
def test_a_name_that_is_too_long(door, name) -> None:
    error = refused(door, name)
    assert isinstance(error, tokfold.TokfoldError)
    assert "File name too long" in str(error) or "there is no such file" in str(error)
    assert len(str(error)) < LONGEST
    assert "bb" in str(error) or "b/b" in str(error)


@pytest.mark.parametrize("door", [*READING.values(), *WRITING.values()])
def test_a_folder_in_place_of_a_file(door, tmp_path) -> None:
    error = refused(door, tmp_path)
    assert isinstance(error, tokfold.TokfoldError | IsADirectoryError)
    assert str(tmp_path) in str(error)


@pytest.mark.parametrize("door", [*READING.values(), *WRITING.values()])
def test_a_file_in_place_of_a_folder(door, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    error = refused(door, tmp_path / "file" / "name")
    assert isinstance(error, tokfold.TokfoldError | NotADirectoryError)
    assert str(tmp_path / "file" / "name") in str(error)


@pytest.mark.skipif(os.name != "posix", reason="names there are bytes")
@pytest.mark.parametrize("door", READING.values(), ids=READING)
def test_a_name_that_is_no_utf_8(door, tmp_path) -> None:
    """A file may have it, and a message can be printed that names it."""
    name = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    assert "udcff" in str(refused(door, name))
    Path(name).write_bytes(b"\xff")
    assert "udcff" in str(refused(door, name))
    assert "udcff" in str(refused(door, Named(os.fsencode(name))))


def test_bytes_name_a_file(tmp_path) -> None:
    name = Named(os.fsencode(tmp_path / "file"))
    COMPILED.classes.save(name)
    assert len(tokfold.TokenClasses.load(name)) == len(COMPILED.classes)
    (tmp_path / "file").write_text('root ::= "a"')
    assert tokfold.Grammar.from_file(name).num_rules == 1


@pytest.mark.parametrize("door", FOLDERS, ids=FOLDERS)
def test_a_folder_that_cannot_be(door, tmp_path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for name in (*NO_NAMES.values(), *LONG.values(), tmp_path / "file"):
        error = refused(FOLDERS[door], name)
        assert ("TOKFOLD_CACHE_DIR" if door == "a variable" else "cache") in str(error)
        assert isinstance(error, tokfold.ArtifactError | ValueError)
        assert len(str(error)) < LONGEST
    FOLDERS[door](tmp_path / "later")


@pytest.mark.parametrize(
    ("variable", "value", "allowed"),
    [
        ("TOKFOLD_CACHE_DIR", "~no_such_user_at_all/cache", "must name a folder"),
        ("TOKFOLD_LIMITS", "[" * 100_000, "a JSON object of fields of tokfold.Limits"),
        ("TOKFOLD_LIMITS", "[1]", "a JSON object of fields of tokfold.Limits"),
        (
            "TOKFOLD_LIMITS",
            '{"%s": 1}' % ("x" * 5_000),
            "a JSON object of fields of tokfold.Limits",
        ),
        ("TOKFOLD_LIMITS", '{"max_rules": %s}' % ("9" * 5_000), "a JSON object of fields"),
        ("TOKFOLD_LIMITS", '{"max_rules": "\\ud800"}', "a JSON object of fields"),
        ("TOKFOLD_MAX_CACHE_BYTES", "9" * 5_000, "must be a number of bytes"),
        ("TOKFOLD_MAX_CACHE_BYTES", "-1", "must be a number of bytes"),
        ("TOKFOLD_MASK_MILLISECONDS", "9" * 5_000, "must be whole milliseconds"),
        ("TOKFOLD_CLASSES", "x" * 5_000, "must be auto, now or never"),
        ("TOKFOLD_WHITESPACE", "\udcff", "must be one of any, compact, spaced"),
        ("TOKFOLD_END_IN_TIME", "\udcff" * 5_000, "must be 1 or 0"),
    ],
)
def test_a_setting_that_cannot_be_read(variable, value, allowed) -> None:
    """The error has its name, its value and what is allowed."""
    with pytest.raises(ValueError, match=rf"^{variable} .*{allowed}") as refusal:
        Settings.from_environment({variable: value})
    said = str(refusal.value)
    assert not isinstance(refusal.value, UnicodeError)
    assert said.encode()
    assert len(said) < LONGEST
    assert ascii(value[:20])[1:-1].replace("\\\\", "\\") in said.replace("\\\\", "\\")
