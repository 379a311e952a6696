"""Grammars in: every way to make one, what it says of itself, and what it says when it cannot.

The language itself is tested beside the parser, in Rust; here it is what a Python user holds in
hand: texts, files, the converters, printing, pickles, errors with their places.
"""

from __future__ import annotations

import copy
import importlib.util
import json
import os
import pickle
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import tokfold
from support import processes
from tokfold import (
    ArgumentTypeError,
    Grammar,
    GrammarSyntaxError,
    InvalidSchemaError,
    LimitExceededError,
    Limits,
    TokfoldError,
    UnsatisfiableSchemaError,
    UnsupportedGrammarError,
    UnsupportedSchemaError,
    Vocabulary,
    compile_classes,
    recognize,
)

FOLDER = Path(__file__).parents[2] / "grammars"
FILES = sorted(FOLDER.rglob("*.ebnf")) + sorted(FOLDER.rglob("*.gbnf"))

IGNORED = ("line 2, column 9", "%ignore")

TEXTS = [
    'root ::= "a"',
    'root ::= ""',
    "root ::= []",
    "root ::= [^]",
    'root ::= "a" | "b" "c" | ""',
    'root ::= ("a" | "b")* "c"? ("d" "e")+ "f"{3} "g"{3,} "h"{3,50000}',
    r'root ::= "\n\r\t\\\"\x41\u00e9\U0001F600\0" [\]\-\^a-z\\] [^"\\\x00-\x1f]',
    'root ::= "é😀" [α-ω]',
    'root ::= root root | "a" root "b" | ""',
    "root ::= a\n  b # comment\n| c\na ::= \"a\"\nb ::= 'b'\nc ::= [c]".replace("'b'", '"b"'),
    'root ::= a\na[lazy, max_tokens=5, max_chars=7, capture="x", temperature=1.5] ::= "a" (= "b")',
    'root ::= TagDispatch(("<t>", a), loop_after_dispatch=false) | Token(1, 2)\na ::= "a"',
    'a-b.c_1 ::= "x"\nroot ::= a-b.c_1',
]


def accepts(grammar: Grammar, *texts: str | bytes) -> list[bool]:
    return [recognize(grammar, text).accepted for text in texts]


# Printing


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_printed_is_read_back(text):
    grammar = Grammar.from_ebnf(text)
    printed = str(grammar)
    again = Grammar.from_ebnf(printed)
    assert again == grammar
    assert str(again) == printed
    assert (again.rule_names, again.root) == (grammar.rule_names, grammar.root)
    assert again.fingerprint == grammar.fingerprint
    assert str(grammar) is str(grammar), "printed once"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_real_grammars_are_read_back(path):
    grammar = Grammar.from_file(path)
    assert Grammar.from_ebnf(str(grammar)) == grammar


def test_there_are_real_grammars():
    assert len(FILES) >= 10


def test_layout_is_no_difference():
    one = Grammar.from_ebnf('root ::= "a" | b "c"\nb ::= "b"')
    for text in (
        '# first\nroot   ::=   "a"   | b   "c" # x\n\n\nb::="b"\n\n',
        'root ::= "a"\n  | b\n    "c"\nb ::=\n "b"',
        'root ::= "a" | (b "c")\r\nb ::= (("b"))\r\n',
        'root ::= "\\x61" | b "\\u0063"\nb ::= "\\U00000062"',
    ):
        other = Grammar.from_ebnf(text)
        assert other == one
        assert hash(other) == hash(one)
        assert other.fingerprint == one.fingerprint


def test_what_is_a_difference():
    texts = [
        'root ::= "a" | b "c"\nb ::= "b"',
        'root ::= b "c" | "a"\nb ::= "b"',
        'b ::= "b"\nroot ::= "a" | b "c"',
        'root ::= "a" | x "c"\nx ::= "b"',
        'root ::= "a" | b "c"\nb[lazy] ::= "b"',
        'root ::= "a" | b "c"\nb ::= "b" (= "c")',
        'root ::= "a" | b "c"\nb ::= [b]',
    ]
    grammars = [Grammar.from_ebnf(text) for text in texts]
    grammars += [Grammar.from_ebnf(texts[0], "b"), Grammar.from_ebnf(texts[0], lookahead="implied")]
    assert len(set(grammars)) == len(grammars)
    assert len({grammar.fingerprint for grammar in grammars}) == len(grammars)
    for i, one in enumerate(grammars):
        assert [one == other for other in grammars] == [i == j for j in range(len(grammars))]


