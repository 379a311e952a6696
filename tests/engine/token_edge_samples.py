"""Token edges by hand: small grammars over one vocabulary, and the tokens that may come next."""

from __future__ import annotations

from random import Random

TOKENS = (
    b"a", b"b", b"ab", b"<t>", b"</t>", b"a", b"", b"</s>", b"c", b",", b"aab", b"\xc3", b"\xa9"
)  # fmt: skip
A, B, AB, TAG, END, TWIN, NONE, STOP, C, COMMA, AAB, HALF, REST = range(len(TOKENS))
SPECIALS = (TAG, END)
WHOLE = frozenset(range(len(TOKENS))) - {NONE, STOP}
"""What a token edge can take."""

Expected = dict[tuple[int, ...], frozenset[int] | set[int]]

NAMED: dict[str, tuple[str, Expected]] = {
    "one": ("root ::= Token(2)", {(): {AB}, (AB,): {STOP}}),
    "any of some": ('root ::= Token(2, 3) "b"', {(): {AB, TAG}, (TAG,): {B}, (TAG, B): {STOP}}),
    "none of some": ("root ::= ExcludeToken(0, 3)", {(): WHOLE - {A, TAG}, (AB,): {STOP}}),
    "any": ("root ::= ExcludeToken()", {(): WHOLE, (TAG,): {STOP}}),
    "what is never taken is excluded silently": ("root ::= ExcludeToken(6, 7)", {(): WHOLE}),
    "by id, not by bytes": ('root ::= Token(0) "b"', {(): {A}, (A,): {B}}),
    "by bytes, not by id": ('root ::= "a" "b"', {(): {A, TWIN, AB}, (TWIN,): {B}}),
    "by bytes or by id": ('root ::= "a" | Token(0)', {(): {A, TWIN}, (A,): {STOP}}),
    "either reading": (
        'root ::= "a" "b" | Token(2) "c"',
        {(): {A, TWIN, AB}, (AB,): {STOP, C}, (TWIN,): {B}, (AB, C): {STOP}},
    ),
    "both readings go on": (
        'root ::= "ab" x | Token(2) y\nx ::= "a" "b"\ny ::= "a" "c"',
        {(AB,): {A, TWIN, AB}, (AB, A): {B, C}, (AB, AB): {STOP}, (A, B): {A, TWIN, AB}},
    ),
    "the readings take turns": (
        'root ::= Token(2)* "ab"',
        {(): {A, TWIN, AB}, **{(AB,) * n: {A, TWIN, AB, STOP} for n in range(1, 6)}},
    ),
    "not inside of a token": ('root ::= "a" Token(1) "c"', {(): {A, TWIN}, (A,): {B}, (A, B): {C}}),
    "not across the end of one": ('root ::= "aa" Token(1)', {(): {A, TWIN}, (A, A): {B}}),
    "within a character": (
        'root ::= "é" Token(12) | Token(11) "c"',
        {(): {HALF}, (HALF,): {REST, C}, (HALF, REST): {REST}},
    ),
    "special tokens as tags": (
        "root ::= Token(3) [a-c]+ Token(4)",
        {(): {TAG}, (TAG,): {A, B, AB, TWIN, C, AAB}, (TAG, AB): {A, B, AB, TWIN, C, AAB, END}},
    ),
    "a special token is no text": ('root ::= "<t>" | "b" | "<" [^x]*', {(): {B}}),
    "what it looks like is no tag": ("root ::= Token(3) | [a-z]", {(): {TAG, A, B, TWIN, C}}),
    "any number": ('root ::= Token(2)* "c"', {(): {AB, C}, (AB, AB): {AB, C}, (C,): {STOP}}),
    "counted": (
        'root ::= Token(2){3,40} "c"',
        {
            (AB,) * 2: {AB},
            (AB,) * 3: {AB, C},
            (AB,) * 39: {AB, C},
            (AB,) * 40: {C},
            (AB, AB, AB, C): {STOP},
        },
    ),
    "counted without end": (
        "root ::= Token(3, 4){17,}",
        {(TAG, END) * 8: {TAG, END}, (TAG,) * 17: {TAG, END, STOP}, (END,) * 30: {TAG, END, STOP}},
    ),
    "counted beside text": (
        'root ::= (Token(2) | "a"){18,20} "b"?',
        {
            (AB,) * 15: {A, TWIN, AB},
            (AB,) * 16: {A, TWIN, AB, AAB},
            (AB,) * 17: {A, TWIN, AB, AAB},
            (AB,) * 19: {A, TWIN, AB, B, STOP},
            (AB,) * 20: {B, STOP},
        },
    ),
    "counted rules": (
        'root ::= (x ","){2,30} Token(3)\nx ::= Token(4) | "a" x | ""',
        {
            (): {END, A, TWIN, COMMA},
            (END,): {COMMA},
            (COMMA, A): {A, TWIN, END, COMMA},
            (COMMA,) * 2: {END, A, TWIN, COMMA, TAG},
            (COMMA,) * 30: {TAG},
        },
    ),
    "perhaps, repeated": (
        "root ::= (Token(3)?){2,20}",
        {(): {TAG, STOP}, (TAG,) * 19: {TAG, STOP}, (TAG,) * 20: {STOP}},
    ),
    "a list with separators": (
        'root ::= item (Token(9) item)*\nitem ::= "a" | Token(8)',
        {(): {A, TWIN, C}, (A,): {COMMA, STOP}, (C, COMMA): {A, TWIN, C}},
    ),
    "a list with either separator": (
        'root ::= item ((Token(9) | ",") item)*\nitem ::= ([a-c] | Token(9))+',
        {
            (C,): {A, B, AB, TWIN, C, AAB, COMMA, STOP},
            (C, COMMA): {*{A, B, AB, TWIN, C}, AAB, 9, 7},
        },
    ),
    "recursion": (
        'root ::= Token(3) root Token(4) | "a"',
        {(): {TAG, A, TWIN}, (TAG, TAG, A): {END}, (TAG, TAG, A, END, END): {STOP}},
    ),
    "right recursion": (
        'root ::= Token(2) root | "ab"',
        {(AB,): {A, TWIN, AB, STOP}, (AB, AB, A): {B}, (A, B): {STOP}},
    ),
    "left recursion": (
        'root ::= root Token(2) | "a"',
        {(): {A, TWIN}, (A,): {AB, STOP}, (A, AB, AB): {AB, STOP}},
    ),
    "left recursion that begins with a token": (
        'root ::= root "b" | Token(2) | root Token(0)',
        {(): {AB}, (AB,): {B, A, STOP}, (AB, B, A): {B, A, STOP}},
    ),
    "hidden left recursion": (
        'root ::= x root Token(2) | "c"\nx ::= "" | Token(0)',
        {(): {A, C}, (A,): {A, C}, (C,): {AB, STOP}, (A, C): {AB}, (A, C, AB): {AB, STOP}},
    ),
    "squared": (
        'root ::= root root | Token(2) | "a" "b"',
        {(): {A, TWIN, AB}, (AB,): {A, TWIN, AB, STOP}, (A,): {B}, (AB, A): {B}},
    ),
    "what cannot be completed": (
        'root ::= Token(2) x | Token(3) "a"\nx ::= Token(2) x',
        {(): {TAG}, (TAG,): {A, TWIN}},
    ),
    "nothing is left": (
        'root ::= "a" | ExcludeToken(0, 1, 2, 3, 4, 5, 8, 9, 10, 11, 12) "b"',
        {(): {A, TWIN}, (A,): {STOP}},
    ),
    "free tokens": (
        "root ::= TokenTagDispatch((3, r))\nr ::= [a-c]+ Token(4)",
        {
            (): WHOLE | {STOP},
            (AB, REST): WHOLE | {STOP},
            (TAG,): {A, B, AB, TWIN, C, AAB},
            (END, TAG, AB): {A, B, AB, TWIN, C, AAB, END},
            (TAG, AB, END): WHOLE | {STOP},
        },
    ),
    "free tokens, some excluded": (
        'root ::= TokenTagDispatch((3, r), excludes=(4, 0, 6, 7))\nr ::= "a"',
        {(): (WHOLE - {END, A}) | {STOP}, (TAG,): {A, TWIN}, (TAG, A): (WHOLE - {END, A}) | {STOP}},
    ),
    "free tokens, once": (
        'root ::= TokenTagDispatch((3, r), loop_after_dispatch=false)\nr ::= "a"',
        {(): WHOLE | {STOP}, (AB,): WHOLE | {STOP}, (AB, TAG): {A, TWIN}, (TAG, A): {STOP}},
    ),
    "free tokens, then text": (
        'root ::= f "c"\nf ::= TokenTagDispatch((3, r), excludes=(8))\nr ::= Token(8)',
        {(): WHOLE, (C,): {STOP}, (TAG,): {C}, (TAG, C): WHOLE, (TAG, C, C): {STOP}},
    ),
    "free tokens, once, then text": (
        "root ::= f Token(4)\n"
        'f ::= TokenTagDispatch((3, r), loop_after_dispatch=false, excludes=(4))\nr ::= "a"',
        {(): WHOLE, (END,): {STOP}, (B, TAG): {A, TWIN}, (B, TAG, A): {END}},
    ),
    "nothing but free tokens": (
        "root ::= TokenTagDispatch(excludes=(3, 4))",
        {(): (WHOLE - {TAG, END}) | {STOP}, (B, C): (WHOLE - {TAG, END}) | {STOP}},
    ),
    "two rules of one trigger": (
        'root ::= TokenTagDispatch((3, r), (3, s), excludes=(0))\nr ::= "a"\ns ::= "ab"',
        {(TAG,): {A, TWIN, AB}, (TAG, A): (WHOLE - {A}) | {STOP}},
    ),
    "a trigger whose rule may be empty": (
        'root ::= TokenTagDispatch((3, r), excludes=(0))\nr ::= "a"?',
        {(TAG,): WHOLE | {STOP}, (TAG, A): (WHOLE - {A}) | {STOP}},
    ),
    "a trigger whose rule never ends": (
        'root ::= TokenTagDispatch((3, r))\nr ::= "a" r',
        {(): (WHOLE - {TAG}) | {STOP}},
    ),
    "free tokens inside of free tokens": (
        "root ::= TokenTagDispatch((3, r), loop_after_dispatch=false)\n"
        "r ::= TokenTagDispatch((3, r), excludes=(4)) Token(4)",
        {(TAG,): WHOLE, (TAG, TAG): WHOLE, (TAG, TAG, END): WHOLE, (TAG, END): {STOP}},
    ),
    "free tokens, repeated": (
        'root ::= (TokenTagDispatch((3, r), loop_after_dispatch=false) ","){2,20}\nr ::= "a"',
        {(): WHOLE, (COMMA,): WHOLE, (COMMA,) * 2: WHOLE | {STOP}, (COMMA, TAG): {A, TWIN}},
    ),
}


def text_of(ids: tuple[int, ...]) -> bytes:
    """What was read, stop tokens left out."""
    return b"".join(TOKENS[i] for i in ids if i != STOP)


def build_tokens() -> list[bytes]:
    """Tokens enough for masks to be worth sharing, and long enough for loops to matter.

    Every byte, words, twins, two tokens that may be special, one that may be the stop token.
    """
    random = Random(0)
    letters = [*"abcde", *'(){},:" ', "é", "true", "ab"]
    out = [bytes([b]) for b in range(256)]
    while len(out) < 2_500:
        out.append("".join(random.choices(letters, k=random.randint(2, 9))).encode())
    return [*out, b"<t>", b"</t>", b"</s>"]


MANY = build_tokens()
ONE, OTHER = 300, 301
