"""Writes ``tests/data/structural_tags.jsonl``: structural tags, texts, and XGrammar's verdicts.

A line is a tag and its texts, each "accepted", "prefix" (some text goes on from here) or
"refused". Run it anew, and read the difference, when XGrammar's version or the cases change:

    $ PYTHONPATH=tests python tests/differential/record_structural_tags.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import xgrammar as xgr
from strategies.structural_tags import LETTERS, PIECES, build_format

FILE = Path(__file__).resolve().parents[1] / "data" / "structural_tags.jsonl"
NUM_RANDOM = 160

Json = dict[str, Any]


def const(value: str) -> Json:
    return {"type": "const_string", "value": value}


def any_text(*excludes: str) -> Json:
    return {"type": "any_text", **({"excludes": list(excludes)} if excludes else {})}


def regex(pattern: str) -> Json:
    return {"type": "regex", "pattern": pattern}


def schema(value: Any, style: str = "json", **options: Any) -> Json:
    return {"type": "json_schema", "json_schema": value, "style": style, **options}


def ebnf(text: str) -> Json:
    return {"type": "grammar", "grammar": text}


def of(kind: str, content: Json, **options: Any) -> Json:
    return {"type": kind, "content": content, **options}


def sequence(*elements: Json) -> Json:
    return {"type": "sequence", "elements": list(elements)}


def either(*elements: Json) -> Json:
    return {"type": "or", "elements": list(elements)}


def tag(begin: str, content: Json, end: str | list[str]) -> Json:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(triggers: list[str], *tags: Json, **options: Any) -> Json:
    return {"type": "triggered_tags", "triggers": triggers, "tags": list(tags), **options}


def separated(separator: str, *tags: Json, **options: Any) -> Json:
    return {"type": "tags_with_separator", "separator": separator, "tags": list(tags), **options}


def dispatch(*rules: tuple[str, Json], **options: Any) -> Json:
    return {"type": "dispatch", "rules": [list(rule) for rule in rules], **options}


INTEGER = {"type": "integer"}
POINT = {
    "type": "object",
    "properties": {"x": INTEGER, "s": {"type": "string"}},
    "required": ["x"],
}
FLAGS = [
    {"at_least_one": first, "stop_after_first": stop}
    for first in (False, True)
    for stop in (False, True)
]


def leaves() -> Iterator[tuple[Json, list[str]]]:
    for value in ("", "a", "ab", "é", "\x00a", 'q"\\q', "\n\t", "\U0001f600", "\x7f\x80", "^[a]"):
        yield const(value), [value, "a"]
    yield any_text(), ["", "any é text\n", "</a>"]
    for excludes in (
        ["a"],
        ["ab", "ba"],
        ["</a>"],
        ["aab", "b"],
        ["é"],
        ["aa", "aaa"],
        ["<a", "<"],
    ):
        yield any_text(*excludes), ["", "bbab", "aaab", "</a", "</ab", "é<", "xéx", "<ba"]
    for count in (0, 1, 3):
        yield {"type": "any_text", "max_chars": count}, ["", "a", "aéa", "abcd"]
    forbidden = (["b"], ["ab", "éa"], ["aab", "ab>", "b>"], ["^", "]", "-"], ["abab>", "ba"])
    for excludes in forbidden:
        for count in (0, 1, 5):
            counted = {"type": "any_text", "max_chars": count, "excludes": excludes}
            texts = ["", "a", "aéa", "aa>", "aaab", "aba", "aabb", "aéé", "a-", "[^", "aaaaaa"]
            yield sequence(counted, const("!")), [f"{text}!" for text in texts]
    yield {"type": "any_text", "max_tokens": 0}, ["", "a"]
    for pattern in (
        "a+b",
        "[ab]{2}",
        r"\d+",
        "(a|bc)*",
        "x?",
        "[^a]",
        "é|è",
        r"\.\^",
        r"a{2,}b{0,2}",
    ):
        yield regex(pattern), ["aab", "ab", "12", "abca", "x", "", "é", ".^", "aaabb"]
    yield ebnf('root ::= "a" root "b" | ""'), ["", "aabb", "aab"]
    yield ebnf('root ::= x{2,3}\nx ::= [0-9] | "-"'), ["1-", "1-2", "1-23"]
    yield ebnf('root ::= tag\ntag ::= "\\x00" [\\^a]'), ["\x00^", "\x00a", "^"]
    yield ebnf('root ::= json_schema_0 tag_0\njson_schema_0 ::= "a"\ntag_0 ::= "b"'), ["ab", "b"]
    yield schema(INTEGER), ["12", "-1", "01", " 1", "1.5"]
    yield schema(POINT), ['{"x": 1}', '{"x":1,"s":"é\\n"}', '{"s":"a"}', '{"x":1,"y":2}']
    yield schema(True), ["1", '{"a": [true, null]}', "x"]
    yield schema(POINT, any_order=True), ['{"s":"a","x":1}', '{"x":1}']
    yield schema(POINT, max_whitespace_cnt=1), ['{ "x": 1}', '{  "x": 1}']
    yield schema({"type": "string"}, excludes=["ab", "c"]), ['"aab"', '"aba"', '"ac"', '"ba"']
    yield schema({"const": 'a"\u0000'}), ['"a\\"\\u0000"']
    for word in ("é9", "\x7fa", "\u20ac1"):  # printed as a number, before a digit of its own
        yield schema({"const": word}), [f'"{word}"', json.dumps(word)]
    pattern = {"type": "string", "pattern": "^[a-z]{2}-[0-9]+$"}
    yield schema(pattern), ['"ab-1"', '"ab-"', '"a-1"']
    styles = {
        "qwen_xml": "<parameter=x>1</parameter><parameter=s>a <b></parameter>",
        "minimax_xml": '<parameter name="x">1</parameter>\n<parameter name="s">a</parameter>\n',
        "minimax_m3_xml": "]<]minimax[>[<x>1]<]minimax[>[</x>]<]minimax[>[<s>a]<]minimax[>[</s>",
        "deepseek_xml": '<｜DSML｜parameter name="x" string="false">1</｜DSML｜parameter>',
        "glm_xml": "<arg_key>x</arg_key><arg_value>1</arg_value>",
        "cohere_xml": '<cofl:value name="x" type="json">1</cofl:value>',
        "kimi_k3_xml": '<|open|>argument key="x" type="number"<|sep|>1<|close|>argument<|sep|>',
        "deepseek_v4_1_xml": '<｜DSML｜ parameter name="x" string="false">1</｜DSML｜ parameter>',
        "gemma": "{x:1}",
    }
    for style, text in styles.items():
        yield schema(POINT, style), [text, text.replace("1", "a"), '{"x":1}', text + text]
    yield {"type": "qwen_xml_parameter", "json_schema": POINT}, [styles["qwen_xml"]]


def compositions() -> Iterator[tuple[Json, list[str]]]:
    inner = [const("a"), const(""), any_text("b"), regex("a?"), either(const("ab"), const("b"))]
    for content in inner:
        texts = ["", "a", "aa", "ab", "b", "abb", "aaaa"]
        for kind in ("optional", "plus", "star"):
            yield of(kind, content), texts
        for least, most in ((0, 0), (0, 1), (1, 2), (2, 2), (0, -1), (2, -1), (0, 40), (17, 30)):
            yield of("repeat", content, min=least, max=most), [*texts, "a" * 17, "a" * 41]
        yield sequence(content, const("b"), content), ["b", "aba", "ab", "ba", "aab"]
        yield either(content, const("ba")), [*texts, "ba"]
        yield tag("<", content, ">"), ["<>", "<a>", "<ab>", "<b>", "<<>"]
    yield of("star", of("star", const("a"))), ["", "aaa"]
    yield of("repeat", of("repeat", const("a"), min=0, max=2), min=2, max=2), ["", "aaa", "aaaaa"]
    yield of("plus", of("optional", const("ab"))), ["", "ab", "abab", "aba"]
    yield of("repeat", sequence(regex("a+"), const(",")), min=1, max=3), ["a,aa,", "a,a,a,a,"]


def tags() -> Iterator[tuple[Json, list[str]]]:
    texts = ["<a>x</a>", "<a></a>", "<a>x<a>", "<a>x</a", "<a>x</b>", "<a>12</a>", "x", "<a>1</"]
    for end in ("</a>", ["</a>", "</b>"], ["</a>", ""], ["</", "</a>"]):
        for content in (any_text(), any_text("<"), const("x"), schema(INTEGER), regex("x*")):
            yield tag("<a>", content, end), texts
    long = {"type": "any_text", "max_chars": 30}
    yield tag("", long, "</think>"), [f"{'I think'[:n]}{' so' * 8}</think>" for n in (0, 6, 7)]
    yield tag("", any_text(), "</think>"), ["I think</think>", "</think>", "</think></think>"]
    yield tag("<a>", any_text("x"), ""), ["<a>", "<a>yy", "<a>x"]
    yield tag("", const(""), ""), ["", "a"]
    nested = tag("<a>", sequence(any_text(), tag("<b>", any_text(), "</b>"), any_text()), "</a>")
    yield nested, ["<a><b></b></a>", "<a>x<b>y</a></b>z</a>", "<a></b><b></b></a>"]
    one = tag("<a>", any_text(), "</a>")
    two = tag("<b>", schema(INTEGER), ["</b>", ";"])
    long = tag("<ab>", const("x"), "")
    texts = [
        *("", "free", "<a>x</a>", "<b>1</b>", "<b>1;", "<a>x</a><b>2;", "<a>x</a>,<b>2;"),
        *("f <a>x</a> g <b>1; h", "<a>x</a>,", ",<a>x</a>", "<ab>x", "<c", "<a>x</a>no", "no"),
    ]
    for flags in FLAGS:
        for separator in (",", "", "<", "</a>"):
            yield separated(separator, one, two, **flags), texts
        yield separated(",", one, **flags), texts
        for triggers in (["<a>", "<b>"], ["<"]):
            yield triggered(triggers, one, two, **flags), texts
            yield triggered(triggers, one, two, excludes=["no", "</"], **flags), texts
        yield triggered(["<"], one, two, long, **flags), texts
        inside = triggered(["<a"], one, long, **flags)
        yield tag("[", inside, "]"), [f"[{text}]" for text in texts]
        yield tag("[", inside, ["<", "]"]), [f"[{text}]" for text in texts]
        yield sequence(inside, const("!")), [f"{text}!" for text in texts]
    for loop in (False, True):
        texts = ["", "ab", "abx", "aby", "abxabx", "cabx", "abcz", "no", "nabxo", "b", "bb", "xno"]
        yield dispatch(("ab", const("x")), loop=loop), texts
        yield dispatch(("ab", const("x")), ("ab", const("y")), loop=loop), texts
        yield dispatch(("ab", const("x")), ("abc", const("z")), loop=loop), texts
        yield dispatch(("abc", const("z")), ("b", const("")), loop=loop), texts
        for excludes in (["no"], ["ab"], ["a"], ["b"], ["xab"], ["abc"], ["n", "no"]):
            yield dispatch(("ab", const("x")), loop=loop, excludes=excludes), texts
        yield tag("<", dispatch(("ab", any_text()), loop=loop), ">"), [f"<{x}>" for x in texts]
        yield dispatch(("a", tag("<", any_text(), ">")), loop=loop), ["a<x>", "a<x>a<>", "ab"]
        # a pattern that never comes, since it holds an excluded text, and begins all the same
        texts = ["ab", "axab", "ab>", "a", "ay", "ax", "b", "abx"]
        rules = ("a", const("x")), ("ab>", const("y"))
        yield dispatch(*rules, excludes=[">"], loop=loop), texts
    yield dispatch(("ab", const("x"))), ["", "abxabx", "abx"]


def variations(texts: list[str], random: Random, most: int = 14) -> list[str]:
    """The texts, and some of: their beginnings, the same with a letter more, less or another."""
    found: dict[str, None] = {}
    for text in texts:
        for end in random.sample(range(len(text)), min(3, len(text))):
            found[text[:end]] = None
            found[text[:end] + text[end + 1 :]] = None
            found[text[:end] + random.choice(LETTERS + 'x1"') + text[end + 1 :]] = None
        found[text + random.choice([*LETTERS, "x", text])] = None
    others = [text for text in found if text not in texts]
    return list(dict.fromkeys([*texts, *random.sample(others, min(most, len(others)))]))


class Truth:
    """XGrammar's verdicts under one tag."""

    def __init__(self, tag: Json) -> None:
        info = xgr.TokenizerInfo(
            [bytes([byte]) for byte in range(256)], xgr.VocabType.RAW, stop_token_ids=[]
        )
        compiler = xgr.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._compiled = compiler.compile_grammar(xgr.Grammar.from_structural_tag(tag))

    def verdict(self, text: str | bytes) -> str:
        matcher = xgr.GrammarMatcher(self._compiled)
        if not matcher.accept_string(text):
            return "refused"
        return "accepted" if matcher.is_completed() else "prefix"

    def walk(self, random: Random, most: int) -> str:
        """A text that is taken, of letters and pieces at random."""
        text = ""
        for _ in range(most):
            pieces = [*PIECES, "1", '"', "{", "[", "]", "true", ","]
            taken = [x for x in pieces if self.verdict(text + x) != "refused"]
            if not taken:
                break
            text += random.choice(taken)
        return text


def cases() -> Iterator[tuple[Json, list[str]]]:
    yield from leaves()
    yield from compositions()
    yield from tags()
    random = Random(11)
    count = 0
    while count < NUM_RANDOM:
        format = build_format(random, 3)
        try:
            truth = Truth({"format": format})
        except RuntimeError:  # an end is missing
            continue
        if format["type"] not in ("const_string", "any_text", "regex", "grammar", "json_schema"):
            yield format, [truth.walk(random, n) for n in (2, 4, 6)]
            count += 1


def main() -> None:
    random = Random(7)
    lines = []
    count = 0
    for format, texts in cases():
        tag = {"type": "structural_tag", "format": format}
        truth = Truth(tag)
        verdicts = {text: truth.verdict(text) for text in variations(texts, random)}
        count += len(verdicts)
        lines.append(json.dumps({"tag": tag, "texts": verdicts}, ensure_ascii=False))
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text("\n".join(dict.fromkeys(lines)) + "\n", encoding="utf-8")
    print(f"{len(lines)} tags, {count} texts")


if __name__ == "__main__":
    main()
