"""Schemas, patterns, Lark text and structural tags of strangers.

The core converts schemas, patterns and Lark text: what is too large for it is refused by name, and
what is deep is no danger to a small stack. Macros, and the schemas and patterns of structural tags,
go to XGrammar's converters, which recurse and copy without bounds: what would end the process or
take minutes is refused by name before them, and what is deep but harmless is converted on a stack
of any size.
"""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from textwrap import dedent

import pytest
from support.hostile_runner import NEEDS_LIMITS, STACKS, check, run
from tokfold import (
    Grammar,
    GrammarCompiler,
    GrammarSyntaxError,
    InvalidSchemaError,
    LimitExceededError,
    Limits,
    StructuralTagError,
    TokfoldError,
    UnsatisfiableSchemaError,
    UnsupportedGrammarError,
    Vocabulary,
    _converters,
    recognize,
)

pytestmark = NEEDS_LIMITS
HAS_XGRAMMAR = importlib.util.find_spec("xgrammar") is not None
NEEDS_XGRAMMAR = pytest.mark.skipif(not HAS_XGRAMMAR, reason="needs XGrammar's converters")

PREFIX = "import xgrammar\n"
HELP = """
        import json
        def nested(levels, before, after, leaf="true"):
            return before * levels + leaf + after * levels
        def chain(length, make):
            defs = {f"d{i}": make(f"#/$defs/d{i + 1}") for i in range(length)}
            return json.dumps({"$defs": {**defs, f"d{length}": {"type": "null"}},
                               "$ref": "#/$defs/d0"})
"""
BY_THE_CORE = """
        def schema(text): step(NAME, lambda: Grammar.from_json_schema(text)._compilable)
        def regex(text): step(NAME, lambda: Grammar.from_regex(text)._compilable)
        def lark(text): step(NAME, lambda: Grammar.from_lark(text)._compilable)
"""
IN_TAGS = """
        def macro(text): step(NAME, lambda: Grammar.from_ebnf("root ::= " + text)._compilable)
        def tag(made): step(NAME, lambda: Grammar.from_structural_tag(
            {"type": "structural_tag", "format": made})._core)
        def schema(text): step(NAME, lambda: Grammar.from_structural_tag(
            '{"type": "structural_tag", "format": {"type": "json_schema", "json_schema": %s}}'
            % (text if isinstance(text, str) else json.dumps(text)))._core)
        def regex(text): tag({"type": "regex", "pattern": text})
"""
BY_XGRAMMAR = """
        from tokfold import _converters
        def convert(levels, make, text): _converters.with_stack(levels, lambda: make(text))
        def macro(text):
            text = "root ::= " + text
            step(NAME, lambda: convert(
                _converters.check_grammar(text), xgrammar.Grammar.from_ebnf, text))
        def tag(made):
            text = json.dumps({"type": "structural_tag", "format": made})
            step(NAME, lambda: convert(
                _converters.check_tag(text), xgrammar.Grammar.from_structural_tag, text))
        def schema(text):
            text = text if isinstance(text, str) else json.dumps(text)
            step(NAME, lambda: convert(
                _converters.check_schema(text).levels, xgrammar.Grammar.from_json_schema, text))
        def regex(text): step(NAME, lambda: convert(
            _converters.check_pattern(text, as_automaton=True).levels,
            lambda text: xgrammar.Grammar.from_ebnf(f"root ::= Regex({json.dumps(text)})"), text))
"""
OK, LIMIT, INVALID = "ok", "LimitExceededError", "InvalidSchemaError"