def test_fingerprints_are_the_same_in_every_process():
    grammar = Grammar.from_ebnf(TEXTS[5])
    script = f"from tokfold import *; print(Grammar.from_ebnf({TEXTS[5]!r}).fingerprint)"
    path = str(Path(tokfold.__file__).parent.parent)
    for seed in ("0", "1"):
        done = processes.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed},
            check=True,
        )
        assert done.stdout.strip() == grammar.fingerprint
    assert len(grammar.fingerprint) == 64


# Values


@pytest.mark.parametrize("text", TEXTS)
def test_pickles_and_copies(text):
    grammar = Grammar.from_ebnf(text, lookahead="implied")
    again = pickle.loads(pickle.dumps(grammar))
    for other in (again, copy.copy(grammar), copy.deepcopy(grammar)):
        assert other == grammar
        assert hash(other) == hash(grammar)
        assert other.lookahead == "implied"
        assert str(other) == str(grammar)


def test_a_pickle_keeps_the_root():
    grammar = Grammar.from_ebnf('a ::= "x"\nb ::= a "y"', "b")
    assert pickle.loads(pickle.dumps(grammar)).root == "b"


def test_a_pickle_of_what_raised_limits_let_in():
    deep = "root ::= " + "(" * 1_500 + '"a" "b"' + ")*" * 1_500
    grammar = Grammar.from_ebnf(deep, limits=Limits(max_nesting=5_000))
    assert pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(grammar)))) == grammar
    # Printing writes a control character as four: longer than what was read.
    tight = Grammar.from_ebnf('root ::= "\x01\x02"', limits=Limits(max_grammar_bytes=13))
    assert pickle.loads(pickle.dumps(tight)) == tight
    assert pickle.loads(pickle.dumps(grammar)) == grammar


def test_names_and_repr():
    grammar = Grammar.from_ebnf('z ::= "z"\nroot ::= z | a\na ::= "a"')
    assert (grammar.root, grammar.rule_names) == ("root", ["z", "root", "a"])
    assert repr(grammar) == "Grammar(root='root', rules=3)"
    assert grammar != str(grammar)
    assert (grammar == 5) is False


def test_what_the_text_of_a_grammar_keeps():
    """Its texts, under its own root; what grammar text cannot say raises, and pickle keeps it."""
    lark = Grammar.from_lark('start: "a" | "b" start')
    again = Grammar.from_ebnf(str(lark), lark.root)
    assert [recognize(again, text).accepted for text in ("a", "bba", "b")] == [True, True, False]
    different = Grammar.from_json_schema({"items": {"type": "string"}, "uniqueItems": True})
    with pytest.raises(UnsupportedGrammarError, match="grammar text cannot say"):
        str(different)
    assert pickle.loads(pickle.dumps(different)) == different


def test_a_grammar_is_made_by_a_method():
    with pytest.raises(TypeError, match="from_ebnf"):
        Grammar()
    with pytest.raises(TypeError, match="from_ebnf"):
        Grammar('root ::= "a"')
    for wrong in (None, b'root ::= "a"', 5, ["root"]):
        with pytest.raises(TypeError, match="grammar text must be a str, not"):
            Grammar.from_ebnf(wrong)
    with pytest.raises(ValueError, match="lookahead must be 'exact' or 'implied', not 'both'"):
        Grammar.from_ebnf('root ::= "a"', lookahead="both")


# The root


def test_a_chosen_root():
    text = 'a ::= "x" b | "z"\nb ::= "y" a'
    assert accepts(Grammar.from_ebnf(text, "a"), "z", "xyz", "yz") == [True, True, False]
    assert accepts(Grammar.from_ebnf(text, "b"), "z", "xyz", "yz") == [False, False, True]


@pytest.mark.parametrize(
    ("text", "good", "bad"),
    [
        ('root ::= "(" root ")" | "a"', ["a", "((a))"], ["", "(a", "a)"]),
        ('root ::= root "+" root | "a"', ["a", "a+a+a"], ["", "a+", "+a"]),
        ('root ::= root "d" | "c"', ["c", "cdd"], ["d", "dc"]),
        ('root ::= b\nb ::= "x" root | "y"', ["y", "xxy"], ["x", "yx"]),
        ('root ::= n root "a" | "b"\nn ::= "n" | ""', ["b", "baa", "nba", "nnbaa"], ["nb", "a"]),
        ('root ::= root | "a"', ["a"], ["", "aa"]),
    ],
)
def test_a_root_in_bodies(text, good, bad):
    grammar = Grammar.from_ebnf(text)
    assert accepts(grammar, *good) == [True] * len(good)
    assert accepts(grammar, *bad) == [False] * len(bad)


