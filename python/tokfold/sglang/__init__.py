"""tokfold as a grammar backend of SGLang: ``--grammar-backend tokfold``.

SGLang finds :func:`register` by itself where tokfold is installed (entry point
``sglang.srt.plugins``), in each of its processes. All it does is to add the name. In a process of
your own call it before the server's arguments are made::

    import tokfold.sglang

    tokfold.sglang.register(cache_dir="/var/cache/tokfold")
    engine = sglang.Engine(model_path=..., grammar_backend="tokfold")

See ``docs/serving.md``. Made for SGLang 0.5.23.

- ``backend``: the classes that SGLang calls, which check and compile its requests;
  ``with_reasoning`` there leaves the text before the end of the reasoning free. Jump-forward is
  there too, over ``forced_text`` of ``tokfold._serving.conversation``
"""

from __future__ import annotations

import os
from os import PathLike
from typing import TYPE_CHECKING, Any

from tokfold._extras import require
from tokfold._names import with_our_options
from tokfold._serving import Settings
from tokfold.engine import ClassesMode
from tokfold.limits import Limits

if TYPE_CHECKING:
    from sglang.srt.constrained.base_grammar_backend import BaseGrammarBackend

__all__ = ["NAME", "create_backend", "register"]

NAME = "tokfold"
"""The name of the backend."""


@with_our_options("tokfold.sglang.register")
def register(
    *,
    cache_dir: str | PathLike[str] | None = None,
    classes: ClassesMode | None = None,
    limits: Limits | None = None,
) -> None:
    """Make the name known to SGLang. Changes nothing for who does not choose it.

    Args:
        cache_dir: a folder that outlives the server, shared by its processes and the ranks of a
            tensor-parallel group: ``TOKFOLD_CACHE_DIR``. By default none.
        classes: ``"auto"`` (the default), ``"now"`` or ``"never"``, as for
            :func:`tokfold.compile`: ``TOKFOLD_CLASSES``.
        limits: bounds for each request: ``TOKFOLD_LIMITS``, a JSON object.

    Raises:
        MissingExtraError: SGLang is not installed.
        ValueError: an argument or a variable of the environment cannot be read; nothing has
            changed.
    """
    base = require(
        "sglang.srt.constrained.base_grammar_backend", "sglang", "tokfold.sglang.register"
    )
    variables = Settings.variables(cache_dir, classes, limits)
    base.register_grammar_backend(NAME, create_backend)
    os.environ.update(variables)
    _allow_on_the_command_line()


def _allow_on_the_command_line() -> None:
    for module in ("sglang.srt.arg_groups.choices", "sglang.srt.server_args"):
        try:
            known = require(module, "sglang", "tokfold.sglang.register")
            choices, add = known.GRAMMAR_BACKEND_CHOICES, known.add_grammar_backend_choices
        except (ImportError, AttributeError):
            continue  # an older version keeps them elsewhere
        if NAME not in choices:
            add([NAME])
        return


def create_backend(
    server_args: Any,  # noqa: ANN401 - SGLang's
    tokenizer: Any,  # noqa: ANN401
    vocab_size: int,
    eos_token_ids: set[int] | None = None,
) -> BaseGrammarBackend:
    """What SGLang calls when the server starts; with a reasoning parser, in its wrapper.

    Args:
        server_args: SGLang's ``ServerArgs``.
        tokenizer: the tokenizer of the model.
        vocab_size: number of ids that the model puts out.
        eos_token_ids: the model's ends of text; where there are none, the tokenizer's.

    Raises:
        VocabularyError: the tokens of this tokenizer have no bytes of their own.
        ValueError: a variable of the environment cannot be read.
    """
    from tokfold.sglang.backend import TokfoldGrammarBackend, with_reasoning

    backend = TokfoldGrammarBackend(server_args, tokenizer, vocab_size, eos_token_ids)
    return with_reasoning(backend, server_args, tokenizer)
