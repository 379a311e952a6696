"""Stores that several tests share, and what Lark says to whole texts."""

from __future__ import annotations

import functools
import random
from typing import Any, Literal

import lark
from lark.indenter import PythonIndenter
from tokfold import Vocabulary
from tokfold.mask_store.lark_reader import python_grammar, read_lark
from tokfold.mask_store.store import MaskStore

PYTHON = '''class Stack(Base, metaclass=Meta):
    """A text
    of two lines."""

    def push(self, x: int = 0, *args, **options) -> None:
        if x not in self.items and x is not None:  # a comment
            self.items += [x, -1.5e3, 0x1F, "a\\\\n", b'c', None]
        else:
\\t\\treturn {k: v for k, v in options.items() if k}

@decorated(1)
async def f(a, /, b):
    with open(a) as h, b:
        yield (a
               + b[1:2, ...])  # in parentheses
    try:
        x = y = lambda z: z if z else (yield)
    except (A, B) as e:
        raise e from None
    for i in range(3): pass; continue
while True:
    match x:
        case {"a": 1} | [_, *rest] if rest:
            import foo as bar, baz
'''.replace("\\t", "\t")
"""A text with most of what the grammar of Python has."""

JSON = r"""
?start: value
?value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt])*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
WS: /[ \t\n\r]+/
%ignore WS
"""


def vocabulary(texts: list[str], merges: int, seed: int = 0) -> Vocabulary:
    """All bytes, and so many pieces of some texts; the last token ends the text."""
    rng = random.Random(seed)
    pieces: dict[bytes, None] = {}
    while len(pieces) < merges:
        data = rng.choice(texts).encode()
        start = rng.randrange(len(data))
        pieces[data[start : start + rng.randint(2, 6)]] = None
    tokens = [bytes([i]) for i in range(256)] + [p for p in pieces if len(p) > 1]
    return Vocabulary([*tokens, b"</s>"], stop_token_ids=[len(tokens)])


@functools.cache
def python_store(lexer: Literal["basic", "contextual"] = "contextual") -> MaskStore:
    return MaskStore(python_grammar(lexer=lexer), vocabulary([PYTHON], 500))


@functools.cache
def json_store() -> MaskStore:
    texts = ['{"a": [1, -2.5e3, true], "b\\n": null}', '[{"x": "é"}, false, []]']
    return MaskStore(read_lark(JSON), vocabulary(texts, 60))


@functools.cache
def python_truth(lexer: str = "contextual") -> lark.Lark:
    return lark.Lark.open_from_package(
        "lark",
        "python.lark",
        ["grammars"],
        parser="lalr",
        start="file_input",
        postlex=PythonIndenter(),
        lexer=lexer,
    )


def parses(parser: Any, text: str) -> bool:
    """Whether Lark takes a whole text; its post-lexer fails with errors of other kinds."""
    try:
        parser.parse(text)
    except (lark.exceptions.LarkError, AssertionError, IndexError):
        return False
    return True


def mutant(text: str, rng: random.Random) -> str:
    """The text with something put in, taken out or replaced."""
    at = rng.randrange(len(text) + 1)
    new = ["", " ", "\n", "(", ")", ":", "if ", '"', "\t", "#", "    ", "0", "as", "\\\n", "é"]
    return text[:at] + rng.choice(new) + text[at + rng.randint(0, 2) :]