CONVERTED: dict[str, tuple[str, str]] = {
    "items, 900 levels": (OK, """schema(nested(900, '{"items":', "}"))"""),
    "items, 20,000 levels": (LIMIT, """schema(nested(20_000, '{"items":', "}"))"""),
    "properties, 200 levels": (OK, """schema(nested(200, '{"properties":{"a":', "}}"))"""),
    "anyOf, 400 levels": (OK, """schema(nested(400, '{"anyOf":[', "]}"))"""),
    "allOf, 400 levels": (OK, """schema(nested(400, '{"allOf":[', "]}"))"""),
    "not, 400 levels": (OK, """schema(nested(400, '{"not":', "}"))"""),
    "a constant, 100,000 levels": (
        LIMIT,
        """schema('{"const":' + nested(100_000, "[", "]") + "}")""",
    ),
    "open brackets": (LIMIT, "schema('[' * 1_000_000)"),
    "2^14 objects": (
        OK,
        """
        schema(eval("nest(14)", {"nest": (nest := lambda n: json.dumps({"type": "null"}) if not n
            else '{"properties":{"a":%s,"b%d":%s}}' % (nest(n - 1), n, nest(n - 1)))}))""",
    ),
    "types that double": (
        OK,
        """
        schema(nested(20, '{"type":["object","object"],"properties":{"a":', "}}"))""",
    ),
    "counted properties": (
        LIMIT,
        """
        schema({"type": "object", "minProperties": 1, "maxProperties": 2_999,
                "properties": {f"p{i}": {} for i in range(3_000)}})""",
    ),
    "a pointer in a spelling of its own": (
        INVALID,
        """
        schema({"$defs": {"a": {"type": "object"}}, "properties": {"p": {"$ref": "#//$defs/a"}}})
        """,
    ),
    "a long name beside others": (
        LIMIT,
        """
        schema({"type": "object", "properties": {"k" * 200_000: {}}, "additionalProperties": True})
        """,
    ),
    "a text at every level": (
        OK,
        """
        schema(nested(90, '{"items":', "}", json.dumps({"description": "x" * 4_000_000})))""",
    ),
    "values of oneOf": (
        OK,
        """
        schema({"oneOf": [{"enum": [f"{a}{i}" for i in range(60_000)]} for a in "ab"]})""",
    ),
    "pattern, 20,000 groups": (
        OK,
        'schema({"type": "string", "pattern": "(" * 20_000 + ")" * 20_000})',
    ),
    "pattern, a count": (OK, 'schema({"type": "string", "pattern": "[^a]{1,9000}"})'),
    "pattern of a name": (LIMIT, 'schema({"patternProperties": {"^[^a]{1,210000}$": {}}})'),
    "minProperties of 2^40": (LIMIT, 'schema({"type": "object", "minProperties": 2**40})'),
    "a class that ends at once": (
        OK,
        """
        schema({"type": "string", "pattern": "[^]" + "(" * 20_000 + ")" * 20_000})""",
    ),
    "a reference with an escape": (
        OK,
        r"""
        schema('{"\\u0024ref": "#/$defs/d0", "$defs": {' + ",".join(
            '"d%d": {"\\u0024ref": "#/$defs/d%d"}' % (i, i + 1) for i in range(20_000))
            + ', "d20000": {}}}')""",
    ),
    "references, 6,000": (OK, 'schema(chain(6_000, lambda uri: {"$ref": uri}))'),
    "references through properties, 3,000": (
        OK,
        """
        schema(chain(3_000, lambda uri: {"type": "object", "properties": {"a": {"$ref": uri}}}))""",
    ),
    "references through anyOf, 3,000": (
        OK,
        """
        schema(chain(3_000, lambda uri: {"anyOf": [{"$ref": uri}, {"type": "null"}]}))""",
    ),
    "a circle of 1,000": (
        OK,
        """
        schema(json.dumps({"$ref": "#/$defs/d0", "$defs": {f"d{i}": {"type": "object", "properties":
            {"a": {"$ref": f"#/$defs/d{(i + 1) % 1_000}"}}} for i in range(1_000)}}))""",
    ),
    "a circle without an object": (
        "UnsupportedSchemaError",
        'schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}})',
    ),
    "a name of 300 letters": (
        OK,
        """
        schema({"type": "object", "properties": {"k" * 300: {}}, "additionalProperties": True})""",
    ),
    "10,000 properties": (
        OK,
        """
        schema({"type": "object",
                "properties": {f"p{i}": {"type": "string"} for i in range(10_000)}})""",
    ),
    "regex, 30,000 groups": (OK, 'regex("(" * 30_000 + "a" + ")" * 30_000)'),
    "regex, open groups": ("GrammarSyntaxError", 'regex("(" * 30_000)'),
    "regex, 1 MB": (LIMIT, 'regex("ab" * 500_000)'),
    "regex, optional letters": (LIMIT, 'regex("a?" * 10_000)'),
    "regex, 30,000 lookaheads": (OK, 'regex("(?=a)" * 30_000)'),
    "Lark, 20,000 groups": (LIMIT, """lark("start: " + "(" * 20_000 + '"a"' + ")" * 20_000)"""),
    "Lark, a pattern": (OK, 'lark("start: /" + "(" * 20_000 + "a" + ")" * 20_000 + "/")'),
    "Lark, terminals that double": (
        OK,
        r"""
        lark("start: T0\n" + "\n".join(f"T{i}: T{i + 1} T{i + 1}" for i in range(40))
             + '\nT40: "z"')""",
    ),
    "Lark, a schema": (
        LIMIT,
        """lark('start: %json {' + '"items":{' * 5_000 + "}" * 5_001)""",
    ),
    "Lark, 3,000 terminals": (
        OK,
        r"""
        terminals = "\n".join(f"T{i}: T{i + 1}" for i in range(3_000))
        lark("start: T0\n" + terminals + '\nT3000: "z"')""",
    ),
}

