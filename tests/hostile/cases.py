"""Hostile inputs: what a request may hold that is deep, long, ambiguous, or no input at all.

Each is made when it is asked for, from seeds, so that a process holds one at a time. Tests and the
benchmark of responsiveness read the same list; :mod:`hostile.unseen` has more of them.

One file of more than 600 lines: it is one list.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from random import Random
from typing import Any

Source = Callable[[], Any]

KINDS = ("grammar", "json_schema", "regex", "lark", "structural_tag")


@dataclass(frozen=True)
class Case:
    """One input, and a text that follows it for a while."""

    name: str
    kind: str
    make: Source
    sample: bytes = b""
    then: tuple[str, ...] = ()
    """Names of calls besides the walk: see ``CALLS`` in :mod:`hostile.child`."""
    guards: str = ""
    """What XGrammar's converter does with it where nothing keeps it from there."""
    engine: str = "auto"
    held_back: bool = False
    """Nothing was tuned on it."""


CASES: dict[str, Case] = {}


def add(name: str, kind: str, make: Source | str | bytes, sample: bytes = b"", **more: Any) -> None:
    """Take a case into the list."""
    if name in CASES or kind not in KINDS:
        raise ValueError(f"{name}: named twice, or of no kind: {kind}")
    source = make if callable(make) else lambda: make
    CASES[name] = Case(name, kind, source, sample, **more)


def grammar(name: str, make: Source | str, sample: bytes = b"", **more: Any) -> None:
    add(name, "grammar", make, sample, **more)


def regex(name: str, make: Source | str, sample: bytes = b"", **more: Any) -> None:
    add(name, "regex", make, sample, **more)


def schema(name: str, make: Source | str, sample: bytes = b"", **more: Any) -> None:
    add(name, "json_schema", make, sample, **more)


def lark(name: str, make: Source | str, sample: bytes = b"", **more: Any) -> None:
    add(name, "lark", make, sample, **more)


def tag(name: str, make: Source, sample: bytes = b"", **more: Any) -> None:
    add(
        name, "structural_tag", lambda: {"type": "structural_tag", "format": make()}, sample, **more
    )


def words(count: int) -> list[str]:
    """Random ones of 32 letters."""
    return [f"{Random(i).getrandbits(128):032x}" for i in range(count)]


def rules(first: str, *others: str) -> str:
    return "\n".join((f"root ::= {first}", *others))


# -- repetitions and what is optional ----------------------------------------------------------

grammar("repetition of 10^6", 'root ::= ((("a"{1,100}){1,100}){1,100})', b"a" * 60)
grammar(
    "repetition of 10^6 with options",
    'root ::= ((([ab]{1,100} "c"?){1,100} "d"?){1,100})',
    b"abcabdab" * 6,
)
grammar(
    "repetition of 10^12",
    'root ::= (((("a"{0,1000}){0,1000}){0,1000}){0,1000}) "b"',
    b"a" * 60,
)
grammar("repetition of 10^10", 'root ::= ("x"{0,100000}){0,100000}', b"x" * 60)
grammar(
    "ambiguous repetition",
    'root ::= (("a" | "aa" | "aaa" | "ab"?){1,1000} "a"?){1,1000}',
    b"a" * 60,
)
grammar(
    "repeated options",
    'root ::= (("a"? "b"? "c"?){1,500} ("a"|"b")?){1,500}',
    b"abcab" * 10,
)
grammar(
    "options 900 deep",
    lambda: "root ::= " + "(" * 900 + '"a"' + ' "b"?)?' * 900,
    b"abbb",
)
grammar("20,000 options", lambda: "root ::= " + '"a"? ' * 20_000, b"a" * 60)
grammar(
    "3,000 options of three",
    lambda: "root ::= " + '("a" | "b" | "ab")? ' * 3_000,
    b"abab" * 10,
)
grammar("subsets of 26", 'root ::= [ab]* "a" [ab]{25}', b"ab" * 30)
grammar(
    "subsets of 25 lengths",
    lambda: (
        "root ::= "
        + " | ".join(f'[ab]* "a" [ab]{{{i}}} "{chr(99 + i % 20)}"' for i in range(5, 25))
    ),
    b"ab" * 30,
)
grammar(
    "subsets in stars",
    'root ::= ([ab]* "a" [ab]{15})* "c" | ([ab]* "b" [ab]{17})* "d"',
    b"ab" * 30,
)
for count in (2_500, 3_000, 3_600):
    grammar(
        f"{count:,} times a or ab or nothing",
        lambda count=count: rules("e " * count, 'e ::= "a" | "ab" | ""'),
        b"aabab",
    )