def test_a_root_that_is_not_there():
    text = 'start ::= "a"\nroot_ ::= "b"'
    with pytest.raises(
        GrammarSyntaxError, match=r'no rule is named "root".*"start", "root_".*"root_"'
    ):
        Grammar.from_ebnf(text)
    with pytest.raises(
        GrammarSyntaxError, match=r'no rule is named "startt".*rename "start", or ask for it'
    ) as caught:
        Grammar.from_ebnf(text, "startt")
    assert (caught.value.line, caught.value.column) == (1, 1)
    with pytest.raises(GrammarSyntaxError, match='no rule is named ""'):
        Grammar.from_ebnf(text, "")


# Errors


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, ["no rules", "root ::="]),
        ("# only this\n", 2, 1, ["no rules"]),
        ("root", 1, 5, ["::="]),
        ("root ::=", 1, 1, ['"root"', "right-hand side"]),
        ('root ::= "a', 1, 10, ['"']),
        ('root ::= "a" "b\n"', 1, 14, ['"']),
        ("root ::= [a", 1, 10, ["]"]),
        ("root ::= [z-a]", 1, 11, ["z", "a"]),
        ('root ::= ("a"', 1, 10, ["not closed"]),
        ('root ::= "a")', 1, 13, ["closes nothing"]),
        ('root ::= "a"{3,2}', 1, 13, ["3", "2"]),
        ('root ::= "a"{,2}', 1, 13, ["{0,n}"]),
        ('root ::= "a"{2', 1, 15, ["}"]),
        ("root ::= *", 1, 10, ["repeat"]),
        ('root ::= "a" % "b"', 1, 14, ["`%`"]),
        ('root = "a"', 1, 6, ["::="]),
        ('root := "a"', 1, 6, ["::="]),
        ('root ::= "a"\nroot ::= "b"', 2, 1, ["twice", "line 1"]),
        ('root ::= "\\q"', 1, 11, ["\\q"]),
        ('root ::= "\\u12"', 1, 11, ["\\u"]),
        ('root ::= "\\U00110000"', 1, 11, ["10FFFF"]),
        ("root ::= 'a'", 1, 10, ['"']),
        ('root ::= "é😀" %', 1, 15, ["`%`"]),
        ('root ::= "a"\n\t%', 2, 2, ["`%`"]),
        ('root ::= "a"\r\n  %', 2, 3, ["`%`"]),
        ('\ufeffroot ::= "a" %', 1, 14, ["`%`"]),
        ('root ::= "a"\0', 1, 13, ["NUL"]),
    ],
)
def test_errors_say_where_and_what(text, line, column, words):
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_ebnf(text)
    error = caught.value
    assert (error.line, error.column) == (line, column), error
    assert str(error).startswith(f"line {line}, column {column}: ")
    for word in words:
        assert word in str(error)
    assert isinstance(error, TokfoldError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("text", "wrong", "near"),
    [
        ('root ::= exprr\nexpr ::= "a"', "exprr", "expr"),
        ('root ::= stirng\nnumber ::= "1"\nstring ::= "a"', "stirng", "string"),
        ('root ::= roo | "a"', "roo", "root"),
    ],
)
def test_an_undefined_rule_names_the_nearest(text, wrong, near):
    with pytest.raises(GrammarSyntaxError, match=f'"{wrong}".*"{near}"') as caught:
        Grammar.from_ebnf(text)
    assert (caught.value.line, caught.value.column) == (1, 10)


def test_an_undefined_rule_far_from_all():
    with pytest.raises(GrammarSyntaxError, match="zzz") as caught:
        Grammar.from_ebnf('root ::= "a"\n  | zzz')
    assert (caught.value.line, caught.value.column) == (2, 5)
    assert "root" not in str(caught.value)


def test_errors_can_be_sent_to_another_process():
    with pytest.raises(GrammarSyntaxError) as syntax:
        Grammar.from_ebnf("root ::= %")
    with pytest.raises(LimitExceededError) as limit:
        Grammar.from_ebnf('root ::= "a"', limits=Limits(max_grammar_bytes=3))
    with pytest.raises(tokfold.UnsupportedGrammarError) as unsupported:
        recognize(Grammar.from_ebnf("root ::= Token(1)"), "")
    for error in (syntax.value, limit.value, unsupported.value):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


# Files


