"""Files that are no grammars or cut off, artefacts of something else, a full disk."""

from __future__ import annotations

import os

import pytest
from support.hostile_runner import NEEDS_LIMITS, check, outcomes, run
from tokfold import (
    ArtifactError,
    Grammar,
    GrammarSyntaxError,
    TokenClasses,
    Vocabulary,
    compile_classes,
)

pytestmark = NEEDS_LIMITS


# Files that are no grammars

TEXT = 'root ::= "ab" [a-z]* (digit | "é"{1,3})? # note\ndigit ::= [0-9] | Token(1)\n'


def refusal(make) -> GrammarSyntaxError | None:
    """The syntax error, if there is one."""
    try:
        make()
    except GrammarSyntaxError as error:
        return error
    return None


def test_truncated_texts():
    """Cut anywhere: a grammar or a syntax error within the text."""
    read = 0
    for end in range(len(TEXT)):
        cut = TEXT[:end]
        error = refusal(lambda cut=cut: Grammar.from_ebnf(cut))
        if error is None:
            read += 1
            continue
        lines = cut.split("\n")
        assert 1 <= error.line <= len(lines), (cut, error)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1, (cut, error)
        assert str(error).startswith(f"line {error.line}, column {error.column}: ")
    assert 0 < read < len(TEXT)


def test_truncated_files(tmp_path):
    """Also inside a character."""
    data = TEXT.encode()
    errors = []
    for end in range(len(data)):
        (tmp_path / "g").write_bytes(data[:end])
        errors.append(refusal(lambda: Grammar.from_file(tmp_path / "g")))
    assert {error.line for error in errors if error is not None} <= {1, 2, 3}
    assert any("is not UTF-8" in str(error) for error in errors)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0",
        b"\xff\xfe",
        bytes(range(256)),
        b"\x7fELF" + bytes(1000),
        b"\x89PNG\r\n\x1a\n",
        b"PK",
    ],
)
def test_binary_files(tmp_path, data):
    (tmp_path / "g").write_bytes(data)
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_file(tmp_path / "g")
    assert (caught.value.line <= 2, len(str(caught.value)) > 20) == (True, True)


def test_a_large_binary_file(tmp_path):
    (tmp_path / "g").write_bytes(os.urandom(1000) + bytes(10_000_000))
    body = f"step('read', lambda: Grammar.from_file({str(tmp_path / 'g')!r}))"
    assert check(run(body))["read"].outcome == "GrammarSyntaxError"


def test_no_file_and_a_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        Grammar.from_file(tmp_path / "none")
    with pytest.raises(OSError, match=r"directory|denied"):
        Grammar.from_file(tmp_path)


# Artefacts


def test_an_artefact_of_another_tokenizer(tmp_path):
    grammar = Grammar.from_ebnf('root ::= "a"')
    ours, theirs = Vocabulary([b"a", b"b"]), Vocabulary([b"b", b"a"])
    compile_classes(grammar, theirs).save(tmp_path / "x")
    with pytest.raises(ArtifactError, match=r"made for another vocabulary .* compile them again"):
        TokenClasses.load(tmp_path / "x", grammar=grammar, vocabulary=ours)


def test_truncated_artefacts(tmp_path):
    compile_classes(Grammar.from_ebnf('root ::= "a"'), Vocabulary([b"a", b"b"])).save(
        tmp_path / "x"
    )
    data = (tmp_path / "x").read_bytes()
    for end in range(len(data)):
        (tmp_path / "x").write_bytes(data[:end])
        with pytest.raises(ArtifactError, match=r"x: .*(ompile it again|artefact)"):
            TokenClasses.load(tmp_path / "x")


FULL_DISK = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
"""


def test_a_full_disk(tmp_path):
    """Nothing is half-written: not beside what stood there, not in the cache."""
    grammar = Grammar.from_ebnf("root ::= [a-z]+")
    compile_classes(grammar, Vocabulary([b"a"])).save(tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    body = f"""
        import warnings
        grammar = Grammar.from_ebnf("root ::= [a-z]+")
        vocabulary = Vocabulary([b"%d" % i for i in range(2_000)] + [b"a"])
        classes = compile_classes(grammar, vocabulary)
        step("save", lambda: classes.save({str(tmp_path / "x")!r}))
        step("save new", lambda: classes.save({str(tmp_path / "y")!r}))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            cached = compile_classes(grammar, vocabulary, cache_dir={str(tmp_path / "c")!r})
        assert cached == classes
        messages = [str(w.message) for w in caught]
        step("warned", lambda: next(m for m in messages if "cannot be written" in m))
        """
    steps = run(body, prefix=FULL_DISK)
    assert outcomes(steps) == ["ArtifactError", "ArtifactError", "ok"]
    assert "cannot be written: File too large" in steps["save"].value
    assert (tmp_path / "x").read_bytes() == before
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["x"]
