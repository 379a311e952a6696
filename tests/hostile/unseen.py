"""More hostile inputs, which were made after the engine was: it was not written against them.

Those with ``held_back`` are looked at only when everything else passes.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

from hostile.cases import (
    CASES,
    function,
    functions,
    grammar,
    lark,
    references,
    regex,
    rules,
    schema,
    tag,
    text,
    words,
)

_BEFORE = set(CASES)

# -- recursion and ambiguity -----------------------------------------------------------------------

grammar(
    "300 rules that are all empty",
    lambda: rules(
        "r0",
        *(
            f'r{i} ::= r{(i + 1) % 300}? r{(i * 7 + 3) % 300}? | "{chr(97 + i % 26)}" r{i}? | ""'
            for i in range(300)
        ),
    ),
    b"abcxyz",
)
grammar(
    "stars of stars of each other",
    rules("a", 'a ::= b* "x"?', "b ::= c* a*", 'c ::= a? b? "y"'),
    b"yxyyxx" * 10,
)
grammar(
    "left recursion behind what is empty",
    lambda: rules(
        "r0",
        'n ::= "" | n n | "a"?',
        *(
            f'r{i} ::= n r{(i * 5 + 1) % 60} "{chr(97 + i % 26)}" | n n "{chr(97 + i % 7)}"'
            for i in range(60)
        ),
    ),
    b"abcabc" * 5,
)
grammar(
    "one rule in 20,000 places",
    lambda: rules(
        " | ".join(f'"{i:04x}" x "{i:04x}"' for i in range(20_000)),
        'x ::= x x | [a-z] | "(" x ")"',
    ),
    b"00ffab(cd)",
    then=("long text",),
)
grammar(
    "a unit chain of 200,000",
    lambda: rules("r0", *(f"r{i} ::= r{i + 1}" for i in range(200_000)), 'r200000 ::= "x" r0?'),
    b"xxxx",
)
grammar(
    "500 brackets that close alike",
    lambda: rules(
        "r r | r",
        "r ::= "
        + " | ".join(f'"{"(" * (i % 9 + 1)}" r "{")" * (i % 7 + 1)}"' for i in range(500))
        + ' | "x"',
    ),
    b"(((((((((((((x",
    held_back=True,
)
grammar(
    "rules of three in a ring of 40",
    lambda: rules(
        "r0",
        *(
            f'r{i} ::= r{(i + 1) % 40} r{(i + 3) % 40} r{(i + 9) % 40} | "{"ab"[i % 2]}" | ""'
            for i in range(40)
        ),
    ),
    b"abab" * 10,
    held_back=True,
)
grammar(
    "a random grammar of 2,000 rules",
    lambda: _random_rules(2_000, 3, 3, seed=7),
    b"abcd",
)
grammar(
    "a random grammar of 40 long rules",
    lambda: _random_rules(40, 6, 8, seed=8),
    b"abcd",
    held_back=True,
)


def _random_rules(count: int, bodies: int, length: int, seed: int) -> str:
    random = Random(seed)

    def symbol() -> str:
        if random.random() < 0.4:
            return f'"{random.choice("abcdef")}"'
        return f"r{random.randrange(count)}" + random.choice(["", "", "?", "*"])

    def body() -> str:
        return " ".join(symbol() for _ in range(random.randint(1, length)))

    return rules(
        "r0",
        *(
            f'r{i} ::= "{random.choice("abcdef")}" | ' + " | ".join(body() for _ in range(bodies))
            for i in range(count)
        ),
    )


# -- automata --------------------------------------------------------------------------------------

grammar(
    "lengths modulo primes",
    "root ::= " + " | ".join(f'([ab]{{{p}}})* "{p}"' for p in (3, 5, 7, 11, 13, 17, 19, 23)),
    b"ab" * 40,
)
grammar(
    "5,000 words anywhere",
    lambda: rules(" | ".join(f'[a-f0-9]* "{word[:9]}" [a-f0-9]*' for word in words(5_000))),
    b"abcdef0123456789",
)
grammar(
    "counters in counters that overlap",
    'root ::= (("a"{0,50} [ab]{3,50}){1,50} "b"{2,9}){1,50} ([ab]{0,99} "c")?',
    b"abba" * 15,
)
grammar(
    "60 choices, 60 levels of options",
    lambda: (
        "root ::= "
        + "".join(
            "(" + " | ".join(f'"{chr(97 + (i * j) % 26)}{j}"' for j in range(60)) + " ("
            for i in range(60)
        )
        + '"x"'
        + ")?)" * 60
    ),
    b"a0a0",
)
grammar(
    "10,000 characters of four bytes",
    lambda: (
        "root ::= ("
        + " | ".join(f'"{chr(0x10000 + i * 97)}"' for i in range(10_000))
        + "){1,10000}"
    ),
    "\U00010000\U00010061".encode(),
)
grammar(
    "not one of 3,000 classes",
    lambda: "root ::= " + " ".join(f"[^{chr(0x400 + i)}-{chr(0x500 + i)}]?" for i in range(1_000)),
    b"abc",
    held_back=True,
)

# -- size ------------------------------------------------------------------------------------------

grammar("5,000,000 empty lines", lambda: "\r\n" * 5_000_000 + 'root ::= "a"', b"a")
grammar(
    "300,000 rules that nobody calls",
    lambda: rules('"a"', *(f'r{i} ::= "{i}" r{i + 1}*' for i in range(300_000)), 'r300000 ::= "b"'),
    b"a",
)
grammar(
    "ten names of a megabyte",
    lambda: rules(
        " | ".join(f"{'n' * 700_000}{i}" for i in range(8)),
        *(f'{"n" * 700_000}{i} ::= "{i}"' for i in range(8)),
    ),
    b"1",
    held_back=True,
)
grammar(
    "10 MB of text",
    'root ::= ([a-z] | " ")*',
    b"hello world ",
    then=("10 MB",),
)
grammar(
    "100,000 brackets",
    'root ::= "(" root ")" | "x"',
    b"((((",
    then=("brackets", "forced"),
)
grammar(
    "many steps, rolled back",
    'root ::= root root | "a" | "b" root "c"',
    b"ab",
    then=("many steps", "forks"),
)
grammar(
    "a draft of 2,000 tokens",
    'root ::= root root | "a" | "b" | "(" root ")"',
    b"ab(",
    then=("draft",),
)
grammar(
    "a draft on a chart",
    'root ::= root "+" root | root root | [a-z] | "(" root ")"',
    b"a+b",
    then=("draft", "long text", "forks"),
    engine="chart",
    held_back=True,
)

# -- regular expressions ---------------------------------------------------------------------------

regex("plus of plus", "(x+x+)+y", b"x" * 80)
regex("30 times anything and a", "(.*a){30}b", b"a" * 80)
regex("500 words anywhere", lambda: "|".join(f".*{word[:8]}.*" for word in words(500)), b"abcdef")
regex(
    "dates in every order",
    "|".join(f"({a}[-/.]{b}[-/.]{c})" for a, b, c in [(r"\d{1,4}",) * 3] * 300),
    b"12-31-1999",
    held_back=True,
)

# -- JSON schemas ----------------------------------------------------------------------------------

schema(
    "a tree of itself, 30 ways",
    lambda: {
        "$defs": {
            "n": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {f"k{i}": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}},
                    }
                    for i in range(30)
                ]
                + [{"type": "array", "items": {"$ref": "#/$defs/n"}}]
            }
        },
        "$ref": "#/$defs/n",
    },
    b'{"k1": [{"k2": ',
)


schema(
    "a chain of 2,000 references",
    lambda: json.dumps(references(2_000)),
    b"12",
)
schema(
    "2,000 objects as values",
    lambda: {"enum": [{"a": i, "b": [i, {"c": str(i)}]} for i in range(2_000)]},
    b'{"a": 7',
)
schema(
    "10,000 names to escape",
    lambda: {
        "type": "object",
        "properties": {f'"\\\n{chr(0x3000 + i)}': {"type": "boolean"} for i in range(10_000)},
        "additionalProperties": False,
    },
    b'{"',
    held_back=True,
)
schema(
    "arrays of unions of arrays",
    lambda: _unions(5),
    b"[[[[[",
    held_back=True,
)


def _unions(levels: int) -> dict[str, Any]:
    if not levels:
        return {"type": "integer", "minimum": 3, "maximum": 77}
    inner = _unions(levels - 1)
    return {
        "anyOf": [
            {"type": "array", "items": inner, "minItems": i, "maxItems": i + 9} for i in range(5)
        ]
    }


# -- Lark and structural tags ----------------------------------------------------------------------

lark(
    "200 terminals that overlap",
    lambda: (
        "start: ("
        + " | ".join(f"T{i}" for i in range(200))
        + ")+\n"
        + "\n".join(f"T{i}: /[a-{chr(98 + i % 25)}]+{i}?/" for i in range(200))
        + "\nWS: / +/\n%ignore WS"
    ),
    b"abc 12 abc",
)
tag(
    "2,000 tags with separators",
    lambda: {
        "type": "tags_with_separator",
        "tags": [function(i) for i in range(2_000)],
        "separator": ",",
        "at_least_one": True,
    },
    b'<function=f7>{"city": "x"',
)
tag(
    "1,000 times free text",
    lambda: {
        "type": "sequence",
        "elements": [
            {
                "type": "tag",
                "begin": "",
                "content": {"type": "any_text"},
                "end": "ab"[i % 2] + "c" * (i % 3),
            }
            for i in range(1_000)
        ],
    },
    b"hello abcabc",
)
tag(
    "choices of choices of tools",
    lambda: {
        "type": "or",
        "elements": [
            {
                "type": "sequence",
                "elements": [text("a" * i), functions([function(j) for j in range(i, i + 40)])],
            }
            for i in range(60)
        ],
    },
    b"aaaa hello <function=f7>",
    held_back=True,
)

UNSEEN = sorted(set(CASES) - _BEFORE, key=[*CASES].index)