def test_files(tmp_path):
    path = tmp_path / "g.ebnf"
    path.write_bytes('root ::= "é" | b\nb ::= "b"'.encode())
    for where in (path, str(path)):
        assert Grammar.from_file(where) == Grammar.from_ebnf('root ::= "é" | b\nb ::= "b"')
    assert Grammar.from_file(path, "b").root == "b"
    with pytest.raises(LimitExceededError):
        Grammar.from_file(path, limits=Limits(max_rules=1))


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_marks(tmp_path, newline, mark):
    plain = 'root ::= "a" # note\n  | b\nb ::= "b"\n'
    text = mark + plain.replace("\n", newline)
    (tmp_path / "g").write_bytes(text.encode())
    assert Grammar.from_file(tmp_path / "g") == Grammar.from_ebnf(plain)
    assert Grammar.from_ebnf(text) == Grammar.from_ebnf(plain)
    (tmp_path / "g").write_bytes((text + "%").encode())
    with pytest.raises(GrammarSyntaxError) as caught:
        Grammar.from_file(tmp_path / "g")
    assert (caught.value.line, caught.value.column) == (4, 1)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"type": "object"}', 1, 1),
        ('\ufeff{"type": "object"}', 1, 1),
        ('\n  {\n"type": "object"', 2, 3),  # cut off
        ("{}", 1, 1),
    ],
)
def test_json_is_no_grammar_text(tmp_path, text, line, column):
    path = tmp_path / "a.json"
    path.write_text(text, "utf-8")
    said = r"line \d, column \d: this is JSON .*, not {}; call Grammar.from_json_schema\(text\)"
    for read, language in (
        (lambda: Grammar.from_file(path), "grammar text"),
        (lambda: Grammar.from_ebnf(text), "grammar text"),
        (lambda: Grammar.from_lark(text), "Lark"),
    ):
        with pytest.raises(GrammarSyntaxError, match=said.format(language)) as caught:
            read()
        assert (caught.value.line, caught.value.column) == (line, column)
    with pytest.raises(GrammarSyntaxError, match=r"found `\{`"):
        Grammar.from_ebnf("{a}")


@pytest.mark.parametrize(
    ("data", "line", "column", "byte"),
    [
        (b"\xff", 1, 1, "0xff"),
        (b'root ::= "\xe9"', 1, 11, "0xe9"),
        (b'root ::= "\xc3\xa9\xc3"', 1, 12, "0xc3"),
        (b'# \xf0\x9f\x98\x80\nroot ::=\n "\xed\xa0\x80"', 3, 3, "0xed"),
        (b'\xef\xbb\xbfroot ::= "\xe9"', 1, 11, "0xe9"),
        ('root ::= "a"'.encode("utf-16"), 1, 1, "0xff"),
    ],
)
def test_bytes_that_are_not_utf_8(tmp_path, data, line, column, byte):
    path = tmp_path / "g"
    path.write_bytes(data)
    with pytest.raises(GrammarSyntaxError, match=f"byte {byte} is not UTF-8") as caught:
        Grammar.from_file(path)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).startswith(f"{path}: line {line}, column {column}: ")


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('\ud800root ::= "a"', 1, 1),
        ('root ::= "a"\n# é\udfff', 2, 4),
        ('root ::= "\ud83d\ude00"', 1, 11),
    ],
)
def test_lone_surrogates(text, line, column):
    with pytest.raises(GrammarSyntaxError, match="surrogate") as caught:
        Grammar.from_ebnf(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_surrogate_pairs_are_the_character_that_json_means():
    for grammar in (
        Grammar.from_ebnf(r'root ::= "\ud83d\ude00" [\ud83d\ude01-\ud83d\ude03]'),
        Grammar.from_lark(r'start: "\ud83d\ude00" "\ud83d\ude01".."\ud83d\ude03"'),
    ):
        assert accepts(grammar, "😀😂", "😀😀", "\ud83d\ude00😂") == [True, False, False]
        assert accepts(grammar, "😀😂".encode()) == [True]
        assert Grammar.from_ebnf(str(grammar), grammar.root) == grammar


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (r'NAME "a\ud83d"', 1, 2),
        ('NAME "a"\n  | "\\ude00\\ud83d"', 2, 6),
        (r'NAME "\ud83d\u0041"', 1, 1),
        (r'NAME "\U0000dfff"', 1, 1),
    ],
)
def test_half_of_a_surrogate_pair_is_refused(text, line, column):
    for name, read in (("root ::=", Grammar.from_ebnf), ("start:", Grammar.from_lark)):
        with pytest.raises(GrammarSyntaxError, match="half of a surrogate pair") as got:
            read(text.replace("NAME", name))
        assert "write both halves" in str(got.value)
        at = column + len(name) + 2 if line == 1 else column
        assert (got.value.line, got.value.column) == (line, at)


def test_a_root_with_a_surrogate():
    for text in ('root ::= "a"', '# first\nroot ::= "a"'):
        with pytest.raises(GrammarSyntaxError, match=r"no rule is named '\\ud800'") as caught:
            Grammar.from_ebnf(text, "\ud800")
        assert (caught.value.line, caught.value.column) == (1, 1)


# Schemas and patterns, by converters of our own, and what XGrammar's converters do

