"""Grammars that differ from others in one place, and grammars that do not though they look so.

``changes`` makes the first kind, ``laws`` the second, both over the form of a grammar; ``judge``
says whether a change is one, without any part of tokfold but the reader of grammar text.
"""
