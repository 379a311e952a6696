"""Rewrites of grammars, a module for each family. Each keeps the language; its law says why.

``root``, ``cleanup``, ``merge``, ``inline`` (rules), ``factor`` (alternatives), ``loops``,
``recursion``, ``chain`` (repetition and operators).
"""
