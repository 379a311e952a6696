r"""Patterns of other dialects than ECMA-262 mean what their authors mean, or are refused by name.

JSON Schema's ``pattern`` is of ECMA-262, and people send patterns of Python, Go, Java, .NET and
PCRE. A table by hand says what each construct takes; Python's ``re`` judges all short texts where
it has the construct.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

import pytest
import tokfold
from json_schema.languages import BYTES
from tokfold import Grammar, GrammarSyntaxError, Matcher, UnsupportedSchemaError

READ: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # -- flags at the start, and within
    (r"(?i)^yes|no$", ("YES", "No", "yes, or"), ("maybe", "yeah")),
    (r"(?i)^straße$", ("STRAßE",), ("strase", "STRASSE")),
    (r"(?s)^a.b$", ("a\nb", "axb"), ("ab",)),
    (r"(?m)^b$", ("b", "a\nb\nc"), ("ab", "b c")),
    (r"(?im)^b$", ("a\nB",), ("aB",)),
    (r"(?i)(?s)^a.$", ("A\n",), ("A",)),
    (r"(?x) ^ [0-9]{3} - # the area" + "\n" + r" [0-9]{4} $", ("555-0123",), ("555 - 0123", "")),
    (r"(?x)^ a \  \# [b] + $", ("a #b", "a #bb"), ("a#b", "a  # b")),
    (r"^(?x: a b ) c$", ("ab c",), ("abc", "a b c")),
    (r"^(?i)[a-f]+$", ("aF",), ("g",)),
    (r"^((?i)a|b)c$", ("Ac", "Bc"), ("aC",)),
    (r"^a(?i)b(?-i)c$", ("aBc",), ("ABc", "abC")),
    (r"(?n)^(a)(b)$", ("ab",), ("a",)),
    # -- groups
    (r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})$", ("2026-01",), ("26-01", "2026-1")),
    (r"^(?'x'a)b$", ("ab",), ("xab", "'x'ab")),
    (r"^(?|(a)|(b))c$", ("ac", "bc"), ("c",)),
    (r"^a(?# or b)+$", ("a", "aa"), ("a or b", "")),
    # -- the ends of the text
    (r"\A[0-9]+\z", ("12",), ("A12z", "1x", "x1", "12\n")),
    (r"\A[0-9]+\Z", ("12",), ("A12Z", "1x", "12\n")),
    (r"\Aab|cd\Z", ("abx", "xcd"), ("xab", "cdx")),
    (r"(?m)\Aa\z", ("a",), ("a\nb", "b\na")),
    # -- characters
    (r"^a\hb$", ("a b", "a\tb", "a\u00a0b"), ("ahb", "a\nb", "ab")),
    (r"^[\h]\H$", (" a", "\t\n"), ("hH", "a ", "  ")),
    (r"^\e\[0m$", ("\x1b[0m",), ("e[0m",)),
    (r"^[\a\e]$", ("\x07", "\x1b"), ("a", "e")),
    (r"^\x{41}[\x{30}-\x{39}]$", ("A7",), ("x", "A", "x" * 41 + "3")),
    (r"^\x{3}$", ("\x03",), ("xxx",)),
    (r"^\U0001F432$", ("🐲",), ("U0001F432",)),
    # -- properties without the flag u
    (r"^\pL+$", ("ab", "é", "pL"), ("1", "")),
    (r"^\PL$", ("1", " "), ("a", "PL")),
    (r"^[\pL\pN_]+$", ("é1_",), ("-", "{")),
    (r"^\p{L}\-\p{N}$", ("a-1",), ("p-p", "a1")),
    (r"^[\p{Lu}\_]+\@$", ("ÉA_@",), ("é@",)),
    (r"^\p{^Lu}$", ("a", "1"), ("A",)),
    (r"^\u{1F432}\-$", ("🐲-",), ("u-",)),
    # -- quotations
    (r"^\Qa.b(\E+$", ("a.b(", "a.b(("), ("axb(", "a.b(a.b(")),
    (r"^\Q[x]", ("[x]", "[x]y"), ("x",)),
    (r"^[\Q^]\E]+$", ("^]",), ("Q", "E")),
)

MEANT_BY_ECMA: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    (r"^\-\_\!\@\:\,\/\"\'\ $", ("-_!@:,/\"' ",), ("",)),
    (r"/api/", ("a/api/b",), ("api",)),
    (r"/api/v1$", ("x/api/v1",), ("/api/v1/",)),
    (r"^/api/$", ("/api/",), ("api",)),
    (r"^(?i:a)b$", ("Ab", "ab"), ("AB",)),
    (r"^[\w-.]+$", ("a-.",), ("+",)),
    (r"^\cJ\x41\u0042\t\v\0$", ("\nAB\t\x0b\0",), ("cJ",)),
    (r"^[[a-z]*$", ("[a", ""), ("]",)),
    (r"^{a}$", ("{a}",), ("a",)),
)

PYTHON = (
    r"(?i)^aB|b",
    r"(?i)\Ab",
    r"\A(?:a|b-)+\Z",
    r"(?s)^a.b",
    r"(?s)\Aa..\Z",
    r"(?m)^a$",
    r"(?m)^b\Z",
    r"(?im)^B-$",
    r"(?x) a b | - # (b",
    "(?x) a + \n b # |\n | - b ?",
    r"(?x) \A [ab] - \Z",
    r"(?P<x>a)(?P<y>b|-)",
    r"(?i:a)(?P<x>B)(?#c)-",
    r"(?!\A)a|b\Z",
    r"(?<=\Aa)b",
    r"\Aa(?x: b | - )\Z",
)
"""Patterns that Python's ``re`` reads alike, over texts of the letters below."""
LETTERS = "abAB-\n"


