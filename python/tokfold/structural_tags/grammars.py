"""Grammars of structural tags."""

from __future__ import annotations

from tokfold._tags.assembly import of_tag
from tokfold._tags.leaves import LeafCache
from tokfold.grammar import Grammar
from tokfold.interrupt import Interrupt
from tokfold.limits import Limits
from tokfold.vocabulary import Vocabulary, check_vocabulary

__all__ = ["assemble"]


def assemble(
    tag: object,
    vocabulary: Vocabulary | None = None,
    *,
    cache: LeafCache | None = None,
    additional_properties: bool = False,
    limits: Limits | None = None,
    interrupt: Interrupt | None = None,
) -> Grammar:
    """The grammar of a structural tag.

    Args:
        tag: JSON text, a dict such as :func:`tokfold.structural_tags.for_model` returns, or an
            object with ``model_dump`` such as XGrammar's ``StructuralTag``.
        vocabulary: resolves tokens that the tag gives as text (``<|channel|>``) to their ids; the
            lowest, where several have the same bytes. A tag without such tokens needs none.
        cache: where converted schemas, patterns and grammars are kept; one cache serves all where
            none is given.
        additional_properties: whether objects of schemas that do not say otherwise have other
            members than those that the schema names. The tools of today expect that they have
            none.
        limits: bounds on size and work, of each part.
        interrupt: ends the call early; by default the deadline of ``limits`` does.

    Raises:
        StructuralTagError: the tag, or a format in it, is wrong; says which, where and why.
        SchemaError: a schema cannot be turned into a grammar; ``pointer`` says where in the tag.
        UnsupportedGrammarError: a pattern means what no automaton says, or a format counts tokens.
        GrammarSyntaxError: a pattern is none, or the text of a ``grammar`` is not in the language.
        LimitExceededError: a part is too large.
        CancelledError, DeadlineExceededError: ``interrupt`` ended the call.

    >>> from tokfold import recognize
    >>> tag = {"type": "tag", "begin": "<", "content": {"type": "any_text"}, "end": ">"}
    >>> recognize(assemble({"format": tag}), "<free text>").accepted
    True
    """
    if vocabulary is not None:
        check_vocabulary(vocabulary)
    source = of_tag(tag, vocabulary, cache, additional_properties, limits, interrupt)
    return Grammar._of(source, limits, interrupt)
