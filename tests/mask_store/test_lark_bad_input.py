"""What cannot be read is refused by name."""

from __future__ import annotations

import codecs
import pickle
import re

import lark
import numpy as np
import pytest
from mask_store.lalr_oracle import accepts
from mask_store.lark_texts import parses
from tokfold import Vocabulary
from tokfold.errors import LimitExceededError
from tokfold.mask_store.errors import LarkGrammarError, UnsupportedPatternError
from tokfold.mask_store.lark_reader import open_lark, read_lark
from tokfold.mask_store.lexer_types import LexerLimits
from tokfold.mask_store.matcher import StoreMatcher
from tokfold.mask_store.predicates import Predicates
from tokfold.mask_store.store import MaskStore
from tokfold.mask_store.transitions import build_transitions

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
    (r"/(?m)ab/", "a flag for the whole expression"),
    (r"/a(?=$)/", "the anchor $"),
    (r"/(?<=a)b/", "a lookbehind or word boundary at its beginning"),
    (r"/a(?=(?<=ab)c)/", "a lookaround inside another"),
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


@pytest.mark.parametrize("name", [".nowhere", "nowhere"])
def test_a_file_that_is_imported_and_not_there_is_named(name):
    with pytest.raises(LarkGrammarError, match=r"no file nowhere\.lark.*import_paths.*open_lark"):
        read_lark(f"%import {name}.Y\nstart: Y\n")


def test_a_file_that_is_imported_and_cannot_be_read_is_named(tmp_path):
    (tmp_path / "folder.lark").mkdir()
    with pytest.raises(LarkGrammarError, match=r"no file folder\.lark .*, or it cannot be read"):
        read_lark("%import .folder.Y\nstart: Y\n", import_paths=[str(tmp_path)])


@pytest.mark.parametrize("source", ["start:\n", "start: A\n%declare A\n"])
def test_grammars_without_a_terminal_to_read_are_named(source):
    with pytest.raises(LarkGrammarError, match="no terminal with a pattern"):
        build(source)


@pytest.mark.parametrize("body", ['""', '"" "a"', "T\nT: /a|/", "T\nT: /(?!)/", "T\nT: /a*?/"])
def test_empty_terminals_are_refused_wherever_they_stand(body):
    with pytest.raises(LarkGrammarError, match=r"(?i)empty|zero-width"):
        build(f"start: {body}\n")


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


@pytest.mark.parametrize("ending", ["", "\n", "\r\n", "  // the end", "\n\n  "])
def test_files_may_end_without_a_newline(tmp_path, ending):
    path = tmp_path / "x.lark"
    path.write_bytes(f'start: T "b"\nT: /a+/\n%ignore " "{ending}'.encode())
    transitions = build_transitions(open_lark(path), VOCABULARY)
    assert accepts(transitions, [b"a", b" ", b"a", b"b"]) is False
    assert accepts(transitions, [b"a", b"a", b" ", b"b"])


CONFLICTS = [
    ('start: e\ne: e "+" e | "x"\n', "PLUS", "shift", ("e -> e PLUS e",), ["x+x+x", "x+", "+x"]),
    (
        'start: s\ns: "i" s | "i" s "e" s | "x"\n',
        "E",
        "shift",
        ("s -> I s",),
        ["ix", "ixex", "iixex", "iixexex", "ixexex", "xex", "iixexexex"],
    ),
    (
        'start: a "c" | b "c" "d"\na.2: "x"\nb: "x"\n',
        "C",
        "a -> X",
        ("b -> X",),
        ["xc", "xcd", "x"],
    ),
]


@pytest.mark.parametrize(("source", "terminal", "kept", "dropped", "texts"), CONFLICTS)
def test_conflicts_are_named_and_what_decodes_is_the_table_that_decided(
    source, terminal, kept, dropped, texts
):
    predicates = Predicates(read_lark(source))
    (conflict,) = predicates.conflicts
    assert (conflict.terminal, conflict.kept, conflict.dropped) == (terminal, kept, dropped)
    assert conflict.before
    store = MaskStore(read_lark(source), Vocabulary([bytes([b]) for b in range(128)]))
    parser = lark.Lark(source, parser="lalr")
    verdicts = set()
    for text in texts:
        matcher = StoreMatcher(store)
        expected = parses(parser, text)
        assert (matcher.accept_string(text) and matcher.is_accepting) == expected, text
        verdicts.add(expected)
    assert verdicts == {True, False}


def test_the_rule_that_lost_a_conflict_is_not_in_masks():
    # By the rules `xcd` is a text; the table reads `a` there, and then wants the end.
    matcher = StoreMatcher(MaskStore(read_lark(CONFLICTS[2][0]), VOCABULARY))
    assert matcher.accept_string("xc")
    row = np.zeros(8, np.int32)
    matcher.fill_bitmask(row)
    assert not row.any()
    assert matcher.is_accepting


PARTIAL = [b"\xe6", b"\x97", b"\xa5", b"\x97\xa5", b'\xa5"', b"\xe6\x97", b'"\xe6', b'"', b"x"]


def test_tokens_of_parts_of_characters_join_to_characters_alone():
    vocabulary = Vocabulary([*PARTIAL, b"\xf0", b"\x80"])
    store = MaskStore(read_lark('start: STRING+\nSTRING: /"[^"]*"/\n'), vocabulary)
    seen = 0
    waiting = [()]
    for tokens in waiting:
        matcher = StoreMatcher(store)
        assert matcher.accept_tokens(tokens) == len(tokens)
        row = np.zeros(1, np.int32)
        matcher.fill_bitmask(row)
        for token in range(len(vocabulary)):
            fork = matcher.fork()
            assert fork.accept_token(token) == bool(row[0] >> token & 1)
            data = matcher.text + vocabulary[token]
            decoder = codecs.getincrementaldecoder("utf-8")()
            try:
                text = decoder.decode(data)
            except UnicodeDecodeError:
                assert not row[0] >> token & 1, data
                continue
            is_inside = text.count('"') % 2 == 1
            begun = re.fullmatch(r'("[^"]*")*("[^"]*)?', text)
            is_part = bool(decoder.getstate()[0])
            expected = bool(begun) and (is_inside or not is_part)
            assert bool(row[0] >> token & 1) == expected, data
            if expected:
                assert fork.is_accepting == (not is_inside)
            if row[0] >> token & 1 and len(tokens) < 4:
                waiting.append((*tokens, token))
            seen += 1
    assert seen > 500


def test_a_vocabulary_that_cannot_finish_a_character_is_no_error():
    store = MaskStore(read_lark('start: "日"\n'), Vocabulary([b"\xe6", b"a"]))
    matcher, row = StoreMatcher(store), np.zeros(1, np.int32)
    matcher.fill_bitmask(row)
    assert row.tolist() == [1]
    assert matcher.accept_token(0)
    matcher.fill_bitmask(row)
    assert not row.any()
    assert not matcher.is_accepting


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
            assert len(t._core.advance(state, token)) <= 2
    assert accepts(t, [b"x*", b"*", b"y"])
    assert not accepts(t, [b"z", b"**"])
