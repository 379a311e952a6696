"""What a form costs: κ, Earley items, and the packed parse forest (paper, sections 4 and 5).

- ``kappa``: the size of a form
- ``productions``, ``slots``: a form as numbers; ``earley``, ``live``: items along a text;
  ``forest``: its packed parse forest; ``meter``: all of it, byte by byte
- ``pumps``, ``growth``: texts that can be pumped, and how their cost grows
- ``limits``: bounds on all of this
"""

from tokfold.laboratory.forest.earley import Counters, Earley
from tokfold.laboratory.forest.forest import Forest, Node
from tokfold.laboratory.forest.kappa import Sizes, kappa, sizes
from tokfold.laboratory.forest.limits import CostLimitError, CostLimits, TextRefusedError
from tokfold.laboratory.forest.live import live_items
from tokfold.laboratory.forest.meter import COUNTERS, Meter, earley_counters, parse
from tokfold.laboratory.forest.productions import Production, Productions

__all__ = [
    "COUNTERS",
    "CostLimitError",
    "CostLimits",
    "Counters",
    "Earley",
    "Forest",
    "Meter",
    "Node",
    "Production",
    "Productions",
    "Sizes",
    "TextRefusedError",
    "earley_counters",
    "kappa",
    "live_items",
    "parse",
    "sizes",
]
