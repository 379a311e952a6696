"""Classes in files: the same file for the same input, loading and forgeries, the cache folder.

The format itself is tested in ``test_artifact.py``, the folder by itself in ``test_cache.py``.
"""

from __future__ import annotations

import hashlib
import importlib
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import tokfold
from classes.class_samples import BYTES, NESTED, TOKENS
from strategies.engine import compiled_with
from support import processes
from support.processes import DEADLINE_S
from support.script_runner import child, output
from tokfold import (
    ArtifactError,
    Grammar,
    Limits,
    TokenClasses,
    UnsupportedGrammarError,
    Vocabulary,
    compile_classes,
)
from tokfold.errors import CacheWarning

# Artefacts

SAVING = """
    vocabulary = Vocabulary([bytes([b]) for b in range(256)] + [b"(" * 9, b"ab", b""], [256])
    compile_classes(Grammar.from_ebnf(sys.argv[1]), vocabulary).save(sys.argv[2])
    """


def test_the_same_input_gives_the_same_file(tmp_path):
    """In one process, and in others whose hashes differ."""
    seeds = {"zero": "0", "one": "1", "random": "random"}
    others = [child(SAVING, NESTED, tmp_path / n, PYTHONHASHSEED=s) for n, s in seeds.items()]
    for other in others:
        output(other)
    vocabulary = Vocabulary([*BYTES, b"(" * 9, b"ab", b""], [256])
    for name in ("here", "again"):
        compile_classes(Grammar.from_ebnf(NESTED), vocabulary).save(tmp_path / name)
    compile_classes(Grammar.from_ebnf(NESTED + ' | "!"'), vocabulary).save(tmp_path / "other")
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert len(files) == 6
    assert files.pop("other") != files["here"]
    assert len(set(files.values())) == 1


def test_save_and_load(classes, nested, vocabulary, tmp_path):
    path = tmp_path / "classes.tokfold"
    classes.save(path)
    for where in (path, str(path)):
        loaded = TokenClasses.load(where, grammar=nested, vocabulary=vocabulary)
        assert loaded == classes
        assert loaded.class_of.tolist() == classes.class_of.tolist()
        assert loaded.representative_ids.tolist() == classes.representative_ids.tolist()
        assert loaded.representatives == classes.representatives
        assert loaded.num_stop_classes == 2
        assert loaded.members(0).tolist() == [0, 3, 5, 8]
        assert (loaded.class_of.dtype, loaded.representative_ids.dtype) == (np.int32, np.uint32)
        assert (loaded.prune, loaded.stats["dead_tokens"]) == (True, 1)
        assert "seconds" not in loaded.stats
        with pytest.raises(ValueError, match="read-only"):
            loaded.class_of[0] = 1


def test_classes_stay_in_the_file(classes, tmp_path):
    """Mapped, not copied; and what replaces the file does not change who has it open."""
    path = tmp_path / "x"
    classes.save(path)
    loaded = TokenClasses.load(path)
    base = loaded.class_of
    while isinstance(base, np.ndarray):
        base = base.base
    assert type(base.obj if isinstance(base, memoryview) else base).__name__ == "mmap"
    compile_classes(Grammar.from_ebnf('root ::= "c"'), Vocabulary(TOKENS)).save(path)
    assert loaded.class_of.tolist() == classes.class_of.tolist()


def test_classes_of_something_else(classes, nested, vocabulary, tmp_path):
    path = tmp_path / "x"
    classes.save(path)
    other = Grammar.from_ebnf(NESTED + ' | "!"')
    with pytest.raises(ArtifactError, match=r"x: these classes were made for another grammar \("):
        TokenClasses.load(path, grammar=other, vocabulary=vocabulary)
    with pytest.raises(ArtifactError, match=r"x: these classes were made for another vocabulary"):
        TokenClasses.load(path, grammar=nested, vocabulary=Vocabulary(TOKENS))
    assert TokenClasses.load(path) == classes


def test_no_file_and_no_artefact(tmp_path):
    with pytest.raises(FileNotFoundError):
        TokenClasses.load(tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ArtifactError, match="text: not a tokfold artefact"):
        TokenClasses.load(tmp_path / "text")


GOOD = {
    "algorithm": 1,
    "grammar": "g",
    "num_stop_classes": 1,
    "prune": True,
    "stats": {},
    "vocabulary": "v",
}
ARRAYS = {
    "class_of": np.array([0, 1, -1], np.int32),
    "representative_ids": np.array([0, 1], np.uint32),
    "representative_bytes": np.frombuffer(b"abc", np.uint8),
    "representative_ends": np.array([1, 3], np.int64),
}


