"""The exact survival function of a small Markov model under an unambiguous grammar."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tokfold._quoting import quoted
from tokfold.errors import LimitExceededError
from tokfold.grammar import Grammar
from tokfold.laboratory.fidelity.automaton import NOWHERE, ByteAutomaton
from tokfold.laboratory.fidelity.bounds import StepFidelity, step_fidelity
from tokfold.laboratory.fidelity.chart import Chart, EarleySet
from tokfold.laboratory.fidelity.errors import DeadEndError, OutsideLanguageError
from tokfold.laboratory.fidelity.inside import MAX_SWEEPS, solve_inside
from tokfold.laboratory.fidelity.markov import MarkovModel
from tokfold.laboratory.fidelity.productions import Productions
from tokfold.laboratory.fidelity.unambiguity import Unambiguity, require_unambiguous
from tokfold.laboratory.form import Form

__all__ = ["ExactState", "ExactSurvival"]

Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
MAX_STATES = 2_500
MAX_BYTES = 2 << 30


class ExactSurvival:
    """How likely a model's text ends in the language, after any prefix; exact but for rounding.

    The paper's ``h`` (section 8.1), over sequences of tokens: all tokenizations of a text count,
    and a text counts when a stop token follows it. A stop token is allowed exactly where the text
    is in the language: it is no empty word that could stand anywhere.

    Attributes:
        model: the model.
        productions: the grammar, trimmed.
        proof: of unambiguity; ``None`` where it was assumed.
        h: the probability that the model's text is in the language.
        sweeps: sweeps that the inside fixed point took.
        products: products of matrices that it took.
    """

    def __init__(
        self,
        grammar: Grammar | Form | Productions | str,
        model: MarkovModel,
        *,
        assume_unambiguous: bool = False,
        max_states: int = MAX_STATES,
        max_sweeps: int = MAX_SWEEPS,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """Solve for the inside matrices.

        Costs a product of ``(S, S)`` matrices for each symbol of the grammar and each sweep, with
        ``S`` states of the model and of the insides of its tokens, and one such matrix of memory
        for each rule and set of bytes.

        Args:
            grammar: the grammar; its productions must be unambiguous.
            model: the model.
            assume_unambiguous: do not ask for a proof. Where a text has two parses, the values
                are then too large, and :meth:`ExactState.defect` shows it at best by chance.
            max_states: bound on ``S``.
            max_sweeps: bound on sweeps of the fixed point.
            max_bytes: bound on the memory for matrices, as far as it is known before.

        Raises:
            AmbiguousGrammarError: a text has two parses.
            UnambiguityUnknownError: nothing is proved either way.
            UnsupportedGrammarError: the grammar is no plain context-free one.
            LimitExceededError: ``max_states`` or ``max_bytes``, or the grammar is too large to
                write out.
            NotConvergedError: the model nests (nearly) without end.
        """
        if not isinstance(grammar, Productions):
            grammar = Productions.of(grammar)
        self.model = model
        self.productions = grammar.trimmed()
        self.proof: Unambiguity | None = None
        if not assume_unambiguous:
            self.proof = require_unambiguous(self.productions)
        self.automaton = ByteAutomaton(model, max_states)
        size = self.automaton.size
        self._check_memory(size, max_bytes)
        inside = solve_inside(self.productions, self.automaton.matrix, size, max_sweeps=max_sweeps)
        self.sweeps, self.products = inside.sweeps, inside.products
        terminals = {
            symbol: self.automaton.matrix(symbol)
            for body in self.productions.rules
            for rhs in body
            for symbol in rhs
            if not isinstance(symbol, int)
        }
        chart = Chart(self.productions, inside.matrices, terminals, self.automaton.stops)
        whole = inside.matrices.get(self.productions.start)
        self.h = 0.0
        if whole is not None:
            self.h = float(whole[model.start] @ self.automaton.stops)
        self._initial = chart.initial()

    def _check_memory(self, size: int, max_bytes: int) -> None:
        bodies = [rhs for body in self.productions.rules for rhs in body]
        terminals = {s for rhs in bodies for s in rhs if not isinstance(s, int)}
        matrices = len(bodies) + len(terminals) + sum(map(bool, self.productions.rules))
        if matrices * size * size * 8 > max_bytes:
            raise LimitExceededError(
                f"{matrices:,} matrices of {size:,} states take more than {max_bytes:,} bytes: use "
                "a smaller model or grammar, or raise max_bytes",
                "max_bytes",
                max_bytes,
            )

    @property
    def log_h(self) -> float:
        """Natural logarithm of :attr:`h`."""
        return math.log(self.h) if self.h > 0 else -math.inf

    def begin(self) -> ExactState:
        """The state before the first token."""
        return ExactState(self, self._initial, self.model.start, self.log_h, ())

    def after(self, tokens: Iterable[int]) -> ExactState:
        """The state after some tokens.

        Raises:
            OutsideLanguageError: a token cannot follow.
        """
        state = self.begin()
        for token in tokens:
            state = state.step(token)
        return state

    def sample(self, random: np.random.Generator, max_tokens: int = 10_000) -> ExactState:
        """Draw from the model given that its text is in the language (Doob's h-transform).

        Args:
            random: the source of chance.
            max_tokens: where to stop a text that has not ended: see
                :attr:`ExactState.is_terminated`.

        Raises:
            DeadEndError: the model's texts are in the language with probability zero.
        """
        state = self.begin()
        while not state.is_terminated and len(state.tokens) < max_tokens:
            true = state.conditional()
            state = state.step(int(random.choice(len(true), p=true / true.sum())))
        return state


class ExactState:
    """A prefix of tokens: its survival, and that of each token that may follow. Never changes.

    Attributes:
        tokens: the tokens so far, stop token included.
        log_h: natural logarithm of the probability that the model's text ends in the language.
    """

    def __init__(
        self,
        survival: ExactSurvival,
        chart: EarleySet | None,
        state: int,
        log_h: float,
        tokens: tuple[int, ...],
    ) -> None:
        self._survival, self._set, self._state = survival, chart, state
        self.log_h, self.tokens = log_h, tokens
        self._log_survivals: Floats | None = None
        self._allowed: Booleans | None = None

    @property
    def h(self) -> float:
        """The probability itself; 0 below the smallest number there is."""
        return math.exp(self.log_h)

    @property
    def is_terminated(self) -> bool:
        """Whether a stop token was taken."""
        return self._set is None

    @property
    def text(self) -> bytes:
        """What the tokens spell, without the stop token."""
        tokens = self.tokens[:-1] if self.is_terminated else self.tokens
        return self._survival.model.vocabulary.decode(tokens)

    @property
    def model_state(self) -> int:
        """The state of the model."""
        return self._state

    def _open(self) -> EarleySet:
        if self._set is None:
            raise OutsideLanguageError(
                f"the text has ended: no token follows the stop token {self.tokens[-1]}",
                len(self.tokens),
            )
        return self._set

    @property
    def probabilities(self) -> Floats:
        """The model's, shape ``(V,)``."""
        row: Floats = self._survival.model.probabilities[self._state]
        return row

    def survivals(self) -> Floats:
        """The probability of completion after each token, shape ``(V,)``; 0 for what cannot be.

        Of tokens that the model never chooses here it is 0 as well: no weight hangs on it.
        """
        return np.exp(self.log_survivals())

    def log_survivals(self) -> Floats:
        """Natural logarithms of :meth:`survivals`."""
        if self._log_survivals is None:
            here, automaton = self._open(), self._survival.automaton
            vocabulary = self._survival.model.vocabulary
            values = np.zeros(len(vocabulary))
            landing = automaton.landing[self._state]
            usable = landing != NOWHERE
            vectors, scale = here.vectors
            for terminal, vector in vectors:
                reads = usable & automaton.begins(terminal)
                values[reads] += vector[landing[reads]]
            with np.errstate(divide="ignore"):
                logs = np.log(values) + scale
            if here.accepting:
                logs[list(vocabulary.stop_token_ids)] = 0.0
            logs.setflags(write=False)
            self._log_survivals = logs
        return self._log_survivals

    def _joint(self) -> tuple[Floats, float]:
        """Probability times survival of each token, relative to a factor, and its logarithm."""
        logs = self.log_survivals()
        top = float(logs.max(initial=-math.inf))
        if math.isinf(top):
            return np.zeros(len(logs)), 0.0
        return self.probabilities * np.exp(logs - top), top

    def allowed(self) -> Booleans:
        """The mask, shape ``(V,)``: tokens after which a text of the language is left."""
        if self._allowed is None:
            here = self._open()
            vocabulary, automaton = self._survival.model.vocabulary, self._survival.automaton
            mask = np.zeros(len(vocabulary), dtype=np.bool_)
            if here.accepting:
                mask[list(vocabulary.stop_token_ids)] = True
            for token in np.flatnonzero(automaton.begins(here.expected())):
                data = vocabulary[int(token)]
                mask[token] = len(data) == 1 or _read(here, data) is not None
            mask.setflags(write=False)
            self._allowed = mask
        return self._allowed

    def masked(self) -> Floats:
        """The masked next-token distribution, shape ``(V,)``.

        Raises:
            DeadEndError: the model gives every allowed token the probability zero.
        """
        weights = np.where(self.allowed(), self.probabilities, 0.0)
        return _normalized(weights, "the model gives every allowed token the probability zero")

    def conditional(self) -> Floats:
        """The next-token distribution given that the text is in the language, shape ``(V,)``.

        Raises:
            DeadEndError: the model cannot complete the text.
        """
        joint, _ = self._joint()
        return _normalized(joint, "the model completes this text with probability zero")

    def fidelity(self) -> StepFidelity:
        """The masked step against the true one, with the bounds that the spread gives.

        Raises:
            DeadEndError: the model cannot complete the text.
        """
        if math.isinf(self.log_h):
            raise DeadEndError("the model completes this text with probability zero")
        # Bounds and distances do not change when all survivals are multiplied by one factor.
        logs = self.log_survivals()
        relative = np.exp(logs - logs.max())
        return step_fidelity(self.probabilities, relative, self.allowed())

    def defect(self) -> float:
        """By how much the martingale identity fails, in proportion to ``h``: by rounding only.

        ``h(prefix) = sum over tokens of p(token) h(prefix token)``: the right side is computed from
        the items after the prefix, the left one was before its last token was read.
        """
        joint, scale = self._joint()
        total = float(joint.sum())
        if math.isinf(self.log_h) or total <= 0:
            return 0.0 if math.isinf(self.log_h) and total <= 0 else math.inf
        return abs(math.expm1(math.log(total) + scale - self.log_h))

    def step(self, token: int) -> ExactState:
        """The state after one more token.

        Raises:
            OutsideLanguageError: it cannot follow in the language.
        """
        here, survival = self._open(), self._survival
        model, vocabulary = survival.model, survival.model.vocabulary
        position = len(self.tokens)
        if not 0 <= token < len(vocabulary):
            raise OutsideLanguageError(f"token {token} is outside the vocabulary", position)
        tokens = (*self.tokens, token)
        if token in vocabulary.stop_token_ids:
            if not here.accepting:
                raise OutsideLanguageError(
                    f"token {position}, a stop token: the text {self._shown()} is not in the "
                    "language",
                    position,
                )
            return ExactState(survival, None, self._state, 0.0, tokens)
        data = vocabulary[token]
        next_set = None if survival.automaton.first_bytes[token] < 0 else _read(here, data)
        if next_set is None:
            raise OutsideLanguageError(
                f"token {position}, {quoted(data)}, cannot follow {self._shown()} in the language",
                position,
            )
        state = int(model.successors[self._state, token])
        # Where the model never chooses the token, the vector after its first byte does not say
        # what becomes of it: ask the last byte instead.
        before = _read(here, data[:-1])
        assert before is not None
        log_h = before.survival(data[-1], state)
        return ExactState(survival, next_set, state, log_h, tokens)

    def _shown(self) -> str:
        text = self.text
        return repr(text) if len(text) <= 40 else f"...{quoted(text[-40:])}"

    def __repr__(self) -> str:
        return f"<ExactState after {len(self.tokens)} tokens, log h = {self.log_h:.6g}>"


def _normalized(weights: Floats, message: str) -> Floats:
    total = weights.sum()
    if not total > 0:
        raise DeadEndError(message)
    shares: Floats = weights / total
    return shares


def _read(start: EarleySet, data: Sequence[int]) -> EarleySet | None:
    state: EarleySet | None = start
    for byte in data:
        if state is None:
            return None
        state = state.read(byte)
    return state