REFUSED = {
    "items, 900 levels": """schema(nested(900, '{"items":', "}"))""",
    "items, 20,000 levels": """schema(nested(20_000, '{"items":', "}"))""",
    "properties, 200 levels": """schema(nested(200, '{"properties":{"a":', "}}"))""",
    "anyOf, 400 levels": """schema(nested(400, '{"anyOf":[', "]}"))""",
    "allOf, 400 levels": """schema(nested(400, '{"allOf":[', "]}"))""",
    "a constant, 100,000 levels": """schema('{"const":' + nested(100_000, "[", "]") + "}")""",
    "open brackets": "schema('[' * 1_000_000)",
    "2^14 objects": """
        schema(eval("nest(14)", {"nest": (nest := lambda n: json.dumps({"type": "null"}) if not n
            else '{"properties":{"a":%s,"b%d":%s}}' % (nest(n - 1), n, nest(n - 1)))}))""",
    "types that double": """
        schema(nested(20, '{"type":["object","object"],"properties":{"a":', "}}"))""",
    "counted properties": """
        schema({"type": "object", "minProperties": 1, "maxProperties": 2_999,
                "properties": {f"p{i}": {} for i in range(3_000)}})""",
    "one reference in 1,000 spellings": """
        schema({"$defs": {"a": {"type": "object",
                                "properties": {f"q{i}": {} for i in range(1_000)}}},
                "type": "object", "properties": {
                    f"p{i}": {"$ref": "#/" + "/" * i + "$defs/a"} for i in range(1_000)}})""",
    "a long name beside others": """
        schema({"type": "object", "properties": {"k" * 200_000: {}}, "additionalProperties": True})
        """,
    "a text at every level": """
        schema(nested(90, '{"items":', "}", json.dumps({"description": "x" * 4_000_000})))""",
    "values of oneOf": """
        schema({"oneOf": [{"enum": [f"{a}{i}" for i in range(60_000)]} for a in "ab"]})""",
    "pattern, 20,000 groups": 'schema({"type": "string", "pattern": "(" * 20_000 + ")" * 20_000})',
    "pattern, a count": 'schema({"type": "string", "pattern": "[^a]{1,9000}"})',
    "pattern of a name": 'schema({"patternProperties": {"^[^a]{1,9000}$": {}}})',
    "minProperties of 2^40": 'schema({"type": "object", "minProperties": 2**40})',
    "regex, 30,000 groups": 'regex("(" * 30_000 + "a" + ")" * 30_000)',
    "regex, open groups": 'regex("(" * 30_000)',
    "regex, 1 MB": 'regex("ab" * 500_000)',
    "macro, 30,000 groups": """macro('Regex("' + "(" * 30_000 + "a" + ")" * 30_000 + '")')""",
    "macro, optional letters": """macro('Regex("' + "a?" * 10_000 + '")')""",
    "macro, 1 MB": """macro('Regex("' + "ab" * 500_000 + '")')""",
    "macros": r"""
        macro("r0\n" + "\n".join(
            f'r{i} ::= Regex("[a-z]{{1,20}}x{i}")' + (f" | r{i + 1}" if i < 5_999 else "")
            for i in range(6_000)))""",
    "Substring, 1 MB": """macro('Substring("' + "ab" * 500_000 + '")')""",
    "a class that ends at once": """
        schema({"type": "string", "pattern": "[^]" + "(" * 20_000 + ")" * 20_000})""",
    "a reference with an escape": r"""
        schema('{"\\u0024ref": "#/$defs/d0", "$defs": {' + ",".join(
            '"d%d": {"\\u0024ref": "#/$defs/d%d"}' % (i, i + 1) for i in range(20_000))
            + ', "d20000": {}}}')""",
    "tag, a text that is excluded": """
        tag({"type": "json_schema", "json_schema": {"type": "object"}, "excludes": ["x" * 60_000]})
        """,
    "tag, a pattern": """tag({"type": "regex", "pattern": "(" * 30_000 + "a" + ")" * 30_000})""",
    "tag, a count": """tag({"type": "regex", "pattern": "a?" * 10_000})""",
    "tag, a schema": """
        tag({"type": "json_schema", "style": "qwen_xml",
             "json_schema": {"$ref": "#/" + "a/" * 3, "minProperties": 2**40}})""",
}
TAKEN = {
    "references, 6,000": 'schema(chain(6_000, lambda uri: {"$ref": uri}))',
    "references through properties, 3,000": """
        schema(chain(3_000, lambda uri: {"type": "object", "properties": {"a": {"$ref": uri}}}))""",
    "references through anyOf, 3,000": """
        schema(chain(3_000, lambda uri: {"anyOf": [{"$ref": uri}, {"type": "null"}]}))""",
    "a circle of 1,000": """
        schema(json.dumps({"$ref": "#/$defs/d0", "$defs": {f"d{i}": {"type": "object", "properties":
            {"a": {"$ref": f"#/$defs/d{(i + 1) % 1_000}"}}} for i in range(1_000)}}))""",
    "properties, 60 levels": """schema(nested(60, '{"properties":{"a":', "}}"))""",
    "a name of 300 letters": """
        schema({"type": "object", "properties": {"k" * 300: {}}, "additionalProperties": True})""",
    "10,000 properties": """
        schema({"type": "object",
                "properties": {f"p{i}": {"type": "string"} for i in range(10_000)}})""",
    "regex, 200 groups": 'regex("(" * 200 + "a" + ")" * 200)',
    "macro, 200 groups": """macro('Regex("' + "(" * 200 + "a" + ")" * 200 + '")')""",
}


