"""``tokfold fidelity``: what does a mask do to the distribution of a model?"""

from __future__ import annotations

import enum
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from tokfold import Grammar, Vocabulary
from tokfold import compile as compile_grammar
from tokfold._extras import require
from tokfold.cli.console import print_json, stdout, steps
from tokfold.cli.inputs import (
    STDIN,
    chosen_kind,
    describe_grammar,
    located,
    read_grammar,
    read_text,
    read_tokenizer,
)
from tokfold.cli.options import AsJson, GrammarFile, IsLark, IsRegex, IsSchema, IsTag, Root
from tokfold.cli.render import escaped, number, quoted
from tokfold.errors import TokfoldError

if TYPE_CHECKING:
    from tokfold.engine import CompiledGrammar
    from tokfold.laboratory.fidelity import MarkovModel, Sample, Stepper
    from tokfold.laboratory.fidelity.samplers import Method

__all__ = ["fidelity"]

MAX_TOKENS_OF_TEXT = 2_000
"""Different tokens of which a Markov model is counted: its table is square."""
SMOOTHING = 0.01
_SHOWN = 72


class Sampler(enum.StrEnum):
    """How texts are drawn."""

    MASK = "mask"
    IMPORTANCE = "importance"
    SMC = "smc"
    EXACT = "exact"


@dataclass(frozen=True)
class _Subject:
    """The model in question, as samplers ask it."""

    name: str
    model: Stepper | MarkovModel
    markov: MarkovModel | None
    vocabulary: Vocabulary


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
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a picture: .png, .svg or .pdf.")
    ] = None,
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
    if plot is not None:
        if plot.suffix not in (".png", ".svg", ".pdf"):
            raise TokfoldError(f"--plot {plot}: name a .png, .svg or .pdf file")
        require("matplotlib", "lab", "a plot")
    read, kind = read_grammar(grammar, chosen_kind(schema, regex, lark, tag), root)
    with steps() as step:
        with step("Making the model"):
            if transformers is not None:
                subject = _transformers(transformers, tokenizer, prompt, temperature)
            else:
                subject = _counted(model_text or [], tokenizer, lines, smoothing)
        with step("Compiling the grammar"), located(grammar):
            compiled = compile_grammar(read, subject.vocabulary, classes="never")
        computed: dict[str, Any] | None = None
        survival = None
        if subject.markov is not None and is_exact:
            from tokfold.laboratory.fidelity import ExactSurvival

            with step("Computing survival"), located(grammar):
                survival = ExactSurvival(
                    read, subject.markov, assume_unambiguous=assume_unambiguous
                )
                computed = _computed(survival, read)
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
    texts = (masked.tokens if drawn is None else drawn.tokens)[:show]
    document = {
        "grammar": describe_grammar(grammar, kind, read),
        "model": subject.name,
        "samples": samples,
        "sampler": sampler.value,
        "log_h": asdict(estimate) | {"is_reliable": estimate.is_reliable},
        "kl": asdict(masked.kl),
        "log_weights": _quantiles(masked.log_weights),
        "cut": int(masked.cut.sum()),
        "dead": int(masked.dead.sum()),
        "steps": int(sum(map(len, masked.tokens))),
        "least_mass": _least_mass(masked.log_masses),
        "exact": computed,
        "texts": [_shown(compiled, tokens) for tokens in texts],
    }
    if as_json:
        print_json(_finite(document))
    else:
        _print(document)


def _refuse_idle(given: dict[str, object], model: str, named: object) -> None:
    """Options of the one kind of model, where the other is asked for."""
    idle = [option for option, value in given.items() if value]
    if idle and named is None:
        raise TokfoldError(f"{idle[0]} is for {model}, which is not given")


def _counted(files: list[str], tokenizer: str | None, lines: bool, smoothing: float) -> _Subject:
    from tokfold.laboratory.fidelity import MarkovModel, byte_vocabulary

    texts: list[bytes] = []
    for name in files:
        data = read_text(name)
        texts += [line for line in data.splitlines() if line] if lines else [data]
    if tokenizer is None:
        vocabulary = byte_vocabulary()
        sequences = [list(text) for text in texts]
    else:
        vocabulary, sequences = _tokens_in_use(read_tokenizer(tokenizer), texts)
    model = MarkovModel.from_sequences(vocabulary, sequences, smoothing)
    tokens = sum(map(len, sequences))
    name = f"Markov model of {number(len(vocabulary))} tokens, counted in {number(tokens)}"
    return _Subject(name, model, model, vocabulary)


def _tokens_in_use(whole: Vocabulary, texts: list[bytes]) -> tuple[Vocabulary, list[list[int]]]:
    """The tokens that greedy splitting uses, as a vocabulary, and the texts in it."""
    split = [whole.encode_greedy(text) for text in texts]
    used = sorted({token for sequence in split for token in sequence})
    if len(used) > MAX_TOKENS_OF_TEXT:
        raise TokfoldError(
            f"the texts have {number(len(used))} different tokens, and a Markov model has a table "
            f"of their square: give less text, for {number(MAX_TOKENS_OF_TEXT)} at most, or leave "
            "--tokenizer out for bytes"
        )
    place = {token: at for at, token in enumerate(used)}
    vocabulary = Vocabulary([*(whole[t] for t in used), b"</s>"], [len(used)], name=whole.name)
    return vocabulary, [[place[token] for token in sequence] for sequence in split]