grammar(
    "400 options of one form",
    lambda: rules(
        " ".join(f"r{i}?" for i in range(400)), *(f'r{i} ::= "a" [a-z]*' for i in range(400))
    ),
    b"abcabcabc" * 4,
)
grammar(
    "200 optional recursive rules",
    lambda: rules(
        " ".join(f"r{i}?" for i in range(200)),
        *(f'r{i} ::= [a-z] r{(i * 7 + 3) % 200}? | "a" r{(i + 1) % 200} "b"' for i in range(200)),
    ),
    b"abcabcabc" * 4,
)

# -- recursion and ambiguity ---------------------------------------------------------------------


def clique(count: int, each: int, *, pairs: bool, seed: int = 1) -> str:
    """Rules that begin with one another, followed by a letter or by a rule."""
    random = Random(seed)
    lines = []
    for i in range(count):
        bodies = [f'"{chr(97 + i % 26)}"']
        for _ in range(each):
            left = f"r{random.randrange(count)}"
            letter = f'"{chr(97 + random.randrange(26))}"'
            bodies.append(f"{left} r{random.randrange(count)}" if pairs else f"{left} {letter}")
        lines.append(f"r{i} ::= {' | '.join(bodies)}")
    return rules("r0", *lines)


def complete(count: int) -> str:
    """Rules that begin with every rule."""
    return rules(
        "r0",
        *(
            f'r{i} ::= "{chr(97 + i % 26)}" | '
            + " | ".join(f'r{j} "{chr(97 + (i + j) % 26)}"' for j in range(count))
            for i in range(count)
        ),
    )


for count, each, pairs in (
    (500, 3, False),
    (500, 3, True),
    (100, 5, True),
    (30, 5, True),
    (8, 8, True),
):
    name = f"{count} left-recursive rules" + (" of pairs" if pairs else "")
    grammar(
        name,
        lambda count=count, each=each, pairs=pairs: clique(count, each, pairs=pairs),
        b"abcabc" * 5,
    )
for count in (200, 500):
    name = f"{count} rules that begin with all"
    grammar(name, lambda count=count: complete(count), b"abcabc" * 5)
grammar(
    "4 rules that begin with one another",
    rules(
        "c0 | c1 | c2 | c3",
        'c0 ::= "a" | c2 c1 | c2 c0',
        'c1 ::= "a" | c2 c2 | c2 "b"',
        'c2 ::= "b" | c2 c3 | c3 "a" | c1 "a"',
        'c3 ::= "b" | c2 "a" | c0 c1 | c3 c3',
    ),
    b"abbaab" * 8,
)
grammar(
    "two and three of itself",
    'root ::= root root | root root root | "a" | "b" | "ab" | ""',
    b"ab" * 60,
    then=("long text",),
)
grammar(
    "ambiguous expressions",
    'root ::= root "+" root | root "*" root | root "-" root | "(" root ")" | [a-z]+ | root root',
    b"a+b*c-(d+e)f" * 4,
    then=("long text",),
)
grammar(
    "two of itself, any text",
    "root ::= root root | [\\u0000-\\U0010ffff]",
    b"hello world " * 5,
    then=("long text",),
)
grammar(
    "three ambiguous rules, any text",
    rules(
        "a | b | c",
        "a ::= a b | b c | [a-z ]",
        "b ::= b a | c c | [a-z ]",
        "c ::= a c | root root | [a-z ]",
    ),
    b"hello world " * 5,
    then=("long text",),
)
grammar(
    "palindromes",
    'root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""',
    b"ab" * 40,
    then=("long text",),
)
grammar(
    "two counts",
    rules(
        "x y | z w",
        'x ::= "a" x "b" | "ab"',
        'y ::= "c"+',
        'z ::= "a"+',
        'w ::= "b" w "c" | "bc"',
    ),
    b"a" * 40 + b"b" * 30,
)
grammar(
    "brackets, ambiguous",
    'root ::= "(" root ")" | "[" root "]" | "x" | root root',
    b"([([" * 40,
    then=("long text",),
)
grammar(
    "300 right-linear rules",
    lambda: rules(
        " | ".join(f"r{i}" for i in range(300)),
        *(
            f"r{i} ::= [a-z] r{(i * 7 + 3) % 300} | [a-z] r{(i * 13 + 5) % 300} | "
            f'"{chr(97 + i % 26)}"'
            for i in range(300)
        ),
    ),
    b"hello world",
)