def steps_of(cases: dict[str, str], stack: int, doors: str = BY_XGRAMMAR) -> dict:
    """What becomes of all cases, in one process: a crash fails the test."""
    named = (f"NAME = {name!r}\n{dedent(body)}" for name, body in cases.items())
    prefix = PREFIX if doors is BY_XGRAMMAR else ""
    return check(run(dedent(HELP) + dedent(doors) + "\n".join(named), stack, prefix))


@pytest.mark.parametrize("stack", STACKS)
def test_what_the_core_converts(stack):
    steps = steps_of({name: body for name, (_, body) in CONVERTED.items()}, stack, BY_THE_CORE)
    assert {name: step.outcome for name, step in steps.items()} == {
        name: outcome for name, (outcome, _) in CONVERTED.items()
    }


@pytest.mark.parametrize("stack", STACKS)
def test_what_stands_in_tags(stack):
    """Whatever it is, it is taken or refused by name."""
    cases = {**REFUSED, **{f"taken: {name}": body for name, body in TAKEN.items()}}
    steps = steps_of(cases, stack, IN_TAGS)
    assert list(steps) == list(cases)
    outcomes = {name: step.outcome for name, step in steps.items()}
    named = (OK, LIMIT, INVALID, "UnsatisfiableSchemaError", "UnsupportedSchemaError")
    named += ("StructuralTagError", "GrammarSyntaxError", "UnsupportedGrammarError")
    assert {name: said for name, said in outcomes.items() if said not in named} == {}


