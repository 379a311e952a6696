"""The Python face of the core: classes, masks, recognition, and the promises around the work.

What the docstrings of :mod:`tokfold` promise, held against a user's use of it: shapes and dtypes,
which token is in which class, the same file for the same input, the cache folder, progress, Ctrl-C,
threads, limits. Whether classes are *right* is the business of ``test_classes_properties.py``.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import tokfold
from tokfold import (
    ArtifactError,
    Grammar,
    LimitExceededError,
    Limits,
    MissingExtraError,
    TokenClasses,
    Unfolder,
    UnsupportedGrammarError,
    Vocabulary,
    allocate_bitmask,
    compile_classes,
    recognize,
)
from tokfold._cache import CacheWarning

NESTED = 'root ::= "(" root ")" | "[" root "]" | [a-z]+'
TOKENS = [b"xyz", b"(", b"</s>", b"ab", b"", b"c", b"<pad>", b"#", b"d", b"(", b"<eot>", b"))"]
BYTES = [bytes([b]) for b in range(256)]
# Ambiguous without end: the first takes some ten microseconds for each token and goes on for ever
# with new ones; under the second a single token may take the whole of its budget.
STEADY = """
root ::= root | root "a" r1 | "c"
r1 ::= "c" r1 root "a" | root r2 | r2 r2 | "b"
r2 ::= r1 root r2 r1 | r2 root r1 r2 | "c"
"""
HEAVY = """
root ::= r0
r0 ::= r2 r2 "c" r0 | "c" "b" r3 | r2 | "c"
r1 ::= "b" r0 r5 r4 | "c" "a" | "a"
r2 ::= r2 r2 r0 r1 | r0 r4 "a" | r0 "a" r4 | r1 r3 r5 | "c"
r3 ::= r4 | r0 "b" r1 | "a" | "a"
r4 ::= "a" | "b" | "c" | "b" | "c"
r5 ::= "c" r0 "b" r0 | r3 | "b"
"""


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(TOKENS, stop_token_ids=[10, 2], special_token_ids=[6], size=14)


@pytest.fixture(scope="module")
def nested():
    return Grammar.from_ebnf(NESTED)


@pytest.fixture(scope="module")
def classes(nested, vocabulary):
    return compile_classes(nested, vocabulary)


def words(count: int, letters: str = "abc", longest: int = 12) -> list[bytes]:
    """Distinct strings over some letters, the same at every call."""
    rng = np.random.default_rng(1)
    made: dict[bytes, None] = {}
    while len(made) < count:
        codes = rng.integers(0, len(letters), rng.integers(1, longest + 1))
        made["".join(letters[code] for code in codes).encode()] = None
    return list(made)


def folded(text: str, tokens: list[bytes], **options) -> dict[bytes, int]:
    """The class of each token."""
    found = compile_classes(Grammar.from_ebnf(text), Vocabulary(tokens), **options)
    return dict(zip(tokens, found.class_of.tolist(), strict=True))


def partition(text: str, tokens: list[bytes], **options) -> tuple[frozenset, frozenset]:
    """Which tokens are together, and which are dead."""
    groups: dict[int, set[bytes]] = {}
    for token, index in folded(text, tokens, **options).items():
        groups.setdefault(index, set()).add(token)
    dead = frozenset(groups.pop(-1, ()))
    return frozenset(map(frozenset, groups.values())), dead


def child(body: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    """Start a script that has everything of ``tokfold`` by name."""
    source = str(Path(tokfold.__file__).parent.parent)
    script = "import sys\nfrom tokfold import *\n" + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str], seconds: float = 60) -> str:
    """What a script that must succeed prints."""
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out


# Classes


def test_arrays(classes, vocabulary):
    assert (classes.class_of.dtype, classes.class_of.shape) == (np.int32, (14,))
    assert (classes.representative_ids.dtype, classes.representative_ids.shape) == (np.uint32, (5,))
    assert len(classes) == 5
    assert len(classes.class_of) == len(vocabulary)
    for array in (classes.class_of, classes.representative_ids):
        assert array.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_which_token_is_where(classes):
    """Doubles together, stop tokens last in the order of ids; special, empty, padding, dead: -1."""
    #                                  xyz ( </s> ab ""  c <pad> # d  ( <eot> )) padding
    assert classes.class_of.tolist() == [0, 1, 3, 0, -1, 0, -1, -1, 0, 1, 4, 2, -1, -1]
    assert classes.num_stop_classes == 2
    assert classes.stats["dead_tokens"] == 1
    assert classes.stats["over_budget_tokens"] == 0


def test_representatives_are_the_shortest_then_the_lowest(classes):
    assert classes.representative_ids.tolist() == [5, 1, 11, 2, 10]
    assert classes.representatives == [b"c", b"(", b"))", b"</s>", b"<eot>"]


def test_changing_the_list_of_representatives_changes_nothing(classes):
    classes.representatives.clear()
    assert len(classes.representatives) == 5


def test_members(classes):
    expected = [[0, 3, 5, 8], [1, 9], [11], [2], [10]]
    for index, ids in enumerate(expected):
        members = classes.members(index)
        assert (members.dtype, members.tolist()) == (np.int64, ids)
    for index in (-1, 5, 10**20):
        with pytest.raises(IndexError, match=r"does not exist: there are 5 classes"):
            classes.members(index)


def test_members_are_the_inverse_of_class_of():
    tokens = words(2_000, "ab(){}x")
    found = compile_classes(
        Grammar.from_ebnf('root ::= "{" root "}" | "(" root ")" | [ab]+ "x"?'), Vocabulary(tokens)
    )
    assert len(found) > 10
    for index in range(len(found)):
        assert found.members(index).tolist() == np.flatnonzero(found.class_of == index).tolist()
        best = min(found.members(index).tolist(), key=lambda token: (len(tokens[token]), token))
        assert found.representative_ids[index] == best
        assert found.representatives[index] == tokens[best]
    firsts = [found.members(index)[0] for index in range(len(found))]
    assert firsts == sorted(firsts)


def test_one_stop_token_or_none(nested):
    both = compile_classes(nested, Vocabulary([b"a", b"<s>", b"</s>"], stop_token_ids=[1, 2]))
    assert both.class_of.tolist() == [0, 1, 2]
    none = compile_classes(nested, Vocabulary([b"a", b"<s>", b"</s>"]))
    assert (none.class_of.tolist(), none.num_stop_classes) == ([0, -1, -1], 0)


def test_a_stop_token_is_no_text_and_may_be_without_bytes():
    found = compile_classes(
        Grammar.from_ebnf("root ::= [a-z]+"), Vocabulary([b"a", b"b", b""], stop_token_ids=[1, 2])
    )
    assert found.class_of.tolist() == [0, 1, 2]
    assert found.representatives == [b"a", b"b", b""]


def test_only_stop_tokens_are_left_of_a_grammar_that_takes_nothing():
    found = compile_classes(
        Grammar.from_ebnf('root ::= ""'), Vocabulary([b"a", b"b"], stop_token_ids=[1])
    )
    assert (found.class_of.tolist(), len(found)) == ([-1, 0], 1)


def test_equality_repr_and_hash(classes, nested, vocabulary):
    assert classes == compile_classes(nested, vocabulary)
    assert classes != compile_classes(nested, vocabulary, prune=False)
    assert classes != compile_classes(nested, vocabulary.replace(stop_token_ids=[2]))
    assert (classes == 5) is False
    assert repr(classes) == "TokenClasses(14 tokens in 5 classes)"
    with pytest.raises(TypeError):
        hash(classes)


def test_where_classes_come_from(classes, nested, vocabulary):
    assert classes.grammar_fingerprint == nested.fingerprint
    assert classes.vocabulary_fingerprint == vocabulary.fingerprint
    assert classes.prune is True
    assert {"network_states", "network_seconds", "walk_seconds", "seconds"} <= classes.stats.keys()
    assert classes.stats["seconds"] >= classes.stats["network_seconds"] >= 0


@pytest.mark.parametrize("wrong", [None, NESTED, b"", 5])
def test_arguments_of_another_type(nested, vocabulary, wrong):
    with pytest.raises(TypeError, match=r"grammar must be a tokfold\.Grammar, not "):
        compile_classes(wrong, vocabulary)
    with pytest.raises(TypeError, match=r"vocabulary must be a tokfold\.Vocabulary, not "):
        compile_classes(nested, wrong)


# Dead ends


def test_pruning_drops_what_cannot_be_completed():
    text = 'root ::= "a" | "b" dead | "d"\ndead ::= "c" dead'
    tokens = [b"a", b"b", b"c", b"d", b"bc"]
    assert partition(text, tokens) == (frozenset({frozenset({b"a", b"d"})}), {b"b", b"c", b"bc"})
    kept = folded(text, tokens, prune=False)
    assert -1 not in kept.values()
    assert kept[b"a"] == kept[b"d"]
    assert kept[b"b"] == kept[b"bc"], "both lead to where only c may come"
    assert len({kept[b"a"], kept[b"b"], kept[b"c"]}) == 3


def test_a_language_without_strings():
    grammar = Grammar.from_ebnf('# never ends\nroot ::= "a" root')
    vocabulary = Vocabulary([b"a", b"aa", b"b"], stop_token_ids=[2])
    with pytest.raises(UnsupportedGrammarError, match="language is empty") as caught:
        compile_classes(grammar, vocabulary)
    assert (caught.value.construct, caught.value.line, caught.value.column) == ("root", 2, 1)
    assert compile_classes(grammar, vocabulary, prune=False).class_of.tolist() == [0, 0, 1]


def test_dead_classes_between_live_ones():
    text = 'root ::= "a" [] "b" | "a" "c"'
    assert partition(text, [b"a", b"b", b"c"])[1] == {b"b"}
    assert partition(text, [b"a", b"b", b"c"], prune=False)[1] == {b"b"}, "nothing leads past []"


# Repetitions

LONG = [bytes(c) for c in (b"a", b"b", b"c", b"aa", b"ab", b"abab", b'"', b'a"', b'ab"', b"abcc")]
LONG += [b"a" * n for n in range(3, 30)] + [b"ab" * 9, b"cab" * 7, "é".encode(), "é".encode()[:1]]


@pytest.mark.parametrize(
    ("large", "small"),
    [
        ('"a"{0,50000}', '"a"{0,200}'),
        ('"a"{50000}', '"a"{200}'),
        ('"a"{50000,}', '"a"{200,}'),
        ('"a"{20000,50000}', '"a"{200,500}'),
        ('"\\"" [^"]{0,65535} "\\""', '"\\"" [^"]{0,300} "\\""'),
        ('("ab" | "c"){2000,30000}', '("ab" | "c"){200,500}'),
        ('("ab"? "c"?){2000,30000} "b"', '("ab"? "c"?){200,500} "b"'),
        ('"a"{40000} "b" "a"{40000}', '"a"{200} "b" "a"{200}'),
        ('("a"{9000} "b"){1000,9000}', '("a"{200} "b"){100,300}'),
    ],
)
@pytest.mark.parametrize("prune", [True, False])
def test_large_bounds_fold_like_smaller_ones(large, small, prune):
    began = time.process_time()
    found = partition(f"root ::= {large}", LONG, prune=prune)
    assert time.process_time() - began < 1
    assert found == partition(f"root ::= {small}", LONG, prune=prune)


def test_small_bounds_tell_tokens_apart():
    """Lest the test before holds because bounds do not matter."""
    tokens = [b"a" * n for n in range(1, 9)]
    together, dead = partition('root ::= "a"{0,5}', tokens)
    assert len(together) == 5
    assert dead == {b"a" * 6, b"a" * 7, b"a" * 8}


def test_bounds_at_the_length_of_the_longest_token():
    """A window one too small would take them for unbounded."""
    for bound in range(1, 12):
        taken = folded(
            f'root ::= "x" "a"{{0,{bound}}} "y"', [b"x", *(b"a" * n for n in range(1, 9))]
        )
        assert [n for n in range(1, 9) if taken[b"a" * n] != -1] == list(
            range(1, min(bound, 8) + 1)
        )


# What is refused, and what is not


@pytest.mark.parametrize(
    ("text", "construct", "line", "column"),
    [
        ('root ::= "a" (= "b")', "lookahead", 1, 1),
        ('root ::= "x" a\n  a ::= "a" (= "b")', "lookahead", 2, 3),
        ('root ::= "x" | a\na[lazy] ::= "a"+', "lazy", 2, 1),
        ('root ::= "x" | a\n\na[max_tokens=5] ::= "a"+', "max_tokens", 3, 1),
        ('root ::= "x" | a\na[max_chars=5] ::= "a"+', "max_chars", 2, 1),
        ('root ::= "x" | Token(1, 2)', "Token", 1, 16),
        ('root ::= "x" |\n ExcludeToken(1)', "ExcludeToken", 2, 2),
        ('root ::= TokenTagDispatch((1, a))\na ::= "a"', "TokenTagDispatch", 1, 10),
    ],
)
def test_refused_by_name_and_place(text, construct, line, column):
    grammar = Grammar.from_ebnf(text)
    for refused in (
        lambda: compile_classes(grammar, Vocabulary(BYTES)),
        lambda: compile_classes(grammar, Vocabulary(BYTES), prune=False),
        lambda: recognize(grammar, "x"),
    ):
        with pytest.raises(UnsupportedGrammarError) as caught:
            refused()
        error = caught.value
        assert (error.construct, error.line, error.column) == (construct, line, column)
        assert str(error).startswith(f"line {line}, column {column}: {construct}: ")


def test_the_first_in_the_text_is_refused():
    text = 'root ::= b a\na[lazy] ::= "a"\nb ::= "b" (= "a")'
    with pytest.raises(UnsupportedGrammarError, match=r"line 2, column 1: lazy: rule \"a\""):
        compile_classes(Grammar.from_ebnf(text), Vocabulary([b"a"]))


def test_what_the_root_does_not_reach_is_not_refused():
    text = 'root ::= "a"\nb[lazy] ::= Token(5) (= "a")'
    assert folded(text, [b"a"]) == {b"a": 0}


def test_an_implied_lookahead_says_nothing():
    text = 'root ::= a "b"\na ::= "a"+ (= "b")'
    implied = Grammar.from_ebnf(text, lookahead="implied")
    plain = Grammar.from_ebnf(text.replace('(= "b")', ""))
    tokens = Vocabulary([b"a", b"b", b"ab", b"aa", b"ba"])
    found = compile_classes(implied, tokens).class_of.tolist()
    assert found == compile_classes(plain, tokens).class_of.tolist()
    assert recognize(implied, "aab").accepted


def test_options_that_leave_the_language_alone():
    plain = 'root ::= "x" a | b\na ::= "a"+\nb ::= "b"'
    optioned = plain.replace("a :", 'a[capture="it", temperature=0.5] :').replace(
        "b :", "b[capture] :"
    )
    tokens = [b"x", b"a", b"b", b"xa", b"aa", b"ax"]
    assert folded(optioned, tokens) == folded(plain, tokens)


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


@pytest.mark.parametrize("damage", ["flipped", "short", "empty", "text", "other"])
def test_a_damaged_entry_is_named_and_made_again(
    nested, vocabulary, classes, tmp_path, counted, damage
):
    compile_classes(nested, vocabulary, cache_dir=tmp_path)
    (entry,) = tmp_path.iterdir()
    good = entry.read_bytes()
    if damage == "other":
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
    source = str(Path(tokfold.__file__).parent.parent)
    script = "import sys\nfrom tokfold import *\n" + textwrap.dedent(body)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path / "c")],
            env={**os.environ, "PYTHONPATH": source},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout.readline() == "ready\n"
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    assert len(set("".join(map(output, both)).split())) == 1
    assert len(list((tmp_path / "c").iterdir())) == 1


# Progress


def test_progress_goes_from_nothing_to_all(nested):
    reports: list[tuple[int, int]] = []
    tokens = Vocabulary([*words(20_000), b""], special_token_ids=[3])
    result = compile_classes(nested, tokens, progress=lambda *report: reports.append(report))
    assert result is not None
    assert all(type(done) is int and type(total) is int for done, total in reports)
    assert {total for _, total in reports} == {19_999}
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert (reports[0][0], reports[-1][0]) == (0, 19_999)
    assert len(reports) > 3


@pytest.mark.parametrize("at", [0, 1, 3, -1])
@pytest.mark.parametrize("raised", [RuntimeError("enough"), KeyboardInterrupt(), SystemExit(3)])
def test_what_a_callback_raises_ends_the_work(nested, tmp_path, at, raised):
    tokens = Vocabulary(words(20_000))
    counted: list[int] = []
    compile_classes(nested, tokens, progress=lambda done, total: counted.append(done))
    wanted = at % len(counted)
    seen = 0

    def callback(done: int, total: int) -> None:
        nonlocal seen
        seen += 1
        if seen > wanted:
            raise raised

    with pytest.raises(type(raised)) as caught:
        compile_classes(nested, tokens, progress=callback, cache_dir=tmp_path / "c")
    assert caught.value is raised
    assert seen == wanted + 1
    assert not (tmp_path / "c").exists()
    assert compile_classes(nested, tokens) is not None


def test_a_callback_may_compile(nested, vocabulary, classes):
    inner = []
    compile_classes(
        nested, vocabulary, progress=lambda *_: inner.append(compile_classes(nested, vocabulary))
    )
    assert inner
    assert all(result == classes for result in inner)


@pytest.mark.parametrize("progress", [None, False])
def test_no_progress(nested, vocabulary, classes, progress):
    assert compile_classes(nested, vocabulary, progress=progress) == classes


def test_a_progress_bar(nested, vocabulary, classes):
    pytest.importorskip("rich")
    assert compile_classes(nested, vocabulary, progress=True) == classes


def test_a_progress_bar_without_its_package(nested, vocabulary, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MissingExtraError, match=r"tokfold\[cli\]"):
        compile_classes(nested, vocabulary, progress=True)


def test_a_callback_that_is_none(nested, vocabulary):
    with pytest.raises(TypeError, match="not callable"):
        compile_classes(nested, vocabulary, progress=5)


# Ctrl-C

LONG_WORK = """
    import hashlib, signal
    # Whoever runs the tests in the background may have it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    kind, folder = sys.argv[1:]
    unbounded = Limits(
        max_token_work=10**12,
        max_total_work=10**15,
        max_automaton_bytes=10**10,
        max_network_work=10**15,
        max_network_states=10**9,
    )
    if kind == "network":
        rules = (f'r{i} ::= r{(i + 1) % 3_000} "x" | "y"' for i in range(3_000))
        text = "root ::= r0\\n" + "\\n".join(rules)
        tokens = [bytes([b]) for b in range(256)]
    else:
        text = GRAMMAR
        digests = (hashlib.sha256(str(i).encode()).digest() for i in range(100_000))
        tokens = (bytes(b"abc"[b % 3] for b in d[: 1 + d[-1] % 30]) for d in digests)
        tokens = list(dict.fromkeys(tokens))
    grammar, vocabulary = Grammar.from_ebnf(text), Vocabulary(tokens)
    print("go", flush=True)
    try:
        compile_classes(grammar, vocabulary, unbounded, cache_dir=folder)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        raise
    """


@pytest.mark.skipif(os.name != "posix", reason="SIGINT is sent to a process")
@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("steady", STEADY),
        ("heavy", HEAVY),
        ("network", ""),
    ],
)
def test_ctrl_c(tmp_path, kind, text):
    """A real signal ends the work within a second, and nothing is half-written."""
    process = child(LONG_WORK.replace("GRAMMAR", repr(text)), kind, tmp_path / "c")
    try:
        assert process.stdout.readline() == "go\n"
        time.sleep(0.5)
        assert process.poll() is None, "the work was not long"
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        # A guard, not a measure: the machine may do other things as well.
        out, err = process.communicate(timeout=10)
        assert time.monotonic() - sent < 8
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n"
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert process.returncode == -signal.SIGINT
    assert not list(tmp_path.rglob("*")) or not list((tmp_path / "c").iterdir())


# Threads


def test_other_threads_go_on():
    """The GIL is let go: a thread that wakes up every millisecond does so during the work."""
    vocabulary = Vocabulary(words(8_000))
    grammar = Grammar.from_ebnf(STEADY)
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        began = time.monotonic()
        compile_classes(grammar, vocabulary)
        ended = time.monotonic()
    finally:
        stop.set()
        thread.join()
    during = [began, *(t for t in ticks if began < t < ended), ended]
    gaps = [b - a for a, b in itertools.pairwise(during)]
    assert ended - began > 0.05, "too short to tell"
    assert max(gaps) < (ended - began) / 2
    assert len(during) > 10


def test_threads_compile_at_once():
    grammar = Grammar.from_ebnf('root ::= "a" root "b" | root root | "c" | "ab"+')
    vocabulary = Vocabulary(words(5_000))
    expected = compile_classes(grammar, vocabulary)
    results: list[TokenClasses | None] = [None] * 8
    barrier = threading.Barrier(len(results))

    def work(i: int) -> None:
        barrier.wait(20)
        results[i] = compile_classes(grammar, vocabulary)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(results))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(result == expected for result in results)


# Limits

TAGS = " | ".join(f'"<{c}>" root "</{c}>"' for c in "abcdefghijklmnop")


@pytest.mark.parametrize(
    ("text", "limit", "value"),
    [
        ('root ::= "abc"', "max_grammar_bytes", 13),
        ('root ::= a\na ::= "b"', "max_rules", 1),
        ('root ::= (("a") | "b")', "max_nesting", 1),
    ],
)
def test_limits_of_reading(text, limit, value):
    assert Grammar.from_ebnf(text, limits=Limits(**{limit: value + 1})) is not None
    with pytest.raises(LimitExceededError, match=f"limit {limit} = {value} reached") as caught:
        Grammar.from_ebnf(text, limits=Limits(**{limit: value}))
    assert (caught.value.limit, caught.value.value) == (limit, value)


@pytest.mark.parametrize(
    ("text", "limit", "value"),
    [
        ('root ::= "abcdefghijkl"', "max_network_states", 5),
        # once cut short in silence
        ('root ::= "a"{200}', "max_network_states", 100),
        ('root ::= ("ab" | "c"){3,100}', "max_network_states", 50),
        ('root ::= "abcdefghijkl"', "max_network_edges", 5),
        ('root ::= "abcdefghijkl"', "max_network_work", 20),
        (f'root ::= {TAGS} | "z"', "max_network_edges", 90),
    ],
)
def test_limits_of_folding(text, limit, value):
    grammar = Grammar.from_ebnf(text)
    vocabulary = Vocabulary([*BYTES, b"a" * 300])
    assert compile_classes(grammar, vocabulary) is not None
    with pytest.raises(LimitExceededError, match=f"limit {limit} = {value} reached") as caught:
        compile_classes(grammar, vocabulary, Limits(**{limit: value}))
    assert (caught.value.limit, caught.value.value) == (limit, value)


def test_limits_of_recognition():
    grammar = Grammar.from_ebnf('root ::= "(" root ")" | "a"')
    for text, limits in (("(" * 5_000, Limits()), ("(" * 900, Limits(max_automaton_bytes=1_000))):
        with pytest.raises(LimitExceededError, match=r"raise|nested") as caught:
            recognize(grammar, text, limits)
        assert caught.value.limit in Limits().as_fields()
        assert caught.value.value > 0


@pytest.mark.parametrize(
    "limits",
    [
        Limits(max_token_work=1),
        Limits(max_token_work=20),
        Limits(max_total_work=1),
        Limits(max_total_work=2_000),
        Limits(max_token_work=50, max_total_work=500),
    ],
)
def test_work_that_is_not_done_folds_less_but_never_wrong(limits):
    """Whoever is together under a small budget is together without one; the dead are the dead."""
    grammar = Grammar.from_ebnf('root ::= "a" root "b" | root root | "c" | "ab"+ | "a"')
    tokens = words(3_000)
    tokens += tokens[:50]
    full = compile_classes(grammar, Vocabulary(tokens))
    less = compile_classes(grammar, Vocabulary(tokens), limits)
    assert less.stats["over_budget_tokens"] > 0
    assert len(less) > len(full)
    for index in range(len(less)):
        assert len(set(full.class_of[less.members(index)].tolist())) == 1
    assert (full.class_of[less.class_of == -1] == -1).all()
    assert less.class_of[:50].tolist() == less.class_of[-50:].tolist(), "doubles stay together"


def test_limits_that_are_none():
    for value, error in ((0, ValueError), (-1, ValueError), (2**63, ValueError), (1.5, TypeError)):
        with pytest.raises(error, match="max_rules must be"):
            Limits(max_rules=value)
    with pytest.raises(TypeError, match="not bool"):
        Limits(max_rules=True)
    with pytest.raises(AttributeError):
        Limits().max_rules = 5


def test_the_largest_limits_are_taken(nested, vocabulary, classes):
    most = Limits(**dict.fromkeys(Limits().as_fields(), 2**63 - 1))
    assert Grammar.from_ebnf(NESTED, limits=most) == nested
    assert compile_classes(nested, vocabulary, most) == classes
    assert recognize(nested, "(a)", most).accepted


# Bitmasks


@pytest.mark.parametrize(("batch", "size", "width"), [(1, 1, 1), (3, 32, 1), (2, 33, 2), (0, 5, 1)])
def test_a_fresh_bitmask_allows_all(batch, size, width):
    mask = allocate_bitmask(batch, size)
    assert (mask.dtype, mask.shape) == (np.int32, (batch, width))
    assert (mask == -1).all()
    assert mask.flags.c_contiguous
    assert mask.flags.writeable


@pytest.mark.parametrize(("batch", "size"), [(-1, 5), (1, 0), (1, -5)])
def test_impossible_bitmasks(batch, size):
    with pytest.raises(ValueError, match="a bitmask needs"):
        allocate_bitmask(batch, size)


def bits(mask: np.ndarray, count: int) -> np.ndarray:
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:count].astype(bool)


@pytest.mark.parametrize("max_bytes", [0, 100, 32 << 20])
@pytest.mark.parametrize("size", [31, 32, 33, 1_000])
def test_unfolding_is_a_gather(max_bytes, size):
    tokens = words(size, "ab(){}x")
    grammar = Grammar.from_ebnf('root ::= "{" root "}" | "(" root ")" | [ab]+')
    found = compile_classes(grammar, Vocabulary(tokens))
    unfolder = Unfolder(found, max_bytes)
    assert (unfolder.num_tokens, unfolder.num_classes) == (size, len(found))
    rng = np.random.default_rng(7)
    masks = rng.integers(-(2**31), 2**31, (6, (len(found) + 31) // 32)).astype(np.int32)
    for mask in (*masks, *masks, np.full_like(masks[0], -1), np.zeros_like(masks[0])):
        row = rng.integers(-(2**31), 2**31, (size + 31) // 32).astype(np.int32)
        before = mask.copy()
        unfolder.unfold(mask, row)
        padded = np.append(bits(mask, len(found)), False)
        assert (bits(row, size) == padded[found.class_of]).all()
        assert not bits(row, 32 * len(row))[size:].any(), "past the last token is nothing"
        assert (mask == before).all()


def test_rows_of_a_batch(classes):
    unfolder = Unfolder(classes)
    rows = allocate_bitmask(3, unfolder.num_tokens)
    class_mask = allocate_bitmask(1, unfolder.num_classes)[0]
    unfolder.unfold(class_mask, rows[1])
    assert (rows[[0, 2]] == -1).all()
    assert bits(rows[1], 14).tolist() == (classes.class_of >= 0).tolist()


def test_arrays_that_do_not_fit(classes):
    unfolder = Unfolder(classes)
    right = np.zeros(1, np.int32)
    for mask, row in (
        (np.zeros(2, np.int32), right),
        (right, np.zeros(2, np.int32)),
        (np.zeros(0, np.int32), right),
    ):
        with pytest.raises(ValueError, match="a class mask has 1 words and a row 1; got"):
            unfolder.unfold(mask, row)
    frozen = np.zeros(1, np.int32)
    frozen.flags.writeable = False
    with pytest.raises((ValueError, TypeError), match=r"read-only|writeable|writable"):
        unfolder.unfold(right, frozen)
    for wrong in (np.zeros(1, np.int64), np.zeros((1, 1), np.int32), [0], None):
        with pytest.raises(TypeError):
            unfolder.unfold(wrong, right)
        with pytest.raises(TypeError):
            unfolder.unfold(right, wrong)
    with pytest.raises((ValueError, TypeError)):
        unfolder.unfold(right, right)


def test_arrays_with_gaps():
    tokens = words(100, "ab(){}x")
    found = compile_classes(Grammar.from_ebnf("root ::= [a-x(){}]*"), Vocabulary(tokens))
    gaps = np.zeros(8, np.int32)[::2]
    with pytest.raises(ValueError, match="contiguous"):
        Unfolder(found).unfold(np.full(1, -1, np.int32), gaps)
    assert not gaps.any()


def test_unfolding_in_threads():
    tokens = words(3_000, "ab(){}x")
    grammar = Grammar.from_ebnf('root ::= "{" root "}" | "(" root ")" | [ab]+')
    found = compile_classes(grammar, Vocabulary(tokens))
    unfolder = Unfolder(found, 4_000)
    wrong: list[int] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed % 2)
        row = np.zeros((len(tokens) + 31) // 32, np.int32)
        for _ in range(300):
            mask = rng.integers(-(2**31), 2**31, (len(found) + 31) // 32).astype(np.int32)
            unfolder.unfold(mask, row)
            padded = np.append(bits(mask, len(found)), False)
            if not (bits(row, len(tokens)) == padded[found.class_of]).all():
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not wrong


# Recognition


@pytest.mark.parametrize(
    ("text", "accepted", "read", "complete", "line", "column", "expected"),
    [
        ("", False, 0, False, 1, 1, b"ax"),
        ("a", False, 1, False, 1, 2, b"\nx"),
        ("a\nx", True, 3, True, 2, 2, b"y\xc3"),
        ("x", True, 1, True, 1, 2, b"y\xc3"),
        ("xé", True, 3, True, 1, 3, b"y\xc3"),
        ("xéy", True, 4, True, 1, 4, b"y\xc3"),
        ("xéq", False, 3, True, 1, 3, b"y\xc3"),
        ("xè", False, 2, False, 1, 2, b"\xa9"),
        (b"x\xc3", False, 2, False, 1, 2, b"\xa9"),
        ("a\nq", False, 2, False, 2, 1, b"x"),
        (b"\xff", False, 0, False, 1, 1, b"ax"),
        (bytearray(b"x"), True, 1, True, 1, 2, b"y\xc3"),
    ],
)
def test_recognition(text, accepted, read, complete, line, column, expected):
    grammar = Grammar.from_ebnf('root ::= ("a" "\\n"?)* "x" tail*\ntail ::= "y" | "é"')
    if text in ("a", "a\nq"):
        expected = bytes(sorted({*expected, *b"ax"}))
    found = recognize(grammar, text)
    assert (found.accepted, found.read, found.complete) == (accepted, read, complete)
    # Inside a code point the place is that of the code point.
    assert (found.line, found.column) == (line, column)
    assert found.expected == expected


def test_recognition_of_the_empty_string():
    for text, complete in (('root ::= ""', True), ('root ::= "a"?', True), ('root ::= "a"', False)):
        found = recognize(Grammar.from_ebnf(text), "")
        assert found.accepted is found.complete is complete


def test_surrogates_are_read_as_utf_8_would_encode_them():
    grammar = Grammar.from_ebnf("root ::= [^a]")
    assert recognize(grammar, "\ud800").accepted
    assert recognize(grammar, b"\xed\xa0\x80").accepted
    assert not recognize(grammar, b"\xc0\x80").accepted


def test_recognition_of_a_large_repetition():
    """Counts are kept exactly, where folding may shorten them."""
    grammar = Grammar.from_ebnf('root ::= "a"{3,20000} "b"')
    for count, accepted in ((2, False), (3, True), (20_000, True), (20_001, False)):
        assert recognize(grammar, "a" * count + "b").accepted is accepted


def test_recognitions_are_values():
    grammar = Grammar.from_ebnf('root ::= "a"')
    assert recognize(grammar, "a") == recognize(grammar, b"a")
    with pytest.raises(AttributeError):
        recognize(grammar, "a").read = 5


def test_the_stub_of_the_package():
    """Everything that is promised is there."""
    for name in tokfold.__all__:
        assert getattr(tokfold, name) is not None
    assert json.dumps(tokfold.__version__)