def chain(count: int) -> str:
    return rules(
        "r0",
        *(f'r{i} ::= r{i + 1} "{"abc"[i % 3]}" | "y" r{min(i + 2, count)}' for i in range(count)),
        f'r{count} ::= "z"',
    )


grammar("a left chain of 1,000", lambda: chain(1_000), b"yyyz")
grammar("a left chain of 100,000", lambda: chain(100_000), b"yyyz", then=("forced",))
grammar(
    "a fork reads while its sibling makes a mask",
    lambda: clique(8, 8, pairs=True),
    b"abcabc" * 5,
    then=("sibling",),
)
grammar(
    "120 kB of text on a chart",
    'root ::= root root | "a" | "b" | "ab"',
    b"ab",
    then=("120 kB",),
    engine="chart",
)
grammar(
    "120 kB of text on stacks",
    'root ::= ("(" root ")" | [a-z])*',
    b"ab",
    then=("120 kB",),
)
grammar("10^8 forced bytes", 'root ::= "a"{100000000}', b"a", then=("forced",))
grammar(
    "forced bytes through rules",
    lambda: rules("r0", *(f'r{i} ::= "ab" r{i + 1} "c"' for i in range(900)), 'r900 ::= "x"{9999}'),
    b"ab",
    then=("forced",),
)

# -- size ----------------------------------------------------------------------------------------

grammar(
    "1 MB of words", lambda: "root ::= " + " | ".join(f'"{word}"' for word in words(27_000)), b"ab"
)
grammar(
    "15 MB of words",
    lambda: "root ::= " + " | ".join(f'"{word}"' for word in words(400_000)),
    b"ab",
)
grammar(
    "100,000 rules in a row",
    lambda: rules(
        "r0", *(f'r{i} ::= "x{i % 10}" r{i + 1} | "y"' for i in range(100_000)), 'r100000 ::= "z"'
    ),
    b"x0x1x2x3",
)
grammar("900,000 rules", lambda: rules("r0", *(f'r{i} ::= "x"' for i in range(900_000))), b"x")
grammar(
    "a literal of 8 MB", lambda: 'root ::= "' + "a" * 8_000_000 + '"', b"aaaa", then=("forced",)
)
grammar(
    "a class of 60,000 characters",
    lambda: (
        "root ::= [" + "".join(chr(c) for c in range(0x400, 0x20000, 2) if c >> 11 != 27) + "]*"
    ),
    "Ђ".encode() * 10,
)
grammar("a lone surrogate", 'root ::= "\ud800"')
grammar("a NUL", 'root ::= "\0"')
grammar("10,000 open groups", lambda: "root ::= " + "(" * 10_000)

# -- macros ----------------------------------------------------------------------------------------

grammar(
    "a macro of 30,000 groups",
    lambda: 'root ::= Regex("' + "(" * 30_000 + "a" + ")" * 30_000 + '")',
    b"a",
    guards="a stack overflow",
)
grammar("a macro that repeats", 'root ::= Regex("((a{1,100}){1,100}){1,100}")', b"a" * 30)
grammar(
    "parts of 5,000 words",
    lambda: "root ::= Substring(" + ", ".join(f'"w{i % 97} "' for i in range(5_000)) + ")",
    b"w1 w2 ",
)
grammar(
    "parts of 3,000 letters",
    lambda: "root ::= Substring(" + ", ".join('"a"' for _ in range(3_000)) + ")",
    b"aaaa",
)
grammar(
    "2,000 macros",
    lambda: rules(
        "r0",
        *(
            f'r{i} ::= Regex("[a-z]{{1,20}}x{i}")' + (f" | r{i + 1}" if i < 1_999 else "")
            for i in range(2_000)
        ),
    ),
    b"abc",
)
grammar(
    "10,000 tags of a macro",
    lambda: rules(
        "TagDispatch(" + ", ".join(f'("<t{i}>", r{i % 100})' for i in range(10_000)) + ")",
        *(f'r{i} ::= "x"+ "</t>"' for i in range(100)),
    ),
    b"hello <t77>xx</t>",
)
grammar(
    "1,500 tags that begin alike",
    lambda: rules(
        "TagDispatch(" + ", ".join(f'("{"a" * i}b", r)' for i in range(1, 1_500)) + ")",
        'r ::= "x"',
    ),
    b"aaaaab x",
)