@NEEDS_XGRAMMAR
@pytest.mark.parametrize("stack", STACKS)
def test_what_is_refused(stack):
    steps = steps_of(REFUSED, stack)
    assert list(steps) == list(REFUSED)
    assert [step for step in steps.values() if step.outcome == "ok"] == []


@NEEDS_XGRAMMAR
@pytest.mark.parametrize("stack", STACKS)
def test_what_is_deep_but_harmless(stack):
    steps = steps_of(TAKEN, stack)
    assert list(steps) == list(TAKEN)
    assert [step for step in steps.values() if step.outcome != "ok"] == []


# Where and what


def spoken(work) -> str:
    with pytest.raises(TokfoldError) as caught:
        work()
    return str(caught.value)


def test_errors_say_where():
    found = spoken(lambda: Grammar.from_json_schema({"properties": {"a/b": {"maxLength": "1"}}}))
    assert found.startswith("#/properties/a~1b: maxLength: expected ")
    named = {"patternProperties": {"^(?:a|b)*a(?:a|b){40}$": {}}}
    found = spoken(lambda: Grammar.from_json_schema({"properties": {"a/b": named}}))
    assert found.startswith("#/properties/a~1b: limit max_automaton_states = 200000 reached: patt")
    assert "max_automaton_states" in found
    assert "lower counts" in found
    found = spoken(lambda: Grammar.from_json_schema({"items": {"pattern": "ab" + "(" * 300}}))
    assert found.startswith("#/items: pattern: ")
    assert "column 302: `(`: the group is not closed" in found
    found = spoken(lambda: Grammar.from_regex("ab" + "(" * 300))
    assert found.startswith("line 1, column 302: `(`: the group is not closed")
    found = spoken(lambda: Grammar.from_lark("start: A\nA: /" + "(" * 300 + "/"))
    assert found.startswith("line 2, column 304: `(`: ")


def test_lone_surrogates():
    found = spoken(lambda: Grammar.from_json_schema('{"a": 1,\n "b": \ud800}'))
    assert "line 2, column 7: " in found
    assert "lone surrogate" in found
    made = {"properties": {"a": {"const": "\ud800"}}}
    for schema in (made, json.dumps(made)):
        with pytest.raises(InvalidSchemaError, match="surrogate") as caught:
            Grammar.from_json_schema(schema)
        assert caught.value.pointer == "#/properties/a/const"
    with pytest.raises(GrammarSyntaxError, match="lone surrogate") as refused:
        Grammar.from_regex("a\ud800")
    assert (refused.value.line, refused.value.column) == (1, 2)


def test_nul_is_a_character():
    for grammar, text in (
        (Grammar.from_regex("a\0"), "a\0"),
        (Grammar.from_json_schema({"const": "a\0"}), json.dumps("a\0")),
        (Grammar.from_json_schema({"pattern": "^a\0$", "type": "string"}), json.dumps("a\0")),
    ):
        assert recognize(grammar, text).accepted
        assert not recognize(grammar, text.replace("\0", "").replace("\\u0000", "")).accepted


def test_errors_of_what_stands_in_tags_say_where():
    def of(schema) -> str:
        part = {"type": "json_schema", "json_schema": schema}
        tag = {"type": "structural_tag", "format": part}
        return spoken(lambda: Grammar.from_structural_tag(tag))

    named = {"patternProperties": {"^(?:a|b)*a(?:a|b){40}$": {}}}
    found = of({"properties": {"a/b": named}})
    assert found.startswith("format (json_schema): ")
    assert "#/properties/a~1b: limit max_automaton_states = 200000 reached: patternProp" in found
    part = {"type": "json_schema", "json_schema": {"properties": {"a/b": named}}}
    with pytest.raises(LimitExceededError) as limited:
        Grammar.from_structural_tag({"format": {"type": "or", "elements": [part, part]}})
    assert limited.value.pointer == "#/format/elements/0/json_schema/properties/a~1b"
    regex = {"type": "regex", "pattern": "(" * 300}
    tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": [regex]}}
    assert spoken(lambda: Grammar.from_structural_tag(tag)).startswith("format.elements[0] (regex)")
    found = spoken(lambda: Grammar.from_ebnf(f'root ::= "a"\n  | Regex("{"(" * 300}")')._compilable)
    assert found.startswith("line 2, column 5: Regex: the pattern cannot be read: column 300: ")


