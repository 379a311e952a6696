"""The package itself: every name that it promises is there, and nothing else is imported."""

from __future__ import annotations

import json
import re
from pathlib import Path

import tokfold
from support.script_runner import child, output


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
        from tokfold import structural_tags
        vocabulary = Vocabulary([*(bytes([i]) for i in range(256)), b"</s>"], stop_token_ids=[256])
        compiler = GrammarCompiler(vocabulary)
        schema = {"type": "object", "properties": {"a": {"format": "date"}}, "required": ["a"]}
        def tag(style):
            content = {"type": "json_schema", "json_schema": schema, "style": style}
            elements = [content, {"type": "regex", "pattern": "x|y"}]
            inner = {"type": "sequence", "elements": elements}
            return {"format": {"type": "tag", "begin": "<", "content": inner, "end": ">"}}
        tools = [{"type": "function", "function": {"name": "when", "parameters": schema}}]
        call = structural_tags.for_model("qwen_3", tools, tool_choice="required", reasoning=False)
        doors = [
            (compiler.compile_structural_tag(call),
             '<tool_call>\n{"name": "when", "arguments": {"a": "2024-02-29"}}\n</tool_call>'),
            (compiler.compile_json_schema(schema), '{"a": "2024-02-29"}'),
            (compiler.compile_json_schema(schema, whitespace="compact"), '{"a":"2024-02-29"}'),
            (compiler.compile_builtin_json_grammar(), '[1, {"b": null}]'),
            (compiler.compile_regex(r"(?!if$)\p{Ll}{1,8}"), "iffy"),
            (compiler.compile_lark('start: NAME ("," NAME)*\nNAME: /[a-z]+/'), "a,bc"),
            (compiler.compile_structural_tag(tag("json")), '<{"a": "2024-02-29"}y>'),
            (compiler.compile_structural_tag(tag("qwen_xml")),
             "<<parameter=a>2024-02-29</parameter>x>"),
            (compiler.compile_structural_tag(tag("cohere_xml")),
             '<<cofl:value name="a" type="raw">2024-02-29</cofl:value>x>'),
            (compiler.compile_grammar('root ::= Regex("[ab]+") Substring("c", "d")'), "abd"),
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
    assert taken == [True] * 12
    assert imported == []


def test_who_imports_xgrammar():
    """What stands in for it, and what measures it."""
    root = Path(tokfold.__file__).parent
    imports = re.compile(r"^\s*(?:import|from) xgrammar\b|require\(\s*\"xgrammar", re.MULTILINE)
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if imports.search(path.read_text(encoding="utf-8"))
    }
    outside = {name for name in found if not name.startswith(("xgrammar/", "laboratory/"))}
    assert outside == {"cli/demo_run.py"}


def test_the_citation_names_this_version():
    text = (Path(__file__).resolve().parents[2] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {tokfold.__version__}\n" in text