# -- regular expressions ---------------------------------------------------------------------------

for count in (100, 1_000, 30_000):
    regex(
        f"a pattern of {count:,} groups",
        lambda count=count: "(" * count + "a" + ")" * count,
        b"a",
    )
regex("a pattern that repeats 10^6 times", "((a{1,100}){1,100}){1,100}", b"a" * 50)
regex("30 stars", "(" * 30 + "a" + "*)" * 30 + "*", b"a" * 50)
regex(
    "a repeated class of 10,000",
    lambda: "[" + "".join(chr(c) for c in range(0x4E00, 0x9FFF, 2)) + "]{1,500}",
    "一七".encode(),
)
regex("2,000 options and 2,000 letters", "a?" * 2_000 + "a" * 2_000, b"a" * 60)
regex("100,000 alternatives", lambda: "|".join(f"w{i}" for i in range(100_000)), b"w123")
regex("3,000 choices of a, b, ab", "(a|b|ab)" * 3_000, b"ab" * 30)
regex("bounds the wrong way", "a{100000,1}")
regex("a bound of 2^32", "a{0,4294967296}", b"aa")
regex("a bound of 20 digits", "a{99999999999999999999}", b"aa")
regex("a pattern of 1 MB", lambda: "ab" * 500_000, b"ab")
regex("1,000 lookaheads", "(?=a)" * 1_000)
regex("a backslash", "\\")
regex("a surrogate in a pattern", "\ud800")
regex("a NUL in a pattern", "a\0b")

# -- JSON schemas ----------------------------------------------------------------------------------


def nested(levels: int, key: str) -> Any:
    """A schema in a schema in a schema."""

    def around(inner: Any, _: int) -> Any:
        if key == "properties":
            return {"type": "object", "properties": {"a": inner}, "required": ["a"]}
        return {"type": "array", "items": inner} if key == "items" else {key: [inner]}

    return reduce(around, range(levels), {"type": "string"})


def doubled(levels: int) -> Any:
    """Objects of two members written out: 2 to the power of the levels."""
    if not levels:
        return {"type": "integer"}
    inner = doubled(levels - 1)
    return {"type": "object", "properties": {"a": inner, "b": inner}}


def members(count: int, kind: str = "string") -> dict[str, Any]:
    return {f"p{i}": {"type": kind} for i in range(count)}


def text_of(value: Source) -> Source:
    return lambda: json.dumps(value())


for levels in (50, 200):
    schema(
        f"objects {levels} deep",
        text_of(lambda levels=levels: nested(levels, "properties")),
        b'{"a":{"a":',
    )
schema(
    "items 900 deep",
    lambda: '{"items":' * 900 + "true" + "}" * 900,
    b"[[[",
)
schema("a dict of items 3,000 deep", lambda: nested(3_000, "items"), b"[[[[")
schema(
    "text of items 20,000 deep",
    lambda: '{"type":"array","items":' * 20_000 + "true" + "}" * 20_000,
    b"[[[",
)
schema("anyOf 400 deep", text_of(lambda: nested(400, "anyOf")), b'"a"')
schema("allOf 300 deep", text_of(lambda: nested(300, "allOf")), b'"a"')
schema(
    "allOf of 1,000",
    lambda: {
        "allOf": [
            {"type": "object", "properties": {f"p{i}": {"type": "string"}}} for i in range(1_000)
        ]
    },
    b'{"p1":',
)
schema(
    "10,000 members",
    lambda: {"type": "object", "properties": members(10_000)},
    b'{"p77": "x"',
)
schema(
    "100,000 members",
    lambda: {"type": "object", "properties": members(100_000)},
    b'{"p77": "x"',
)
schema(
    "10,000 required members",
    lambda: {
        "type": "object",
        "properties": members(10_000),
        "required": [*members(10_000)],
    },
    b'{"p0": "x", "p1"',
)
schema("100,000 values", lambda: {"enum": [f"value {i}" for i in range(100_000)]}, b'"value 77')
schema("100,000 random values", lambda: {"enum": words(100_000)}, b'"ab')
schema("a value of 1 MB", lambda: {"const": "x" * 1_000_000}, b'"xxx')


