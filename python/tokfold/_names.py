"""Names that people know from XGrammar, llguidance and Outlines, and what stands for them here.

A missing attribute and an unknown option raise what Python raises, and say what to use. The page
``docs/names.md`` has the same table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from tokfold._quoting import quoted
from tokfold.errors import ArgumentTypeError, TokfoldError

P = ParamSpec("P")
R = TypeVar("R")

_XG, _LL, _OUT, _ANY = "XGrammar", "llguidance", "Outlines", "other libraries"

NAMES: dict[str, dict[str, tuple[str, str]]] = {
    "tokfold": {
        "TokenizerInfo": (_XG, "tokfold.Vocabulary.from_huggingface(tokenizer)"),
        "VocabType": (_XG, "vocabulary.kind"),
        "GrammarMatcher": (_XG, "tokfold.Matcher(compiled)"),
        "BatchGrammarMatcher": (_XG, "tokfold.fill_bitmask_batch(matchers, bitmask)"),
        "allocate_token_bitmask": (_XG, "tokfold.allocate_bitmask(rows, len(vocabulary))"),
        "get_bitmask_shape": (_XG, "tokfold.allocate_bitmask(rows, len(vocabulary)).shape"),
        "reset_token_bitmask": (_XG, "bitmask.fill(-1)"),
        "apply_token_bitmask_inplace": (
            _XG,
            "tokfold.torch.apply_token_bitmask_(logits, bitmask, len(vocabulary))",
        ),
        "StructuralTag": (_XG, "a dict, or XGrammar's object, for tokfold.compile"),
        "StructuralTagItem": (_XG, "a dict, or XGrammar's object, for tokfold.compile"),
        "get_builtin_structural_tag": (_XG, "tokfold.structural_tags.for_model(family, tools)"),
        "get_model_structural_tag": (_XG, "tokfold.structural_tags.for_model(family, tools)"),
        "testing": (_XG, "tokfold.recognize(grammar, text)"),
        "LLMatcher": (_LL, "tokfold.Matcher(compiled)"),
        "LLInterpreter": (_LL, "tokfold.Matcher(compiled)"),
        "LLTokenizer": (_LL, "tokfold.Vocabulary.from_huggingface(tokenizer)"),
        "TokenizerWrapper": (_LL, "tokfold.Vocabulary.from_huggingface(tokenizer)"),
        "LLParserLimits": (_LL, "tokfold.Limits(...)"),
        "LLExecutor": (_LL, "tokfold.fill_bitmask_batch(matchers, bitmask)"),
        "JsonCompiler": (_LL, "tokfold.Grammar.from_json_schema(schema)"),
        "RegexCompiler": (_LL, "tokfold.Grammar.from_regex(pattern)"),
        "LarkCompiler": (_LL, "tokfold.Grammar.from_lark(text)"),
        "gbnf_to_lark": (_LL, "tokfold.Grammar.from_ebnf(text), which reads GBNF"),
        "grammar_from": (_LL, "the tokfold.Grammar.from_... of its kind"),
        "StructTag": (_LL, "a structural tag as a dict, for tokfold.compile"),
        "from_transformers": (
            _OUT,
            "tokfold.transformers.processor(model, tokenizer, schema_or_type)",
        ),
        "from_llamacpp": (_OUT, "tokfold.llama_cpp.GrammarLogitsProcessor(compiled)"),
        "from_mlxlm": (_OUT, "tokfold.mlx.GrammarLogitsProcessor(compiled)"),
        "from_vllm": (_OUT, "the backend tokfold.vllm (docs/serving.md)"),
        "from_sglang": (_OUT, "the backend tokfold.sglang (docs/serving.md)"),
        "Generator": (_OUT, "tokfold.transformers.processor(model, tokenizer, schema_or_type)"),
        "generate": (_OUT, "tokfold.transformers.processor(model, tokenizer, schema_or_type)"),
        "models": (_OUT, "tokfold.transformers.processor(model, tokenizer, schema_or_type)"),
        "json_schema": (_OUT, "tokfold.Grammar.from_json_schema(schema)"),
        "JsonSchema": (_OUT, "tokfold.Grammar.from_json_schema(schema)"),
        "regex": (_OUT, "tokfold.Grammar.from_regex(pattern)"),
        "Regex": (_OUT, "tokfold.Grammar.from_regex(pattern)"),
        "cfg": (_OUT, "tokfold.Grammar.from_lark(text)"),
        "CFG": (_OUT, "tokfold.Grammar.from_lark(text)"),
        "Choice": (_OUT, "tokfold.Grammar.choices(texts)"),
        "choice": (_OUT, "tokfold.Grammar.choices(texts)"),
        "Index": (_OUT, "tokfold.compile(grammar, vocabulary)"),
        "Guide": (_OUT, "tokfold.Matcher(compiled)"),
    },
    "Matcher": {
        "fill_next_token_bitmask": (_XG, "matcher.fill_bitmask(bitmask, row)"),
        "traverse_draft_tree": (_XG, "matcher.fill_bitmask_draft(token_ids, bitmask, parents)"),
        "find_jump_forward_string": (_XG, "matcher.forced_bytes()"),
        "find_jump_forward_tokens": (_XG, "matcher.forced_tokens()"),
        "is_completed": (_XG, "matcher.is_accepting, or is_terminated behind the stop token"),
        "max_rollback_tokens": (_XG, "matcher.num_steps: every step can be taken back"),
        "compute_bitmask": (_LL, "matcher.fill_bitmask(bitmask, row)"),
        "compute_logit_bias": (_LL, "matcher.fill_bitmask(bitmask, row)"),
        "unsafe_compute_mask_ptr": (_LL, "matcher.fill_bitmask(bitmask, row)"),
        "compute_ff_bytes": (_LL, "matcher.forced_bytes()"),
        "compute_ff_tokens": (_LL, "matcher.forced_tokens(encode)"),
        "consume_token": (_LL, "matcher.accept_token(token_id)"),
        "consume_tokens": (_LL, "matcher.accept_tokens(token_ids)"),
        "try_consume_tokens": (_LL, "matcher.accept_tokens(token_ids)"),
        "validate_tokens": (_LL, "matcher.fork().accept_tokens(token_ids)"),
        "is_stopped": (_LL, "matcher.is_terminated"),
        "stop_reason": (_LL, "matcher.is_terminated"),
        "deep_copy": (_LL, "matcher.fork()"),
        "grammar_from_json_schema": (_LL, "tokfold.Grammar.from_json_schema(schema)"),
        "grammar_from_lark": (_LL, "tokfold.Grammar.from_lark(text)"),
        "grammar_from_regex": (_LL, "tokfold.Grammar.from_regex(pattern)"),
        "get_error": (_LL, "the exception that the call raised"),
        "is_error": (_LL, "the exception that the call raised"),
        "advance": (_OUT, "matcher.accept_token(token_id)"),
        "get_tokens": (_OUT, "matcher.fill_bitmask(bitmask, row)"),
        "write_mask_into": (_OUT, "matcher.fill_bitmask(bitmask, row)"),
        "accepts_tokens": (_OUT, "matcher.fork().accept_tokens(token_ids)"),
        "rollback_state": (_OUT, "matcher.rollback(count)"),
        "is_finished": (_OUT, "matcher.is_terminated"),
        "get_state": (_OUT, "matcher.state"),
    },
    "CompiledGrammar": {
        "memory_size_bytes": (_XG, "compiled.num_bytes"),
        "tokenizer_info": (_XG, "compiled.vocabulary"),
        "serialize_json": (_XG, "pickle.dumps(compiled.grammar)"),
    },
    "Grammar": {
        "builtin_json_grammar": (_XG, "Grammar.from_json_schema(True)"),
        "union": (_XG, "first | second"),
        "serialize_json": (_XG, "pickle.dumps(grammar)"),
        "deserialize_json": (_XG, "pickle.loads(data)"),
        "from_string": (_ANY, "Grammar.from_ebnf(text)"),
        "from_json": (_ANY, "Grammar.from_json_schema(schema)"),
        "from_gbnf": (_ANY, "Grammar.from_ebnf(text), which reads GBNF too"),
        "from_choices": (_OUT, "Grammar.choices(texts)"),
        "from_pydantic": (_OUT, "Grammar.from_json_schema(Model)"),
        "from_cfg": (_OUT, "Grammar.from_lark(text)"),
    },
    "GrammarCompiler": {
        "cache_limit_bytes": (_XG, "compiler.max_bytes"),
    },
    "Vocabulary": {
        "vocab_size": (_XG, "len(vocabulary)"),
        "vocab_type": (_XG, "vocabulary.kind"),
        "decoded_vocab": (_XG, "vocabulary.token_bytes"),
        "from_vocab_and_metadata": (_XG, "Vocabulary.from_file(path)"),
        "from_tokenizer": (_ANY, "Vocabulary.from_huggingface(tokenizer)"),
        "from_transformers": (_ANY, "Vocabulary.from_huggingface(tokenizer)"),
        "eos_token": (_LL, "vocabulary.stop_token_ids"),
        "eos_tokens": (_LL, "vocabulary.stop_token_ids"),
        "decode_bytes": (_LL, "vocabulary.decode(ids)"),
        "greedy_tokenize": (_LL, "vocabulary.encode_greedy(data)"),
        "tokenize_bytes": (_LL, "the encode of the tokenizer itself"),
        "tokenize_str": (_LL, "the encode of the tokenizer itself"),
        "from_pretrained": (_OUT, "Vocabulary.from_file(folder), of a model that is there"),
        "get_eos_token_id": (_OUT, "vocabulary.stop_token_ids"),
    },
}
"""By owner and foreign name: whose it is, and what to use."""

OPTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Grammar.from_json_schema": {
        "any_whitespace": (
            _XG,
            'whitespace="any" for True; for False whitespace="spaced" (", " and ": ") or "compact"',
        ),
        "strict_mode": (
            _XG,
            "additional_properties=True for False, which opens objects; the default closes them",
        ),
        "max_whitespace_cnt": (_XG, "max_whitespace=..., which is 32 unless given"),
        "any_order": (_XG, 'key_order="any"'),
        "whitespace_flexible": (_LL, 'whitespace="any" for True, "compact" for False'),
        "whitespace_pattern": (_LL, 'whitespace="any", "spaced" or "compact"'),
        "item_separator": (_LL, 'separators=(", ", ": ")'),
        "key_separator": (_LL, 'separators=(", ", ": ")'),
        "coerce_one_of": (_LL, "nothing: oneOf is exact"),
        "lenient": (_LL, "lossy={keyword}, for each keyword that may be left out"),
    },
    "Grammar.from_ebnf": {
        "root_rule_name": (_XG, "root=..."),
    },
    "GrammarCompiler": {
        "tokenizer_info": (_XG, "vocabulary, the first argument"),
        "max_threads": (_XG, "max_compiles=..., the grammars that are compiled at once"),
        "cache_enabled": (_XG, "max_grammars=0 for False"),
        "cache_limit_bytes": (_XG, "max_bytes=..."),
    },
    "GrammarCompiler.compile_grammar": {
        "root_rule_name": (_XG, "tokfold.Grammar.from_ebnf(text, root=...), and pass that"),
    },
    "GrammarCompiler.compile_structural_tag": {
        "triggers": (
            _XG,
            'one dict: {"format": {"type": "triggered_tags", "triggers": [...], "tags": [...]}}',
        ),
    },
    "Interrupt": {
        "seconds": (_ANY, "milliseconds=..."),
        "timeout": (_ANY, "milliseconds=..."),
    },
    "Matcher": {
        "compiled_grammar": (_XG, "compiled, the first argument"),
        "override_stop_tokens": (_XG, "stop_token_ids=[...]"),
        "max_rollback_tokens": (_XG, "nothing: every step can be taken back"),
        "log_level": (_LL, "nothing: errors are raised"),
    },
    "Vocabulary": {
        "vocab_size": (_XG, "size=..."),
        "eos_token_id": (_ANY, "stop_token_ids=[...]"),
    },
    "Vocabulary.from_file": {
        "vocab_size": (_XG, "size=..."),
        "eos_token_id": (_ANY, "stop_token_ids=[...]"),
    },
    "Vocabulary.from_huggingface": {
        "vocab_size": (_XG, "size=..."),
        "n_vocab": (_LL, "size=..."),
        "eos_token": (_LL, "stop_token_ids=[...]"),
        "eos_token_id": (_ANY, "stop_token_ids=[...]"),
    },
    "for_model": {
        "parallel_tool_calls": ("OpenAI", "parallel=..."),
        "enable_thinking": ("Qwen", 'reasoning="enabled" for True, "disabled" for False'),
    },
    "processor": {
        "max_new_tokens": ("generate()", "max_tokens=..."),
    },
}
"""By call and foreign option: whose it is, and what to pass."""

_OF_SCHEMAS = {
    name: f"tokfold.Grammar.from_json_schema(schema, {name}=...) in place of the schema"
    for name in (
        *("dialect", "strict", "key_order", "whitespace", "max_whitespace", "indent", "separators"),
        *("max_digits", "max_depth", "integers", "escapes", "formats", "additional_properties"),
        *("resources", "lossy"),
    )
}

MOVED: dict[str, dict[str, str]] = {
    "processor": _OF_SCHEMAS,
    "compile": {
        **_OF_SCHEMAS,
        "grammar": "source, the first argument",
        **{
            name: f"options=tokfold.CompileOptions({name}=...)"
            for name in (
                "cache_dir",
                "check_tokens",
                "classes_milliseconds",
                "engine",
                "pool",
                "progress",
                "terminate_without_stop_token",
            )
        },
    },
}
"""By call and option: what to pass in place of one that stands elsewhere."""


def _hint(owner: str, name: str) -> str:
    known = NAMES.get(owner, {}).get(name)
    return "" if known is None else f": that is a name of {known[0]}; use {known[1]}"


def missing(value: object, name: str) -> NoReturn:
    """``__getattr__`` of the main classes: says what stands here for a name of others."""
    for kind in type(value).__mro__:
        hint = _hint(kind.__name__, name)
        if hint:
            break
    message = f"'{type(value).__name__}' object has no attribute '{name}'{hint}"
    raise AttributeError(message, name=name, obj=value)


class Named(type):
    """Classes that name what stands for the class methods of others."""

    if not TYPE_CHECKING:  # a checker would believe that there is every name

        def __getattr__(cls, name: str) -> NoReturn:
            hint = _hint(cls.__name__, name)
            message = f"type object '{cls.__name__}' has no attribute '{name}'{hint}"
            raise AttributeError(message, name=name, obj=cls)


def missing_in_module(module: object, name: str, modules: frozenset[str]) -> NoReturn:
    """``__getattr__`` of the package; ``modules`` are those that are imported by name."""
    hint = _hint("tokfold", name)
    if name in modules:
        hint = f": it is a module; write import tokfold.{name}"
    message = f"module 'tokfold' has no attribute '{name}'{hint}"
    raise AttributeError(message, name=name, obj=module)


def _suggest(owner: str, call: Callable[..., object], options: Iterable[str]) -> None:
    """Name the option that is meant by one that the call does not have, where one is alike."""
    import difflib
    import inspect

    known = list(inspect.signature(call).parameters)
    for name in options:
        alike = difflib.get_close_matches(name, known, 1, 0.75) if name not in known else []
        if alike:
            raise ArgumentTypeError(
                f"{owner} has no option {quoted(name)}; did you mean {quoted(alike[0])}?"
            ) from None


def with_our_options(owner: str, *by_position: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Name our option where a call is given one of others, or one that stands elsewhere.

    The call raises :class:`ArgumentTypeError`, which is a ``TypeError``. What is given right costs
    one call more, 0.2 microseconds: calls that come with each token are left as they are.

    Args:
        owner: the call, as the tables have it.
        by_position: the names of the arguments that others pass by position, ``self`` included.
    """
    foreign, moved = OPTIONS.get(owner, {}), MOVED.get(owner, {})

    def decorate(call: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(call)
        def checked(*arguments: P.args, **options: P.kwargs) -> R:
            try:
                return call(*arguments, **options)
            except TypeError as error:
                if isinstance(error, TokfoldError):
                    raise
                names = [*by_position[: len(arguments)], *options]
                found = [name for name in names if name in foreign or name in moved]
                if not found:
                    _suggest(owner, call, options)
                    raise
            name = found[0]
            if name in moved:
                raise ArgumentTypeError(f"{owner} has no option {quoted(name)}: pass {moved[name]}")
            library, ours = foreign[name]
            raise ArgumentTypeError(
                f"{owner} has no option {quoted(name)}: that is one of {library}; use {ours}"
            )

        return cast("Callable[P, R]", cast(Any, checked))

    return decorate


def with_our_fields(record: type[R]) -> type[R]:
    """A dataclass whose constructor names our field, as :func:`with_our_options`."""
    made: Any = record
    made.__init__ = with_our_options(record.__name__)(made.__init__)
    return record
