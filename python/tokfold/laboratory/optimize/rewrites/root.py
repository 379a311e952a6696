"""A start rule that nothing else names."""

from __future__ import annotations

from tokfold.laboratory.form import Ref
from tokfold.laboratory.optimize.algebra import renamed
from tokfold.laboratory.optimize.system import System

__all__ = ["fresh_root"]


def fresh_root(system: System) -> bool:
    """Give a start rule that rules name, itself or others, a name of its own below a new one.

    Law: a new equation ``root = A`` changes no other. The new rule has the old name, so that the
    grammar is still read from there; where a fixed rule or a macro names the old one, the new rule
    has a new name instead. XGrammar's masks lose tokens where the start rule is named
    (it takes the end of an inner one for the end of the text).
    """
    root = system.root
    names = system.references()
    if not any(root in found for found in names.values()):
        return False
    law = "fresh start rule"
    if root in system.named | system.fixed or any(root in names[name] for name in system.fixed):
        system.root = system.fresh(root)
        system.rules = {system.root: Ref(root), **system.rules}
        system.note(system.root, law, None, Ref(root))
        return True
    inner = system.fresh(root)
    mapping = {root: inner}
    body = system.rules[root]
    rules = {
        (inner if name == root else name): found
        if name in system.fixed
        else renamed(found, mapping)
        for name, found in system.rules.items()
    }
    system.rules = {root: Ref(inner), **rules}
    system.note(root, law, body, Ref(inner))
    return True
