"""Options of :func:`tokfold.compile` that few calls need."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from os import PathLike
from typing import Literal

from tokfold._background import DEFAULT_MILLISECONDS
from tokfold._cache import check_folder
from tokfold._checks import check_number, is_one_of
from tokfold._names import with_our_fields
from tokfold._quoting import quoted
from tokfold.classes import ProgressCallback
from tokfold.pool import MaskPool

__all__ = ["CompileOptions", "Representation"]

Representation = Literal["auto", "stack", "chart"]


@with_our_fields
@dataclass(frozen=True, slots=True)
class CompileOptions:
    """How :func:`compile` makes a grammar ready; the masks are the same, whatever it says.

    Raises:
        ValueError: ``engine`` has another value, ``classes_milliseconds`` is below 1, or
            ``cache_dir`` is empty.
        TypeError: ``pool``, ``cache_dir`` or ``classes_milliseconds`` is of another type.
        ArtifactError: ``cache_dir`` is a file. A folder that cannot be written is a warning.

    Example:
        >>> vocabulary = tokfold.Vocabulary([b"a", b"b", b"ab", b"</s>"], stop_token_ids=[3])
        >>> options = tokfold.CompileOptions(pool=None, check_tokens=False)
        >>> compiled = tokfold.compile('root ::= "a"+', vocabulary, options=options)
        >>> compiled.shortest()
        Shortest(tokens=1, bytes=1)
    """

    _: KW_ONLY
    check_tokens: bool = True
    """Look whether tokens of the vocabulary can begin, write and end a text. ``False`` leaves that
    to the masks. The look costs nothing where each byte is a token."""
    terminate_without_stop_token: bool = False
    """The default of the matchers of this grammar: a text ends by itself as soon as it is
    complete."""
    pool: MaskPool | Literal["vocabulary"] | None = "vocabulary"
    """Where masks are shared with other grammars: a :class:`MaskPool`, that of the vocabulary, or
    ``None`` for nowhere."""
    cache_dir: str | PathLike[str] | None = None
    """A folder of compiled classes, as for :func:`compile_classes`."""
    classes_milliseconds: int | None = DEFAULT_MILLISECONDS
    """With ``classes="auto"``, the milliseconds of the processor that the classes and the first
    masks of this grammar may take in the background, where other grammars wait; past it there are
    none, and :meth:`CompiledGrammar.wait` says so. ``None`` is no bound."""
    progress: bool | ProgressCallback | None = None
    """With ``classes="now"``, as for :func:`compile_classes`."""
    engine: Representation = "auto"
    """How a text that was read is remembered. ``"stack"``: as sets of stacks that share what they
    can, which is fast for what is hardly ambiguous. ``"chart"``: as a chart in bit sets, which is
    fast for what is truly ambiguous; memory grows with the text. ``"auto"``: stacks until they take
    too much work, then a chart; a chart at once where left recursion passes ``limits`` as loops,
    which stacks need (see :attr:`CompiledGrammar.is_for_charts`). Charts on a device are those of
    :class:`tokfold.chart_gpu.DeviceMatcher`."""
    _count_repetitions: bool = True
    """For tests and measurements: ``False`` writes large repetitions out."""
    _left_recursion_as_loops: bool = True
    """For tests and measurements: ``False`` leaves left recursion to charts, as if loops did not
    fit."""

    def __post_init__(self) -> None:
        check_folder(self.cache_dir)
        if not (isinstance(self.progress, bool | None) or callable(self.progress)):
            raise TypeError(
                "progress must be True, False, None or a function of what is done and the whole, "
                f"not {quoted(self.progress)}"
            )
        if not is_one_of(self.engine, ("auto", "stack", "chart")):
            raise ValueError(
                f'engine must be "auto", "stack" or "chart", not {quoted(self.engine)}'
            )
        is_known = isinstance(self.pool, MaskPool | None) or is_one_of(self.pool, ("vocabulary",))
        if not is_known:
            raise TypeError(
                f'pool must be a MaskPool, "vocabulary" or None, not {quoted(self.pool)}'
            )
        if self.classes_milliseconds is not None:
            most = check_number(
                "classes_milliseconds", self.classes_milliseconds, 1, "; None is no bound"
            )
            object.__setattr__(self, "classes_milliseconds", most)
