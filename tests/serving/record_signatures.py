"""Write tests/data/serving_signatures.json from the sources of vLLM and SGLang.

    python tests/serving/record_signatures.py FOLDER_OF_VLLM FOLDER_OF_SGLANG

The folders hold the packages, unpacked from their wheels or installed; nothing is imported. What is
recorded: classes, methods, parameters and fields that tokfold's backends derive from or use, and
every call of one of their methods in the files of the servers that make them.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "serving_signatures.json"
STRUCTURED = "vllm/v1/structured_output/"
CONSTRAINED = "sglang/srt/constrained/"

NAMES = {
    "vllm": {
        STRUCTURED + "backend_types.py": [
            "StructuredOutputOptions",
            "StructuredOutputGrammar",
            "StructuredOutputBackend",
        ],
        STRUCTURED + "__init__.py": ["StructuredOutputManager.grammar_init"],
        STRUCTURED + "utils.py": ["grammar_is_likely_lark"],
        "vllm/sampling_params.py": [
            "StructuredOutputsParams",
            "SamplingParams._validate_structured_outputs",
        ],
        "vllm/exceptions.py": ["VLLMValidationError"],
    },
    "sglang": {
        CONSTRAINED + "base_grammar_backend.py": [
            "GrammarStats",
            "GrammarRow",
            "BaseGrammarObject",
            "InvalidGrammarObject",
            "BaseGrammarBackend",
            "register_grammar_backend",
            "create_grammar_backend",
        ],
        CONSTRAINED + "reasoner_grammar_backend.py": ["ReasonerGrammarBackend.__init__"],
        "sglang/srt/parser/reasoning_parser.py": ["ReasoningParser.__init__"],
    },
}
CALLERS = {
    "vllm": [STRUCTURED + "__init__.py"],
    "sglang": [
        CONSTRAINED + "base_grammar_backend.py",
        CONSTRAINED + "grammar_manager.py",
        CONSTRAINED + "reasoner_grammar_backend.py",
        "sglang/srt/managers/scheduler_components/batch_result_processor.py",
        "sglang/srt/sampling/sampling_batch_info.py",
        "sglang/srt/speculative/spec_utils.py",
    ],
}
OWNERS = {
    "vllm": {"grammar": "StructuredOutputGrammar", "backend": "StructuredOutputBackend"},
    "sglang": {
        "grammar": "BaseGrammarObject",
        "first_grammar": "BaseGrammarObject",
        "grammar_backend": "BaseGrammarBackend",
    },
}
"""What a variable or attribute of this name is, in those files."""


def parameters(node: ast.FunctionDef) -> list[dict[str, object]]:
    spec = node.args
    plain = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(plain) - len(spec.defaults)) + list(spec.defaults)
    found = [(arg, default, "plain") for arg, default in zip(plain, defaults, strict=True)]
    found += [
        (arg, default, "keyword")
        for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    ]
    return [
        {"name": arg.arg, "kind": kind, "optional": default is not None}
        for arg, default, kind in found
    ]


def function(node: ast.FunctionDef) -> dict[str, object]:
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    return {
        "parameters": parameters(node),
        "abstract": "abstractmethod" in marks,
        "static": "staticmethod" in marks,
        "property": "property" in marks,
    }


def record(node: ast.stmt, method: str | None = None) -> dict[str, object]:
    if isinstance(node, ast.FunctionDef):
        return function(node)
    assert isinstance(node, ast.ClassDef)
    methods = {
        each.name: function(each)
        for each in node.body
        if isinstance(each, ast.FunctionDef) and method in (None, each.name)
        if not any(ast.unparse(mark).endswith(".setter") for mark in each.decorator_list)
    }
    fields = {
        each.target.id: each.value is not None
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    }
    members = [
        each.targets[0].id
        for each in node.body
        if isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name)
    ]
    found: dict[str, object] = {"bases": [ast.unparse(base) for base in node.bases]}
    found["methods"] = methods
    if method is None:
        found |= {"fields": fields, "members": members}
    return found


def calls(tree: ast.Module, owners: dict[str, str], methods: dict[str, set[str]]) -> list[object]:
    found = set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        holder = node.func.value
        name = holder.id if isinstance(holder, ast.Name) else getattr(holder, "attr", "")
        owner = owners.get(name)
        if owner is not None and node.func.attr in methods[owner]:
            keywords = tuple(keyword.arg for keyword in node.keywords)
            found.add((owner, node.func.attr, len(node.args), keywords))
    return sorted(found)


def main() -> None:
    recorded = {}
    for package, folder in zip(NAMES, map(Path, sys.argv[1:]), strict=True):
        (info,) = folder.glob(f"{package}-*.dist-info")
        trees = {
            path: ast.parse((folder / path).read_text(encoding="utf-8"))
            for path in {*NAMES[package], *CALLERS[package]}
        }
        names = {}
        for path, wanted in NAMES[package].items():
            top = {getattr(node, "name", None): node for node in trees[path].body}
            for name in wanted:
                owner, _, method = name.partition(".")
                names[name] = {"module": path, **record(top[owner], method or None)}
        methods = {owner: set(names[owner]["methods"]) for owner in set(OWNERS[package].values())}
        made = {path: calls(trees[path], OWNERS[package], methods) for path in CALLERS[package]}
        version = info.name.split("-")[1].removesuffix(".dist")
        recorded[package] = {"version": version, "names": names, "calls": made}
    DATA.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