def test_a_forged_artefact_that_fits(tmp_path):
    tokfold._artifact.write(tmp_path / "x", "token-classes", GOOD, ARRAYS)
    assert TokenClasses.load(tmp_path / "x").representatives == [b"a", b"bc"]


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"num_stop_classes": None}, {}),
        ({"num_stop_classes": "1"}, {}),
        ({"num_stop_classes": 3}, {}),
        ({"num_stop_classes": -1}, {}),
        ({"prune": None}, {}),
        ({"grammar": None}, {}),
        ({"grammar": 7}, {}),
        ({"stats": None}, {}),
        ({"stats": [1]}, {}),
        ({}, {"class_of": np.array([0, 2, -1], np.int32)}),
        ({}, {"class_of": np.array([0, -2, -1], np.int32)}),
        ({}, {"class_of": np.array([0, 1, -1], np.int64)}),
        ({}, {"class_of": np.array([[0, 1, -1]], np.int32)}),
        ({}, {"class_of": None}),
        ({}, {"representative_ids": np.array([0, 3], np.uint32)}),
        ({}, {"representative_ids": np.array([0], np.uint32)}),
        ({}, {"representative_ends": np.array([2, 1], np.int64)}),
        ({}, {"representative_ends": np.array([-1, 3], np.int64)}),
        ({}, {"representative_ends": np.array([1, 2], np.int64)}),
    ],
)
def test_forged_artefacts(tmp_path, header, arrays):
    """The checksum is right; the parts are not what the package writes. None: left out."""
    header = {k: v for k, v in {**GOOD, **header}.items() if v is not None}
    arrays = {k: v for k, v in {**ARRAYS, **arrays}.items() if v is not None}
    tokfold._artifact.write(tmp_path / "x", "token-classes", header, arrays)
    with pytest.raises(ArtifactError, match=r"x: .* compile them again"):
        TokenClasses.load(tmp_path / "x", grammar=None)


def test_a_failed_save_leaves_the_old_file(classes, tmp_path):
    path = tmp_path / "x"
    classes.save(path)
    before = path.read_bytes()
    with pytest.raises(ArtifactError, match="cannot be written"):
        classes.save(tmp_path / "none" / "x")
    with pytest.raises(ArtifactError):
        classes.save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["x"]
    assert path.read_bytes() == before


# The cache folder


@pytest.fixture
def counted(monkeypatch):
    """How often something is really compiled."""
    module = importlib.import_module("tokfold.classes")
    calls = []
    compile_ = module._compile

    def counting(*arguments):
        calls.append(arguments)
        return compile_(*arguments)

    monkeypatch.setattr(module, "_compile", counting)
    return calls


@pytest.mark.filterwarnings("error")
def test_found_again_in_the_cache(nested, vocabulary, classes, tmp_path, counted):
    folder = tmp_path / "new" / "cache"
    results = [
        compile_classes(nested, vocabulary, cache_dir=d) for d in (folder, str(folder), folder)
    ]
    assert len(counted) == 1
    assert all(result == classes for result in results)
    assert all(r.representatives == classes.representatives for r in results)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.filterwarnings("error")
def test_what_the_cache_keeps_apart(nested, vocabulary, tmp_path, counted):
    variants = [
        (nested, vocabulary, {}),
        (nested, vocabulary, {"prune": False}),
        (nested, vocabulary, {"limits": Limits(max_token_work=5)}),
        (nested, vocabulary.replace(stop_token_ids=[2]), {}),
        (Grammar.from_ebnf(NESTED + ' | "!"'), vocabulary, {}),
        (Grammar.from_ebnf(NESTED, lookahead="implied"), vocabulary, {}),
    ]
    for _ in range(2):
        for grammar, tokens, options in variants:
            found = compile_classes(grammar, tokens, cache_dir=tmp_path, **options)
            assert found.grammar_fingerprint == grammar.fingerprint
            assert found.vocabulary_fingerprint == tokens.fingerprint
            assert found.prune == options.get("prune", True)
    assert len(counted) == len(variants)


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "text", "other", "renamed"])
def test_a_damaged_entry_is_named_and_made_again(
    nested, vocabulary, classes, tmp_path, counted, damage
):
    compile_classes(nested, vocabulary, cache_dir=tmp_path)
    (entry,) = tmp_path.iterdir()
    good = entry.read_bytes()
    if damage == "renamed":
        renamed = good[:-32].replace(b"num_stop_classes", b"num_stop_classez")
        entry.write_bytes(renamed + hashlib.blake2b(renamed, digest_size=32).digest())
    elif damage == "other":
        compile_classes(nested, Vocabulary(TOKENS)).save(entry)
        counted.clear()
        counted.append(None)
    else:
        flipped = good[:200] + bytes([good[200] ^ 1]) + good[201:]
        entry.write_bytes(
            {"flipped": flipped, "short": good[:-40], "empty": b"", "text": b"hello"}[damage]
        )
    with pytest.warns(CacheWarning, match="removed and made again") as caught:
        assert compile_classes(nested, vocabulary, cache_dir=tmp_path) == classes
    assert entry.name in str(caught[0].message)
    assert len(counted) == 2
    assert entry.read_bytes() == good
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compile_classes(nested, vocabulary, cache_dir=tmp_path) == classes
    assert len(counted) == 2


