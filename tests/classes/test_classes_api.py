"""Classes as a user has them: shapes, members, dead ends, repetitions, what cannot be folded.

Whether classes are *right* is the business of ``test_classes_properties.py``.
"""

from __future__ import annotations

import numpy as np
import pytest
from classes.class_samples import BYTES, NESTED, words
from tokfold import Grammar, UnsupportedGrammarError, Vocabulary, compile_classes, recognize


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


# Arrays and members


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
    """And by the same work."""
    vocabulary = Vocabulary(LONG)
    found, expected = (
        compile_classes(Grammar.from_ebnf(f"root ::= {text}"), vocabulary, prune=prune)
        for text in (large, small)
    )
    assert found.class_of.tolist() == expected.class_of.tolist()
    for counted in ("work", "network_work", "network_states"):
        assert found.stats[counted] == expected.stats[counted]


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
        ('root ::= "x" a "c"\n  a ::= "a" (= "b")', "lookahead", 2, 3),
        ('root ::= "x" a [bc]\n  a ::= "a" (= "b")', "lookahead", 2, 3),
        ('root ::= "x" | a\na[lazy] ::= "a" | "(" a ")"', "lazy", 2, 1),
        ('root ::= "x" | a\n\na[max_tokens=5] ::= "a" | "(" a ")"', "max_tokens", 3, 1),
        ('root ::= "x" | a\na[max_chars=5] ::= "a" | "(" a ")"', "max_chars", 2, 1),
        ('root ::= "x" | a\na[max_chars=5] ::= "a"{6}', "max_chars", 2, 1),
        ('root ::= "x" | a\na[max_chars=5] ::= Token(1)', "max_chars", 2, 1),
        ('root ::= "x" | Token(1, 999)', "Token", 1, 16),
        ('root ::= TokenTagDispatch((999, a))\na ::= "a"', "TokenTagDispatch", 1, 10),
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
    text = 'root ::= b a\na[stop_capture="c"] ::= "a"\nb ::= "b" (= "c")'
    with pytest.raises(UnsupportedGrammarError, match=r"line 2, column 1: stop_capture"):
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
