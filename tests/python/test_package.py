"""The package itself: every name that it promises is there, and nothing else is imported."""

from __future__ import annotations

import json

import tokfold
from python.script_runner import child, output


def test_the_stub_of_the_package():
    """Everything that is promised is there."""
    for name in tokfold.__all__:
        assert getattr(tokfold, name) is not None
    assert json.dumps(tokfold.__version__)


def test_every_door_of_text_needs_numpy_alone():
    """Schemas, patterns, texts and Lark, to the first mask, where nothing else can be imported."""
    body = r"""
        import json
        others = ["torch", "xgrammar", "pydantic", "transformers", "lark", "regex", "jsonschema"]
        sys.modules.update(dict.fromkeys(others))
        import numpy, tokfold
        vocabulary = Vocabulary([*(bytes([i]) for i in range(256)), b"</s>"], stop_token_ids=[256])
        compiler = GrammarCompiler(vocabulary)
        schema = {"type": "object", "properties": {"a": {"format": "date"}}, "required": ["a"]}
        tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "abc"}}
        doors = [
            (compiler.compile_json_schema(schema), '{"a": "2024-02-29"}'),
            (compiler.compile_json_schema(schema, whitespace="compact"), '{"a":"2024-02-29"}'),
            (compiler.compile_builtin_json_grammar(), '[1, {"b": null}]'),
            (compiler.compile_regex(r"(?!if$)\p{Ll}{1,8}"), "iffy"),
            (compiler.compile_lark('start: NAME ("," NAME)*\nNAME: /[a-z]+/'), "a,bc"),
            (compiler.compile_structural_tag(tag), "abc"),
            (tokfold.compile(Grammar.choices(["yes", "no"]), vocabulary), "yes"),
            (tokfold.compile(~Grammar.from_regex("a*"), vocabulary), "ab"),
        ]
        taken = []
        for compiled, text in doors:
            matcher = Matcher(compiled)
            matcher.fill_bitmask(tokfold.allocate_bitmask(1, len(vocabulary)))
            taken.append(matcher.accept_string(text) and matcher.is_accepting)
        imported = [name for name in others if sys.modules[name] is not None]
        print(json.dumps([taken, imported]))
    """
    taken, imported = json.loads(output(child(body)))
    assert taken == [True] * 8
    assert imported == []
