"""Lengths of strings in which texts are excluded, as the end of a tag is, beside two validators.

The bound is counted there too: the tools of most model families exclude the end of a call.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
import tokfold
from json_schema.styles import readings
from json_schema.test_styles import BYTES, VOCABULARY, accepts, language
from json_schema.truth import Validators
from strategies.engine import mask_beside_forks, mask_of
from strategies.profiles import CASES, LONG
from tokfold import structural_tags

MARKERS = ["</t>", "<t", "t>", "aab", "aa", "<｜é", "\\", "u003c", '\\"', "c/", "é"]
LETTERS = ["a", "b", "<", "/", "t", ">", "é", "｜", '"', "\\", "\n", "c", "\U0001f600"]


def condition(random: Random) -> dict[str, Any]:
    """A string whose bound is mostly too large to be written out."""
    out: dict[str, Any] = {"type": "string"}
    if random.random() < 0.5:
        out["pattern"] = random.choice(
            ["^[^b]*$", "^(a|</t|b)*$", "^[a-ct<>/]*$", "a$", "^(ab?)*c?$", "^.*<"]
        )
    least = random.choice([0, 0, 1, 66, 69])
    out["minLength"] = least
    if random.random() < 0.85:
        out["maxLength"] = random.choice([least + 1, 68, 70, 72])
    return out


def value(random: Random) -> str:
    length = max(random.choice([0, 1, 2, 20, 66, 68, 69, 70, 72]) + random.randint(-1, 1), 0)
    letters = random.choice(
        [LETTERS, ["a", "b", "c"], ["a"], ["a", "<", "/", "t", ">"], ["é", "<"]]
    )
    out = "".join(random.choices(letters, k=length))
    if random.random() < 0.4 and length > 4:
        marker = random.choice(MARKERS)
        at = random.randrange(length)
        out = (out[:at] + marker + out[at:])[:length]
    return out


def spelled(text: str, random: Random, *, is_free: bool) -> str:
    """The inside of a string of JSON; of one that nothing restricts in any spelling."""
    out = ""
    for character in text:
        plain = json.dumps(character, ensure_ascii=False)[1:-1]
        if is_free and random.random() < 0.15:
            plain = "\\/" if character == "/" else json.dumps(character)[1:-1]
            if character == "<":
                plain = "\\u003c"
        out += plain
    return out


def compiled_without(
    markers: list[str], schema: dict[str, Any], style: str = "json"
) -> tokfold.CompiledGrammar | None:
    """The grammar of a schema in which texts are excluded; None where no value is left."""
    try:
        return language(schema, style, excludes=markers)
    except tokfold.errors.SchemaError:
        CASES["excluded lengths: nothing is left"] += 1
        return None


@pytest.mark.parametrize("seed", range(1_500 if LONG else 50))
def test_strings_of_json(seed: int) -> None:
    random = Random(f"excluded lengths {seed}")
    schema = condition(random)
    markers = random.sample(MARKERS, random.randint(1, 3))
    validators = Validators(schema)
    compiled = compiled_without(markers, schema)
    if compiled is None:
        return
    is_free = "pattern" not in schema
    for _ in range(120):
        text = value(random)
        verdict = validators.verdict(text)
        if verdict is None:
            continue
        inside = spelled(text, random, is_free=is_free)
        expected = verdict and not any(marker in inside for marker in markers)
        CASES["excluded lengths: compared"] += 1
        CASES["excluded lengths: accepted"] += expected
        assert accepts(compiled, f'"{inside}"') == expected, (schema, markers, inside)


@pytest.mark.parametrize("seed", range(1_000 if LONG else 30))
def test_strings_in_elements(seed: int) -> None:
    random = Random(f"excluded lengths, elements {seed}")
    inner = condition(random)
    schema = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    markers = random.sample(MARKERS, random.randint(0, 2))
    validators = Validators(schema)
    compiled = compiled_without(markers, schema, "qwen_xml")
    if compiled is None:
        return
    for _ in range(60):
        text = value(random).replace("\n", "b")
        if random.random() < 0.2:
            at = random.randrange(len(text) + 1)
            text = text[:at] + "</parameter>" + text[at:]
        if "</parameter>" in text or any(marker in text for marker in markers):
            expected: bool | None = False
        else:
            written = f"<parameter=a>{text}</parameter>"
            verdicts = [validators.verdict(one) for one in readings(written, "qwen_xml")]
            expected = None if None in verdicts else any(verdicts)
        if expected is not None:
            CASES["excluded lengths: compared in elements"] += 1
            accepted = accepts(compiled, f"<parameter=a>{text}</parameter>")
            assert accepted == expected, (inner, markers, text)


@pytest.mark.parametrize("style", ["json", "qwen_xml"])
def test_the_size_of_a_bound_costs_nothing(style: str) -> None:
    def states(inner: dict[str, Any]) -> int:
        schema = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
        compiled = language(schema, style, excludes=["</tool_call>", "<｜tool▁call▁end｜>"])
        return compiled._core.network_states

    for inner in (
        {"type": "string"},
        {"type": "string", "format": "uri"},
        {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
        {"type": "string", "pattern": "^[^<]*<[^<]*$"},
    ):
        counted = [states({**inner, "maxLength": most}) for most in (2_000, 100_000)]
        assert counted[0] == counted[1] < 4_000, inner


def test_masks_agree_with_accepts() -> None:
    """Bit by bit along texts that come near the bound, in the middle of what is excluded."""
    tokens = [b"</s>", *(bytes([i]) for i in range(256)), b"</", b"t>", b'<"', b"<<", b"a" * 9]
    vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[0])
    schema = {"type": "string", "minLength": 3, "maxLength": 70}
    core = language(schema, excludes=["</t>", "<<"]).grammar
    compiled = tokfold.compile(core, vocabulary)
    random = Random(3)
    for _ in range(6):
        matcher = tokfold.Matcher(compiled)
        while not matcher.is_terminated:
            bits = mask_beside_forks(matcher, tokens)
            marks = [t for t in range(1, len(tokens)) if bits[t] and tokens[t][:1] in b"</ta"]
            some = [t for t in range(len(tokens)) if bits[t]]
            matcher.accept_token(random.choice(marks if marks and random.random() < 0.8 else some))
            CASES["excluded lengths: masks"] += 1


def test_a_beginning_that_only_an_excluded_text_completes_is_none() -> None:
    schema = {"type": "string", "pattern": "^[a-c]*(</t>|c)$", "maxLength": 70}
    for excludes, is_allowed in (([], True), (["</t>"], False)):
        matcher = tokfold.Matcher(language(schema, excludes=excludes))
        assert matcher.accept_string('"ab')
        bits, _ = mask_of(matcher, len(BYTES))
        assert bits[ord("c")]
        assert bits[ord("<")] is is_allowed
        assert matcher.accept_string("<") is is_allowed


@pytest.mark.parametrize("family", structural_tags.families())
def test_tools_of_each_family_take_bounds(family: str) -> None:
    """What pydantic writes for `HttpUrl` and `Field(max_length=10_000)`: refused before in most."""
    properties = {
        "url": {"type": "string", "format": "uri", "minLength": 1, "maxLength": 2083},
        "text": {"type": "string", "maxLength": 10_000},
        "either": {
            "anyOf": [{"type": "string", "format": "email", "maxLength": 99}, {"const": ""}]
        },
    }
    parameters = {"type": "object", "properties": properties, "required": ["url"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": parameters}}
    tag = structural_tags.for_model(family, [tool], tool_choice="required")
    compiled = tokfold.compile(tokfold.Grammar.from_structural_tag(tag), VOCABULARY)
    assert compiled._core.network_states < 20_000


@pytest.mark.parametrize("seed", range(300 if LONG else 12))
def test_names_of_members(seed: int) -> None:
    """Names that a schema does not list, with bounds on their length."""
    random = Random(f"excluded lengths, names {seed}")
    names = {key: value for key, value in condition(random).items() if key != "type"}
    schema = {"type": "object", "propertyNames": names, "additionalProperties": True}
    markers = random.sample(MARKERS, random.randint(1, 2))
    validators = Validators(schema)
    compiled = compiled_without(markers, schema)
    if compiled is None:
        return
    for _ in range(80):
        name = value(random)
        verdict = validators.verdict({name: 1})
        if verdict is not None:
            inside = spelled(name, random, is_free=False)
            expected = verdict and not any(marker in inside for marker in markers)
            CASES["excluded lengths: compared as names"] += 1
            assert accepts(compiled, f'{{"{inside}": 1}}') == expected, (names, markers, inside)
