"""Grammar-constrained decoding, exact and nearly free.

:func:`compile` makes a grammar and a vocabulary ready; a :class:`Matcher` follows one text and
writes, before each token, which tokens may come next. A server makes one :class:`GrammarCompiler`.
:func:`compile_classes` folds the vocabulary into classes of tokens that the grammar cannot tell
apart: our engine uses them, and so can others (:mod:`tokfold.xgrammar`).

What is public:

- ``grammar``, ``vocabulary``, ``engine``, ``matcher``, ``batch``, ``bitmask``, ``classes``,
  ``pool``: from a grammar to masks
- ``prompt``: where a text begins within the last token; ``state``: a text that is kept;
  ``recognition``: where a text leaves a language and what could come there; ``explanation``: why a
  matcher refuses a token
- ``compiler``: many grammars; ``options``, ``limits``, ``interrupt``, ``errors``: for all of these
- ``structural_tags``: what models of a family write; ``xgrammar``: masks of XGrammar over classes
- ``torch``, ``transformers``, ``mlx``, ``llama_cpp``, ``vllm``, ``sglang``: in loops and servers
- ``chart_gpu``, ``mask_store``, ``laboratory``, ``cli``: wings that nothing else needs

The private modules:

- ``_sources``, ``_tags``: what a grammar is made of; ``_source_kinds``: what a source means that
  comes without a word; ``_written``: which language a refused text is in; ``_schema_records``: what
  a JSON Schema says of a grammar and of a text
- ``_text_checks``, ``_json``: texts and JSON that callers bring; ``_converters``: bounds of
  XGrammar's converters
- ``_loaders``: tokenizer files; ``_token_names``, ``_token_checks``: grammars beside a vocabulary;
  ``_forced``: a text in the tokens of a tokenizer
- ``_admission``: who compiles next; ``_background``: work beside the requests; ``_parts``: parts of
  networks that grammars share; ``_serving``: what server backends share
- ``_cache``: a folder of saved files; ``_artifact``: the bytes of a saved file
- ``_history``: what logits processors of one sequence share; ``_protocols``: what they, batches and
  folds ask of a matcher or of classes
- ``_quoting``: values in messages
- ``_checks``, ``_names``: arguments, and hints for names of other libraries; ``_extras``: packages
  that are missing; ``_lazy``: properties that are made when they are first asked for; ``_utf8``:
  ranges of characters as bytes
"""

import importlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokfold.batch import (
        accept_token_batch,
        fill_bitmask_batch,
        fill_class_bitmask_batch,
        rollback_batch,
    )
    from tokfold.bitmask import (
        Unfolder,
        allocate_bitmask,
        allowed_tokens,
        apply_token_bitmask_,
    )
    from tokfold.classes import TokenClasses, compile_classes
    from tokfold.compiler import CompilerStatistics, GrammarCompiler
    from tokfold.engine import CompiledGrammar, GrammarCost, Shortest, compile
    from tokfold.errors import (
        AlphabetError,
        AmbiguousSourceError,
        ArgumentTypeError,
        ArtifactError,
        CacheWarning,
        CancelledError,
        DeadlineExceededError,
        DeviceError,
        FallbackWarning,
        GrammarSyntaxError,
        InvalidSchemaError,
        LimitExceededError,
        MatcherStateError,
        MissingExtraError,
        MissingFileError,
        ReentrantCompileError,
        SchemaError,
        StopTokenWarning,
        StrictSchemaError,
        StructuralTagError,
        TokenBudgetError,
        TokfoldError,
        UnsatisfiableSchemaError,
        UnsupportedGrammarError,
        UnsupportedSchemaError,
        UnwritableTextError,
        VocabularyError,
        VocabularyWarning,
    )
    from tokfold.explanation import Explanation
    from tokfold.grammar import Grammar
    from tokfold.interrupt import Interrupt
    from tokfold.limits import Limits
    from tokfold.matcher import Matcher
    from tokfold.options import CompileOptions
    from tokfold.pool import MaskPool
    from tokfold.prompt import HealedPrompt, PromptMatcher
    from tokfold.recognition import Recognition, recognize
    from tokfold.state import MatcherState
    from tokfold.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "AlphabetError",
    "AmbiguousSourceError",
    "ArgumentTypeError",
    "ArtifactError",
    "CacheWarning",
    "CancelledError",
    "CompileOptions",
    "CompiledGrammar",
    "CompilerStatistics",
    "DeadlineExceededError",
    "DeviceError",
    "Explanation",
    "FallbackWarning",
    "Grammar",
    "GrammarCompiler",
    "GrammarCost",
    "GrammarSyntaxError",
    "HealedPrompt",
    "Interrupt",
    "InvalidSchemaError",
    "LimitExceededError",
    "Limits",
    "MaskPool",
    "Matcher",
    "MatcherState",
    "MatcherStateError",
    "MissingExtraError",
    "MissingFileError",
    "PromptMatcher",
    "Recognition",
    "ReentrantCompileError",
    "SchemaError",
    "Shortest",
    "StopTokenWarning",
    "StrictSchemaError",
    "StructuralTagError",
    "TokenBudgetError",
    "TokenClasses",
    "TokfoldError",
    "Unfolder",
    "UnsatisfiableSchemaError",
    "UnsupportedGrammarError",
    "UnsupportedSchemaError",
    "UnwritableTextError",
    "Vocabulary",
    "VocabularyError",
    "VocabularyWarning",
    "accept_token_batch",
    "allocate_bitmask",
    "allowed_tokens",
    "apply_token_bitmask_",
    "compile",
    "compile_classes",
    "fill_bitmask_batch",
    "fill_class_bitmask_batch",
    "recognize",
    "rollback_batch",
]

