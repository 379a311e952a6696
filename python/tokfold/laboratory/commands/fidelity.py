"""``tokfold fidelity``: what does a mask do to the distribution of a model?"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer

from tokfold import CompileOptions
from tokfold import compile as compile_grammar
from tokfold.cli.console import print_json, steps
from tokfold.cli.inputs import (
    STDIN,
    chosen_kind,
    describe_grammar,
    located,
    read_grammar,
)
from tokfold.cli.options import (
    AsJson,
    GrammarFile,
    IsLark,
    IsRegex,
    IsSchema,
    IsTag,
    Picture,
    Root,
    check_picture,
)
from tokfold.errors import TokfoldError
from tokfold.laboratory.commands.fidelity_models import SMOOTHING, counted, of_transformers
from tokfold.laboratory.commands.fidelity_report import (
    document,
    exact_document,
    finite,
    show_document,
)

if TYPE_CHECKING:
    from tokfold.laboratory.fidelity import Sample
    from tokfold.laboratory.fidelity.samplers import Method

__all__ = ["fidelity"]


class Sampler(enum.StrEnum):
    """How texts are drawn."""

    MASK = "mask"
    IMPORTANCE = "importance"
    SMC = "smc"
    EXACT = "exact"


def fidelity(
    grammar: GrammarFile,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            "--tokenizer",
            "-t",
            metavar="PATH",
            help="Tokenizer of the model; with --model-text, bytes are the tokens without it.",
        ),
    ] = None,
    model_text: Annotated[
        list[str] | None,
        typer.Option(
            "--model-text",
            metavar="FILE",
            help="Count a Markov model in this text, each token after the one before it. "
            "May be given several times.",
        ),
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line of --model-text is a text of its own.")
    ] = False,
    smoothing: Annotated[
        float, typer.Option(help="Added to each count of the Markov model.", min=0.0)
    ] = SMOOTHING,
    transformers: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Model of transformers: a folder or a name."),
    ] = None,
    prompt: Annotated[str, typer.Option(help="Text before what is drawn.")] = "",
    sampler: Annotated[
        Sampler, typer.Option(help="How to draw; exact is for Markov models.")
    ] = Sampler.MASK,
    samples: Annotated[int, typer.Option(help="Texts to draw.", min=1)] = 64,
    max_tokens: Annotated[int, typer.Option(help="Where texts are cut.", min=1)] = 256,
    temperature: Annotated[float, typer.Option(help="With --transformers.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of the random numbers.", min=0)] = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Compute h, KL and total variation (--model-text).")
    ] = False,
    assume_unambiguous: Annotated[
        bool, typer.Option("--assume-unambiguous", help="Ask for no proof before computing.")
    ] = False,
    show: Annotated[int, typer.Option(help="Texts to print.", min=0)] = 3,
    plot: Picture = None,
    as_json: AsJson = False,
    root: Root = None,
    schema: IsSchema = False,
    regex: IsRegex = False,
    lark: IsLark = False,
    tag: IsTag = False,
) -> None:
    r"""Measure what masks do to the distribution of a model.

    Masks make every text one of the grammar's, but not with the model's probabilities given that.
    Draws texts with masks and says how much of the model's probability they keep, how likely the
    model keeps to the grammar by itself, and how far the two distributions are apart.

    Exit code: 0 done; 2 an error.

    [bold]Examples[/bold]
      tokfold fidelity json.gbnf --model-text data.jsonl --lines --exact
      tokfold fidelity json.gbnf --transformers path/to/model --prompt "As JSON:" --sampler smc
      tokfold fidelity sql.gbnf --model-text queries.sql --plot masses.png
    """
    from tokfold.laboratory.fidelity import draw, sample
    from tokfold.laboratory.fidelity.plot import plot as draw_plot

    if (model_text is None) == (transformers is None):
        raise TokfoldError("name one model: --model-text FILE, or --transformers PATH")
    is_exact = exact or sampler is Sampler.EXACT
    if transformers is not None and is_exact:
        raise TokfoldError(
            "exact values are for Markov models: give --model-text, or --sampler smc"
        )
    _refuse_idle(
        {"--lines": lines, "--smoothing": smoothing != SMOOTHING}, "--model-text", model_text
    )
    _refuse_idle(
        {"--prompt": prompt, "--temperature": temperature != 1.0}, "--transformers", transformers
    )
    _refuse_idle({"--assume-unambiguous": assume_unambiguous}, "--exact", is_exact or None)
    if [grammar, *(model_text or [])].count(STDIN) > 1:
        raise TokfoldError("only one of grammar and texts can come from standard input")
    check_picture(plot)
    read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
    with steps() as step:
        with step("Making the model"):
            if transformers is not None:
                subject = of_transformers(transformers, tokenizer, prompt, temperature)
            else:
                subject = counted(model_text or [], tokenizer, lines, smoothing)
        with step("Compiling the grammar"), located(grammar):
            compiled = compile_grammar(
                read,
                subject.vocabulary,
                classes="never",
                options=CompileOptions(check_tokens=False),
            )
        computed: dict[str, Any] | None = None
        survival = None
        if subject.markov is not None and is_exact:
            from tokfold.laboratory.fidelity import ExactSurvival

            with step("Computing survival"), located(grammar):
                survival = ExactSurvival(
                    read, subject.markov, assume_unambiguous=assume_unambiguous
                )
                computed = exact_document(survival, read)
        with step("Drawing texts"):
            masked = draw(
                subject.model,
                compiled,
                count=samples,
                max_tokens=max_tokens,
                random=np.random.default_rng(seed),
            )
            drawn: Sample | None = None
            if sampler is not Sampler.MASK:
                drawn = sample(
                    subject.model,
                    compiled,
                    method=cast("Method", sampler.value),
                    count=samples,
                    max_tokens=max_tokens,
                    seed=seed,
                    survival=survival,
                )
    estimate = masked.log_h if drawn is None or sampler is Sampler.EXACT else drawn.log_h
    if plot is not None:
        try:
            known = None if computed is None else computed["log_h"]
            draw_plot(masked, plot, exact_log_h=known, estimate=estimate)
        except ValueError as error:
            raise TokfoldError(f"{plot}: {error}") from error
    said = document(
        compiled, subject.name, masked, drawn, sampler.value, estimate, computed, texts=show
    )
    if as_json:
        print_json({"grammar": describe_grammar(grammar, kind, read), **finite(said)})
    else:
        show_document(said)


def _refuse_idle(given: dict[str, object], model: str, named: object) -> None:
    """Options of the one kind of model, where the other is asked for."""
    idle = [option for option, value in given.items() if value]
    if idle and named is None:
        raise TokfoldError(f"{idle[0]} is for {model}, which is not given")
