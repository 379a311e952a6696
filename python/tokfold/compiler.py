"""Compiling for a server: grammars that arrive with requests, thousands of them."""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from tokfold import _core, _json
from tokfold._admission import CompileQueue, Ticket, default_slots
from tokfold._background import DEFAULT_MILLISECONDS
from tokfold._cache import check_folder, usable_folder
from tokfold._checks import check_number, is_one_of, wrong_type
from tokfold._names import Named, missing, with_our_options
from tokfold._quoting import quoted
from tokfold._source_kinds import Source, kind_of
from tokfold._sources.frames import FrameSource
from tokfold._sources.schema import text_of
from tokfold._text_checks import TAG_LEVELS, json_text
from tokfold.engine import ClassesMode, CompiledGrammar, compile
from tokfold.errors import (
    ArgumentTypeError,
    ArtifactError,
    CacheWarning,
    LimitExceededError,
    ReentrantCompileError,
    TokfoldError,
    UnsupportedGrammarError,
    VocabularyError,
)
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt, governing
from tokfold.limits import DEFAULT_LIMITS, Limits, check_limits
from tokfold.options import CompileOptions
from tokfold.pool import DEFAULT_BYTES, MaskPool
from tokfold.vocabulary import Vocabulary, check_vocabulary

__all__ = ["CompilerStatistics", "GrammarCompiler"]

_SEED = r"""
root ::= "{" (string | bounded | filled) "}"
string ::= "\"" inside
inside ::= "\"" | [^"\\\x00-\x1f] inside | "\\" escape inside
escape ::= ["\\/bfnrt] | "u" [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f] [0-9A-Fa-f]
bounded ::= "\"" [^"\\\r\n]{0,100000} "\""
filled ::= "\"" [^"\\\r\n]{100000,200000} "\""
"""
"""What nearly every request holds: JSON strings, with and without bounds on their length."""

_POOL_NAME = "mask-pool.tokfold"

DEFAULT_MAX_BYTES = 1 << 30
"""Bytes of the compiled grammars that a compiler holds by default."""

_LOOK_AGAIN = 64
"""Requests, at least, between two times that the sizes of all grammars are looked at."""

_SHORT = 1 << 12
"""Characters of a text that is a key itself; a longer one has a digest."""

_RULE = 64
"""Characters that a rule of a grammar counts for where there is no text."""

Kind = Literal["grammar", "json_schema", "regex", "lark", "structural_tag"]
_CLASSES: tuple[str, ...] = get_args(ClassesMode)
_KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True)
class CompilerStatistics:
    """What a compiler did and holds.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiler = tokfold.GrammarCompiler(vocabulary)
        >>> for _ in range(3):
        ...     compiled = compiler.compile_grammar('root ::= "a"+')
        >>> compiler.statistics().hits
        2
    """

    hits: int
    """Requests that found their grammar compiled."""
    waits: int
    """Requests that waited for another that compiled the same."""
    misses: int
    """Requests that compiled."""
    evicted: int
    """Compiled grammars that went to make room."""
    failures: int
    """Requests whose grammar was refused, for whatever reason."""
    refused: int
    """Those of them that ``admit`` refused."""
    queued: int
    """Compilations that wait for their turn."""
    running: int
    """Compilations at work."""
    grammars: int
    """Compiled grammars held."""
    bytes: int
    """Bytes of the compiled grammars held, as they were last looked at."""
    seconds: float
    """Spent compiling."""
    pool: dict[str, int]
    """Counters of the pool: see :meth:`MaskPool.counters`."""


@dataclass
class _Request:
    """What is to be compiled."""

    key: object
    size: int
    make: Callable[[], Grammar]


class _Job:
    """One compilation, and those who want it."""

    def __init__(self, request: _Request) -> None:
        self.key = request.key
        self.make: Callable[[], Grammar] | None = request.make
        self.ticket = Ticket(request.size)
        self.done: Future[CompiledGrammar] = Future()
        self.callers = 0
        self.clients: list[Future[CompiledGrammar]] = []
        self.is_running = False
        self.thread: int | None = None
        """The thread that compiles, once one does."""


