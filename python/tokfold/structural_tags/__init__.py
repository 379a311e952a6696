"""Structural tags: free text with calls of tools and other tags in it, as one grammar.

:func:`assemble` makes a grammar of a tag in XGrammar's format, :func:`for_model` gives the tag of
a model family. See ``docs/structural-tags.md``.

- ``grammars``: :func:`assemble`
- ``models``: :func:`for_model`; ``family`` and ``family_table``: what marks each family;
  ``family_tags``: its tag; ``tool_choice``: the tools of a request
"""

from tokfold._tags.leaves import CacheInfo, LeafCache, default_cache
from tokfold.structural_tags.grammars import assemble
from tokfold.structural_tags.models import families, for_model

__all__ = ["CacheInfo", "LeafCache", "assemble", "default_cache", "families", "for_model"]
