"""The lexer states against Lark's own lexer, in the context of its parser."""

from __future__ import annotations

import itertools
import re

import lark
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from lark.indenter import PythonIndenter
from mask_store.lalr_oracle import Engine, accepts
from mask_store.lark_texts import parses
from mask_store.lexer_oracles import match_length
from mask_store.lexer_views import Column, Letter, LexerView
from tokfold import Vocabulary
from tokfold.mask_store.byte_automata import terminal_automaton
from tokfold.mask_store.errors import LarkGrammarError
from tokfold.mask_store.lark_reader import read_lark
from tokfold.mask_store.transitions import build_transitions

PATTERNS = [
    '"a"',
    '"ab"',
    '"b"',
    '"="',
    '"=="',
    '"if"',
    '"in"',
    '"i"i',
    "/[a-z]+/",
    "/[ab]+/",
    "/[a-z_]+=/",
    "/a+b/",
    "/i[a-z]?/",
    "/[0-9]+/",
    "/[0-9]+\\.[0-9]*/",
    "/[0-9]+(?![a-z])/",
    "/=(?=a)/",
    "/(ab?)+?/",
    "/=.*?=/",
    "/1*?2/",
    "/[a-z]+\\b/",
    "/é+/",
    "/[^\\W\\d]+/",
]
LETTERS = "ab=in1.2 é\n"

bodies = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3), min_size=1, max_size=4)


@st.composite
def grammars(draw):
    chosen = draw(st.lists(st.sampled_from(PATTERNS), min_size=2, max_size=6, unique=True))
    priorities = draw(st.lists(st.sampled_from(["", "", ".1"]), min_size=6, max_size=6))
    names = [f"T{i}" for i in range(len(chosen))]
    lines = [f"{n}{p}: {c}" for n, p, c in zip(names, priorities, chosen, strict=False)]
    rules = [" ".join(names[i % len(names)] for i in body) for body in draw(bodies)]
    shape = draw(st.sampled_from(["start: item*", "start: item item", 'start: item ("i" start)?']))
    ignored = draw(st.sampled_from(["", "%ignore / +/", "%ignore /[ =]+/", "%ignore /\\n/"]))
    return "\n".join([shape, "item: " + " | ".join(sorted(set(rules))), *lines, ignored, ""])


TOKENS = sorted({*LETTERS, *(a + b for a in LETTERS for b in "ab=i1 "), "if", "abab", "==="})
VOCABULARY = Vocabulary([t.encode() for t in TOKENS] + [b"\xc3", b"\xa9", b"\xa9a"])
EVERY_BYTE = Vocabulary([bytes([byte]) for byte in range(256)])


def made(text, lexer):
    try:
        grammar = read_lark(text, lexer=lexer)
        return grammar, build_transitions(grammar, VOCABULARY)
    except LarkGrammarError:
        assume(False)
        raise


@given(
    grammars(),
    st.sampled_from(["contextual", "basic"]),
    st.lists(st.lists(st.sampled_from(TOKENS), max_size=6), min_size=5, max_size=40),
)
def test_texts_are_accepted_as_lark_accepts_them(text, lexer, texts):
    _, transitions = made(text, lexer)
    parser = lark.Lark(text, parser="lalr", lexer=lexer)
    for tokens in texts:
        ours = accepts(transitions, [t.encode() for t in tokens])
        assert ours == parses(parser, "".join(tokens)), (text, tokens)


@given(grammars(), st.sampled_from(["contextual", "basic"]), st.text(LETTERS, max_size=6))
def test_how_a_text_is_split_does_not_matter(text, lexer, data):
    _, transitions = made(text, lexer)
    whole = data.encode()
    by_character = accepts(transitions, [c.encode() for c in data])
    pairs = []
    while data:
        size = 2 if data[:2] in TOKENS else 1
        pairs.append(data[:size].encode())
        data = data[size:]
    assert accepts(transitions, pairs) == by_character, whole
    # Whole at once, into states that need no rows.
    single = [bytes([byte]) for byte in whole]
    if all(s in (b"\xc3", b"\xa9") or s.decode("latin-1") in TOKENS for s in single):
        assert accepts(transitions, single) == by_character


