r"""Lookaheads at the start of a pattern that bound the length of the text alone: ``(?=.{1,253}$)``.

Python's ``re`` judges, over random texts of lengths around the bounds. A limit on states shows that
such a pattern is a bound beside a small automaton: the product of both passes it.
"""

from __future__ import annotations

import json
import re
from random import Random

import pytest
import tokfold
from json_schema.languages import BYTES, language
from strategies.profiles import CASES, LONG
from tokfold import Grammar

HOST = r"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,}$"
HEADS = (
    *("(?=.{1,253}$)", "(?!.{254,})", "(?!.{254})", "(?=.{4,253}$)", "(?!.{254,}$)"),
    r"(?=[\s\S]{1,253}$)",
)
AROUND = (
    "(?=.{{{0},{1}}}$)",
    "(?=.{{{0},}})",
    "(?=.{{{0}}})",
    "(?=.{{{0},{1}}})",
    "(?!.{{{1}}})",
    "(?!.{{{1},}})",
    "(?!.{{{1},}}$)",
    "(?!.{{{0},{1}}}$)",
    r"(?=[\s\S]{{{0},{1}}}$)",
    "(?=[ab]{{{0},{1}}}$)",
    "(?![ab]{{{1}}})",
    "(?=.{{{0},{1}}}b?$)",
    "(?=.{{{0},{1}}}[ac]?$)",
    r"(?=.{{{0},{1}}}\s?$)",
    "(?=[a-c]{{{0},{1}}}c?$)",
    "(?=.{{{0},{1}}}b{{0,2}}$)",
    "(?=(?:ab){{{0},{1}}}$)",
    "(?!.{{0,}})",
    "(?<=.{{{0}}})",
)
RESTS = (
    "[a-c]*$",
    "[a-c]*",
    r"[^a]*$",
    "(ab|c)+$",
    "(?=.*b)[a-c]+$",
    r"a?[\s\S]*$",
    "$",
    "a|b+$",
    "(a|b+)$",
)


@pytest.mark.parametrize("seed", range(2_000 if LONG else 150))
def test_random_patterns(seed: int) -> None:
    random = Random(seed)
    low = random.randint(0, 4)
    heads = [
        random.choice(AROUND).format(low, low + random.randint(0, 3))
        for _ in range(random.choice((1, 1, 2)))
    ]
    pattern = random.choice(("^", "^", "")) + "".join(heads) + random.choice(RESTS)
    schema = {"type": "string", "pattern": pattern}
    if random.random() < 0.5:
        schema = {"anyOf": [{**schema, "maxLength": 40}, {**schema, "minLength": 41}]}
    found = language(schema)
    # `$` of Python holds before a newline at the end too.
    judge = re.compile(pattern.replace("$", r"\Z"))
    for _ in range(40):
        text = "".join(random.choices("abc\n", (6, 6, 6, 1), k=random.randint(0, 9)))
        expected = judge.search(text) is not None
        assert found.accepts(json.dumps(text)) == expected, (pattern, text)
        CASES["length lookaheads: compared"] += 1


@pytest.mark.parametrize("head", HEADS)
def test_lengths_are_counted(head: str) -> None:
    """Some hundred states, where the product has more than ten thousand."""
    schema = {"type": "string", "pattern": "^" + head + HOST}
    limits = tokfold.Limits(max_automaton_states=1_000)
    found = Grammar.from_json_schema(schema, limits=limits)
    compiled = tokfold.compile(found, BYTES)
    label = "a" * 62
    for text, is_valid in (
        (f"{label}.{label}.{label}.{label}.d", False),
        (f"{label}.{label}.{label}.{label[:61]}.de", True),
        (f"{label}.{label}.{label}.{label[:61]}.def", False),
        ("tokfold.example", True),
    ):
        matcher = tokfold.Matcher(compiled)
        data = json.dumps(text).encode()
        assert (matcher.accept_bytes(data) and matcher.is_accepting) == is_valid, len(text)


@pytest.mark.parametrize("seed", range(40))
def test_long_repetitions_of_a_set_are_lengths(seed: int) -> None:
    """As automata they have as many states as the length, times those of what stands beside."""
    random = Random(seed)
    characters = random.choice(["a", "[ab]", ".", "[^a]", r"[\s\S]"])
    low, more = random.choice([(0, 256), (3, 300), (260, 0), (257, 5), (270, None)])
    count = f"{{{low}}}" if more == 0 else f"{{{low},{'' if more is None else low + more}}}"
    pattern = f"^{characters}{count}$"
    other = random.choice([None, "b", "^(aa|b)*$", r"^[^\n]*$"])
    schema = {"type": "string", "pattern": pattern}
    if other is not None:
        schema = {"allOf": [schema, {"pattern": other}]}
    found = language(schema, limits=tokfold.Limits(max_automaton_states=700))
    most = low + (more or 0)
    for length in {0, 1, low - 1, low, low + 1, most - 1, most, most + 1, most + 2}:
        for letters in ("a", "b", "ab", "aab", "c", "a\n"):
            text = "".join(random.choice(letters) for _ in range(max(length, 0)))
            expected = all(
                re.search(part.replace("$", r"\Z"), text)
                for part in (pattern, other)
                if part is not None
            )
            assert found.accepts(json.dumps(text)) is expected, (schema, text)


