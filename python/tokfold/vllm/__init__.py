"""tokfold as a backend of vLLM's structured outputs: ``TOKFOLD_VLLM=1 vllm serve ...``.

vLLM has no registry of backends. It calls :func:`plugin` in each of its processes where tokfold is
installed (entry point ``vllm.general_plugins``), and that does nothing unless the environment has
``TOKFOLD_VLLM=1``. With it, or after :func:`install`, requests whose backend vLLM chooses itself
(``backend="auto"``, its default) go to tokfold; who names a backend gets that one. In a process of
your own::

    import tokfold.vllm

    tokfold.vllm.install(cache_dir="/var/cache/tokfold")
    model = vllm.LLM("path/to/model")

Two methods of vLLM are wrapped: ``SamplingParams._validate_structured_outputs`` for the check of a
request, which takes the place of vLLM's own where tokfold is the backend, and
``StructuredOutputManager.grammar_init`` for the choice of the backend. See
``docs/serving.md``. Made for vLLM 0.33.

- ``hooks``: the two wrappers
- ``backend``: the check of a request (``check_request``), and the classes that vLLM's engine calls,
  which count the tokens of the reasoning before a text
"""

from __future__ import annotations

import os
import warnings
from os import PathLike

from tokfold._extras import require
from tokfold._names import with_our_options
from tokfold._quoting import quoted
from tokfold._serving import SWITCHES, Settings
from tokfold.engine import ClassesMode
from tokfold.limits import Limits
from tokfold.vllm.hooks import NAME, unwrap, wrap

__all__ = ["NAME", "VARIABLE", "install", "plugin", "uninstall"]

VARIABLE = "TOKFOLD_VLLM"
"""The variable of the environment that turns the plugin on."""


def plugin() -> None:
    """What vLLM calls in each process: :func:`install` if the environment asks for it."""
    said = os.environ.get(VARIABLE, "").strip().lower()
    if said and said not in SWITCHES:
        warnings.warn(
            f"{VARIABLE} must be 1 or 0, not {quoted(said)}: tokfold is off", stacklevel=2
        )
    if SWITCHES.get(said):
        install()


@with_our_options("tokfold.vllm.install")
def install(
    *,
    cache_dir: str | PathLike[str] | None = None,
    classes: ClassesMode | None = None,
    limits: Limits | None = None,
) -> None:
    """Let vLLM choose tokfold; once more does nothing.

    Writes ``TOKFOLD_VLLM=1`` into the environment, for the processes that vLLM starts: its engine
    is one of them, and installs by the entry point.

    Args:
        cache_dir: a folder that outlives the server and that engines share:
            ``TOKFOLD_CACHE_DIR``. By default none.
        classes: ``"auto"`` (the default), ``"now"`` or ``"never"``, as for
            :func:`tokfold.compile`: ``TOKFOLD_CLASSES``.
        limits: bounds for each request: ``TOKFOLD_LIMITS``, a JSON object.

    Raises:
        MissingExtraError: vLLM is not installed.
        RuntimeError: this vLLM is made otherwise than tokfold knows it; nothing has changed.
        ValueError: an argument or a variable of the environment cannot be read, or
            ``VLLM_PLUGINS`` keeps tokfold out of the engine; nothing has changed.
    """
    require("vllm.v1.structured_output", "vllm", "tokfold.vllm.install")
    allowed = os.environ.get("VLLM_PLUGINS")
    if allowed is not None and NAME not in allowed.split(","):
        raise ValueError(
            f"VLLM_PLUGINS is {quoted(allowed)}, so that vLLM's engine will not load tokfold: "
            f"add {NAME} to it"
        )
    variables = Settings.variables(cache_dir, classes, limits)
    wrap()
    os.environ.update({**variables, VARIABLE: "1"})


def uninstall() -> None:
    """Take :func:`install` back in this process; engines that use tokfold go on with it."""
    unwrap()
    os.environ.pop(VARIABLE, None)
