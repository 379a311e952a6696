"""Stand-ins for vLLM and SGLang where they are not installed, built from what was recorded of them.

Each class has the recorded methods with the recorded parameters. A method raises
NotImplementedError, or does the little that is written here, as the server does it; the parameters
of the two are compared.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib.util
import inspect
import json
import sys
import types
import typing
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "data" / "serving_signatures.json"
RECORDED = json.loads(DATA.read_text(encoding="utf-8"))


def is_installed(package: str) -> bool:
    """Whether it is there, and no stand-in."""
    if package in sys.modules:
        return not hasattr(sys.modules[package], "is_stand_in")
    return importlib.util.find_spec(package) is not None


def recorded_method(name: str, spec: dict) -> object:
    """A function with the recorded parameters that raises NotImplementedError."""
    written = [
        f"*, {one['name']}" if one["kind"] == "keyword" and not before else one["name"]
        for one, before in (
            (one, any(p["kind"] == "keyword" for p in spec["parameters"][:at]))
            for at, one in enumerate(spec["parameters"])
        )
    ]
    written = [
        f"{text}=None" if one["optional"] else text
        for text, one in zip(written, spec["parameters"], strict=True)
    ]
    scope: dict = {}
    exec(f"def {name}({', '.join(written)}):\n    raise NotImplementedError", scope)
    made = scope[name]
    return abstractmethod(made) if spec["abstract"] else made


def recorded_class(package: str, name: str, bodies: dict, bases: tuple = ()) -> type:
    """The recorded class, with some of its methods written out."""
    spec = RECORDED[package]["names"][name]
    members: dict = {}
    for method, recorded in spec["methods"].items():
        body = bodies.get(method)
        if body is None:
            body = recorded_method(method, recorded)
        elif callable(body):
            given = [one for one in inspect.signature(body).parameters if one != "_"]
            assert given == [one["name"] for one in recorded["parameters"]], (name, method)
        if recorded["static"]:
            body = staticmethod(body)
        elif recorded["property"]:
            body = property(body)
        members[method] = body
    members |= {key: value for key, value in bodies.items() if key not in members}
    is_abstract = any(method["abstract"] for method in spec["methods"].values())
    made = type(name, bases or ((ABC,) if is_abstract else ()), members)
    fields = spec.get("fields")
    if fields:
        made.__annotations__ = dict.fromkeys(fields, object)
        for field, optional in fields.items():
            if optional and field not in members:
                setattr(made, field, None)
        made = dataclasses.dataclass(made)
    return made


def install(modules: dict[str, dict]) -> None:
    for name, content in modules.items():
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            parent = ".".join(parts[:length])
            if parent not in sys.modules:
                module = types.ModuleType(parent)
                module.__path__ = []
                module.__spec__ = ModuleSpec(parent, None)
                module.is_stand_in = True
                sys.modules[parent] = module
                if length > 1:
                    setattr(sys.modules[".".join(parts[: length - 1])], parts[length - 1], module)
        sys.modules[name].__dict__.update(content)


# -- vLLM ----------------------------------------------------------------------------------------


def install_vllm() -> None:
    names = RECORDED["vllm"]["names"]
    options = enum.Enum("StructuredOutputOptions", names["StructuredOutputOptions"]["members"])

    def grammar_init(self, request):
        params = request.sampling_params.structured_outputs
        if self.backend is None:
            raise ValueError(f"Unsupported structured output backend: {params._backend}")
        assert self.backend_name == params._backend
        stops = request.sampling_params.all_stop_token_ids
        key = request.structured_output_request.structured_output_key
        request.structured_output_request.grammar = self.backend.compile_grammar(
            *key, stop_token_ids=stops
        )

    def _validate_structured_outputs(self, model_config, structured_outputs_config, tokenizer):
        self.structured_outputs._backend = "vllm's own"

    validated = {"_validate_structured_outputs": _validate_structured_outputs}
    manager = recorded_class(
        "vllm", "StructuredOutputManager.grammar_init", {"grammar_init": grammar_init}
    )
    sampling = recorded_class("vllm", "SamplingParams._validate_structured_outputs", validated)
    params = recorded_class("vllm", "StructuredOutputsParams", {"__post_init__": lambda self: None})
    error = type("VLLMValidationError", (Exception,), {})
    structured = "vllm.v1.structured_output"
    install(
        {
            structured: {"StructuredOutputManager": manager},
            f"{structured}.backend_types": {
                "StructuredOutputOptions": options,
                "StructuredOutputGrammar": recorded_class("vllm", "StructuredOutputGrammar", {}),
                "StructuredOutputBackend": recorded_class("vllm", "StructuredOutputBackend", {}),
            },
            f"{structured}.utils": {"grammar_is_likely_lark": lambda text: "::=" not in text},
            "vllm.sampling_params": {"SamplingParams": sampling, "StructuredOutputsParams": params},
            "vllm.exceptions": {"VLLMValidationError": error},
        }
    )


# -- SGLang --------------------------------------------------------------------------------------


class GrammarRow(typing.NamedTuple):
    row: int
    grammar: object


def _object_bodies() -> dict:
    def init(self):
        self._finished = False
        self.grammar_stats = None
        self.current_token = None

    def fill_vocab_mask_batched(entries, vocab_mask):
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    return {
        "__init__": init,
        "maybe_init_reasoning": lambda self, reasoning: None,
        "fill_vocab_mask_batched": fill_vocab_mask_batched,
        "copy": lambda self: self,
        "finished": lambda self: self._finished,
    }


def _backend_bodies(invalid: type) -> dict:
    def init(self):
        self.executor = ThreadPoolExecutor(1)
        self.cache = {}

    def _init_value_dispatch(self, key, require_reasoning):
        kind, text = key
        if "\0" in text:
            return invalid("NUL bytes are not allowed")
        return getattr(self, f"dispatch_{kind}")(text)

    def get_cached_or_future_value(self, key, require_reasoning):
        value = self.cache.get(key)
        if value:
            copied = value.copy()
            copied.maybe_init_reasoning(require_reasoning)
            return copied, True
        return self.executor.submit(self._init_value_dispatch, key, require_reasoning), False

    def set_cache(self, key, value):
        self.cache[key] = value

    return {
        "__init__": init,
        "_init_value_dispatch": _init_value_dispatch,
        "get_cached_or_future_value": get_cached_or_future_value,
        "set_cache": set_cache,
        "reset": lambda self: self.cache.clear(),
    }


def _reasoning(base: type, grammar_base: type) -> type:
    """The wrapper: free until the end of the reasoning, and then the grammar."""

    class Wrapped(grammar_base):
        def __init__(self, grammar, end):
            super().__init__()
            self.grammar, self.end, self.tokens_after_end = grammar, end, 0

        def maybe_init_reasoning(self, reasoning):
            self.tokens_after_end = -1 if reasoning else 0

        def accept_token(self, token):
            if self.tokens_after_end >= 0:
                self.grammar.accept_token(token)
                self.tokens_after_end += 1
            elif token == self.end:
                self.tokens_after_end = 0

        def fill_vocab_mask(self, vocab_mask, idx):
            if self.tokens_after_end >= 0:
                self.grammar.fill_vocab_mask(vocab_mask, idx)

        def is_terminated(self):
            return self.tokens_after_end >= 0 and self.grammar.is_terminated()

    def init(self, grammar_backend, reasoning_parser, tokenizer, enable_strict_thinking=None):
        base.__init__(self)
        self.grammar_backend = grammar_backend
        (self.end,) = reasoning_parser.detector.get_think_end_token_ids(tokenizer)

    def _init_value_dispatch(self, key, reasoning):
        made = self.grammar_backend._init_value_dispatch(key, reasoning)
        if not hasattr(made, "conversation"):
            return made
        wrapped = Wrapped(made, self.end)
        wrapped.maybe_init_reasoning(reasoning)
        return wrapped

    bodies = {"__init__": init, "_init_value_dispatch": _init_value_dispatch}
    return recorded_class("sglang", "ReasonerGrammarBackend.__init__", bodies, (base,))


def _parser() -> type:
    class Detector:
        def get_think_end_token_ids(self, tokenizer):
            return tokenizer.encode("</think>", add_special_tokens=False)

    names = RECORDED["sglang"]["names"]["ReasoningParser.__init__"]["methods"]["__init__"]
    scope: dict = {"Detector": Detector}
    written = ", ".join(
        one["name"] + ("=None" if one["optional"] else "") for one in names["parameters"]
    )
    exec(f"def __init__({written}):\n    self.detector = Detector()", scope)
    return type("ReasoningParser", (), {"__init__": scope["__init__"]})


def install_sglang() -> None:
    serving = types.SimpleNamespace(reasoning_parser=None)
    registry: dict = {}
    grammar = recorded_class("sglang", "BaseGrammarObject", _object_bodies())
    grammar.finished = grammar.finished.setter(
        lambda self, value: self.__dict__.update(_finished=value)
    )

    def invalid_init(self, error_message):
        grammar.__init__(self)
        self.error_message = error_message

    invalid = recorded_class(
        "sglang",
        "InvalidGrammarObject",
        {"__init__": invalid_init, "__repr__": lambda self: self.error_message},
        (grammar,),
    )
    backend = recorded_class("sglang", "BaseGrammarBackend", _backend_bodies(invalid))
    choices = ["xgrammar"]
    install(
        {
            "sglang.srt.constrained.base_grammar_backend": {
                "BaseGrammarObject": grammar,
                "BaseGrammarBackend": backend,
                "InvalidGrammarObject": invalid,
                "GrammarStats": recorded_class("sglang", "GrammarStats", {}),
                "GrammarRow": GrammarRow,
                "GRAMMAR_BACKEND_REGISTRY": registry,
                "register_grammar_backend": registry.__setitem__,
            },
            "sglang.srt.constrained.reasoner_grammar_backend": {
                "ReasonerGrammarBackend": _reasoning(backend, grammar)
            },
            "sglang.srt.parser.reasoning_parser": {"ReasoningParser": _parser()},
            "sglang.srt.arg_groups.choices": {
                "GRAMMAR_BACKEND_CHOICES": choices,
                "add_grammar_backend_choices": choices.extend,
            },
            "sglang.srt.runtime_context": {"get_serving": lambda: serving},
        }
    )