@dataclass(eq=False)
class _Held:
    """A compiled grammar and its bytes, as they were last looked at."""

    compiled: CompiledGrammar
    bytes: int = 0


class GrammarCompiler(metaclass=Named):
    """A vocabulary with what was compiled for it; the methods have XGrammar's names.

    Equal requests are compiled once: those that come while the first is at work wait for it. At
    most ``max_compiles`` are compiled at once; the others wait, the smallest source first. Each
    request that comes later counts as 64 KiB less for those before it, so that a large one is
    passed by a bounded number of others (7 MB by 112). Where two or more may compile, one of them
    is always small (64 KiB of source): large ones at work do not hold up small ones.

    What masks remember is shared between grammars by a :class:`MaskPool`, bounded in bytes, which a
    folder keeps from one process to the next. Safe between threads.

    ::

        compiler = tokfold.GrammarCompiler(vocabulary)
        compiled = compiler.compile_json_schema({"type": "object"})
        matcher = tokfold.Matcher(compiled)

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> compiler = tokfold.GrammarCompiler(vocabulary)
        >>> first = compiler.compile_grammar('root ::= "a"+')
        >>> first is compiler.compile_grammar('root ::= "a"+')
        True
    """

    if not TYPE_CHECKING:  # a checker would believe that there is every name
        __getattr__ = missing

    @with_our_options("GrammarCompiler")
    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        limits: Limits | None = None,
        classes: ClassesMode = "auto",
        classes_milliseconds: int | None = DEFAULT_MILLISECONDS,
        max_grammars: int = 1_000,
        max_bytes: int | None = DEFAULT_MAX_BYTES,
        max_compiles: int | None = None,
        admit: Callable[[CompiledGrammar], object] | None = None,
        max_pool_bytes: int = DEFAULT_BYTES,
        cache_dir: str | PathLike[str] | None = None,
        seed: bool = True,
        terminate_without_stop_token: bool = False,
        check_tokens: bool = True,
    ) -> None:
        """A compiler without grammars.

        Args:
            vocabulary: the vocabulary of all grammars.
            limits: bounds for each grammar and its masks.
            classes: as for :func:`tokfold.compile`.
            classes_milliseconds: as there: the background's bound for each grammar.
            max_grammars: compiled grammars held; the one not asked for longest goes first. Who
                uses one keeps it alive.
            max_bytes: bytes of the compiled grammars held, the same way; None for no bound. A
                grammar grows as masks are made: that of a request is looked at each time, all of
                them from time to time. One that is larger by itself is not held.
            max_compiles: compilations at once, in all threads together; by default one for each
                CPU, at least 2 and at most 4.
            admit: called with each grammar after it was compiled, in the thread that compiled. What
                it raises is what the request gets, and those that wait for the same; the grammar
                is not held. :meth:`CompiledGrammar.cost` says what one costs. It
                must not ask this compiler for the same grammar, which would wait for itself: that
                is a :class:`ReentrantCompileError`.
            max_pool_bytes: bound on the pool; 0 shares nothing between grammars.
            cache_dir: a folder for classes, as for :func:`tokfold.compile_classes`, and for the
                pool, which is read now and written by :meth:`save` and :meth:`close`. One that
                cannot be written, or vanishes, is a :class:`CacheWarning`; requests go on.
            seed: put what nearly every request holds into the pool now, in some milliseconds.
            terminate_without_stop_token: as for :func:`tokfold.compile`.
            check_tokens: as for :func:`tokfold.compile`.

        Raises:
            ValueError: a number is negative, ``classes`` has another value, or ``cache_dir`` is
                empty.
            ArgumentTypeError: an option is of another type; it is a ``TypeError``.
            ArtifactError: ``cache_dir`` is a file.
        """
        check_folder(cache_dir)
        if not is_one_of(classes, _CLASSES):
            raise ValueError(f'classes must be "auto", "now" or "never", not {quoted(classes)}')
        if not isinstance(seed, bool):
            raise wrong_type("seed", "True or False", seed)
        if admit is not None and not callable(admit):
            raise wrong_type("admit", "a function of a CompiledGrammar, or None", admit)
        max_grammars = check_number("max_grammars", max_grammars, 0)
        if max_bytes is not None:
            max_bytes = check_number("max_bytes", max_bytes, 0, "; None is no bound")
        if max_compiles is not None:
            max_compiles = check_number("max_compiles", max_compiles, 1)
        check_vocabulary(vocabulary)
        check_limits(limits)
        self.vocabulary = vocabulary
        self.limits = limits or DEFAULT_LIMITS
        self.pool = MaskPool(vocabulary, max_pool_bytes)
        self._options = CompileOptions(
            check_tokens=check_tokens,
            terminate_without_stop_token=terminate_without_stop_token,
            classes_milliseconds=classes_milliseconds,
        )
        self.max_grammars = max_grammars
        self.max_bytes = max_bytes
        self.max_compiles = default_slots() if max_compiles is None else max_compiles
        self._admit = admit
        self._classes: ClassesMode = classes
        self._cache_dir = None if cache_dir is None else Path(os.fsdecode(cache_dir))
        self._lock = threading.Lock()
        self._queue = CompileQueue(self.max_compiles)
        self._jobs: dict[object, _Job] = {}
        self._held: OrderedDict[object, _Held] = OrderedDict()
        self._bytes = self._unlooked = 0
        self._hits = self._waits = self._misses = self._evicted = 0
        self._failures = self._refused = 0
        self._seconds = 0.0
        _compilers.add(self)
        self._load()
        if seed and max_pool_bytes:
            grammar = Grammar.from_ebnf(_SEED)
            options = CompileOptions(pool=self.pool, check_tokens=False)
            compile(grammar, vocabulary, classes="never", options=options).warm()

    # -- compiling ---------------------------------------------------------------------------

    @with_our_options("GrammarCompiler.compile_grammar")
    def compile_grammar(self, grammar: Grammar | str) -> CompiledGrammar:
        """Compile a grammar, or grammar text; tokens that it names are those of the vocabulary.

        Raises:
            GrammarSyntaxError, UnsupportedGrammarError, LimitExceededError: as
                :meth:`Grammar.from_ebnf` and :func:`tokfold.compile`.
            ArgumentTypeError: it is neither; says which method takes it.
        """
        return self._get(self._grammar(grammar))

    def compile(self, source: Source) -> CompiledGrammar:
        """Compile what :func:`tokfold.compile` takes: a schema, grammar text, choices, ...

        Raises:
            AmbiguousSourceError: it may be meant in several ways, or in none.
            GrammarSyntaxError, UnsupportedGrammarError, LimitExceededError, StructuralTagError: as
                the methods for each kind.
        """
        return self._get(getattr(self, f"_{kind_of(source)}")(source))

    def compile_json_schema(self, schema: object, **options: Any) -> CompiledGrammar:
        """Compile a JSON schema; options, errors: those of :meth:`Grammar.from_json_schema`."""
        return self._get(self._json_schema(schema, **options))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Compile the grammar of any JSON."""
        return self.compile_json_schema(True)

    def compile_regex(self, pattern: str, **options: Any) -> CompiledGrammar:
        """Compile a regular expression; the options are those of :meth:`Grammar.from_regex`."""
        return self._get(self._regex(pattern, **options))

    def compile_lark(self, text: str, **options: Any) -> CompiledGrammar:
        """Compile a Lark grammar; the options are those of :meth:`Grammar.from_lark`.

        Tokens that the text names are those of the compiler's vocabulary.
        """
        return self._get(self._lark(text, **options))

    @with_our_options("GrammarCompiler.compile_structural_tag", "self", "tags", "triggers")
    def compile_structural_tag(self, tag: object, **options: Any) -> CompiledGrammar:
        """Compile a structural tag; the option is that of :meth:`Grammar.from_structural_tag`."""
        return self._get(self._structural_tag(tag, **options))

    def submit(
        self,
        kind: Kind,
        source: Any,  # noqa: ANN401 - what the method takes
        **options: Any,
    ) -> Future[CompiledGrammar]:
        """Compile in the background; the future can be cancelled as long as it waits.

        A request that is cancelled leaves the queue, unless others wait for the same.

        Args:
            kind: which of the ``compile_`` methods.
            source: its argument.
            **options: its options.
        """
        if not is_one_of(kind, _KINDS):
            raise ValueError(f"kind must be one of {', '.join(_KINDS)}, not {quoted(kind)}")
        client: Future[CompiledGrammar] = Future()
        try:
            request = getattr(self, f"_{kind}")(source, **options)
        except Exception as error:
            client.set_exception(error)
            return client
        mine = _Job(request)
        mine.ticket = Ticket(mine.ticket.size, partial(self._start, mine))
        try:
            found = self._found(mine, client)
            if isinstance(found, CompiledGrammar):
                client.set_result(found)
                return client
            if found is mine:
                self._queue.enter(mine.ticket)
            client.add_done_callback(partial(self._forgo, found))
        except BaseException as error:
            self._fail(mine, error)
            raise
        return client

    # -- requests: a key that is equal for equal ones, the size, and what makes the grammar

    def _grammar(self, grammar: Grammar | str) -> _Request:
        if isinstance(grammar, str):
            make = partial(
                Grammar.from_ebnf, grammar, vocabulary=self.vocabulary, limits=self.limits
            )
            return _Request(("ebnf", _digest(grammar)), len(grammar), make)
        if not isinstance(grammar, Grammar):
            raise ArgumentTypeError(
                "grammar must be a tokfold.Grammar or grammar text, not "
                f"{type(grammar).__name__}: {_method_for(grammar)}"
            )
        if grammar._is_unread:
            grammar = grammar._over(self.vocabulary)
        source = grammar._source
        size = len(source.text) if isinstance(source, FrameSource) else _RULE * grammar.num_rules
        return _Request(("grammar", grammar._key), size, lambda: grammar)

    def _json_schema(self, schema: object, **options: Any) -> _Request:
        options.setdefault("limits", self.limits)
        text = text_of(schema, options["limits"])
        resources = options.get("resources")
        if isinstance(resources, Mapping):
            texts = {uri: text_of(value, options["limits"]) for uri, value in resources.items()}
            options["resources"] = texts
        make = partial(Grammar.from_json_schema, text, **options)
        key = ("json schema", _digest(text), _key_of(options))
        return _Request(key, len(text), make)

    def _regex(self, pattern: str, **options: Any) -> _Request:
        options.setdefault("limits", self.limits)
        make = partial(Grammar.from_regex, pattern, **options)
        return _Request(("regex", _digest(pattern), _key_of(options)), _size_of(pattern), make)

    def _lark(self, text: str, **options: Any) -> _Request:
        options.setdefault("limits", self.limits)
        vocabulary = options.pop("vocabulary", None)
        if vocabulary is not None and vocabulary != self.vocabulary:
            raise VocabularyError(
                "the compiler has a vocabulary, and the grammar is to name tokens of another one; "
                "leave out vocabulary=..., or make a GrammarCompiler for it"
            )
        make = partial(Grammar.from_lark, text, vocabulary=self.vocabulary, **options)
        return _Request(("lark", _digest(text), _key_of(options)), _size_of(text), make)

    def _choices(self, texts: Iterable[str]) -> _Request:
        given = list(texts)
        key = _json.dumps(given)
        make = partial(Grammar.choices, given, limits=self.limits)
        return _Request(("choices", _digest(key)), len(key), make)

    def _structural_tag(self, tag: object, **options: Any) -> _Request:
        if "vocabulary" in options:
            raise ArgumentTypeError("the vocabulary is that of the compiler; leave the option out")
        options.setdefault("limits", self.limits)
        dump = getattr(tag, "model_dump_json", None)
        text = tag if dump is None else dump()
        make = partial(Grammar.from_structural_tag, tag, self.vocabulary, **options)
        try:
            key = text if isinstance(text, str) else json_text(text, "structural tag", TAG_LEVELS)
        except (TypeError, UnsupportedGrammarError, LimitExceededError):
            make()  # it is no tag, and the reader of tags says why
            raise
        return _Request(("structural tag", _digest(key), _key_of(options)), len(key), make)

    # -- jobs: registered while they wait and compile; no lock is held meanwhile

    def _get(self, request: _Request) -> CompiledGrammar:
        compiled = self._hit(request.key)
        if compiled is not None:
            return compiled
        mine = _Job(request)
        try:
            found = self._found(mine, None)
            if isinstance(found, CompiledGrammar):
                return found
            if found is not mine:
                return self._wait_for(found)
            self._queue.enter(mine.ticket)
            mine.ticket.wait()
            self._begin(mine)
            return self._compile(mine)
        except BaseException as error:
            self._fail(mine, error)
            raise

    def _found(self, mine: _Job, client: Future[CompiledGrammar] | None) -> CompiledGrammar | _Job:
        """The grammar, or the job that makes it: another's, or mine, which is registered now."""
        with self._lock:
            if mine.key not in self._held:
                job = self._jobs.setdefault(mine.key, mine)
                if job is not mine:
                    self._waits += 1
                if client is None:
                    job.callers += 1
                elif not job.is_running or client.set_running_or_notify_cancel():
                    job.clients.append(client)
                return job
        return self._hit(mine.key) or self._found(mine, client)

    def _hit(self, key: object) -> CompiledGrammar | None:
        with self._lock:
            held = self._held.get(key)
            if held is None:
                return None
            self._hits += 1
            self._held.move_to_end(key)
        self._look_at(key, held)
        return held.compiled

    def _wait_for(self, job: _Job) -> CompiledGrammar:
        try:
            if job.thread == threading.get_ident():
                raise ReentrantCompileError(
                    "this thread compiles this grammar already, and would wait for itself: in "
                    "admit, use the grammar that it is called with, or compile with another "
                    "GrammarCompiler"
                )
            return job.done.result()
        finally:
            with self._lock:
                job.callers -= 1
            self._leave_unwanted(job)

    def _forgo(self, job: _Job, client: Future[CompiledGrammar]) -> None:
        """The client of a submitted job is done; if it was cancelled, it wants it no more."""
        if not client.cancelled():
            return
        with self._lock:
            if client in job.clients:
                job.clients.remove(client)
                client.set_running_or_notify_cancel()  # for those in concurrent.futures.wait()
        self._leave_unwanted(job)

    def _leave_unwanted(self, job: _Job) -> None:
        """Take a job that nobody wants out of the queue."""
        with self._lock:
            if job.is_running or job.callers or job.clients or self._jobs.get(job.key) is not job:
                return
            del self._jobs[job.key]
        self._queue.leave(job.ticket)
        job.make = None

    def _begin(self, job: _Job) -> bool:
        """Whether somebody still wants it; who does cannot cancel any more.

        Where nobody does, it is registered no more: who comes now makes a job of their own.
        """
        with self._lock:
            _hold(job)
            if self._jobs.get(job.key) is not job:
                return False
            if not (job.clients or job.callers):
                del self._jobs[job.key]
                return False
            job.is_running = True
            job.thread = threading.get_ident()
            self._misses += 1
            return True

    def _start(self, job: _Job) -> Callable[[], None] | None:
        """It is the turn of a submitted job."""
        try:
            threading.Thread(target=self._run, args=(job,), name="tokfold-compile").start()
        except RuntimeError as error:  # the interpreter ends, or the system has no more threads
            failure = TokfoldError(f"no thread to compile the grammar in: {error}")
            return partial(self._fail, job, failure)
        except BaseException as error:  # Ctrl-C in the thread that made room
            self._fail(job, error)
            raise
        return None

    def _run(self, job: _Job) -> None:
        try:
            if self._begin(job):
                self._compile(job)
            else:
                self._queue.leave(job.ticket)
                job.make = None
        except BaseException as error:
            self._fail(job, error)

    def _compile(self, job: _Job) -> CompiledGrammar:
        assert job.make is not None
        began = time.perf_counter()
        interrupt = Interrupt.of_limits(self.limits)
        try:
            with governing(interrupt._core):
                grammar = job.make()
            interrupt.check()
            compiled = compile(
                grammar,
                self.vocabulary,
                self.limits,
                classes=self._classes,
                options=replace(
                    self._options,
                    cache_dir=usable_folder(self._cache_dir),
                    pool=self.pool if self.pool.max_bytes else None,
                ),
                interrupt=interrupt,
            )
        finally:
            self._queue.leave(job.ticket)
        seconds = time.perf_counter() - began
        compiled._compile_seconds = seconds  # the conversion included
        if self._admit is not None:
            try:
                self._admit(compiled)
            except Exception:
                with self._lock:
                    self._refused += 1
                compiled.stop()
                raise
        job.done.set_result(compiled)
        with self._lock:
            self._seconds += seconds
            self._held[job.key] = held = _Held(compiled)
            if self._jobs.get(job.key) is job:
                del self._jobs[job.key]
        self._settle(job)
        self._look_at(job.key, held)
        return compiled

    def _fail(self, job: _Job, error: BaseException) -> None:
        """Those who wait get what this one gets; those who come later try again."""
        try:
            self._end(job, error)
        except BaseException:  # Ctrl-C meanwhile
            self._end(job, error)
            raise

    def _end(self, job: _Job, error: BaseException) -> None:
        """As :meth:`_fail`; a second time it does what the first left undone."""
        self._queue.leave(job.ticket)
        with self._lock:
            if self._jobs.get(job.key) is job:
                if not job.done.done():
                    self._failures += 1
                    job.done.set_exception(for_waiters(error))
                del self._jobs[job.key]
        if job.done.done():
            self._settle(job)

    def _settle(self, job: _Job) -> None:
        """Tell the clients of a job that is no longer registered."""
        with self._lock:
            _hold(job)
            job.make = None  # who keeps a future does not keep the source
        error = job.done.exception()
        for client in list(job.clients):
            if error is None:
                client.set_result(job.done.result())
            else:
                client.set_exception(error)
            job.clients.remove(client)

    # -- room --------------------------------------------------------------------------------

    def _look_at(self, key: object, held: _Held) -> None:
        """Look at the size of a grammar, and now and then of all, and make room."""
        looked = [(key, held)]
        with self._lock:
            self._unlooked += 1
            if self._unlooked >= max(_LOOK_AGAIN, len(self._held)):
                self._unlooked = 0
                looked = list(self._held.items())
        # The core is asked with no lock held.
        sizes = [(key, held, held.compiled.num_bytes) for key, held in looked]
        gone: list[_Held] = []  # let go with no lock held
        with self._lock:
            for key, held, size in sizes:
                if self._held.get(key) is held:
                    self._bytes += size - held.bytes
                    held.bytes = size
                    if self.max_bytes is not None and size > self.max_bytes:
                        gone.append(self._evict(key))
            while self._is_full():
                gone.append(self._evict(next(iter(self._held))))

    def _is_full(self) -> bool:
        if len(self._held) > self.max_grammars:
            return True
        return self.max_bytes is not None and self._bytes > self.max_bytes and bool(self._held)

    def _evict(self, key: object) -> _Held:
        held = self._held.pop(key)
        self._bytes -= held.bytes
        self._evicted += 1
        return held

    def _after_fork(self) -> None:
        """In a child process nobody compiles what was being compiled."""
        self._lock = threading.Lock()
        self._queue.after_fork()
        self._jobs = {}
        self._bytes = sum(held.bytes for held in self._held.values())

    # -- what is held ------------------------------------------------------------------------

    def statistics(self) -> CompilerStatistics:
        """What the compiler did and holds."""
        with self._lock:
            return CompilerStatistics(
                hits=self._hits,
                waits=self._waits,
                misses=self._misses,
                evicted=self._evicted,
                failures=self._failures,
                refused=self._refused,
                queued=self._queue.queued,
                running=self._queue.running,
                grammars=len(self._held),
                bytes=self._bytes,
                seconds=self._seconds,
                pool=self.pool.counters(),
            )

    def get_cache_size_bytes(self) -> int:
        """Bytes of the pool and of the compiled grammars: networks, masks, classes."""
        with self._lock:
            held = list(self._held.values())
        return sum(one.compiled.num_bytes for one in held) + self.pool.counters()["bytes"]

    def clear_cache(self) -> None:
        """Forget the compiled grammars and the pool."""
        with self._lock:
            gone, self._held = self._held, OrderedDict()
            self._bytes = 0
        gone.clear()
        self.pool.clear()

    # -- the folder --------------------------------------------------------------------------

    @property
    def _pool_path(self) -> Path | None:
        if self._cache_dir is None:
            return None
        return self._cache_dir / f"{self.vocabulary.fingerprint[:32]}-{_POOL_NAME}"

    def _load(self, pool: MaskPool | None = None) -> None:
        path = self._pool_path
        if path is None or not self.pool.max_bytes:
            return
        try:
            (pool or self.pool).load(path)
        except FileNotFoundError:
            pass
        except (ArtifactError, VocabularyError, OSError) as error:
            warnings.warn(f"{error}; masks are made again", CacheWarning, stacklevel=3)

    def save(self) -> None:
        """Write the pool to ``cache_dir``, with what other processes wrote there meanwhile.

        Raises:
            ValueError: the compiler has no ``cache_dir``.
            OSError, ArtifactError: the folder cannot be made, or the file cannot be written.
        """
        path = self._pool_path
        if path is None:
            raise ValueError("this compiler has no cache_dir")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # What others saved, and over it what this process used last.
        both = MaskPool(self.vocabulary, self.pool.max_bytes)
        self._load(both)
        both._core.add_bytes(self.pool._core.to_bytes(self.pool.max_bytes))
        both.save(path)

    def close(self) -> None:
        """Save the pool where there is a ``cache_dir``, and forget the compiled grammars."""
        if self._pool_path is not None:
            try:
                self.save()
            except (OSError, ArtifactError) as error:
                warnings.warn(f"the masks were not saved: {error}", CacheWarning, stacklevel=2)
        self.clear_cache()

    def __repr__(self) -> str:
        held = f"{len(self._held)} of at most {self.max_grammars} grammars"
        return f"<GrammarCompiler of {self.vocabulary!r}, {held}>"

    def __enter__(self) -> GrammarCompiler:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_compilers: weakref.WeakSet[GrammarCompiler] = weakref.WeakSet()