PASSWORDS = (
    *("(?=.*a)", "(?=.*b)", r"(?=.*[^\w])", "(?!.*aa)", r"(?!.*\s)", "(?=a|.*c$)", "(?=.{9,})"),
    *("(?=[ab]*$)", "(?!b)", "(?=.{0,18}$)", "(?=(?:ab)*)", "(?!.*c.$)"),
)


@pytest.mark.parametrize("seed", range(1_000 if LONG else 100))
def test_repetitions_behind_lookaheads_are_lengths(seed: int) -> None:
    """What passwords are asked for. Sixteen passes and more are counted, and fewer written out."""
    random = Random(seed)
    heads = "".join(random.sample(PASSWORDS, random.choice((1, 2, 3))))
    characters = random.choice([".", "[abc!]", r"[\s\S]", "[^c]", r"\S"])
    low = random.randint(0, 12)
    count = random.choice([f"{{{low},{low + random.randint(2, 20)}}}", f"{{{low + 14},}}"])
    pattern = f"^{heads}{characters}{count}$"
    schema = {"type": "string", "pattern": pattern}
    if random.random() < 0.3:
        schema["maxLength"] = random.randint(1, 30)
    found = language(schema)
    judge = re.compile(pattern.replace("$", r"\Z"))
    for _ in range(40):
        text = "".join(random.choices("abc!\n", (8, 8, 3, 2, 1), k=random.randint(0, 36)))
        expected = judge.search(text) is not None and len(text) <= schema.get("maxLength", 99)
        assert found.accepts(json.dumps(text)) == expected, (pattern, text)
        CASES["repetitions behind lookaheads: compared"] += 1


def test_a_length_behind_lookaheads_is_no_part_of_their_product() -> None:
    pattern = r"^(?=.*[a-z])(?=.*[A-Z])(?=.*\d).{8,3000}$"
    limits = tokfold.Limits(max_automaton_states=1_000)
    grammar = Grammar.from_json_schema({"type": "string", "pattern": pattern}, limits=limits)
    for text, is_valid in (("aB3aaaa", False), ("aB3aaaaa", True), ("aaaaaaaa", False),
                           ("aB3" + "a" * 2997, True), ("aB3" + "a" * 2998, False)):  # fmt: skip
        assert tokfold.recognize(grammar, json.dumps(text)).accepted == is_valid


def test_the_host_names_of_zod() -> None:
    """A dot may follow the 253 characters of the lookahead, and the format stands beside."""
    label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    pattern = rf"^(?=.{{1,253}}\.?$){label}(?:\.{label})*\.?$"
    limits = tokfold.Limits(max_automaton_states=20_000)
    full = ".".join(["a" * 63] * 3 + ["a" * 61])
    for more, with_dot in (({}, True), ({"format": "hostname"}, False)):
        schema = {"type": "string", "pattern": pattern, **more}
        grammar = Grammar.from_json_schema(schema, limits=limits)
        for text, is_valid in (
            ("a", True),
            ("a.", with_dot),
            ("a..", False),
            ("-a", False),
            ("", False),
            (full, True),
            (full + ".", with_dot),
            (full + "a", False),
            (full + "a.", False),
            ("a" * 64, False),
        ):
            assert tokfold.recognize(grammar, json.dumps(text)).accepted == is_valid, text


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("hostname", ".".join(["a" * 63] * 3 + ["a" * 8])),
        ("email", "a" * 64 + "@" + "a" * 63 + "." + "a" * 21),
    ],
)
def test_short_lengths_beside_a_format(format: str, text: str) -> None:
    """The product of both automata has a state for each length, so the length is counted."""
    pattern = f"^.{{1,{len(text)}}}$"
    schema = {"type": "string", "format": format, "pattern": pattern}
    limits = tokfold.Limits(max_automaton_states=8_000)
    grammar = Grammar.from_json_schema(schema, limits=limits)
    alone = Grammar.from_json_schema({"type": "string", "format": format})
    for more in ("", "a"):
        data = json.dumps(text + more)
        assert tokfold.recognize(alone, data).accepted
        assert tokfold.recognize(grammar, data).accepted == (not more)