@given(grammars(), st.sampled_from(["contextual", "basic"]))
def test_rows_say_what_the_bytes_do(text, lexer):
    compare_rows(LexerView(made(text, lexer)[1]))


INDENTED = """
start: line*
line: "a" ["(" "b"* ")"] _NEWLINE [_INDENT line+ _DEDENT]
_NEWLINE: /(\\n *)+/
%ignore / +/
%declare _INDENT _DEDENT
"""


class Indenter(PythonIndenter):
    OPEN_PAREN_types = ["LPAR"]  # noqa: RUF012
    CLOSE_PAREN_types = ["RPAR"]  # noqa: RUF012


@pytest.mark.parametrize("lexer", ["contextual", "basic"])
def test_rows_of_newlines_say_what_the_bytes_do(lexer):
    tokens = ["a", "b", "(", ")", "\n", " ", "\nb", "(\nb", "\n  a", " a", "\n)", "a\n \n", "b\n"]
    grammar = read_lark(INDENTED, lexer=lexer, postlex=Indenter())
    t = LexerView(build_transitions(grammar, Vocabulary([token.encode() for token in tokens])))
    compare_rows(t)
    newline = grammar.terminal("_NEWLINE")
    kinds = {letter.column.kind for letter in t.letters if letter.terminal == newline}
    assert kinds == {"open", "at", "after"}


def compare_rows(t):
    grammar, sets = t.grammar, t.scanner_sets
    newline = grammar.indentation and grammar.terminal(grammar.indentation.newline)
    shared, own = {}, {}
    for part, sequence, tokens in t.shared_rows.tolist():
        shared.setdefault(part, []).append((sequence, tokens))
    for c, terminal, scanners, sequence, tokens in t.own_rows.tolist():
        own.setdefault((c, terminal), []).append((scanners, sequence, tokens))
    for state, (configuration, terminal) in enumerate([*t.states, (None, None)]):
        rows = set()
        for scanners, sequence, tokens in own.get((configuration, terminal), ()):
            letters = tuple(t.letters[i] for i in t.sequences[sequence])
            rows |= {(scanners, letters, int(n)) for n in t.token_sets[tokens]}
        ends = [(1, 0)] if terminal is None else []
        for c, ended, scanners, part in t.at_once.tolist():
            if (c, ended) == (configuration, terminal):
                ends.append((scanners, part))
        for scanners, part in ends:
            for sequence, tokens in shared.get(part, ()):
                letters = tuple(t.letters[i] for i in t.sequences[sequence])
                if terminal is not None and terminal == newline:
                    # A newline in progress that ends at once ends where it stands.
                    letters = (Letter(terminal, 0, Column("after", 0)), *letters)
                rows |= {(scanners, letters, int(n)) for n in t.token_sets[tokens]}
        if terminal is None:
            assert state == t.start
        stepped = {
            (way.scanners, way.letters, number)
            for number in range(len(t.vocabulary))
            for way in t.advance(state, t.vocabulary[number])
        }
        assert readable(t, sets, terminal, rows) == readable(t, sets, terminal, stepped)
    assert grammar is t.grammar


def readable(t, sets, terminal, rows):
    """What a row says to a parser: each letter in the scanners that it can be in."""
    known = None if terminal is None else t.grammar.terminals[terminal]
    first = None if known is None or known.is_ignored else known.name
    after = {}
    newline = t.grammar.indentation and t.grammar.indentation.newline
    after[newline] = set(range(len(t.grammar.scanners)))
    for shifts in t.grammar.table.shifts:
        for name, state in shifts.items():
            after.setdefault(name, set()).add(t.grammar.scanner_of_state[state])
    said = set()
    for scanners, letters, number in rows:
        path, before, possible = [], first, True
        for letter in letters:
            able = {j for j in range(sets.shape[1]) if sets[letter.scanners][j]}
            if letter.scanners == 0:
                path.append(letter)
                continue
            able &= {j for j, s in enumerate(t.grammar.scanners) if letter.terminal in s}
            ignored = t.grammar.terminals[letter.terminal].is_ignored
            if before is not None:
                able &= after.get(before, set())
            possible &= bool(able)
            path.append((letter.terminal, frozenset(able), letter.column))
            if not ignored:
                before = t.grammar.terminals[letter.terminal].name
        if possible:
            said.add((scanners, tuple(path), number))
    return said


