"""Our own engine: a grammar and a vocabulary made ready for matchers."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tokfold import _core, _parts
from tokfold._background import WARM_STATES, Background
from tokfold._checks import check_number, is_one_of, wrong_type
from tokfold._names import Named, missing, with_our_options
from tokfold._quoting import quoted
from tokfold._source_kinds import Source, grammar_of, kind_of
from tokfold._sources.frames import FrameSource
from tokfold._token_checks import check_end
from tokfold._token_checks import check_tokens as _check_tokens
from tokfold.classes import TokenClasses, compile_classes
from tokfold.errors import (
    ArgumentTypeError,
    FallbackWarning,
    LimitExceededError,
    MatcherStateError,
    UnsupportedGrammarError,
)
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt, core_of, governing
from tokfold.limits import DEFAULT_LIMITS, Limits, check_limits
from tokfold.options import CompileOptions
from tokfold.pool import shared_pool
from tokfold.state import FOREIGN_STATE, MatcherState
from tokfold.vocabulary import Vocabulary, check_vocabulary

__all__ = [
    "ClassesMode",
    "CompiledGrammar",
    "GrammarCost",
    "Shortest",
    "compile",
]

ClassesMode = Literal["auto", "now", "never"]


@dataclass(frozen=True)
class GrammarCost:
    """What a compiled grammar has cost so far: see :meth:`CompiledGrammar.cost`.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary)
        >>> compiled.cost().network_states
        2
    """

    bytes: int
    """Bytes held: the network, what masks remember, and the classes."""
    network_states: int
    """States of the network."""
    compile_seconds: float
    """Seconds to compile it, in a :class:`GrammarCompiler` with the conversion."""
    masks: int
    """Masks made, of all matchers."""
    worst_mask_milliseconds: float
    """Milliseconds of the mask that took longest; 0 before the first, and where the core does not
    measure them."""


class Shortest(NamedTuple):
    """What it takes to end a text: see :meth:`CompiledGrammar.shortest`.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a" "b"', vocabulary)
        >>> compiled.shortest()
        Shortest(tokens=1, bytes=2)
    """

    tokens: int | None
    """The fewest tokens, the stop token not counted; None where no tokens of the vocabulary
    complete the text."""
    bytes: int | None
    """The fewest bytes; None where no bytes complete the text, as where a token must come that is
    taken whole."""


class CompiledGrammar(metaclass=Named):
    """A grammar and a vocabulary, ready for any number of matchers; made by :func:`compile`.

    What masks cost is paid once: each answer is made when first needed, remembered, and shared by
    all matchers, in all threads.

    Attributes:
        grammar: the grammar.
        vocabulary: the vocabulary.
        limits: the bounds in force.
        terminate_without_stop_token: whether a text ends by itself as soon as it is complete, where
            its matcher is not told otherwise.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary)
        >>> matchers = [tokfold.Matcher(compiled) for _ in range(3)]
        >>> compiled.shortest()
        Shortest(tokens=1, bytes=1)
    """

    if not TYPE_CHECKING:  # a checker would believe that there is every name
        __getattr__ = missing

    def __init__(
        self, grammar: Grammar, vocabulary: Vocabulary, limits: Limits, core: _core.Engine
    ) -> None:
        self.grammar = grammar
        self.vocabulary = vocabulary
        self.limits = limits
        self.terminate_without_stop_token = False
        self._core = core
        self._classes: TokenClasses | None = None
        self._background: Background | None = None
        self._compile_seconds = 0.0

    @property
    def has_classes(self) -> bool:
        """Whether masks look at one representative for each class by now."""
        return self._classes is not None

    @property
    def is_for_charts(self) -> bool:
        """Whether only charts can read the grammar, whatever ``engine`` says.

        So it is where left recursion passes the limits as loops, which stacks and classes need. The
        masks are exact as ever; there is no :attr:`Matcher.state <tokfold.Matcher.state>`.
        """
        return self._core.is_for_charts

    @property
    def classes(self) -> TokenClasses | None:
        """The token classes that masks look at; None where there are none (yet)."""
        return self._classes

    def take_classes(self, classes: TokenClasses) -> None:
        """Look at one representative for each class from now on; the masks stay the same.

        Raises:
            ArgumentTypeError: they are no classes.
            ValueError: the classes were made for another grammar, another vocabulary, or with
                ``prune=False``.
        """
        if not isinstance(classes, TokenClasses):
            raise wrong_type("classes", "tokfold.TokenClasses", classes)
        for what, ours, theirs in (
            ("grammar", self.grammar.fingerprint, classes.grammar_fingerprint),
            ("vocabulary", self.vocabulary.fingerprint, classes.vocabulary_fingerprint),
        ):
            if ours != theirs:
                raise ValueError(f"the classes were made for another {what}")
        if not classes.prune:
            raise ValueError("the classes must be made with prune=True: this engine prunes")
        is_first = self._core.take_classes(
            np.ascontiguousarray(classes.class_of),
            np.ascontiguousarray(classes.representative_ids),
            classes.num_stop_classes,
        )
        if is_first:  # the core keeps those that came first, whatever other threads bring
            self._classes = classes

    def warm(self, states: int = 1_000, *, interrupt: Interrupt | None = None) -> int:
        """Make the masks that are likely to cost most ahead of time; returns how many were made.

        The partial just-in-time compilation of XGrammar 2, section 3.2. It takes microseconds
        (with classes) or some hundred microseconds (without) for each state; Ctrl-C is heard
        between two.

        Args:
            states: how many states of the grammar's network to make, the costliest first. One
                that takes more than ``limits`` allow is left to the mask that needs it.
            interrupt: ends the work early.

        Raises:
            ArgumentTypeError, ValueError: ``states`` is no whole number from 0.
            CancelledError, DeadlineExceededError: ``interrupt`` ended the work; the rest stays.
        """
        check_number("states", states, 0)
        most = min(states, sys.maxsize)
        return self._core.warm(most, core_of(interrupt))

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the work in the background; whether there are classes now.

        Args:
            timeout: seconds; ``None`` waits as long as it takes.

        Warns:
            FallbackWarning: the classes could not be made; masks come from the whole vocabulary,
                just as exact.
        """
        if self._background is not None:
            self._background.wait(timeout)
            failure = self._background.failure
            if failure is not None:
                warnings.warn(
                    f"no classes: {failure}; masks walk the whole vocabulary",
                    FallbackWarning,
                    stacklevel=2,
                )
        return self.has_classes

    def stop(self) -> None:
        """Stop the work in the background. Masks stay exact, and may stay slower."""
        if self._background is not None:
            self._background.stop()

    def shortest(
        self, state: MatcherState | None = None, *, interrupt: Interrupt | None = None
    ) -> Shortest:
        """The fewest tokens, and the fewest bytes, with which a text can end.

        Exact: a weighted saturation backwards over the states of the network and the nodes of the
        vocabulary's trie (``docs/design/ending-in-time.md``). The first call makes what all texts
        with ``max_tokens`` share, within ``max_compile_milliseconds`` and without regard to
        ``max_mask_work``; a server makes it here and not in a mask.

        Args:
            state: where the text stands, a :attr:`tokfold.Matcher.state`; by default its start.
            interrupt: ends the call early.

        Raises:
            MatcherStateError: the state is of another grammar.
            UnsupportedGrammarError: only charts read the grammar, or members come in any order
                under conditions that change what is required.
            LimitExceededError, CancelledError: as :meth:`tokfold.Matcher.fill_bitmask`.
        """
        self._core.prepare_ending(Interrupt._of(interrupt, self.limits))
        matcher = _core.Matcher(self._core)
        if state is not None:
            if not isinstance(state, MatcherState):
                raise wrong_type("state", "a tokfold.MatcherState or None", state)
            if state._engine != self._core.fingerprint:
                raise MatcherStateError(FOREIGN_STATE)
            matcher.restore(state._data)
        return Shortest(*matcher.shortest(core_of(interrupt)))

    def counters(self) -> dict[str, int]:
        """What all masks cost so far.

        ``masks``; ``sets_visited``, the Earley items looked at; ``memo_hits`` and
        ``memo_misses`` of their answers; ``memo_shared``, misses that the pool had;
        ``trie_nodes`` entered to make the missing ones; ``bytes_held``.
        """
        return {**self._core.counters(), "bytes_held": self._core.bytes_held}

    @property
    def num_bytes(self) -> int:
        """Bytes held: the network, what masks remember, and the classes."""
        classes = 0 if self._classes is None else self._classes.class_of.nbytes
        return self._core.network_bytes + self._core.bytes_held + classes

    def cost(self) -> GrammarCost:
        """What the grammar has cost so far, for a server that refuses what costs too much.

        It takes microseconds.
        """
        counters = self._core.counters()
        return GrammarCost(
            bytes=self.num_bytes,
            network_states=self._core.network_states,
            compile_seconds=self._compile_seconds,
            masks=counters["masks"],
            worst_mask_milliseconds=counters.get("worst_mask_microseconds", 0) / 1_000,
        )

    def __copy__(self) -> CompiledGrammar:
        """The object itself: nothing that a caller sees of it changes."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledGrammar:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            "a compiled grammar cannot be pickled: pickle its grammar, which can be, and compile "
            "that where it is needed; CompileOptions(cache_dir=...) keeps the token classes for "
            "other processes"
        )

    def __repr__(self) -> str:
        folded = "folded" if self.has_classes else "whole vocabulary"
        charts = ", for charts only" if self.is_for_charts else ""
        tokens = f"{len(self.vocabulary)} tokens"
        return f"<CompiledGrammar of {self.grammar!r}, {tokens}, {folded}{charts}>"


@with_our_options("compile")
def compile(
    source: Source,
    vocabulary: Vocabulary,
    limits: Limits | None = None,
    *,
    classes: ClassesMode | TokenClasses = "auto",
    options: CompileOptions | None = None,
    interrupt: Interrupt | None = None,
) -> CompiledGrammar:
    """Make a grammar ready for matchers: milliseconds, whatever the vocabulary.

    Args:
        source: any context-free grammar; or what one is made of, where that is unambiguous:
            grammar text with a rule ``root``; a JSON Schema as a mapping, a bool or a type (a
            pydantic model, a dataclass, a ``TypedDict``, ``list[int]``); a structural tag as a
            mapping; a list of texts, for one of them. All options are the defaults of the
            ``from_`` methods of :class:`Grammar`: call these to choose others, and for patterns,
            Lark, files and JSON text. So an object of a schema has no members but those that the
            schema names, where it does not allow others itself.
        vocabulary: the vocabulary.
        limits: bounds on size and work; see :class:`Limits`.
        classes: masks are the same with and without classes, and faster with them. ``"auto"``
            makes them in the background, in one thread for the process, and takes them up when
            they are there; ``"now"`` waits for them and warms the masks of the states that cost
            most; ``"never"`` does without; :class:`TokenClasses` that were made before are taken
            as they are.
        options: what few calls need, from the pool of masks to the folder of classes; see
            :class:`CompileOptions`.
        interrupt: ends the call early, from another thread or at a deadline; by default the
            deadline ``max_compile_milliseconds`` of ``limits`` does.

    Warns:
        FallbackWarning: ``classes="now"``, and only charts can read the grammar: there are no
            classes.
        StopTokenWarning: the vocabulary has no stop token, so nothing ends a text, and
            ``terminate_without_stop_token`` of the options is false.
        VocabularyWarning: every text has a byte that no token has.

    Raises:
        AmbiguousSourceError: ``source`` may be meant in several ways, or in none; it is a
            ``TypeError`` too. Text that is JSON or has no rule is such a source.
        GrammarSyntaxError, SchemaError, StructuralTagError: what ``source`` says cannot be read or
            expressed.
        UnsupportedGrammarError: the grammar holds something that is not context-free, or has no
            string at all; or it takes tokens whole, and the engine of the options is ``"chart"``.
        UnwritableTextError: no token of the vocabulary begins a text of the grammar (the message
            names a special token that would); or the vocabulary has no stop token, and there are
            finitely many texts, so that each comes to its end.
        LimitExceededError: a bound of ``limits`` was reached; with the engine ``"stack"`` it may be
            left recursion as loops that does, which a chart does without.
        CancelledError, DeadlineExceededError: ``interrupt`` ended the call.
        ArgumentTypeError: a keyword is one of :class:`CompileOptions`; it is a ``TypeError``.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b'"', b"up", b"down", b"</s>"], stop_token_ids=[3])
        >>> compiled = tokfold.compile({"enum": ["up", "down"]}, vocabulary)
        >>> compiled.shortest()
        Shortest(tokens=3, bytes=4)
    """
    kind = kind_of(source)
    check_vocabulary(vocabulary)
    check_limits(limits)
    if not isinstance(classes, TokenClasses) and not is_one_of(classes, ("auto", "now", "never")):
        raise ValueError(
            f'classes must be "auto", "now", "never" or TokenClasses, not {quoted(classes)}'
        )
    options = CompileOptions() if options is None else options
    if not isinstance(options, CompileOptions):
        raise ArgumentTypeError(f"options must be tokfold.CompileOptions, not {quoted(options)}")
    bounds, limits = limits, limits or DEFAULT_LIMITS
    began = time.perf_counter()
    if isinstance(source, Grammar):
        grammar = source
    else:
        if interrupt is None:
            interrupt = Interrupt.of_limits(limits)  # one deadline for both
        with governing(Interrupt._of(interrupt, limits)):
            grammar = grammar_of(source, kind, vocabulary, bounds, interrupt)
    grammar = grammar._over(vocabulary)
    ends = Interrupt._of(interrupt, limits)
    with governing(ends), _of_frame(grammar):
        core = _engine(grammar, vocabulary, limits, options, ends)
    if options.check_tokens:
        check_end(core, vocabulary, options.terminate_without_stop_token, 3, ends)
        _check_tokens(core, vocabulary, 3, ends)
    compiled = CompiledGrammar(grammar, vocabulary, limits, core)
    compiled.terminate_without_stop_token = options.terminate_without_stop_token
    if isinstance(classes, TokenClasses):
        compiled.take_classes(classes)
    elif classes == "now":
        made = _classes_now(compiled, options, interrupt)
        if made is not None:
            compiled.take_classes(made)
        compiled.warm(WARM_STATES, interrupt=interrupt)
    elif classes == "auto":
        compiled._background = Background(compiled, options.cache_dir, options.classes_milliseconds)
    compiled._compile_seconds = time.perf_counter() - began
    return compiled


@contextmanager
def _of_frame(grammar: Grammar) -> Iterator[None]:
    """Say of an error in the text of a structural tag where that text is to be seen."""
    try:
        yield
    except UnsupportedGrammarError as error:
        if not isinstance(grammar._source, FrameSource) or not str(error).startswith("line "):
            raise
        raise UnsupportedGrammarError(
            f"{error} (line and column of str(grammar), the text that the structural tag became)",
            error.construct,
            error.line,
            error.column,
        ) from error


def _engine(
    grammar: Grammar,
    vocabulary: Vocabulary,
    limits: Limits,
    options: CompileOptions,
    interrupt: _core.Interrupt | None,
) -> _core.Engine:
    """The core's engine."""
    pool = shared_pool(vocabulary) if options.pool == "vocabulary" else options.pool
    linkable = grammar._linkable
    return _core.Engine(
        grammar._compilable if linkable is None else linkable[0],
        vocabulary._compiled,
        skip_lookahead=grammar.lookahead == "implied",
        counters=options._count_repetitions,
        limits=limits,
        pool=None if pool is None else pool._core,
        representation=options.engine,
        parts=None if linkable is None else (linkable[1], _parts.shared),
        loops=options._left_recursion_as_loops,
        interrupt=interrupt,
    )


def _classes_now(
    compiled: CompiledGrammar, options: CompileOptions, interrupt: Interrupt | None
) -> TokenClasses | None:
    """The classes; None, and a warning, where left recursion passes the limits for them."""
    grammar, vocabulary, limits = compiled.grammar, compiled.vocabulary, compiled.limits
    try:
        return compile_classes(
            grammar,
            vocabulary,
            limits,
            options.progress,
            cache_dir=options.cache_dir,
            interrupt=interrupt,
        )
    except LimitExceededError as error:
        if not compiled.is_for_charts:
            raise
        warnings.warn(
            f"no classes: {error}; masks walk the whole vocabulary", FallbackWarning, stacklevel=4
        )
        return None