def schema(pattern: str) -> dict[str, str]:
    return {"type": "string", "pattern": pattern}


class Strings:
    """The strings that a pattern allows."""

    def __init__(self, pattern: str) -> None:
        self.grammar = Grammar.from_json_schema(schema(pattern))
        self.compiled = tokfold.compile(self.grammar, BYTES)

    def holds(self, text: str) -> bool:
        matcher = Matcher(self.compiled)
        spelled = json.dumps(text, ensure_ascii=False).encode()
        return matcher.accept_bytes(spelled) and matcher.is_accepting


def short_texts(longest: int) -> Iterator[str]:
    for length in range(longest + 1):
        for letters in itertools.product(LETTERS, repeat=length):
            yield "".join(letters)


@pytest.mark.parametrize(("pattern", "accepted", "refused"), READ, ids=[case[0] for case in READ])
def test_what_dialects_agree_about_is_read(
    pattern: str, accepted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    strings = Strings(pattern)
    for text in accepted:
        assert strings.holds(text), text
    for text in refused:
        assert not strings.holds(text), text
    notes = strings.grammar.notes
    assert notes
    assert {(note.pointer, note.keyword) for note in notes} == {("#/pattern", "pattern")}


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"), MEANT_BY_ECMA, ids=[case[0] for case in MEANT_BY_ECMA]
)
def test_what_ecma_262_has_stays(
    pattern: str, accepted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    strings = Strings(pattern)
    assert all(strings.holds(text) for text in accepted)
    assert not any(strings.holds(text) for text in refused)
    assert not strings.grammar.notes


@pytest.mark.parametrize("pattern", PYTHON)
def test_as_python_reads_it(pattern: str) -> None:
    strings, oracle = Strings(pattern), re.compile(pattern)
    judged = {text: oracle.search(text) is not None for text in short_texts(4)}
    assert len(set(judged.values())) == 2
    for text, expected in judged.items():
        assert strings.holds(text) == expected, text


REFUSED: tuple[tuple[str, str], ...] = (
    (r"^(?>a|ab)c$", "column 2: atomic group: an atomic group forgets matches; write `(?:`"),
    (
        r"^a++$",
        "column 3: possessive quantifier: a possessive quantifier forgets matches; drop the `+` "
        "behind it",
    ),
    (
        r"(?P<q>['\"])x(?P=q)",
        "column 14: backreference: no automaton can compare two parts of a text; repeat the "
        "pattern of the group in place of the reference",
    ),
    (
        r"^\((?R)?\)$",
        "column 4: recursion: no automaton can call a group within itself; repeat the pattern of "
        "the group",
    ),
    (r"^(a)?(?(1)b|c)$", "column 6: conditional: write the two cases as alternatives"),
    (
        r"^[[:alpha:]]+$",
        "column 3: `[:alpha:]`: ECMA-262 has no classes by name, and other dialects differ about "
        "what they hold; write in its place `A-Za-z`, or `\\p{L}` for all scripts",
    ),
    (
        r"^\p{Greek}$",
        "column 2: `\\p{Greek}`: the dialects that have it differ about what several scripts "
        "share; write `\\p{Script=Greek}`, or `\\p{Script_Extensions=Greek}` to have these too",
    ),
    (
        r"^\Ra$",
        "column 2: `\\R`: the dialects differ about what may follow a carriage return; write "
        "`(?:\\r\\n|[\\n\\v\\f\\r\\x85\\u2028\\u2029])`",
    ),
    (r"^a\Kb$", "column 3: `\\K`: it only moves the start of the match that is reported; drop it"),
    (
        r"\bfoo\y",
        "column 6: `\\y`: it is a place at a word by dialect; write `\\b`, or the letter alone",
    ),
    (
        r"^\q$",
        "column 2: `\\q`: neither ECMA-262 nor other dialects agree on a meaning; drop the "
        "backslash",
    ),
    (
        r"^(?i)yes|no$",
        "column 2: flags: the dialects differ about flags that stand within an alternative and "
        "the alternatives behind it; write the flags at the start of the group, or `(?i:..)` "
        "around what they are for",
    ),
    (
        r"^a{,3}$",
        "column 3: quantifier: the dialects differ about whether it counts or is characters; "
        "write `{0,3}`, or `\\{` for the brace",
    ),
    (
        "/^abc$/i",
        "column 1: delimiters: `/` around a pattern is how programs in JavaScript or PHP write "
        "it; here it is a character, and none stands before the start of a text or behind its "
        "end; write `(?i)^abc$`",
    ),
)


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z&&[^b]]$",
        r"^[a-z-[b]]$",
        r"^[a-d[m-p]]$",
        r"^[[a-z]&&[aeiou]]$",
        r"^[[a-z]--[aeiou]]$",
        r"^[[ab][cd]]$",
        r"^[^[a]]$",
        r"^[\w--\d]$",
        r"^[\d~~[1]]$",
    ],
)
def test_classes_within_classes_are_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match="no classes within classes"):
        Grammar.from_json_schema(schema(pattern))


