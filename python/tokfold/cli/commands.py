"""The commands, each with its first line of help: all that ``tokfold --help`` needs.

A command is a function of its name in a module of its name, which is imported when it runs.
"""

from __future__ import annotations

import textwrap

COMMANDS = {
    "classes": "Fold a vocabulary under a grammar: time by phase, classes, sample tokens.",
    "check": "Check texts against a grammar: accepted, or where and what was expected.",
    "explain": "Say why a token is not allowed, where a text stops, or what may come next.",
    "walk": "Replay a text through tokfold's own engine: masks and times, token by token.",
    "replay": "Replay grammars, texts and verdicts, as test suites hold them, and keep score.",
    "inspect": "Show a file of classes: fingerprints, sizes, the biggest classes, what it fits.",
    "store": "Build the mask store of a Lark grammar and show what streamlining makes of it.",
    "report": "Write what an issue needs: versions, platform, and the case as one JSON file.",
    "demo": "Decode a JSON Schema with and without masks, on a vocabulary made here.",
}
"""The commands by name, in the order of the help."""

LABORATORY = {
    "lint": "Look for what is wrong with a grammar, and say how to mend it.",
    "optimize": "Rewrite a grammar: the same strings, cheaper for an engine.",
    "equiv": "Compare two grammars: a text that tells them apart, a proof, or a bound.",
    "maskdiff": "Find the first token on which two engines differ, and who contradicts itself.",
    "cost": "What a way of writing costs: size, growth with a witness, counters by step.",
    "profile": "Run a text through engines and say what each token costs: counters and times.",
    "fidelity": "Measure what masks do to the distribution of a model.",
}
"""The same of the grammar laboratory."""

_HEAD = """\
Usage: tokfold [OPTIONS] COMMAND [ARGS]...

Constrained decoding: which tokens does a grammar allow next?

Start with: tokfold demo, which needs no files.

Options:
  --version      Print the version and exit.
  -h, --help     Show this message and exit. So does each command.
"""


def help_text() -> str:
    """What ``tokfold --help`` prints, in at most 80 columns."""
    parts = [_HEAD]
    for title, commands in (("Commands", COMMANDS), ("The grammar laboratory", LABORATORY)):
        parts.append(f"\n{title}:\n")
        for name, summary in commands.items():
            lines = textwrap.wrap(summary, 66)
            parts.append(f"  {name:<10} " + f"\n{'':13}".join(lines) + "\n")
    return "".join(parts)