HAS_XGRAMMAR = importlib.util.find_spec("xgrammar") is not None
NEEDS_XGRAMMAR = pytest.mark.skipif(not HAS_XGRAMMAR, reason="needs XGrammar's converters")


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "integer"}, ["0", "-12"], ["1.5", "01", '"a"']),
        ({"enum": ["a", "b\nc", 7]}, ['"a"', '"b\\nc"', "7"], ['"c"', "8"]),
        (
            {"type": "object", "properties": {"é": {"type": "boolean"}}, "required": ["é"]},
            ['{"é": true}', '{"é":false}'],
            ["{}", '{"e": true}'],
        ),
        ({"type": "string", "maxLength": 3}, ['""', '"abc"', '"é😀"'], ['"abcd"', "abc"]),
        ({"type": "array", "items": {"type": "null"}, "minItems": 2}, ["[null, null]"], ["[null]"]),
        (True, ["null", '{"a": [1, 2.5e3]}'], ["nul", "{a: 1}"]),
    ],
)
def test_json_schemas(schema, good, bad):
    grammar = Grammar.from_json_schema(schema)
    assert Grammar.from_json_schema(json.dumps(schema)) == grammar
    assert accepts(grammar, *good) == [True] * len(good)
    assert accepts(grammar, *bad) == [False] * len(bad)
    assert grammar.lookahead == "implied"
    assert Grammar.from_ebnf(str(grammar), lookahead="implied") == grammar
    assert compile_classes(grammar, Vocabulary([bytes([b]) for b in range(256)])) is not None


def test_options_of_json_schemas():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    texts = ['{"a":1}', '{"a": 1}', '{"a":\n1}', '{"a":  1}', '{"a":1,"b":2}', '{"a": 1, "b": 2}']

    def accepted(**options: Any) -> list[bool]:
        return accepts(Grammar.from_json_schema(schema, **options), *texts)

    assert accepted() == [True] * 4 + [False] * 2
    opened = {"additional_properties": True}
    assert accepted(**opened) == [True] * 6
    assert accepted(**opened, whitespace="compact") == [True, False, False, False, True, False]
    assert accepted(**opened, separators=(",", ":")) == [True, False, False, False, True, False]
    assert accepted(**opened, whitespace="spaced") == [False, True, False, False, False, True]
    assert accepted(**opened, max_whitespace=1) == [True, True, True, False, True, True]
    turned = '{"b": 2, "a": 1}'
    assert accepts(Grammar.from_json_schema(schema, **opened), turned) == [False]
    any_order = Grammar.from_json_schema(schema, key_order="any", **opened)
    assert accepts(any_order, turned) == [True]
    with pytest.raises(TypeError, match="no_such_option"):
        Grammar.from_json_schema(schema, no_such_option=True)
    with pytest.raises(TypeError, match="any_whitespace"):  # an option of XGrammar
        Grammar.from_json_schema(schema, any_whitespace=False)


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("a+b?", ["a", "aab"], ["", "b", "abb"]),
        ("[^a]", ["b", "é", "\n"], ["a", "", "bb"]),
        (r"\d{2,3}(-\w+)*", ["12", "123-ab_c-d"], ["1", "12-"]),
        (r"\x41\u00e9f", ["Aéf"], ["A", "Aé"]),
        ("(?:ab|cd)*", ["", "abcd"], ["abc"]),
    ],
)
def test_regular_expressions(pattern, good, bad):
    grammar = Grammar.from_regex(pattern)
    assert accepts(grammar, *good) == [True] * len(good)
    assert accepts(grammar, *bad) == [False] * len(bad)
    assert pickle.loads(pickle.dumps(grammar)) == grammar


@pytest.mark.parametrize(
    ("read", "pattern", "good", "bad"),
    [
        ("regex", r".*(?<!x)y{1,99999}z", ["ayz", "yyyz", "xyyz"], ["xyz", "az"]),
        ("regex", r"a{1,99999}b(?=c).*", ["aabcd"], ["aabd", "aab"]),
        ("regex", r'""".*?(?<!\\)(\\\\)*?"{1,9999}""', ['"""a"""'], ['"""a\\"""']),
        ("lark", r'""".*?(?<!\\)(\\\\)*?"{1,9999}""', ['"""a"""'], ['"""a\\"""']),
    ],
)
def test_counts_beside_lookaround_cost_little_work(read, pattern, good, bad):
    limits = Limits(max_network_work=20_000)
    if read == "lark":
        text = f"start: /{pattern}/"
        grammar = Grammar.from_lark(text, dialect="python", limits=limits)
    else:
        grammar = Grammar.from_regex(pattern, dialect="python", limits=limits)
    assert len(str(grammar)) < 1_000
    assert accepts(grammar, *good) == [True] * len(good)
    assert accepts(grammar, *bad) == [False] * len(bad)


