"""Texts of JSON, Lua and SQL on which lexers differ, what ends what is open, and mutants."""

from __future__ import annotations

import random

# fmt: off
CLOSERS = {
    "json": [
        '"', "0", ",", ":", "]", "}", '"":0', "e", "l", "s", "u", "n", "\\",
    ],
    "lua": [
        ")", "]", "}", "]=0", " end", "x", "0", " then", " do", " in x", " until x", "(", "=0", " ",
        ",0", '"', "'", "]]", "]=]", "]==]", "[", "=", ":", ".", "-", ">", "\n", ";", "]===]",
    ],
    "sql": [
        ")", "x", "0", " ", '"', "'", "*", "/", "(", ",", "=", "|", " x", ";", "\n", " from x",
        " then 0", " end", " select 0", " into x", " set x=0", " table x", " by x", " values(0)",
        " join x", " in(0)", " and 0", " null", " key", " null,x x", " when 0", "-",
    ],
}
"""What ends what is open; bytes that go on with a character that has begun come on top."""

SHORT = {
    "json": [
        "", " ", "0", "-", "01", "1.", '"\\u12"', '"\\ud83d"', "[1 2]", "[,]", '{"a":1,}', "nul",
        "nullnull", "[true false]", "1e+", '"\n"', '"é', "[1]]", "\ufeff1", "'a'", "\xa01",
    ],
    "lua": [
        "", "x", "x=1", "x=1y=2", "x=1.e5", "x=0x", "x=0x1p", "x=3..2", "x=3 ..2", "f()()",
        "f\n()", "x=f\n(g)()", "return f(1)(2)", "(f)()", "(f)", "f{}.x=1", "x.y:z()", "x=y:z",
        "--", "--[[", "--[[]]", "--[[]]x=1", "--[=[]]", "--[=[]]]=]", "--[==", "--[==\nx=1",
        "-- é", "x=[[]]", "x=[=[]]]=]", "x=[===[]===]", "x=a[[[b]]]", "x=a[b[1]]", "x='a\\\nb'",
        "x='a\nb'", "x='\\z  \n a'", "x='\\", "ifx then end", "if x thenend", "if x then end",
        "x=notx", "x=not-1", "x=1or 2", "x=0xfor 2", "endx=1", "local end=1", "end=1", "goto=1",
        "x=1--y", "x=-y", "x=- -y", "x=--y", "x=~y~=z~w", "x=a<<b<c", "::a::", "::a ::b::",
        "x=...", "x=.5..5", "x=é", "local x<const>=1", "local x<const,y=1", "x={1,2;3,}",
        "x={,}", "x={[1]=2,a=3}",
    ],
    "sql": [
        "", ";", "select 1", "select 1;", "select 1;;", "select1", "select 1from t", "SELECT*",
        "select*from t", "select a b from c d", "select a as from from t", "select from from t",
        "select 1e5", "select 1e", "select 1.", "select 1.5.5", "select 'a''b'",
        "select 'a' 'b'", "select '", 'select ""', 'select """"', "select --1", "select 1--1",
        "select - -1", "select -", "select 1/*/2", "select 1/**/2", "select 1/**//2", "select/*",
        "select 1 /* é */", "select ä", "select inner join b", "select a from b inner join c",
        "select a from b inner", "select null", "select a notin (1)", "select a not in(1)",
        "select a is notnull", "select not a", "select a<>b", "select a<>=b", "select count(*)",
        "select count(distinct)", "select f(*,1)", "select(select 1)", "select case end",
        "select case when a then b end", "select case when a then b elseend",
        "delete from t where a=1", "deletefrom t", "update set set set=1",
        "insert into t values()",
    ],
}
"""Short texts on which lexers differ: the longest match, keywords within names, half terminals."""
# fmt: on


def changed(text: str, rng: random.Random) -> str:
    """One change: a piece deleted, doubled or moved; neighbours swapped; the text cut off."""
    at = rng.randrange(len(text))
    piece = text[at : at + rng.choice([1, 1, 1, 2, 5])]
    before, after = text[:at], text[at + len(piece) :]
    kind = rng.randrange(6)
    if kind == 0:
        return before + after
    if kind == 1:
        return before + piece + piece + after
    if kind == 2:
        return before + after[:1] + piece + after[1:]
    if kind == 3:
        to = rng.randrange(len(text))
        return (before + after)[:to] + piece + (before + after)[to:]
    if kind == 4:
        return before
    return text[at:]


def mutants(texts: list[str], rng: random.Random, count: int) -> list[str]:
    """Runs of lines of some texts, changed once, twice or not at all."""
    made = []
    for _ in range(count):
        lines = rng.choice(texts).split("\n")
        start = rng.randrange(len(lines))
        text = "\n".join(lines[start : start + rng.randint(1, 8)])
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            text = changed(text, rng) if text else text
        made.append(text)
    return made
