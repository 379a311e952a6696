"""Charts on a device: many texts of truly ambiguous grammars, each letter read in one launch.

For one text at a time, :class:`DeviceMatcher` has the answers of a :class:`tokfold.Matcher`::

    device = tokfold.chart_gpu.DeviceGrammar(compiled.grammar)
    matcher = tokfold.chart_gpu.DeviceMatcher(compiled, device)

For many::

    binary = tokfold.chart_gpu.BinaryGrammar.of(grammar)
    charts = tokfold.chart_gpu.Charts(tokfold.chart_gpu.Tables(binary), rows=132, columns=512)
    charts.step_(letters)                   # int32 on the device, one for each row
    charts.next_letters()                   # bitmasks on the device

:class:`BinaryGrammar`, :class:`TokenTree` and :class:`TerminalLexer` need numpy alone, the others
torch and Triton.

- ``productions``, ``reduction``, ``binary``: from a grammar to rules of two symbols
- ``reading``, ``letters``, ``lexer``: bytes as letters, one by one or as terminals
- ``tree``, ``sequences``: the tokens of a vocabulary as a tree of letters
- ``tables``, ``charts``, ``masks``: the grammar, the texts and their token masks on a device;
  ``charts`` allocates
- ``launches``: which kernels run: ``cuda`` (``chart.cu``, compiled at run time) or ``kernels`` and
  ``tree_kernels`` (Triton)
- ``grammar``, ``matcher``, ``text``: one text with the interface of a matcher; ``transfers``: what
  it copies to the device and back
- ``device``: which device there is
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tokfold._extras import require
from tokfold._quoting import quoted
from tokfold.chart_gpu.binary import BinaryGrammar
from tokfold.chart_gpu.lexer import TerminalLexer
from tokfold.chart_gpu.tree import TokenTree

if TYPE_CHECKING:
    from tokfold.chart_gpu.charts import Charts, idle
    from tokfold.chart_gpu.grammar import DeviceGrammar
    from tokfold.chart_gpu.masks import TokenMasks
    from tokfold.chart_gpu.matcher import DeviceMatcher
    from tokfold.chart_gpu.tables import Tables

__all__ = [
    "BinaryGrammar",
    "Charts",
    "DeviceGrammar",
    "DeviceMatcher",
    "Tables",
    "TerminalLexer",
    "TokenMasks",
    "TokenTree",
    "idle",
]

_WITH_TORCH = {
    "Charts": "charts",
    "DeviceGrammar": "grammar",
    "DeviceMatcher": "matcher",
    "Tables": "tables",
    "TokenMasks": "masks",
    "idle": "charts",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any name of the module
    if name not in _WITH_TORCH:
        raise AttributeError(f"module {quoted(__name__)} has no attribute {quoted(name)}")
    require("torch", "torch", f"tokfold.chart_gpu.{name}")
    require("triton", "torch", f"tokfold.chart_gpu.{name}")
    return getattr(importlib.import_module(f"{__name__}.{_WITH_TORCH[name]}"), name)