def test_lark():
    grammar = Grammar.from_lark('start: NAME ("," NAME)*\nNAME: /[a-z]+/\n')
    assert accepts(grammar, "a", "ab,c", "a,", "") == [True, True, False, False]
    assert Grammar.from_ebnf(str(grammar), grammar.root) == grammar


@pytest.mark.parametrize("dialect", ["rust", "python"])
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ('start: STRING\nSTRING: /".*?"/', [("line 2, column 9", "STRING")]),
        ('start: "a" /a+?/\n%ignore /#.*?x/', [("line 1, column 12", "start"), IGNORED]),
        ('start: t{"b"} t{"c"}\nt{x}: x /.*?x/', [("line 2, column 9", "t")]),
        ('start: STRING\nSTRING: "\\"" /.*?/ "\\""', [("line 2, column 14", "STRING")]),
        ("start: %lark { start: A\nA: /a.*?b/ }", [("line 2, column 4", "A")]),
        ("start: /a??/ <|end|>", [("line 1, column 8", "start")]),
        ('start: /".{0,99999}?"/', [("line 1, column 8", "start")]),
        # These end where their first end is.
        ('start: STRING\nSTRING: /"[^"]*?"/', []),
        ('start: A\nA: /a*?/ "b"', []),
        ("start: /a{3}?b??c/", []),
        ('start: s\ns[lazy]: /".*?"/', []),
        ("%import common.ESCAPED_STRING\nstart: ESCAPED_STRING", []),
    ],
)
def test_notes_of_lazy_quantifiers_in_lark(text, places, dialect):
    grammar = Grammar.from_lark(text, dialect=dialect)
    assert [(note.pointer, note.keyword) for note in grammar.notes] == places
    for note in grammar.notes:
        assert note.level == "warning"
        assert f"in `{note.keyword}` is read as a greedy one" in note.message
        assert 'as in /"[^"]*"/ for' in note.message
    assert (grammar | Grammar.choices(["x"])).notes == grammar.notes


@NEEDS_XGRAMMAR
def test_structural_tags():
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "sequence",
            "elements": [
                {"type": "const_string", "value": "<a>"},
                {"type": "json_schema", "json_schema": {"type": "integer"}},
                {"type": "or", "elements": [{"type": "regex", "pattern": "x+"}]},
            ],
        },
    }
    grammar = Grammar.from_structural_tag(tag)
    assert accepts(grammar, "<a>12xx", "<a>12", "12xx") == [True, False, False]
    assert Grammar.from_ebnf(str(grammar), lookahead="implied") == grammar


@NEEDS_XGRAMMAR
def test_a_structural_tag_with_free_text_is_read_and_followed():
    tag = {
        "type": "structural_tag",
        "format": {
            "type": "triggered_tags",
            "triggers": ["<f"],
            "tags": [
                {
                    "type": "tag",
                    "begin": "<f>",
                    "content": {"type": "regex", "pattern": "[0-9]+"},
                    "end": "</f>",
                }
            ],
        },
    }
    grammar = Grammar.from_structural_tag(tag)
    assert Grammar.from_ebnf(str(grammar), lookahead="implied") == grammar
    for text, accepted in (("free <g", True), ("a <f>12</f> b", True), ("a <f>x", False)):
        assert tokfold.recognize(grammar, text).accepted == accepted


WORDS_WITH_CONTROLS = ["\x01a", "\x0bcafe", "é9", "\U0001f600a", '"\\', "\x1ff"]


@NEEDS_XGRAMMAR
def test_code_points_that_xgrammar_prints_ambiguously():
    """It prints a hexadecimal escape and then a digit that belongs to the next character."""
    for word in WORDS_WITH_CONTROLS:
        part = {"type": "json_schema", "json_schema": {"const": word}}
        grammar = Grammar.from_structural_tag({"type": "structural_tag", "format": part})
        text = json.dumps(word, ensure_ascii=False)
        assert accepts(grammar, text, text[:-1] + 'x"') == [True, False]


def test_code_points_that_need_escapes():
    for word in WORDS_WITH_CONTROLS:
        grammar = Grammar.from_json_schema({"const": word})
        text = json.dumps(word, ensure_ascii=False)
        assert accepts(grammar, text, text[:-1] + 'x"') == [True, False]
        assert accepts(Grammar.from_ebnf(str(grammar), lookahead="implied"), text) == [True]


