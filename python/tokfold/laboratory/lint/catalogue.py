"""All codes of lint: what each means, how bad it is, and why it matters.

A code is a promise to those who ignore it in their settings: it is never given another meaning.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["CATALOGUE", "Code", "Engine", "Severity"]


class Severity(enum.IntEnum):
    """How bad a finding is."""

    INFORMATION = 1
    """Worth knowing; nothing need be done."""
    WARNING = 2
    """Likely a mistake, or slow, or wrong in an engine."""
    ERROR = 3
    """The grammar cannot be used as it is."""

    @property
    def word(self) -> str:
        """The name in lower case."""
        return self.name.lower()


class Engine(enum.Enum):
    """The engines for which there are rules of thumb."""

    OWN = "own"
    XGRAMMAR = "xgrammar"
    LLGUIDANCE = "llguidance"


@dataclass(frozen=True)
class Code:
    """A kind of finding.

    Attributes:
        severity: how bad.
        title: what it is, in a few words.
        why: why it matters.
        engine: the engine that it is a matter of, if it is.
        needs_vocabulary: whether it is looked for only with a tokenizer.
    """

    severity: Severity
    title: str
    why: str
    engine: Engine | None = None
    needs_vocabulary: bool = False


_INFORMATION, _WARNING, _ERROR = Severity.INFORMATION, Severity.WARNING, Severity.ERROR

_CODES = {
    # The text
    "syntax-error": Code(
        _ERROR,
        "the text is no grammar",
        "no engine can read it",
    ),
    "undefined-rule": Code(
        _ERROR,
        "a rule is named that there is none of",
        "no engine can read it; some take it for the empty string without a word",
    ),
    # The rules
    "unproductive-rule": Code(
        _ERROR,
        "no text is ever complete under a rule",
        "tokfold leaves out the alternatives that lead to such a rule; XGrammar and "
        "llguidance follow them and generate without end",
    ),
    "unreachable-rule": Code(
        _WARNING,
        "the root never leads to a rule",
        "the rule has no effect: a reference to it was forgotten or misspelled, or it is left over",
    ),
    "cyclic-rule": Code(
        _WARNING,
        "a rule can become itself without reading anything",
        "each of its texts has endlessly many parses: no parser can list them, weights of parses "
        "do not add up, and recognizers do work for nothing",
    ),
    "hidden-left-recursion": Code(
        _WARNING,
        "a rule calls itself first, behind something that may be empty",
        "such recursion is easily overlooked: engines by recursive descent refuse it or do "
        "not return, and chart parsers open it at every position",
    ),
    "left-recursion": Code(
        _INFORMATION,
        "a rule calls itself first",
        "left recursion is fine for tokfold, XGrammar and llguidance; engines by recursive "
        "descent, such as llama.cpp, refuse it",
    ),
    "ambiguous": Code(
        _WARNING,
        "a text has two parses",
        "chart parsers keep every parse, so XGrammar's time for a token grows with the text; "
        "trees, captures and weights depend on which parse is taken",
    ),
    # The way of writing
    "empty-class": Code(
        _WARNING,
        "a character class holds no character",
        "nothing matches it, so whatever needs it can never be completed",
    ),
    "never-repeated": Code(
        _WARNING,
        "something is repeated zero times",
        "this part reads nothing: a bound is wrong, or the part is left over",
    ),
    "nullable-loop": Code(
        _WARNING,
        "a loop over something that may be empty",
        "every text of it has endlessly many parses; over a wide class XGrammar 0.2.8 took 1.7 s "
        "for one mask, and llguidance refuses `(x?)*` as its converter writes it",
    ),
    "duplicate-alternative": Code(
        _WARNING,
        "the same alternative twice",
        "each text of it has two parses, and engines do its work twice",
    ),
    "unfactored-prefix": Code(
        _INFORMATION,
        "alternatives that begin alike",
        "engines without a common automaton read the beginning once for each; tokfold merges them",
    ),
    "delegation": Code(
        _INFORMATION,
        "a rule that is but another name",
        "engines that call rules do work for each rule on the way, at each position",
    ),
    "optional-run": Code(
        _WARNING,
        "a run of optional parts that is a count",
        "`x? x? x?` reads one x in three ways, and `(x (x x?)?)?` nests as deep as it is long; "
        "XGrammar 0.2.8 took 240 ms to compile 150 in a row and 300 µs a mask, 4 ms and 3 µs as "
        "`x{0,150}`",
    ),
    # Engines
    "refused": Code(
        _ERROR,
        "tokfold refuses a construct",
        "tokfold cannot handle this exactly; the finding names the construct",
        Engine.OWN,
    ),
    "recursive-root": Code(
        _WARNING,
        "the root is called, and something follows",
        "XGrammar leaves out of its masks the tokens that run past the end of an inner root, "
        "though it would accept them",
        Engine.XGRAMMAR,
    ),
    "repeated-self": Code(
        _ERROR,
        "a rule is nothing but a counted repetition of itself",
        "compiling it ends the process in XGrammar",
        Engine.XGRAMMAR,
    ),
    "large-count": Code(
        _WARNING,
        "a counted repetition of something wide",
        "XGrammar 0.2.8 unrolls counts: over Llama 3's vocabulary `[^\"]{0,200}` took 6.7 s to "
        "compile, a rule or choice counted 200 times over a second a mask",
        Engine.XGRAMMAR,
    ),
    "lookahead": Code(
        _WARNING,
        "lookahead written by hand",
        "the lookahead narrows XGrammar's masks without changing what XGrammar accepts; other"
        " engines do not read it",
        Engine.XGRAMMAR,
    ),
    "unsupported": Code(
        _WARNING,
        "a construct that llguidance's converter does not read",
        "`llguidance.gbnf_to_lark` raises, or makes Lark text that llguidance refuses",
        Engine.LLGUIDANCE,
    ),
    "greedy-lexeme": Code(
        _INFORMATION,
        "a lexeme that may swallow what follows",
        "llguidance's converter makes a lexeme of each rule without recursion, and a lexeme takes "
        "as much as it can: texts of the grammar may be lost, and 1.9.1 can hang",
        Engine.LLGUIDANCE,
    ),
    # With a tokenizer
    "dead-end": Code(
        _ERROR,
        "a place where no token fits",
        "the bytes could go on, but no token of the vocabulary holds them: the mask is empty and "
        "generation fails",
        needs_vocabulary=True,
    ),
    "no-stop-token": Code(
        _ERROR,
        "a text is complete, nothing may follow, and no token ends it",
        "the mask is empty there, or the model can only go on",
        needs_vocabulary=True,
    ),
    "runaway-whitespace": Code(
        _WARNING,
        "white space without bound",
        "a model that is steered away from what it wants to say can go on with white space until "
        "its budget is spent",
        needs_vocabulary=True,
    ),
    "forced-token": Code(
        _INFORMATION,
        "places where one token is possible",
        "at such a place the model has no choice, so an engine can skip it (jump-forward); if"
        " the tokenizer would cut the text in another way, the model sees tokens that it does"
        " not expect",
        needs_vocabulary=True,
    ),
    "straddling-tokens": Code(
        _INFORMATION,
        "tokens that go on across a delimiter",
        "a model prefers tokens that go across the delimiter: do not cut text at the "
        "delimiter (for captures, forced text or tool calls) and go on from there; engines "
        "with a lexer may mask such tokens",
        needs_vocabulary=True,
    ),
}

CATALOGUE: Mapping[str, Code] = MappingProxyType(_CODES)
"""All codes, in the order of the documentation."""
