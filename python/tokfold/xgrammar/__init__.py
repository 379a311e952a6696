"""XGrammar over classes of tokens: change one import, keep the code.

``from tokfold import xgrammar as xgr`` in place of ``import xgrammar as xgr``. The names, the
arguments, the results and the errors are XGrammar's; masks are its masks, computed over one
representative for each class of tokens that the grammar cannot tell apart.

Not replaced are what deals with no vocabulary (``Grammar``, ``StructuralTag``, ``TokenizerInfo``,
the bitmask functions) and ``testing``, whose helpers make plain matchers.

Added: ``CompiledGrammar.is_compressed``, ``.classes``, ``.class_of_token``, and masks over
classes: :func:`allocate_class_bitmask`, ``GrammarMatcher.fill_next_class_bitmask``; and texts that
end within ``GrammarMatcher(compiled, max_tokens=n)``.

- ``compiler``, ``compiled``, ``matcher``, ``batch``, ``bitmask``, ``contrib``: what users call;
  ``compiler`` goes back to plain XGrammar, with a warning, where nothing can be folded
- ``ending``: the tokens that leave enough to complete a text
- ``folding``, ``vocabulary``: the vocabulary, folded; ``lengths``: where forced bytes end
- ``forms``, ``automata``, ``tags``, ``spelling``: XGrammar's grammars, as the core reads them
- ``refusals``: what is refused or not folded, and what would end the process within XGrammar
"""

from __future__ import annotations

from tokfold._extras import require

require("xgrammar", "xgrammar", "tokfold.xgrammar")

from xgrammar import (  # noqa: E402 - after the check that names the extra
    DeserializeFormatError,
    DeserializeVersionError,
    Grammar,
    InvalidJSONError,
    InvalidStructuralTagError,
    StructuralTag,
    StructuralTagItem,
    TokenizerInfo,
    VocabType,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    exception,
    get_bitmask_shape,
    get_builtin_structural_tag,
    get_max_recursion_depth,
    get_model_structural_tag,
    get_serialization_version,
    max_recursion_depth,
    normalize_tool_choice,
    register_model_structural_tag,
    reset_token_bitmask,
    set_max_recursion_depth,
    structural_tag,
    testing,
)

from tokfold.xgrammar import contrib  # noqa: E402
from tokfold.xgrammar.batch import BatchGrammarMatcher  # noqa: E402
from tokfold.xgrammar.bitmask import (  # noqa: E402
    allocate_class_bitmask,
    get_class_bitmask_shape,
)
from tokfold.xgrammar.compiled import CompiledGrammar  # noqa: E402
from tokfold.xgrammar.compiler import GrammarCompiler  # noqa: E402
from tokfold.xgrammar.contrib import hf  # noqa: E402
from tokfold.xgrammar.matcher import GrammarMatcher  # noqa: E402

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "DeserializeFormatError",
    "DeserializeVersionError",
    "Grammar",
    "GrammarCompiler",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "VocabType",
    "allocate_class_bitmask",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "contrib",
    "exception",
    "get_bitmask_shape",
    "get_builtin_structural_tag",
    "get_class_bitmask_shape",
    "get_max_recursion_depth",
    "get_model_structural_tag",
    "get_serialization_version",
    "hf",
    "max_recursion_depth",
    "normalize_tool_choice",
    "register_model_structural_tag",
    "reset_token_bitmask",
    "set_max_recursion_depth",
    "structural_tag",
    "testing",
]