@pytest.mark.parametrize(
    ("schema", "error", "pointer", "keyword"),
    [
        ("{", InvalidSchemaError, "#", ""),
        ("[]", InvalidSchemaError, "#", ""),
        ({"type": "no such type"}, InvalidSchemaError, "#", "type"),
        (
            {"properties": {"a/b": {"minLength": -1}}},
            InvalidSchemaError,
            "#/properties/a~1b",
            "minLength",
        ),
        ({"items": {"$ref": "#/$defs/a"}}, InvalidSchemaError, "#/items", "$ref"),
        ({"items": {"pattern": "("}}, InvalidSchemaError, "#/items", "pattern"),
        ({"items": {"pattern": r"(a)\1"}}, UnsupportedSchemaError, "#/items", "pattern"),
        ({"type": "integer", "enum": ["a"]}, UnsatisfiableSchemaError, "#", "enum"),
    ],
)
def test_schemas_that_are_refused(schema, error, pointer, keyword):
    with pytest.raises(UnsupportedGrammarError) as caught:
        Grammar.from_json_schema(schema)
    assert type(caught.value) is error
    assert (caught.value.pointer, caught.value.keyword) == (pointer, keyword)
    assert str(caught.value).startswith(pointer)
    assert caught.value.reason in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.pointer) == (str(caught.value), pointer)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ('{"type":\n "object" "x"}', 2, 11),
        ('{"type": "object",\r\n"type": "x"}', 2, 1),
        ('{"é": "\U0001f600" 1}', 1, 11),
        ("\n\n[}", 3, 2),
        ("", 1, 1),
        ('{"maximum": NaN}', 1, 13),
        ('{"type":\n "x"}', 1, 1),  # JSON: the pointer says where
    ],
)
def test_the_place_of_what_is_no_json(text, line, column):
    with pytest.raises(InvalidSchemaError) as caught:
        Grammar.from_json_schema(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    said = f"line {line}, column {column}: " in str(caught.value)
    assert said is (caught.value.keyword != "type")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.line, again.column, again.reason) == (line, column, caught.value.reason)


def test_the_place_of_what_is_no_json_in_another_document():
    with pytest.raises(InvalidSchemaError) as caught:
        Grammar.from_json_schema({"$ref": "http://a/b"}, resources={"http://a/b": '{\n\n  "a" 1}'})
    assert (caught.value.line, caught.value.column) == (3, 7)


@pytest.mark.parametrize(
    ("text", "line", "column", "first"),
    [
        # on the line where the schema begins, and behind it
        ('start: x\n\nx: %json {"type": "object", "type": 1}', 3, 29, (3, 10)),
        ('start: x\n\nx: %json {"type": "object",\n "properties": {"a": }}', 4, 22, (3, 10)),
        ('start: "é" %json {\r\n\r\n "a" 1}', 3, 6, (1, 18)),
        ('start: "a" | %json {"type":\n "strin"}', 1, 20, (1, 20)),
        ('start: "a" | %json {"pattern":\n "("}', 1, 20, (1, 20)),
    ],
)
def test_places_in_a_schema_in_lark_are_those_of_the_lark_text(text, line, column, first):
    with pytest.raises(InvalidSchemaError) as caught:
        Grammar.from_lark(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith(f"(the schema stands at line {first[0]}, column {first[1]})")
    assert str(caught.value).endswith(caught.value.reason)
    if (line, column) != first:
        assert f": line {line}, column {column}: " in str(caught.value)
    assert (line, column) <= (text.count("\n") + 1, len(text.split("\n")[line - 1]))


@pytest.mark.parametrize(
    ("pattern", "error", "column"),
    [
        ("(a", GrammarSyntaxError, 1),
        ("é+*", GrammarSyntaxError, 3),
        ("ab{2,1}", GrammarSyntaxError, 3),
        ("[b-a]", GrammarSyntaxError, 2),
        (r"(é)\1", UnsupportedGrammarError, 4),
    ],
)
def test_patterns_that_are_refused(pattern, error, column):
    with pytest.raises(error) as caught:
        Grammar.from_regex(pattern)
    assert (caught.value.line, caught.value.column) == (1, column)
    assert str(caught.value).startswith(f"line 1, column {column}: ")


def test_a_compiled_pattern_is_refused_with_what_to_call():
    advice = r'Grammar.from_regex\(pattern.pattern, dialect="python", flags="m"\), with search=True'
    with pytest.raises(ArgumentTypeError, match=f"not a compiled pattern; call {advice}"):
        Grammar.from_regex(re.compile("a", re.MULTILINE))


@pytest.mark.parametrize("surrogate", ["\ud800", "a\udfff", "\ud83d\ude00"])
def test_patterns_with_a_lone_surrogate(surrogate):
    with pytest.raises(GrammarSyntaxError, match="a lone surrogate is no character") as caught:
        Grammar.from_regex(surrogate)
    assert (caught.value.line, caught.value.column) == (1, 1 + surrogate.startswith("a"))
    with pytest.raises(GrammarSyntaxError, match="a lone surrogate is no character"):
        Grammar.choices(["b", surrogate])


@NEEDS_XGRAMMAR
@pytest.mark.parametrize(
    "make",
    [
        lambda: Grammar.from_structural_tag({"type": "structural_tag"}),
    ],
)
def test_what_the_converters_refuse(make):
    with pytest.raises(TokfoldError):
        make()


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("start: )", 1, 8),
        ('start: "a"\nb: nowhere', 2, 4),
        ("start: A\nA: /(/", 2, 5),
        ('start: "\ud800"', 1, 9),
        ("", 1, 1),
    ],
)
def test_lark_text_that_is_refused(text, line, column):
    with pytest.raises(GrammarSyntaxError, match=f"^line {line}, column {column}: ") as caught:
        Grammar.from_lark(text)
    assert (caught.value.line, caught.value.column) == (line, column)


