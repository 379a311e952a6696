"""Formats beside those of the standard: pydantic's, judged by Python's own parsers; formats of the
caller; regular expressions beside other conditions."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
import uuid
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
import tokfold
from json_schema.languages import Language, language
from tokfold import Grammar, LimitExceededError, UnsatisfiableSchemaError, UnsupportedSchemaError

UUID_TEXT = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
LENGTH = re.compile(r"[^/%]*(/(0|[1-9][0-9]*))?")


def parses(parse: Callable[[Any], object], text: str) -> bool:
    try:
        parse(text)
    except (ValueError, binascii.Error):
        return False
    return True


def of_format(name: str) -> Language:
    return language({"type": "string", "format": name})


def mutated(random: Random, text: str, alphabet: str) -> str:
    place = random.randrange(len(text) + 1)
    kind, letter = random.randrange(4), random.choice(alphabet)
    if kind == 0:
        return text[:place] + letter + text[place:]
    if kind == 1:
        return text[:place] + letter + text[place + 1 :]
    if kind == 2:
        return text[:place] + text[place + 1 :]
    return text[:place] + text[place : place + 2][::-1] + text[place + 2 :]


def compare(
    name: str, make: Callable[[Random], str], alphabet: str, expected: Callable[[str], bool]
) -> None:
    """Compare a format with a judge, on texts that are made and on such with mutations."""
    found, random = of_format(name), Random(name)
    counts = {True: 0, False: 0}
    for _ in range(400):
        text = make(random)
        for _ in range(3):
            is_valid = expected(text)
            counts[is_valid] += 1
            assert found.accepts(json.dumps(text)) == is_valid, text
            text = mutated(random, text, alphabet)
    assert min(counts.values()) > 100


@pytest.mark.parametrize("version", [1, 3, 4, 5, 6, 7, 8])
def test_uuids_of_a_version(version: int) -> None:
    def make(random: Random) -> str:
        made = str(uuid.UUID(int=random.getrandbits(128), version=random.choice([version, 4])))
        return random.choice([made, made.upper()])

    def is_valid(text: str) -> bool:
        if not UUID_TEXT.fullmatch(text):
            return False
        return uuid.UUID(text).version == version

    if version > 5:  # which Python 3.11 does not make

        def make(random: Random) -> str:
            made = str(uuid.UUID(int=random.getrandbits(128), version=4))
            return made[:14] + str(version) + made[15:]

    compare(f"uuid{version}", make, "0123456789abcdefABCDEF-g", is_valid)


def address(random: Random, bits: int) -> Any:
    """An address whose last bits are often zero."""
    zeros = random.randrange(bits + 1)
    value = random.getrandbits(bits) >> zeros << zeros
    return (ipaddress.IPv4Address if bits == 32 else ipaddress.IPv6Address)(value)


def with_length(random: Random, bits: int) -> str:
    one = address(random, bits)
    text: str = random.choice([str(one), one.exploded, one.exploded.upper()])
    least = bits - (int(one) & -int(one)).bit_length() + 1 if int(one) else 0
    length = random.choice([least, random.randint(least, bits), random.randint(0, bits), bits])
    return random.choice([text, f"{text}/{length}", f"{text}/{length}"])


def is_narrowed(text: str) -> bool:
    """Whether a network of IPv6 is spelled as none is here: with zeros in its middle left out."""
    whole, _, length = text.partition("/")
    return length not in ("", "128") and (
        "." in whole or ("::" in whole and not whole.endswith("::"))
    )


@pytest.mark.parametrize("bits", [32, 128])
@pytest.mark.parametrize("kind", ["interface", "network"])
def test_networks_and_interfaces(bits: int, kind: str) -> None:
    version = "4" if bits == 32 else "6"
    parse = getattr(ipaddress, f"IPv{version}{kind.capitalize()}")

    def is_valid(text: str) -> bool:
        if kind == "network" and bits == 128 and is_narrowed(text):
            return False
        return LENGTH.fullmatch(text) is not None and parses(parse, text)

    letters = "0123456789./" if bits == 32 else "0123456789abcdefABF:/."
    compare(f"ipv{version}{kind}", lambda random: with_length(random, bits), letters, is_valid)


@pytest.mark.parametrize("kind", ["address", "interface", "network"])
def test_either_version(kind: str) -> None:
    of_each = [of_format(f"ipv{v}" + kind.replace("address", "")) for v in "46"]

    def make(random: Random) -> str:
        bits = random.choice([32, 128])
        return str(address(random, bits)) if kind == "address" else with_length(random, bits)

    def is_valid(text: str) -> bool:
        return any(found.accepts(json.dumps(text)) for found in of_each)

    compare(f"ipvany{kind}", make, "0123456789abcdef:/.", is_valid)


@pytest.mark.parametrize("name", ["base64", "base64url", "byte"])
def test_base64(name: str) -> None:
    marks = "-_" if name == "base64url" else "+/"

    def make(random: Random) -> str:
        data = random.randbytes(random.randrange(12))
        return base64.b64encode(data, marks.encode()).decode()

    def is_valid(text: str) -> bool:
        if not set(text) <= {*marks, "="} and not text.isascii():
            return False
        try:
            data = base64.b64decode(text, marks.encode(), validate=True)
        except binascii.Error:
            return False
        return base64.b64encode(data, marks.encode()).decode() == text

    compare(name, make, "ABQgwxyz0189+/-_=\n", is_valid)


def test_pydantic_reads_what_its_formats_have() -> None:
    pydantic = pytest.importorskip("pydantic")
    types = {
        "UUID4": "550e8400-e29b-41d4-a716-446655440000",
        "UUID7": "01890a5d-ac96-774b-bcce-b302099a8057",
        "IPvAnyAddress": "::1",
        "IPvAnyNetwork": "10.0.0.0/8",
        "IPvAnyInterface": "10.0.0.1/8",
        "Base64Bytes": "+/8=",
        "Base64UrlBytes": "-_8=",
    }
    for name, text in types.items():
        adapter = pydantic.TypeAdapter(getattr(pydantic, name))
        found = language(adapter.json_schema())
        assert found.accepts(json.dumps(text))
        adapter.validate_json(json.dumps(text))
        assert not found.accepts('"x"')


def test_names_with_addresses() -> None:
    found = of_format("name-email")
    for text in ("a@b.c", "Ann <a@b.c>", "Zoë O'Neil <z.o@example.org>", "安 <a@[127.0.0.1]>"):
        assert found.accepts(json.dumps(text, ensure_ascii=False)), text
    for text in (
        "",
        "Ann",
        "Ann <a>",
        "<a@b.c>",
        "Ann<a@b.c>",
        "A. <a@b.c>",
        "Ann a@b.c",
        "a\tb <a@b.c>",
    ):
        assert not found.accepts(json.dumps(text, ensure_ascii=False)), text


# -- formats of the caller


IDN_HOSTS = [
    "example.com",
    "실례.테스트",
    "bücher.example",
    "пример.рф",
    "例え.jp",
    "παράδειγμα.gr",
]
IDN_HOSTS += ["a", "x-1.ёж", "中文-1.公司", "xn-a", "3com.한국"]
NO_IDN_HOSTS = ["", ".", "a..b", "-é", "é-", "é--a", "Ünder.x", "a_é", "é" * 11, "〮한", "١٢٣"]
NO_IDN_HOSTS += ["אב", "a.b.c.d.é", "l·l", "é.", "xn--é", "é b", "ß", "ς", "e\u0301"]


def test_host_names_of_other_scripts() -> None:
    """What is accepted, IDNA 2008 encodes: the package that encodes it is the judge."""
    idna = pytest.importorskip("idna")
    found = of_format("idn-hostname")
    for text in IDN_HOSTS:
        assert found.accepts(json.dumps(text, ensure_ascii=False)), text
        idna.encode(text)
    for text in NO_IDN_HOSTS:
        assert not found.accepts(json.dumps(text, ensure_ascii=False)), text
    random, count = Random(7), 0
    letters = [chr(c) for c in range(0x80, 0xD7FF) if found.accepts(f'"{chr(c)}"')]
    assert len(letters) > 30_000
    edges = [*"az09--.", *"àÿάώαωаяѐџぁゖァヺ一龥가힣"]
    for _ in range(4_000):
        pick = [random.choice(edges) if random.random() < 0.6 else random.choice(letters)]
        pick += random.choices(edges + random.choices(letters, k=9), k=random.randrange(11))
        text = "".join(pick)
        if found.accepts(json.dumps(text, ensure_ascii=False)):
            count += 1
            assert len(idna.encode(text)) <= 253, text
    assert count > 500
    for letter in letters:
        assert idna.encode(letter)


def test_mailboxes_of_other_scripts() -> None:
    found = of_format("idn-email")
    mailboxes = [
        "실례@실례.테스트",
        "joe.bloggs@example.com",
        "jörg@bücher.example",
        '"a b"@例え.jp',
    ]
    mailboxes += ["a+b@пример.рф", "üä.öß@example.com", "x@[127.0.0.1]", "é" * 16 + "@a.b"]
    for text in mailboxes:
        assert found.accepts(json.dumps(text, ensure_ascii=False)), text
    for text in (
        "2962",
        "@é",
        "é@",
        "é@-a",
        "a..b@é.x",
        "é" * 17 + "@a.b",
        "é é@x.y",
        "é@[127.0.0.1]",
    ):
        assert not found.accepts(json.dumps(text, ensure_ascii=False)), text


def test_formats_by_pattern() -> None:
    schema = {"properties": {"t": {"format": "ticket"}, "d": {"format": "date"}}}
    formats = {"ticket": r"^[A-Z]+-\d+$"}
    found = language(schema, formats=formats)
    assert found.accepts('{"t": "AB-12", "d": "2024-02-29"}')
    assert not found.accepts('{"t": "AB-"}')
    assert not found.accepts('{"d": "x"}')
    # A search, as `pattern` is.
    assert language({"format": "ticket"}, formats={"ticket": "b"}).accepts('"abc"')
    assert language({"format": "ticket"}, formats={"ticket": "b"}).accepts("1")


def test_a_pattern_replaces_a_format() -> None:
    found = language({"type": "string", "format": "date"}, formats={"date": "^x$"})
    assert found.accepts('"x"')
    assert not found.accepts('"2024-02-29"')
    # Also one that is no regular language.
    found = language({"type": "string", "format": "regex", "maxLength": 3}, formats={"regex": "@"})
    assert found.accepts('"a@b"')
    assert not found.accepts('"a@bc"')
    assert not found.accepts('"ab"')


def test_notes_of_formats_by_pattern() -> None:
    schema = {"type": "string", "format": "ticket"}
    (note,) = Grammar.from_json_schema(schema).notes
    message = (
        'the format "ticket" is not known, so it is not enforced; write a pattern for it, or pass '
        'formats={"ticket": pattern}'
    )
    assert (note.level, note.message) == ("warning", message)
    assert Grammar.from_json_schema(schema, formats={"ticket": "^a$"}, strict=True).notes == []
    (note,) = Grammar.from_json_schema(schema, formats={"ticket": r"\Aa$"}).notes
    assert (note.level, note.pointer) == ("info", "#/format")
    (note,) = Grammar.from_json_schema(schema, formats={"tickets": "a"}).notes
    assert note.message.endswith('did you mean "tickets"?')


@pytest.mark.parametrize(
    ("formats", "error", "message"),
    [
        ({"a": "x(b"}, ValueError, r'formats\["a"\]: the pattern "x\(b", column \d+: '),
        ({"a": r"(x)\1"}, ValueError, r'formats\["a"\]: the pattern .*, column 4: '),
        ({"a": 1}, TypeError, r"formats\['a'\] must be a pattern as text, or None .*, not 1"),
        ("no", ValueError, "must be 'assert' or 'annotation' or a mapping of names to patterns"),
    ],
)
def test_formats_that_are_no_patterns(formats: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Grammar.from_json_schema({}, formats=formats)


def test_a_compiler_tells_formats_apart() -> None:
    compiler = tokfold.GrammarCompiler(
        tokfold.Vocabulary([b"</s>", b'"', b"a", b"b"], stop_token_ids=[0])
    )
    schema = {"type": "string", "format": "f"}
    for text in "ab":
        compiled = compiler.compile_json_schema(schema, formats={"f": f"^{text}$"})
        matcher = tokfold.Matcher(compiled)
        assert matcher.accept_token(1)
        assert matcher.accept_token(2) == (text == "a")


# -- regular expressions beside other conditions

PATTERNS = language({"type": "string", "format": "regex"})
LETTERS = [
    "a",
    "b",
    "(",
    ")",
    "(?:",
    "(?=",
    "(?<!",
    "|",
    "[",
    "]",
    "*",
    "?",
    "{2}",
    "\\d",
    "^",
    "é",
]


def random_texts(seed: str) -> list[str]:
    random = Random(seed)
    return ["".join(random.choices(LETTERS, k=random.randrange(7))) for _ in range(600)]


@pytest.mark.parametrize(
    ("beside", "holds"),
    [
        ({"minLength": 1}, lambda text: len(text) >= 1),
        ({"minLength": 4}, lambda text: len(text) >= 4),
        ({"maxLength": 0}, lambda text: not text),
        ({"maxLength": 5}, lambda text: len(text) <= 5),
        ({"minLength": 3, "maxLength": 7}, lambda text: 3 <= len(text) <= 7),
        ({"pattern": "^\\(.*\\)$"}, lambda text: re.search("^\\(.*\\)$", text)),
        ({"pattern": "a.*b"}, lambda text: re.search("a.*b", text)),
        ({"pattern": "a", "minLength": 3}, lambda text: "a" in text and len(text) > 2),
        ({"not": {"pattern": "\\("}}, lambda text: "(" not in text),
        ({"not": {"const": "a"}}, lambda text: text != "a"),
        ({"enum": ["a", "(", "(a)", ""]}, lambda text: text in ("a", "(a)", "")),
    ],
)
def test_patterns_beside_other_conditions(
    beside: dict[str, Any], holds: Callable[[str], object]
) -> None:
    schema = {"type": "string", "format": "regex", **beside}
    found = language(schema)
    names = language({"propertyNames": schema, "additionalProperties": {"type": "integer"}})
    count = 0
    for text in random_texts(str(beside)):
        is_valid = PATTERNS.accepts(json.dumps(text, ensure_ascii=False)) and bool(holds(text))
        count += is_valid
        spelled = json.dumps(text, ensure_ascii=False)
        assert found.accepts(spelled) == is_valid, text
        assert names.accepts(f"{{{spelled}: 1}}") == is_valid, text
    assert count > 0
    assert names.accepts("{}")


def test_the_schema_that_was_sent() -> None:
    found = language({"type": "string", "format": "regex", "minLength": 1})
    assert found.accepts('"a+"')
    assert not found.accepts('""')
    assert not found.accepts('"("')


def test_names_that_are_patterns_beside_known_ones() -> None:
    schema = {
        "properties": {"a+": {"type": "null"}, "(": {"type": "null"}},
        "patternProperties": {"^x": {"type": "boolean"}},
        "propertyNames": {"format": "regex"},
        "additionalProperties": {"type": "integer"},
    }
    for options in ({}, {"key_order": "any"}):
        found = language(schema, **options)
        assert found.accepts('{"a+": null, "x(y)": true, "(z)": 1}')
        for text in ('{"(": null}', '{"x(": true}', '{"x": 1}', '{")": 1}', '{"a+": 1}'):
            assert not found.accepts(text), text


def test_what_cannot_stand_beside_a_pattern() -> None:
    with pytest.raises(
        LimitExceededError, match=r"#.*smaller lengths, or a simpler pattern"
    ) as limit:
        Grammar.from_json_schema({"type": "string", "format": "regex", "maxLength": 1000})
    assert limit.value.limit == "max_regex_states"
    for schema in (
        {"type": "string", "not": {"format": "regex"}},
        {"not": {"propertyNames": {"format": "regex"}}, "type": "object"},
    ):
        with pytest.raises(
            UnsupportedSchemaError, match="may stand beside other conditions, but not"
        ):
            Grammar.from_json_schema(schema)
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema({"type": "string", "format": "regex", "pattern": "^\\($"})
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema(
            {
                "propertyNames": {"format": "regex", "pattern": "^\\($"},
                "type": "object",
                "minProperties": 1,
            }
        )


def test_a_format_that_is_no_condition():
    to, at = ({"type": "string", "format": name} for name in ("email", "date"))
    schema = {"type": "object", "properties": {"to": to, "at": at}}
    text = '{"to": "nobody", "at": "2026-11-26"}'
    assert not tokfold.recognize(Grammar.from_json_schema(schema), text).accepted
    free = Grammar.from_json_schema(schema, formats={"email": None})
    assert tokfold.recognize(free, text).accepted
    assert not tokfold.recognize(free, text.replace("11-26", "11-31")).accepted
    assert not free.notes
    assert free == Grammar.from_json_schema(schema, formats={"email": ""})