@NEEDS_XGRAMMAR
def test_errors_of_what_xgrammar_converts_say_where():
    def of(schema) -> str:
        return spoken(lambda: _converters.check_schema(json.dumps(schema)))

    wide = {f"p{i}": {"type": "string", "minLength": i} for i in range(200_000)}
    found = of({"type": "object", "properties": {"x": {"type": "object", "properties": wide}}})
    assert "#/properties/x/properties: " in found
    assert "make it smaller or flatter" in found
    found = of({"properties": {"a/b": {"type": "string", "pattern": ".{1,9000}"}}})
    assert "#/properties/a~1b: this pattern comes to " in found
    assert "lower the counts" in found


def circular() -> dict:
    made: dict = {}
    made["items"] = made
    return made


def doubled() -> dict:
    made: dict = {}
    for _ in range(64):
        made = {"anyOf": [made, made]}
    return made


def deep() -> dict:
    made: dict = {}
    for _ in range(100_000):
        made = {"items": made}
    return made


def nested(levels: int) -> dict | bool:
    """So many levels of arrays and objects."""
    made: dict | bool = True
    for _ in range(levels):
        made = {"items": made}
    return made


def deep_text(levels: int) -> str:
    return '{"items": ' * levels + "true" + "}" * levels


@pytest.mark.parametrize("levels", [200, 201, 999, 1_000])
def test_values_may_be_as_deep_as_texts(levels):
    one = Grammar.from_json_schema(nested(levels))
    other = Grammar.from_json_schema(deep_text(levels))
    assert one == other
    assert one.fingerprint == other.fingerprint


def test_values_and_texts_that_are_too_deep():
    for limits, levels in ((None, 1_001), (Limits(max_nesting=20), 21)):
        for schema in (nested(levels), deep_text(levels)):
            with pytest.raises(LimitExceededError, match=r"Limits\(max_nesting=") as caught:
                Grammar.from_json_schema(schema, limits=limits)
            assert (caught.value.limit, caught.value.value) == ("max_nesting", levels - 1)
    raised = Limits(max_nesting=3_000)
    made = Grammar.from_json_schema(nested(3_000), limits=raised)
    assert made == Grammar.from_json_schema(deep_text(3_000), limits=raised)


@pytest.mark.parametrize("make", [circular, doubled, deep])
def test_values_that_cannot_be_written(make, monkeypatch):
    monkeypatch.setattr("tokfold._text_checks.MAX_JSON_NODES", 20_000)
    compiler = GrammarCompiler(Vocabulary([b"a", b"</s>"], [1]), classes="never", seed=False)
    value = make()
    for refused in (Grammar.from_json_schema, compiler.compile_json_schema):
        with pytest.raises(LimitExceededError, match="JSON schema") as caught:
            refused(value)
        assert caught.value.limit in ("max_nesting", "MAX_JSON_NODES")
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": value}}
    for refused in (Grammar.from_structural_tag, compiler.compile_structural_tag):
        with pytest.raises(StructuralTagError, match="cannot be written as JSON"):
            refused(tag)
        with pytest.raises(StructuralTagError):
            refused({"type": "structural_tag", "format": value})


def test_values_that_are_no_json():
    for value, place in (({"enum": {1}}, "#/enum"), ({"a": [0, object()]}, "#/a/1")):
        with pytest.raises(TypeError, match=f"^{place}: this JSON schema holds a value of type"):
            Grammar.from_json_schema(value)
    with pytest.raises(TypeError, match=r"^#/a: this JSON schema has a name of type tuple"):
        Grammar.from_json_schema({"a": {(1, 2): 3}})
    for wrong in (None, 5, b"a"):
        with pytest.raises(TypeError, match="must be a str"):
            Grammar.from_regex(wrong)
        with pytest.raises(TypeError, match="must be a str"):
            Grammar.from_lark(wrong)