def references(count: int) -> dict[str, Any]:
    """Definitions of which each refers to the next."""
    return {
        "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(count)}
        | {f"d{count}": {"type": "integer"}},
        "$ref": "#/$defs/d0",
    }


def definitions() -> dict[str, Any]:
    """Objects that refer to each other."""
    return {
        "$defs": {
            f"d{i}": {
                "type": "object",
                "properties": {
                    "n": {"$ref": f"#/$defs/d{(i * 7 + 1) % 5_000}"},
                    "m": {"$ref": f"#/$defs/d{(i * 3 + 2) % 5_000}"},
                },
            }
            for i in range(5_000)
        },
        "$ref": "#/$defs/d0",
    }


schema(
    "5,000 definitions",
    definitions,
    b'{"n": {"m": {',
)
schema(
    "300 definitions of each other",
    lambda: {
        "$defs": {
            f"d{i}": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {
                            f"k{j}": {"$ref": f"#/$defs/d{i * j % 300}"} for j in range(10)
                        },
                    },
                    {"type": "array", "items": {"$ref": f"#/$defs/d{(i + 1) % 300}"}},
                ]
            }
            for i in range(300)
        },
        "$ref": "#/$defs/d1",
    },
    b'{"k1": [{"k2":',
)
schema("a reference to itself", lambda: {"$ref": "#"}, b"{")
schema(
    "references in a ring",
    lambda: {
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
        "$ref": "#/$defs/a",
    },
    b"{",
)
schema(
    "references in a ring of choices",
    lambda: {
        "$defs": {
            "a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]},
            "b": {"allOf": [{"$ref": "#/$defs/a"}]},
        },
        "$ref": "#/$defs/a",
    },
    b"{",
)
schema("a reference to nothing", lambda: {"$ref": "#/$defs/zzz"}, b"{")
schema("a reference elsewhere", lambda: {"$ref": "http://example.com/x.json"}, b"{")
schema(
    "oneOf of 1,000",
    lambda: {
        "oneOf": [
            {
                "type": "object",
                "properties": {"t": {"const": i}, "v": {"type": "string", "maxLength": 10 + i}},
                "required": ["t"],
            }
            for i in range(1_000)
        ]
    },
    b'{"t": 7, "v": "abc',
)
schema(
    "a string of 10^7", lambda: {"type": "string", "minLength": 10**6, "maxLength": 10**7}, b'"aaaa'
)
schema(
    "an array of arrays of 10^5",
    lambda: {
        "type": "array",
        "items": {
            "type": "array",
            "items": {"type": "integer"},
            "minItems": 1_000,
            "maxItems": 100_000,
        },
        "minItems": 100_000,
    },
    b"[[1, 2, 3",
)
schema("an array of 10^18", lambda: {"type": "array", "minItems": 10**18}, b"[")
schema("a string of 10^18", lambda: {"type": "string", "maxLength": 10**18}, b'"a')
schema("a negative length", lambda: {"type": "string", "maxLength": -5}, b'"a')
schema("a length that is no number", '{"type": "string", "maxLength": 1e400}', b'"a')
schema(
    "integers to 10^18",
    lambda: {"type": "integer", "minimum": -(10**18), "maximum": 10**18 + 12_345},
    b"123456",
)
schema(
    "integers to 10^40",
    lambda: {"type": "integer", "minimum": -(10**40), "maximum": 10**40},
    b"123456",
)
schema(
    "numbers of many digits",
    lambda: {"type": "number", "minimum": 0.0000123456789, "maximum": 98765432.12345678},
    b"123.456",
)
schema(
    "numbers to 10^300", lambda: {"type": "number", "minimum": -1e300, "maximum": 1e300}, b"1e10"
)
schema("NaN", '{"type": "number", "minimum": NaN}', b"1")
schema(
    "a repeated pattern",
    lambda: {"type": "string", "pattern": "((a{1,100}){1,100}){1,100}"},
    b'"aaaaa',
)
schema(
    "a pattern of 20,000 groups in a schema",
    lambda: {"type": "string", "pattern": "(" * 20_000 + "a" + ")" * 20_000},
    b'"a',
)
schema(
    "500 patterns of names",
    lambda: {
        "type": "object",
        "patternProperties": {f"^p{i}[a-z]+$": {"type": "string"} for i in range(500)},
    },
    b'{"p1abc": "x"',
)
schema(
    "3,000 members and others",
    lambda: {
        "type": "object",
        "properties": members(3_000, "integer"),
        "additionalProperties": {"type": "string"},
    },
    b'{"p1": 1, "zz": "q"',
)
schema(
    "500 to 5,000 members of any name",
    lambda: {"type": "object", "minProperties": 500, "maxProperties": 5_000},
    b'{"a": 1',
)
schema(
    "20 to 40 of 60 members",
    lambda: {
        "type": "object",
        "properties": {f"k{i}": {} for i in range(60)},
        "minProperties": 20,
        "maxProperties": 40,
    },
    b'{"k1": 1',
)
schema(
    "a name of 200,000", lambda: {"type": "object", "properties": {"k" * 200_000: {}}}, b'{"kkkk'
)
schema("a surrogate as a name", lambda: {"type": "object", "properties": {"\ud800": {}}}, b'{"')
schema("a surrogate in the text", '{"const": "\ud800"}', b'{"')
schema("JSON that ends early", '{"type": ')
schema("a list as a schema", "[1,2,3]")
schema("a number as a schema", "5")
schema("a type that is a number", lambda: {"type": 5})
schema("a type that is unknown", lambda: {"type": "foo"})
schema("members that are a list", lambda: {"type": "object", "properties": []})
schema("a NUL in a value", lambda: {"const": "a\0b"}, b'"a')
schema("a set in a schema", lambda: {"enum": {1, 2}})
schema(
    "10,000 equal keys",
    lambda: (
        '{"type":"object",' + ",".join(f'"properties":{{"a{i}":{{}}}}' for i in range(10_000)) + "}"
    ),
    b'{"a',
)
schema(
    "a tuple of 20,000",
    lambda: {"type": "array", "prefixItems": [{"type": "integer"} for _ in range(20_000)]},
    b"[1, 2, 3",
)
schema(
    "pairs of pairs, 40 deep",
    lambda: {
        "$defs": {
            f"d{i}": {"type": "array", "prefixItems": [{"$ref": f"#/$defs/d{i + 1}"}] * 2}
            for i in range(40)
        }
        | {"d40": {"type": "integer"}},
        "$ref": "#/$defs/d0",
    },
    b"[[[[[",
)
schema("2^14 objects written out", lambda: doubled(14), b'{"a": {"a": {')
schema(
    "270 formats",
    lambda: {
        "type": "object",
        "properties": {
            f"f{i}": {"type": "string", "format": kind}
            for i, kind in enumerate(
                ["date-time", "email", "uri", "ipv6", "uuid", "hostname"]
                + ["json-pointer", "uri-template", "duration"] * 30
            )
        },
    },
    b'{"f0": "2020-01-01T00:00:00Z", "f1": "a@b.c"',
)

