"""Charts on a device: many texts of truly ambiguous grammars, read at once."""

from tokfold.chart_gpu.binary import BinaryGrammar

__all__ = ["BinaryGrammar"]