@pytest.mark.parametrize(
    ("pattern", "accepted", "refused"),
    [
        (r"^[\w-.]$", ("a", "-", "."), ("/",)),
        (r"^\[[^[]*]$", ("[]", "[a]"), ("[[]",)),
        (r"^[^[\]]+$", ("a",), ("[", "]")),
        (r"^[a&&b]$", ("a", "&"), ("c",)),
        (r"^[a[]$", ("a", "["), ("]",)),
        (r"^[[]a]$", ("[a]",), ("a",)),
        (r"^[--a]$", ("-", "0", "a"), ("b",)),
    ],
)
def test_brackets_and_hyphens_of_classes_that_are_characters(
    pattern: str, accepted: tuple[str, ...], refused: tuple[str, ...]
) -> None:
    strings = Strings(pattern)
    assert all(strings.holds(text) for text in accepted)
    assert not any(strings.holds(text) for text in refused)


@pytest.mark.parametrize(("pattern", "message"), REFUSED, ids=[case[0] for case in REFUSED])
def test_what_dialects_differ_about_is_refused(pattern: str, message: str) -> None:
    with pytest.raises(UnsupportedSchemaError) as caught:
        Grammar.from_json_schema({"properties": {"a": schema(pattern)}})
    assert (caught.value.pointer, caught.value.keyword) == ("#/properties/a", "pattern")
    assert str(caught.value).endswith(message)


def test_notes_name_each_pattern_and_each_construct_once() -> None:
    grammar = Grammar.from_json_schema(
        {
            "type": "object",
            "properties": {
                "a": schema(r"\A\pL+\z|\Ax\z"),
                "b": schema(r"\A\pL+\z|\Ax\z"),
                "c": schema("^plain$"),
            },
            "patternProperties": {r"\Ax_": {"type": "integer"}, "^y_": {}},
        },
        additional_properties=True,
    )
    found = [(note.pointer, note.keyword, note.message.split(";")[0]) for note in grammar.notes]
    of_one = [f"ECMA-262 has no `{construct}`" for construct in (r"\A", r"\pL", r"\z")]
    assert found == [
        *(("#/properties/a/pattern", "pattern", reason) for reason in of_one),
        *(("#/properties/b/pattern", "pattern", reason) for reason in of_one),
        ("#/patternProperties/%5CAx_", "patternProperties", of_one[0]),
    ]
    names = tokfold.compile(grammar, BYTES)
    for text, expected in (('{"x_1": 1}', True), ('{"x_1": ""}', False), ('{"Ax_": ""}', True)):
        matcher = Matcher(names)
        assert (matcher.accept_string(text) and matcher.is_accepting) == expected


def test_from_regex_reads_the_same() -> None:
    for pattern, accepted, refused in READ:
        grammar = Grammar.from_regex(pattern, search=True)
        assert all(tokfold.recognize(grammar, text).accepted for text in accepted)
        assert not any(tokfold.recognize(grammar, text).accepted for text in refused)
    for pattern, message in REFUSED:
        with pytest.raises(tokfold.UnsupportedGrammarError) as caught:
            Grammar.from_regex(pattern)
        assert str(caught.value).endswith(message.split(": ", 1)[1])
    with pytest.raises(GrammarSyntaxError):
        Grammar.from_regex("(?P<n>a", search=True)