# -- Lark ------------------------------------------------------------------------------------------

lark(
    "terminals that overlap",
    "start: (A|B|C)+\nA: /[a-z]+/\nB: /[a-y]+/\nC: /[a-x]+[0-9]?/",
    b"hello",
)
lark(
    "ambiguous terminals",
    "start: x*\nx: A | B | A x B\nA: /(a|aa|aaa)+/\nB: /(a*b?)*/",
    b"aaaaabaab",
)
lark("20,000 groups of Lark", lambda: "start: " + "(" * 20_000 + '"a"' + ")" * 20_000, b"a")
lark("300 groups of Lark", lambda: "start: " + "(" * 300 + '"a"' + ")" * 300, b"a")
lark(
    "5,000 rules of Lark",
    lambda: (
        "start: r0\n" + "\n".join(f'r{i}: r{i + 1} | "x{i}"' for i in range(5_000)) + '\nr5000: "z"'
    ),
    b"x1",
)
lark("doubled rules", 'start: a\na: b b\nb: c c\nc: d d\nd: "x"~1..100000', b"xxxx")
lark("repetition of 10^6 in Lark", 'start: ("a"~1..1000)~1..1000', b"aaaa")
lark("an import", "start: WS\n%import common.WS", b" ")
lark("an import of a file", "start: WS\n%import ../../../../etc/passwd", b" ")
lark("a NUL in Lark", 'start: "a\0"')
lark("no text of Lark", "")
lark("a rule that is itself", "start: start")
lark("terminals in a ring", "start: A\nA: B\nB: A")