def test_a_cache_that_is_a_file(nested, vocabulary, tmp_path):
    (tmp_path / "x").write_text("hello")
    with pytest.raises(ArtifactError, match="not a folder"):
        compile_classes(nested, vocabulary, cache_dir=tmp_path / "x")


def test_errors_are_not_cached(vocabulary, tmp_path):
    for _ in range(2):
        with pytest.raises(UnsupportedGrammarError):
            compile_classes(
                Grammar.from_ebnf("root ::= root"), vocabulary, cache_dir=tmp_path / "c"
            )
    assert not (tmp_path / "c").exists() or not list((tmp_path / "c").iterdir())


def test_two_processes_at_once(tmp_path):
    """Both get the classes, and one entry is left."""
    body = """
        import hashlib, warnings
        warnings.simplefilter("error")
        tokens = [f"{i:x}".encode() for i in range(60_000)]
        grammar = Grammar.from_ebnf('root ::= [0-9] root [a-f] | [0-9a-f]')
        print("ready", flush=True)
        sys.stdin.readline()
        for _ in range(3):
            found = compile_classes(grammar, Vocabulary(tokens), cache_dir=sys.argv[1])
            print(hashlib.sha256(found.class_of.tobytes()).hexdigest())
        """
    both = [child(body, tmp_path / "c", stdin=processes.PIPE) for _ in range(2)]
    for process in both:
        assert process.line() == "ready"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert len(set("".join(map(output, both)).split())) == 1
    assert len(list((tmp_path / "c").iterdir())) == 1


# What is no folder


def test_a_file_is_refused_where_it_is_named(tmp_path):
    """By all that take a folder, and at once, whether or not it would have been used."""
    grammar, vocabulary = Grammar.from_ebnf('root ::= "a"'), Vocabulary([b"a", b"</s>"], [1])
    file = tmp_path / "file"
    file.write_bytes(b"x")
    for refused in (
        lambda: compile_classes(grammar, vocabulary, cache_dir=file),
        lambda: compiled_with(grammar, vocabulary, classes="now", cache_dir=file),
        lambda: compiled_with(grammar, vocabulary, classes="auto", cache_dir=str(file)),
        lambda: compiled_with(grammar, vocabulary, classes="never", cache_dir=file),
        lambda: tokfold.GrammarCompiler(vocabulary, cache_dir=file),
    ):
        with pytest.raises(ArtifactError, match=r"/file: not a folder, .*choose another path"):
            refused()


@pytest.mark.parametrize("classes", ["now", "auto", "never"])
@pytest.mark.parametrize("trouble", ["vanishes", "becomes a file", "cannot be made"])
def test_requests_go_on_without_their_folder(tmp_path, classes, trouble):
    vocabulary = Vocabulary([b"a", b"b", b"</s>"], [2])
    folder = tmp_path / "cache"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiler = tokfold.GrammarCompiler(vocabulary, classes=classes, cache_dir=folder)
        compiler.compile_grammar('root ::= "a"').wait(DEADLINE_S)
        if trouble == "vanishes":
            shutil.rmtree(folder, ignore_errors=True)
        elif trouble == "becomes a file":
            shutil.rmtree(folder, ignore_errors=True)
            folder.write_bytes(b"x")
        else:
            compiler._cache_dir = Path("/proc/none/cache")
        compiled = compiler.compile_grammar('root ::= "b"')
        compiled.wait(DEADLINE_S)
        compiler.close()
    assert tokfold.Matcher(compiled).accept_string("b")
    assert {each.category for each in caught} <= {CacheWarning}
    if trouble == "becomes a file":
        assert str(folder) in str(caught[0].message)