_PLACES = {
    name: module
    for module, names in {
        "batch": "accept_token_batch fill_bitmask_batch fill_class_bitmask_batch rollback_batch",
        "bitmask": "Unfolder allocate_bitmask allowed_tokens apply_token_bitmask_",
        "classes": "TokenClasses compile_classes",
        "compiler": "CompilerStatistics GrammarCompiler",
        "engine": "CompiledGrammar GrammarCost Shortest compile",
        "errors": (
            "AlphabetError AmbiguousSourceError ArgumentTypeError ArtifactError "
            "CacheWarning CancelledError DeadlineExceededError DeviceError FallbackWarning "
            "GrammarSyntaxError InvalidSchemaError LimitExceededError MatcherStateError "
            "MissingExtraError MissingFileError ReentrantCompileError SchemaError "
            "StopTokenWarning StrictSchemaError StructuralTagError TokenBudgetError TokfoldError "
            "UnsatisfiableSchemaError UnsupportedGrammarError UnsupportedSchemaError "
            "UnwritableTextError VocabularyError VocabularyWarning"
        ),
        "explanation": "Explanation",
        "grammar": "Grammar",
        "interrupt": "Interrupt",
        "limits": "Limits",
        "matcher": "Matcher",
        "options": "CompileOptions",
        "pool": "MaskPool",
        "prompt": "HealedPrompt PromptMatcher",
        "recognition": "Recognition recognize",
        "state": "MatcherState",
        "vocabulary": "Vocabulary",
    }.items()
    for name in names.split()
}
"""In which module each name is: modules are imported when one of their names is first asked for."""

_MODULES = frozenset(
    {"chart_gpu", "laboratory", "llama_cpp", "mask_store", "mlx", "sglang", "structural_tags"}
    | {"torch", "transformers", "vllm", "xgrammar"}
)

if not TYPE_CHECKING:  # a checker would believe that there is every name

    def __getattr__(name: str) -> object:
        """A name of this package, or an error that says what stands for a name that others have."""
        module = _PLACES.get(name)
        if module is None and name not in _PLACES.values():
            from tokfold._names import missing_in_module

            missing_in_module(sys.modules[__name__], name, _MODULES)
        if module is None:
            return importlib.import_module(f"tokfold.{name}")
        value = getattr(importlib.import_module(f"tokfold.{module}"), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        own = {name for name in globals() if name.startswith("__")}
        return sorted({*own, *_PLACES, *_PLACES.values(), *_MODULES})
