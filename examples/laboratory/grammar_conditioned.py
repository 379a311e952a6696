"""What a model gains from seeing the grammar's state: logits and routing that are told, or not.

A tiny model (a GRU, then a mixture of experts) learns texts of a small grammar, with and without
the grammar's state as an input. All are decoded behind the same hard mask, so all stay in the
language; what differs is how much of the model's own probability the mask throws away.

pip install ".[torch]"
python examples/laboratory/grammar_conditioned.py
"""

import argparse
import math
from collections import Counter
from random import Random
from time import perf_counter

import tokfold
import torch
from tokfold.batch import accept_token_batch
from tokfold.laboratory.neural import (
    Conditions,
    GrammarConditionedLogits,
    GrammarEmbedding,
    GrammarFeatures,
    GrammarRouter,
    conditions_along,
    conditions_of,
    hard_mask,
    log_allowed_mass,
)
from torch import nn
from torch.nn.functional import cross_entropy

GRAMMAR = tokfold.Grammar.from_ebnf("""
root   ::= object
object ::= "{" (pair ("," pair)*)? "}"
pair   ::= [a-f] ":" value
array  ::= "[" (value ("," value)*)? "]"
value  ::= object | array | [0-9]{1,3}
""")
MERGED = [b"},", b"],", b"}}", b"]]", b"]}", b"}]", b"[[", b"[{", b":[", b":{", b"12", b"100"]
TOKENS = [*(bytes([byte]) for byte in b"{}[],:abcdef0123456789"), *MERGED, b"</s>"]
STOP, BEGIN = len(TOKENS) - 1, len(TOKENS)
VOCABULARY = tokfold.Vocabulary(TOKENS, stop_token_ids=[STOP])
WIDTH, EXPERTS, LONGEST = 24, 4, 300
RUNS = {  # whether the logits and the router are told, and whether training is behind the mask
    "plain": (False, False, False),
    "router told": (False, True, False),
    "logits told": (True, False, False),
    "both told": (True, True, False),
    "plain, masked training": (False, False, True),
    "both told, masked training": (True, True, True),
}


def text_of(random, depth=0):
    """A text of the grammar; deeper ones are rarer."""
    kind = random.random() * (1 + depth / 6)
    if depth and kind > 0.7:
        return str(random.choice([random.randrange(10), 12, 100, random.randrange(1000)]))
    count = min(int(random.expovariate(0.7)), 4)
    if not depth or kind < 0.35:
        pairs = (f"{random.choice('abcdef')}:{text_of(random, depth + 1)}" for _ in range(count))
        return "{" + ",".join(pairs) + "}"
    return "[" + ",".join(text_of(random, depth + 1) for _ in range(count)) + "]"


class Batch:
    """Texts as tensors, with what the grammar says at each place."""

    def __init__(self, features, texts):
        ids = [[*VOCABULARY.encode_greedy(text.encode()), STOP] for text in texts]
        self.conditions = conditions_along(features, ids)
        longest = self.conditions.features.shape[1]
        padded = [[*text, *[-100] * (longest - len(text))] for text in ids]
        self.targets = torch.tensor(padded)
        begun = torch.cat([torch.full((len(ids), 1), BEGIN), self.targets[:, :-1]], dim=1)
        self.inputs = begun.clamp(min=0)
        self.there = self.targets >= 0


class Model(nn.Module):
    """Embedding, GRU, two of four experts, logits. The grammar may move the last two."""

    def __init__(self, features, told_logits, told_router):
        super().__init__()
        psi = GrammarEmbedding(features, 16)
        self.embedding = nn.Embedding(len(TOKENS) + 1, WIDTH)
        self.gru = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.gate = nn.Linear(WIDTH, EXPERTS)
        self.router = GrammarRouter(features, EXPERTS, top_k=2, dim=16, psi=psi)
        self.inner = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / math.sqrt(WIDTH))
        self.outer = nn.Parameter(torch.randn(EXPERTS, WIDTH, WIDTH) / math.sqrt(WIDTH))
        self.out = nn.Linear(WIDTH, len(TOKENS))
        self.head = GrammarConditionedLogits(features, dim=16, psi=psi)
        # What is not told keeps the 0 with which it begins.
        self.head.u.requires_grad_(told_logits)
        self.router.u.requires_grad_(told_router)

    def forward(self, inputs, conditions, hidden=None):
        """Logits before the mask, the routing, and the state of the GRU."""
        states, hidden = self.gru(self.embedding(inputs), hidden)
        routing = self.router(self.gate(states), conditions.features)
        made = torch.einsum("ntd,edh->nteh", states, self.inner).relu()
        made = torch.einsum("nteh,ehd->nted", made, self.outer)
        chosen = routing.experts[..., None].expand(*routing.experts.shape, WIDTH)
        mixed = (routing.weights[..., None] * made.gather(2, chosen)).sum(2)
        return self.head.before_mask(self.out(states + mixed), conditions), routing, hidden


def loss_of(logits, batch):
    return cross_entropy(logits.flatten(0, 1), batch.targets.flatten())