def test_a_number_of_many_digits():
    digits = "9" * 5_000
    grammar = Grammar.from_json_schema('{"type": "integer", "minimum": 1' + "0" * 5_000 + "}")
    assert not recognize(grammar, digits).accepted
    assert recognize(grammar, "9" + digits).accepted
    with pytest.raises(UnsatisfiableSchemaError):
        Grammar.from_json_schema('{"oneOf": [], "minimum": 1' + "0" * 5_000 + "}")
    with pytest.raises(UnsupportedGrammarError, match="digits"):  # Python does not write it
        Grammar.from_json_schema({"minimum": 10**5_000})


def test_a_name_that_stands_twice():
    """Readers of JSON differ in which of the two counts, so none does."""
    text = '{"items": {"type": "string", "pattern": "a+", "pattern": "b"}}'
    with pytest.raises(InvalidSchemaError, match="names must be unique") as caught:
        Grammar.from_json_schema(text)
    assert caught.value.pointer == "#/items/pattern"


def test_for_xgrammar_a_name_that_stands_twice_counts_once():
    """What is converted is what was counted, whichever XGrammar's reader would take."""
    found = _converters.check_schema('{"type": "string", "pattern": "a+", "pattern": "b"}')
    assert json.loads(found.text, object_pairs_hook=list) == [("type", "string"), ("pattern", "b")]


def test_options_that_are_too_large():
    with pytest.raises((TokfoldError, TypeError, ValueError)):
        Grammar.from_json_schema({}, indent=10**30)


# Counts


def test_counts_are_those_of_the_converter():
    """Twice the levels: twice the levels; and work that grows as the converter's does."""

    def counted(levels):
        schema: dict = {"type": "string", "pattern": "a"}
        for _ in range(levels):
            schema = {"type": "object", "properties": {"a": schema}}
        return _converters.check_schema(json.dumps(schema))

    assert counted(40).levels > counted(20).levels + 20
    assert 4 < counted(80).work / counted(40).work < 10
    shared = {"$defs": {"a": {"enum": list(range(800))}}, "anyOf": [{"$ref": "#/$defs/a"}] * 1_000}
    assert _converters.check_schema(json.dumps(shared)).work < 5_000


@pytest.mark.parametrize(
    ("pattern", "states", "joints"),
    [
        ("abc", 6, 2),
        ("a|b", 4, 0),
        ("(a|b)c", 6, 2),
        ("a?b?c?", 6, 3),
        ("a{3}", 6, 2),
        ("(ab){2}", 8, 3),
        ("[a-z]{1,128}", 256, 127),
        ("a{1,129}", 2, 0),
        ("a*", 2, 1),
        (r"\(\)\[a{,2}", 10, 4),
        ("(?:a)(?<n>b)", 4, 1),
        ("[^(]a", 14, 1),
        (r"\s[\S]a", 62, 2),
    ],
)
def test_counts_of_patterns(pattern, states, joints):
    found = _converters.check_pattern(pattern, as_automaton=True)
    assert found.states == states
    assert found.joints == joints


def test_the_stack_of_other_threads_stays():
    before = threading.stack_size()
    assert _converters.with_stack(1_000, lambda: threading.stack_size()) >= 0
    assert threading.stack_size() == before
    with pytest.raises(KeyError):
        _converters.with_stack(1_000, lambda: {}["x"])


# Servers

HUGE = '{"anyOf":[' * 5_000 + "{}" + "]}" * 5_000


@pytest.mark.skipif(os.name != "posix", reason="needs resource limits")
def test_requests_are_read_without_recursion():
    from tokfold._serving import any_tag, checked

    with pytest.raises(LimitExceededError, match="nested 10,001 levels deep"):
        checked(HUGE, "JSON schema", is_json=True)
    with pytest.raises(LimitExceededError):
        any_tag('{"format":' + HUGE + "}")
    with pytest.raises(UnsupportedGrammarError, match="lone surrogate"):
        checked("\ud800", "regex")
