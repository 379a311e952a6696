"""The models that ``tokfold fidelity`` asks: counted in texts, or of transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokfold import Vocabulary
from tokfold._extras import require
from tokfold.cli.inputs import read_text, read_tokenizer
from tokfold.cli.render import number
from tokfold.errors import TokfoldError

if TYPE_CHECKING:
    from tokfold.laboratory.fidelity import MarkovModel, Stepper

__all__ = ["MAX_TOKENS_OF_TEXT", "SMOOTHING", "Subject", "counted", "of_transformers"]

MAX_TOKENS_OF_TEXT = 2_000
"""Different tokens of which a Markov model is counted: its table is square."""
SMOOTHING = 0.01


@dataclass(frozen=True)
class Subject:
    """The model in question, as samplers ask it."""

    name: str
    model: Stepper | MarkovModel
    markov: MarkovModel | None
    vocabulary: Vocabulary


def counted(files: list[str], tokenizer: str | None, lines: bool, smoothing: float) -> Subject:
    """A Markov model of what follows what in some texts.

    Args:
        files: the texts, or ``-`` for standard input.
        tokenizer: its tokens, those that the texts use; None: bytes.
        lines: each line is a text of its own.
        smoothing: added to each count.

    Raises:
        TokfoldError: too many different tokens, or no text.
        OSError: a file cannot be read.
    """
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
    return Subject(name, model, model, vocabulary)


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


def of_transformers(name: str, tokenizer: str | None, prompt: str, temperature: float) -> Subject:
    """A model of transformers after a prompt.

    Args:
        name: a folder, or a name that transformers knows.
        tokenizer: that of another folder or name; None: the model's own.
        prompt: text before what is drawn; empty: the token that begins texts.
        temperature: of the model.

    Raises:
        TokfoldError: transformers cannot read it.
        MissingExtraError: transformers or torch is not installed.
    """
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
    return Subject(f"{name} after {number(len(ids))} tokens", stepper, None, vocabulary)