def train(model, batches, steps, masked):
    """Learn; ``masked``: what is behind the mask, as it will be used."""
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        batch = batches[step % len(batches)]
        logits, routing, _ = model(batch.inputs, batch.conditions)
        if masked:
            logits = hard_mask(logits, batch.conditions)
        used = routing.probabilities[batch.there].mean(0)  # all experts are to be used
        loss = loss_of(logits, batch) + 0.02 * EXPERTS * (used**2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def shared_information(experts, regions):
    """Bits that the first expert and the place in the grammar say of each other."""
    total, pairs = len(experts), list(zip(experts, regions, strict=True))
    both, one, other = Counter(pairs), Counter(experts), Counter(regions)
    return sum(
        n / total * math.log2(n * total / (one[expert] * other[region]))
        for (expert, region), n in both.items()
    )


@torch.no_grad()
def measure(model, batch, features):
    """On texts that were not trained on."""
    logits, routing, _ = model(batch.inputs, batch.conditions)
    mass = log_allowed_mass(logits, batch.conditions)[batch.there].exp()
    tops = [i for i, name in enumerate(features.names) if name.endswith("on top")]
    regions = batch.conditions.features[batch.there][:, tops].to(torch.uint8).tolist()
    return {
        "loss": loss_of(logits, batch).item(),
        "behind mask": loss_of(hard_mask(logits, batch.conditions), batch).item(),
        "mass": mass.mean().item(),
        "least mass": mass.min().item(),
        "shared bits": shared_information(
            routing.experts[batch.there][:, 0].tolist(), list(map(tuple, regions))
        ),
    }


@torch.no_grad()
def sample(model, features, count, generator):
    """Texts from behind the mask, and the log weight of each: the sum of log masses."""
    matchers = [tokfold.Matcher(features.compiled) for _ in range(count)]
    weights = torch.zeros(count)
    live = torch.arange(count)
    tokens, hidden = torch.full((count, 1), BEGIN), torch.zeros(1, count, WIDTH)
    for _ in range(LONGEST):
        here = [matchers[i] for i in live.tolist()]
        seen = conditions_of(features, here)
        steps = Conditions(seen.features[:, None], seen.bitmask[:, None], seen.vocab_size)
        logits, _, hidden = model(tokens, steps, hidden)
        weights[live] += log_allowed_mass(logits[:, 0], seen)
        chances = hard_mask(logits[:, 0], seen).softmax(-1)
        tokens = torch.multinomial(chances, 1, generator=generator)
        assert accept_token_batch(here, tokens[:, 0].tolist()).all()  # the mask saw to it
        going = torch.tensor([not matcher.is_terminated for matcher in here])
        live, tokens, hidden = live[going], tokens[going], hidden[:, going]
        if not len(live):
            break
    ended = [matcher for matcher in matchers if matcher.is_terminated]
    assert all(tokfold.recognize(GRAMMAR, matcher.text).accepted for matcher in ended)
    return weights[[matcher.is_terminated for matcher in matchers]], len(ended)


def main(steps=200, seed=0, count=200, names=tuple(RUNS), size=60):
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    compiled = tokfold.compile(GRAMMAR, VOCABULARY, classes="now")
    features = GrammarFeatures(compiled)
    random = Random(seed)
    batches = [Batch(features, [text_of(random) for _ in range(32)]) for _ in range(size)]
    held_out = Batch(features, [text_of(random) for _ in range(5 * size)])
    print(f"{features}; {int(held_out.there.sum())} tokens held out")
    head = "{:26s} {:>7s} {:>7s} {:>7s} {:>7s} {:>7s} {:>7s} {:>5s} {:>6s}"
    print(head.format("", "loss", "behind", "mass", "least", "h", "KL", "bits", "s"))
    results = {}
    for name in names:
        told_logits, told_router, masked = RUNS[name]
        start = perf_counter()
        torch.manual_seed(seed + 1)  # all begin with the same weights
        model = Model(features, told_logits, told_router)
        train(model, batches, steps, masked)
        found = measure(model, held_out, features)
        weights, ended = sample(model, features, count, torch.Generator().manual_seed(seed))
        # Section 8: E[w] is h, the probability that the model alone stays in the language, and
        # log h - E[log w] how far masking is from conditioning. Both from the same sample.
        log_h = (weights.logsumexp(0) - math.log(count)).item()
        found |= {"h": math.exp(log_h), "kl": log_h - weights.mean().item(), "ended": ended}
        results[name] = found
        print(
            f"{name:26s} {found['loss']:7.3f} {found['behind mask']:7.3f} {found['mass']:7.4f} "
            f"{found['least mass']:7.4f} {found['h']:7.3f} {found['kl']:7.3f} "
            f"{found['shared bits']:5.2f} {perf_counter() - start:6.1f}"
        )
        if ended < count:
            print(f"{'':26s} {count - ended} of {count} texts did not end in {LONGEST} tokens")
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200, help="steps of training for each model")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.steps, arguments.seed)