def test_without_xgrammar(monkeypatch):
    monkeypatch.setitem(sys.modules, "xgrammar", None)
    assert accepts(Grammar.from_ebnf('root ::= Regex("a")'), "a", "b") == [True, False]
    assert accepts(Grammar.from_json_schema({"type": "integer"}), "12", "x") == [True, False]
    assert accepts(Grammar.from_regex("a+"), "aa", "b") == [True, False]
    assert accepts(Grammar.choices(["yes", "no"]), "no", "on") == [True, False]
    assert accepts(Grammar.from_lark("start: /a+/"), "aa", "b") == [True, False]
    assert Grammar.from_ebnf('root ::= "a"') is not None
    text = {"type": "structural_tag", "format": {"type": "const_string", "value": "a"}}
    assert accepts(Grammar.from_structural_tag(text), "a", "b") == [True, False]
    schema = {"type": "json_schema", "json_schema": {"type": "integer"}, "style": "glm_xml"}
    assert accepts(Grammar.from_structural_tag({"format": schema}), "12", "x") == [True, False]


@pytest.mark.parametrize(
    ("pattern", "is_far"),
    [
        (r"/(?!ab)[a-z]/", True),
        (r"/(?!a\b)a+/", True),
        (r'/"(?!"")[^"]*"/', True),
        (r"/(?=[a-z]+x)[a-z]*x/", True),
        (r"/((?!abc)[a-z])+c/", True),
        (r"/(?!a)[a-z]/", False),
        (r"/(?=ab)ab?b/", False),
        (r"/((?!b)[a-z])+c/", False),
        (r"/(?![0-9]{2})[a-z0-9]{2}/", False),
        (r"/a(?<!b)c/", False),
    ],
)
def test_notes_of_lookaheads_in_lark(pattern: str, is_far: bool) -> None:
    grammar = Grammar.from_lark(f'start: A "b"\nA: {pattern}', dialect="python")
    places = [(note.pointer, note.keyword) for note in grammar.notes if "lookahead" in note.message]
    assert places == ([("line 2, column 4", "A")] if is_far else [])


def test_a_grammar_that_names_tokens_is_named_in_lark() -> None:
    vocabulary = tokfold.Vocabulary([b"a", b"b", b"<tool>", b"</s>"], stop_token_ids=[3])
    inner = Grammar.from_lark('start: <tool> "b"')
    text = 'start: "a" @inner'
    late = Grammar.from_lark(text, named={"inner": inner + inner})
    with pytest.raises(UnsupportedGrammarError, match="'inner' of named= names tokens"):
        late.rule_names  # noqa: B018 - it is asked for
    early = Grammar.from_lark(text, named={"inner": inner + inner}, vocabulary=vocabulary)
    for grammar in (late, early):
        compiled = tokfold.compile(grammar, vocabulary, classes="never")
        assert tokfold.Matcher(compiled).accept_tokens([0, 2, 1, 2, 1, 1]) == 5


def test_tokens_that_grammar_text_names() -> None:
    """Places in errors are those of the text, whatever stands for a token before them."""
    tokens = [b"a", b"<|x|>", b"<|x|>", b"<y z>", b"</s>"]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[4], special_token_ids=[1, 2, 3])
    text = 'root ::= "<|no|>" [<|no|>] <|x|> !<y z> # <|no|>\n | other\nother ::= <|x|>'
    grammar = Grammar.from_ebnf(text, vocabulary=vocabulary)
    assert "Token(1, 2)" in str(grammar)
    assert "ExcludeToken(3)" in str(grammar)
    for wrong in ("<|no|>", "!<|no|>", ")"):
        with pytest.raises((UnsupportedGrammarError, tokfold.GrammarSyntaxError)) as caught:
            Grammar.from_ebnf(f"root ::= <|x|> <|x|> {wrong}", vocabulary=vocabulary)
        assert (caught.value.line, caught.value.column) == (1, 22)