def _transformers(name: str, tokenizer: str | None, prompt: str, temperature: float) -> _Subject:
    library: Any = require("transformers", "transformers", "a model of transformers")
    require("torch", "transformers", "a model of transformers")
    from tokfold.laboratory.fidelity.hf import TransformersStepper

    library.utils.logging.set_verbosity_error()
    try:
        reader = library.AutoTokenizer.from_pretrained(tokenizer or name)
        model = library.AutoModelForCausalLM.from_pretrained(name).eval()
    except (OSError, ValueError, KeyError) as error:
        raise TokfoldError(f"{name}: transformers cannot read this model: {error}") from error
    vocabulary = Vocabulary.from_huggingface(reader, size=model.config.vocab_size)
    ids = list(reader(prompt)["input_ids"]) if prompt else []
    begin = reader.bos_token_id if reader.bos_token_id is not None else reader.eos_token_id
    if not ids and begin is not None:
        ids = [begin]
    stepper = TransformersStepper(model, ids, temperature=temperature)
    return _Subject(f"{name} after {number(len(ids))} tokens", stepper, None, vocabulary)


def _computed(survival: Any, grammar: Grammar) -> dict[str, Any]:  # noqa: ANN401 - lazy import
    from tokfold.laboratory.fidelity import kl_divergence, total_variation

    document: dict[str, Any] = {
        "log_h": survival.log_h,
        "is_proved_unambiguous": survival.proof is not None,
        "kl": None,
        "total_variation": None,
        "first_step": None,
    }
    if survival.h > 0:
        document["kl"] = asdict(kl_divergence(survival, grammar, max_nodes=500))
        variation = total_variation(survival, grammar, tolerance=0.01, max_nodes=1_000)
        document["total_variation"] = asdict(variation)
        document["first_step"] = asdict(survival.begin().fidelity())
    return document


def _quantiles(log_weights: Any) -> dict[str, float]:  # noqa: ANN401
    names = {"lowest": 0.0, "quarter": 0.25, "median": 0.5, "three_quarters": 0.75, "highest": 1.0}
    ordered = np.sort(log_weights)
    return {name: float(ordered[round(q * (len(ordered) - 1))]) for name, q in names.items()}


def _least_mass(log_masses: list[Any]) -> float:
    return math.exp(min((float(masses.min()) for masses in log_masses if len(masses)), default=0.0))


def _shown(compiled: CompiledGrammar, tokens: list[int]) -> dict[str, Any]:
    stops = compiled.vocabulary.stop_token_ids
    ended = bool(tokens) and tokens[-1] in stops
    data = compiled.vocabulary.decode(tokens[:-1] if ended else tokens)
    return {"text": escaped(data), "tokens": len(tokens), "ended": ended}


def _finite(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same with infinities and NaN as text: JSON has none."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _print(document: dict[str, Any]) -> None:
    console = stdout()
    log_h, kl, exact = document["log_h"], document["kl"], document["exact"]
    rows = Table.grid(padding=(0, 2, 0, 0))
    rows.add_column(no_wrap=True, style="dim")
    rows.add_column(overflow="fold")
    add = rows.add_row
    add("model", Text(document["model"]))
    add(
        "drawn with masks",
        f"{number(document['samples'])} texts, {number(document['steps'])} tokens",
    )
    for what, why in (("cut", "at --max-tokens"), ("dead", "every allowed token impossible")):
        if document[what]:
            add(what, f"{document[what] / document['samples']:.0%}, {why}")
    add("least allowed mass", f"{document['least_mass']:.3g}")
    quantiles = document["log_weights"]
    add("log weights", "  ".join(f"{name} {value:.3f}" for name, value in quantiles.items()))
    percent = f"{log_h['level']:.0%}"
    add("log h", f"{log_h['log_h']:.3f}, {percent} {log_h['low']:.3f} to {log_h['high']:.3f}")
    if document["cut"]:
        add("", f"of texts within --max-tokens; of all at most {log_h['log_h_upper']:.3f}")
    add("effective samples", f"{log_h['ess']:.1f}{'' if log_h['is_reliable'] else ', too few'}")
    at_least = "at least " if kl["is_lower_bound"] else ""
    add("KL, masked to true", f"{at_least}{kl['kl']:.3f} nats, {kl['low']:.3f} to {kl['high']:.3f}")
    if exact is not None:
        add("exact log h", f"{exact['log_h']:.6f}")
    if exact is not None and exact["kl"] is not None:
        divergence, variation = exact["kl"], exact["total_variation"]
        rest = ""
        if divergence["left_out"] > 0:
            rest = f" or more: a share of {divergence['left_out']:.1g} not followed to the end"
        add("exact KL", f"{divergence['kl']:.6f}{rest}")
        add("exact total variation", f"{variation['low']:.4f} to {variation['high']:.4f}")
        first = exact["first_step"]
        add("first step", f"KL {first['kl']:.4f}, at most {first['kl_bound']:.4f} by the spread")
        distance, bound = first["total_variation"], first["total_variation_bound"]
        add("", f"total variation {distance:.4f}, at most {bound:.4f}")
    console.print(rows)
    for drawn in document["texts"]:
        text = drawn["text"]
        cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        end = "" if drawn["ended"] else "  (cut)"
        console.print(Text.assemble(("  ", ""), quoted(cut), (end, "dim")), soft_wrap=True)
