"""What cannot be read is refused by name."""

from __future__ import annotations

import pickle

import pytest
from mask_store.lalr_oracle import accepts
from tokfold import Vocabulary
from tokfold.errors import LimitExceededError
from tokfold.mask_store.errors import LarkGrammarError, UnsupportedPatternError
from tokfold.mask_store.lark_reader import open_lark, read_lark
from tokfold.mask_store.transitions import LexerLimits, build_transitions

VOCABULARY = Vocabulary([bytes([b]) for b in range(256)])


def build(source, **options):
    return build_transitions(read_lark(source), VOCABULARY, **options)


UNSUPPORTED = [
    (r"/(a)\1/", "a back reference"),
    (r"/a(?(1)b|c)/", None),
    (r"/(?>a+)b/", "an atomic group"),
    (r"/a++b/", "a possessive repetition"),
    (r"/^a/", "the anchor ^"),
    (r"/a$/", "the anchor $"),
    (r"/a(?<!bc)/", "a lookbehind of other than one character"),
    (r"/(?<!b)a/", "a lookbehind or word boundary at its beginning"),
    (r"/\ba/", "a lookbehind or word boundary at its beginning"),
    (r"/a(?=b(?!c))/", "a lookaround inside another"),
    (r"/a(a*)*/", "the repetition of a part that may match nothing"),
    (r"/a(?=.*b).*?(c|d)/", "a lookahead that is still open where another match ends"),
    (r"/a(?!b+c)(?!d+e)/", "an end with several open lookaheads"),
]


@pytest.mark.parametrize(("pattern", "construct"), UNSUPPORTED)
def test_unsupported_patterns_are_named(pattern, construct):
    with pytest.raises(LarkGrammarError, match="T") as caught:
        build(f"start: T\nT: {pattern}\n")
    if construct is not None:
        error = caught.value
        assert isinstance(error, UnsupportedPatternError)
        assert (error.terminal, error.construct) == ("T", construct)
        copied = pickle.loads(pickle.dumps(error))
        assert str(copied) == str(error)
        assert copied.construct == construct


@pytest.mark.parametrize("pattern", ["/a(?!.|\\n)b/", "/[^\\s\\S]a/"])
def test_terminals_that_match_nothing_are_named(pattern):
    with pytest.raises(LarkGrammarError, match="terminal T matches no text"):
        build(f"start: T\nT: {pattern}\n")


def test_terminals_that_match_the_empty_string_are_named():
    with pytest.raises(LarkGrammarError, match=r"zero-width terminals.*T"):
        read_lark("start: T\nT: /a*/\n")


def test_a_lookahead_that_leaves_nothing_in_front_of_it_is_named():
    with pytest.raises(LarkGrammarError):
        build("start: T\nT: /(?=ab)/\n")


BROKEN = [
    ("start: a", "a"),
    ("start: (", "Unclosed"),
    ("start: A\nA: /(/", "A"),
    ('start: a | b\na: "x"\nb: "x"\n', "Reduce/Reduce"),
    ('begin: "x"\n', "start"),
]


@pytest.mark.parametrize(("source", "reason"), BROKEN)
def test_what_lark_refuses_is_refused_with_its_reason(source, reason):
    with pytest.raises(LarkGrammarError, match="Lark cannot compile grammar") as caught:
        read_lark(source)
    assert reason in str(caught.value)


def test_files_that_are_not_utf8_are_named(tmp_path):
    path = tmp_path / "x.lark"
    path.write_bytes(b'start: "\xff"\n')
    with pytest.raises(LarkGrammarError, match="not UTF-8 at byte 8"):
        open_lark(path)


def test_postlexers_without_the_attributes_are_named():
    with pytest.raises(LarkGrammarError, match="NL_type"):
        read_lark('start: "a"\n', postlex=object())
    with pytest.raises(LarkGrammarError, match="dynamic"):
        read_lark('start: "a"\n', lexer="dynamic")


def test_an_ignored_string_that_is_also_read_is_named():
    source = 'start: (A | B)+\nA: "x"\nB: /[a-z]/\n%ignore A\n'
    with pytest.raises(LarkGrammarError, match="A is ignored and stands in rules"):
        build(source)


def test_bounds_are_named():
    with pytest.raises(LarkGrammarError, match="more than 20000 instructions"):
        build("start: T\nT: /(a{500}){500}/\n")
    for field in ("max_lexer_states", "max_walk_work"):
        with pytest.raises(LimitExceededError) as caught:
            build('start: "abc" "d"\n', limits=LexerLimits(**{field: 1}))
        assert caught.value.limit == field
    with pytest.raises(LarkGrammarError, match="more than 3 states"):
        build("start: T\nT: /abcdef|x/\n", limits=LexerLimits(max_terminal_states=3))


def test_progress_may_stop_the_walk():
    def stop(done, known):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build('start: "a"\n', progress=stop)


def test_texts_without_a_last_newline_are_those_of_the_grammar():
    transitions = build('start: (NAME "\\n")+\nNAME: /[a-z]+/\n')
    assert accepts(transitions, [b"a", b"b", b"\n"])
    assert not accepts(transitions, [b"a", b"\n", b"b"])


def test_a_long_token_is_no_trouble():
    vocabulary = Vocabulary([b"a" * 30_000, b" " * 30_000, b"=" * 30_000, b"a", b" ", b"="])
    grammar = read_lark('start: (NAME "=")+\nNAME: /[a-z]+/\n%ignore " "\n')
    transitions = build_transitions(
        grammar, vocabulary, limits=LexerLimits(max_walk_work=3_000_000)
    )
    assert transitions.sizes()["work"] < 3_000_000
    assert accepts(transitions, [b"a" * 30_000, b" " * 30_000, b"=", b"a", b"="])


def test_a_line_of_what_two_terminals_share_has_few_ways():
    # Where `**` is not looked for, each star is one: without the parser 2 to the 24 ways.
    rules = 'start: "x" ("*" "y" | "**" "y") | "z" "*" "y"\n'
    stars = b"*" * 24
    vocabulary = Vocabulary([b"x", b"y", b"z", b"*", stars, stars + b"y", b"x*", b"**"])
    t = build_transitions(read_lark(rules), vocabulary)
    for state in range(t.start + 1):
        for token in (stars, stars + b"y"):
            assert len(t.advance(state, token)) <= 2
    assert accepts(t, [b"x*", b"*", b"y"])
    assert not accepts(t, [b"z", b"**"])