# -- structural tags -------------------------------------------------------------------------------


def _items(levels: int) -> Any:
    return reduce(lambda inner, _: {"items": inner}, range(levels), True)


TOOL = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["city"],
}


def function(i: int, schema: Any = TOOL) -> dict[str, Any]:
    content = {"type": "json_schema", "json_schema": schema}
    return {"type": "tag", "begin": f"<function=f{i}>", "content": content, "end": "</function>"}


def functions(tags: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": ["<function="], "tags": tags}


def text(value: str) -> dict[str, str]:
    return {"type": "const_string", "value": value}


tag(
    "5,000 tools",
    lambda: functions([function(i) for i in range(5_000)]),
    b'hello <function=f77>{"city": "x"',
)
tag(
    "5,000 tools of their own",
    lambda: functions(
        [
            function(
                i,
                {"type": "object", "properties": {f"p{i}": {"type": "string", "maxLength": i + 1}}},
            )
            for i in range(5_000)
        ]
    ),
    b'hello <function=f77>{"p77": "x"',
)
tag(
    "10,000 triggers",
    lambda: {
        "type": "triggered_tags",
        "triggers": [f"<t{i}>" for i in range(10_000)],
        "tags": [
            {
                "type": "tag",
                "begin": f"<t{i}>",
                "content": {"type": "any_text"},
                "end": f"</t{i}>",
            }
            for i in range(10_000)
        ],
    },
    b"hello <t77>abc</t77>",
)
tag(
    "tags 900 deep",
    lambda: reduce(
        lambda inner, _: {"type": "tag", "begin": "<a>", "content": inner, "end": "</a>"},
        range(900),
        {"type": "any_text"},
    ),
    b"<a><a>",
)
tag(
    "sequences 5,000 deep",
    lambda: reduce(
        lambda inner, _: {"type": "sequence", "elements": [inner]},
        range(5_000),
        {"type": "any_text"},
    ),
)
add(
    "text of sequences 30,000 deep",
    "structural_tag",
    lambda: (
        '{"type":"structural_tag","format":'
        + '{"type":"sequence","elements":[' * 30_000
        + '{"type":"any_text"}'
        + "]}" * 30_000
        + "}"
    ),
)
tag("a format that is unknown", lambda: {"type": "nope"})
tag("triggers of another type", lambda: {"type": "triggered_tags", "triggers": [5], "tags": "x"})
tag("no format", lambda: None)
add("a list as a tag", "structural_tag", lambda: [1, 2])
tag("a set in a tag", lambda: {"type": "const_string", "value": {1}})
tag(
    "a pattern of 30,000 groups in a tag",
    lambda: {"type": "regex", "pattern": "(" * 30_000 + "a" + ")" * 30_000},
    guards="a stack overflow",
)
for name, make, guards in (
    ("items 900 deep in a tag", lambda: _items(900), "time without end"),
    ("5,000 definitions in a tag", definitions, "a stack overflow"),
    ("a chain of 2,000 references in a tag", lambda: references(2_000), "deep recursion"),
    (
        "a pattern of 20,000 groups in a schema of a tag",
        lambda: {"type": "string", "pattern": "(" * 20_000 + "a" + ")" * 20_000},
        "a stack overflow",
    ),
):
    tag(
        name,
        lambda make=make: {"type": "json_schema", "json_schema": make()},
        b'{"n": {"m": {',
        guards=guards,
    )
tag(
    "5,000 open groups in a tag",
    lambda: {"type": "grammar", "grammar": "root ::= " + "(" * 5_000},
)
for count in (1_500, 3_000):
    tag(
        f"{count:,} choices of a or ab or nothing",
        lambda count=count: {
            "type": "sequence",
            "elements": [{"type": "or", "elements": [text("a"), text("ab"), text("")]}] * count,
        },
        b"aabab",
    )
