"""Structural tags: free text with tool calls and other tags in it, as one grammar."""

from tokfold.structural_tags.assembly import assemble
from tokfold.structural_tags.leaves import CacheInfo, LeafCache, default_cache

__all__ = ["CacheInfo", "LeafCache", "assemble", "default_cache"]