def _after_fork() -> None:
    for compiler in list(_compilers):
        compiler._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _hold(job: _Job) -> None:
    """Mark the clients of a job as running, so that none can be cancelled; drop those that were.

    The caller holds the compiler's lock.
    """
    job.clients = [
        client
        for client in job.clients
        if client.running()
        or ((client.cancelled() or not client.done()) and client.set_running_or_notify_cancel())
    ]


def _method_for(source: object) -> str:
    """What to call for a source that is no grammar."""
    if isinstance(source, bytes | bytearray):
        return "decode the text, data.decode()"
    if isinstance(source, list | tuple):
        return "compiler.compile(...) takes a list of texts as choices"
    if isinstance(source, Mapping) and source.get("type") == "structural_tag":
        return "compiler.compile_structural_tag(...) takes a structural tag"
    return (
        "compiler.compile_json_schema(...) takes a JSON Schema, and compiler.compile(...) whatever "
        "tokfold.compile takes"
    )


def _key_of(source: object) -> str:
    """Equal for options that are equal, as no two others are."""
    try:
        return _json.dumps(source, default=_said)
    except (ValueError, RecursionError) as error:
        raise UnsupportedGrammarError(
            f"an option is nested too deeply, or holds itself: {error}", "options", 1, 1
        ) from error


def _said(option: object) -> object:
    """A JSON value that identifies an option which is none. The ``repr`` of a grammar does not."""
    if isinstance(option, Grammar):
        return ["grammar", option.fingerprint]
    return dict(option) if isinstance(option, Mapping) else repr(option)


def _digest(source: object) -> object:
    """Equal for equal texts, as no two others are: megabytes are not compared with the GIL held.

    Short texts stand for themselves, and what is no text for its type: its converter refuses it.
    """
    if not isinstance(source, str):
        return type(source)
    if len(source) <= _SHORT:
        return source
    try:
        return _core.digest(source)
    except UnicodeEncodeError:  # a lone surrogate, which the reader of the text refuses
        return source


def _size_of(source: object) -> int:
    """Characters; 0 for what is no text, which its converter refuses."""
    return len(source) if isinstance(source, str) else 0


def for_waiters(error: BaseException) -> BaseException:
    """What those who wait raise: Ctrl-C in one thread is no Ctrl-C in others."""
    if isinstance(error, Exception):
        return error
    return TokfoldError(f"the request that compiled this grammar was interrupted: {quoted(error)}")
