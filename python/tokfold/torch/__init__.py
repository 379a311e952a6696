"""Masks onto logits, where the logits are.

A class mask has a bit for each class of tokens, some hundred bytes a row where a token mask has
16,000 and more. :class:`Fold` holds the class of each token on a device, and
:func:`apply_class_bitmask_` unfolds class masks onto logits in one pass: by a Triton kernel on a
GPU, by a kernel of our own on the CPU, by plain torch elsewhere. :class:`MaskTable` keeps masks
that recur on the device, so that mostly their numbers cross the bus::

    fold = tokfold.torch.Fold(compiled, device="cuda")
    masks = fold.allocate(batch)                       # numpy, in memory the GPU can read
    tokfold.fill_class_bitmask_batch(matchers, masks)
    table = tokfold.torch.MaskTable(fold)
    table.apply_(logits, masks)

- ``logits``: masks onto logits; ``checks``: what is refused; ``backends``: which kernel runs
- ``kernels`` (Triton), ``plain`` (torch alone): kernels; that of the CPU is in ``tokfold._core``
- ``fold``: the class of each token; ``table``: masks that recur, by number; ``overlap``: masks made
  beside the model

After CFGzip, section 3.1: at inference, the engine answers for representatives, and a gather
spreads the answer over the vocabulary.
"""

from __future__ import annotations

from tokfold._extras import require

require("torch", "torch", "tokfold.torch")

from tokfold.torch.fold import Fold  # noqa: E402 - after the check that names the extra
from tokfold.torch.logits import apply_class_bitmask_, apply_token_bitmask_  # noqa: E402
from tokfold.torch.overlap import NextMasks  # noqa: E402
from tokfold.torch.table import MaskTable  # noqa: E402

__all__ = ["Fold", "MaskTable", "NextMasks", "apply_class_bitmask_", "apply_token_bitmask_"]
