"""Rewrites of grammars, a module for each family. Each keeps the language; its law says why."""