MATCHED = [
    *((pattern, "ab=i1") for pattern in PATTERNS),
    ('/"(?!"").*?(?<!\\\\)(\\\\\\\\)*?"/', '"\\a'),
    ("/a(?!bb)[ab]*/", "ab"),
    ("/a(?=b)[ab]+?/", "ab"),
    ("/(a|ab)(c|bcd)?/", "abcd"),
    ("/(ab|a)(bc)?/", "abc"),
    ("/a+?b*?(a|b)/", "ab"),
    ("/\\/\\*(.|\\n)*?\\*\\//", "/*\n"),
    ("/[a-z]+\\B[a-z]=?/", "a=1"),
    ("/a{2,4}?b?/", "ab"),
    ("/a(?!b|=)/", "ab="),
    ("/(?i:k+|straße)/", "kKKſs"),
    ("/日[à-ü]?|é+./s", "日éa\n"),
]


@pytest.mark.parametrize(("pattern", "letters"), MATCHED)
def test_a_terminal_matches_what_re_matches(pattern, letters):
    grammar = read_lark(f"start: T\nT: {pattern}\n")
    [terminal] = grammar.terminals
    automaton = terminal_automaton(grammar.terminals[0], grammar.global_flags)
    matched = 0
    for size in range(6):
        for characters in itertools.product(letters, repeat=size):
            text = "".join(characters)
            match = re.match(terminal.pattern, text)
            expected = None if match is None else len(match.group().encode())
            assert match_length(automaton, text.encode()) == expected, text
            matched += match is not None
    assert matched or (pattern, letters) in MATCHED[: len(PATTERNS)]


def engine(text, tokens, lexer="contextual"):
    grammar = read_lark(text, lexer=lexer)
    vocabulary = Vocabulary([t.encode() for t in tokens])
    return Engine(build_transitions(grammar, vocabulary))


def test_a_keyword_ends_where_nothing_longer_is_looked_for():
    text = 'start: NAME ["as" NAME]\nNAME: /[a-z]+/\n%ignore " "\n'
    for lexer, expected in (("contextual", True), ("basic", False)):
        e = engine(text, ["foo", " ", "as", "bar"], lexer)
        assert [e.accept(t) for t in (b"foo", b" ", b"as", b"bar")][:3] == [True] * 3
        assert (bool(e.front) and e.complete()) == expected


def test_an_ignored_terminal_does_not_hide_what_stood_before():
    e = engine('start: "a" "b"\n%ignore " "\n', ["a", " ", "b", " b", "a "])
    assert e.accept(b"a ")
    assert e.accept(b" ")
    assert not Engine(e.transitions).accept(b"b")
    assert e.accept(b" b")
    assert e.complete()


@pytest.mark.parametrize("text", ["1.5", "1.", "1", "1.a"])
def test_what_could_become_longer_stays_open(text):
    rules = 'start: (INT | FLOAT | "." | NAME)+\nINT: /[0-9]+/\n'
    source = rules + "FLOAT.1: /[0-9]+\\.[0-9]+/\nNAME: /[a-z]+/\n"
    parser = lark.Lark(source, parser="lalr")
    grammar = read_lark(source)
    t = build_transitions(grammar, Vocabulary([b"1", b".", b"5", b"a", b"1."]))
    assert accepts(t, [bytes([b]) for b in text.encode()]) == parses(parser, text)


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_a_keyword_behind_what_might_go_on_keeps_its_name(lexer):
    # After N a name and the keyword are looked for, elsewhere the keyword alone.
    source = 'start: N (NAME "!" | "else") | ")" "else"\nN: /1(e2)?/\nNAME: /[a-z]+/\n'
    parser = lark.Lark(source, parser="lalr", lexer=lexer)
    for text in ("1else", ")else", "1els!", "1e2else", "1elsee!", "1else!", "1e!", "1e2", "1e"):
        t = build_transitions(read_lark(source, lexer=lexer), EVERY_BYTE)
        tokens = [bytes([byte]) for byte in text.encode()]
        assert accepts(t, tokens) == parses(parser, text), text
