"""Writes ``tests/data/mutants.jsonl.gz``: mutants of ``grammars/``, and whether they are any.

Of each kind of change (:mod:`laboratory.mutants.changes`) and each law (:mod:`..laws`) some, for
each grammar. A change is kept when a text was found that one side takes and the other does not; a
law's when no text was found. Judges are the slow oracle and XGrammar's parser, never tokfold's
network; where the two do not agree, or one has no answer, the mutant is left out and printed.

    $ PYTHONPATH=tests python tests/laboratory/record_mutants.py
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from itertools import islice
from random import Random

from laboratory.mutants import recorded
from laboratory.mutants.changes import KINDS, Mutant
from laboratory.mutants.judge import Judge, xgrammar_verdicts
from laboratory.mutants.laws import LAWS, changed_bodies, several
from laboratory.mutants.places import with_bodies
from laboratory.mutants.recorded import Case, rebuilt, right_hand_sides
from laboratory.mutants.texts import Texts, nudged
from tokfold.laboratory.form import Form, Ref

CHANGES_OF_A_KIND = 2
DISGUISED = 3
"""Changes for each grammar of which the changed side is then rewritten by laws."""
TRIED = 10
"""Candidates of a kind that are looked at until enough are found."""
LOOKS = 80
"""Texts that are tried for one candidate."""
MAX_TEXT = 400
TEXTS = 60


def sides(form: Form, mutant: Mutant) -> tuple[Form, Form]:
    left = with_bodies(form, dict(mutant.left))
    return left, with_bodies(form, dict(mutant.right), mutant.root)


def candidates(kind, form: Form, random: Random) -> list[Mutant]:
    """In random order."""
    offered = list(islice(kind(form, random), 3000 if kind is not several else TRIED))
    random.shuffle(offered)
    return offered[:TRIED]


def witness(left: Form, right: Form, mutant: Mutant, random: Random) -> tuple[bytes, str] | None:
    """A text that one side takes, and which; the shortest of the first few found."""
    texts = {"left": Texts(left), "right": Texts(right)}
    judges = {"left": Judge(left), "right": Judge(right)}
    found: list[tuple[int, bytes, str]] = []
    for look in range(LOOKS):
        side, probe = mutant.probes[look % len(mutant.probes)]
        whole = texts[side].around(mutant.rule, probe, random, detours=look // 20)
        if whole is None:
            continue
        text = texts[side].sample(whole, random, budget=look // 8)
        if text is None or len(text) > MAX_TEXT:
            continue
        verdicts = {name: judge.accepts(text) for name, judge in judges.items()}
        assert verdicts[side], (str(mutant), text)  # or the texts are not those of the grammar
        if sum(verdicts.values()) == 1:
            found.append((len(text), text, side))
            if len(found) == 4:
                break
    return min(found)[1:] if found else None


def agree(left: Form, right: Form, texts: list[bytes], verdicts: list[list[bool]]) -> str | None:
    """What XGrammar says against it, if anything."""
    for form, expected in zip((left, right), verdicts, strict=True):
        answer = xgrammar_verdicts(str(form), form.root, texts)
        if answer != expected:
            return answer if isinstance(answer, str) else "XGrammar says otherwise"
    return None


def changed(name: str, form: Form) -> Iterator[Case]:
    """The mutants of a grammar that differ from it."""
    for kind, offer in KINDS.items():
        random = Random(f"{name} {kind}")
        count = 0
        for mutant in candidates(offer, form, random):
            left, right = sides(form, mutant)
            found = witness(left, right, mutant, random)
            if found is None:
                continue
            case = judged(name, kind, mutant, left, right, found)
            if case is not None:
                yield case
                count += 1
            if count == CHANGES_OF_A_KIND:
                break


def judged(
    name: str, kind: str, mutant: Mutant, left: Form, right: Form, found: tuple[bytes, str]
) -> Case | None:
    """A case, unless XGrammar says otherwise."""
    text, side = found
    reason = agree(left, right, [text], [[side == "left"], [side == "right"]])
    if reason is not None:
        print(f"left out: {name} {kind} ({mutant.what} in {mutant.rule}): {reason}: {text!r}")
        return None
    return case_of(name, kind, mutant, left, right, found=found)


def case_of(
    name: str,
    kind: str,
    mutant: Mutant,
    left: Form,
    right: Form,
    *,
    found: tuple[bytes, str] | None = None,
    texts: int | None = None,
) -> Case:
    known = right_hand_sides(recorded.base(name))
    bodies = [
        {rule: body for rule, body in right_hand_sides(side).items() if known.get(rule) != body}
        for side in (left, right)
    ]
    assert str(rebuilt(name, bodies[0])) == str(left)
    assert right_hand_sides(rebuilt(name, bodies[1], right.root)) == right_hand_sides(right)
    return Case(
        grammar=name,
        kind=kind,
        what=mutant.what,
        rule=mutant.rule,
        left=bodies[0],
        right=bodies[1],
        root=right.root,
        label="equal" if found is None else "different",
        witness=None if found is None else found[0],
        taken_by=None if found is None else found[1],
        judges=("earley", "xgrammar"),
        texts=texts,
    )


def disguised(name: str, form: Form, cases: list[Case]) -> Iterator[Case]:
    """Changes of which the changed side is then written in another way."""
    random = Random(f"{name} disguised")
    for case in random.sample(cases, min(DISGUISED, len(cases))):
        left, right = case.forms
        laws = next(several(right, random))
        hidden = with_bodies(right, dict(laws.right))
        mutant = Mutant(f"{case.what}; then {laws.what}", case.rule, changed_bodies(form, hidden))
        assert case.witness is not None
        assert case.taken_by is not None
        assert Judge(hidden).accepts(case.witness) == (case.taken_by == "right")
        found = (case.witness, case.taken_by)
        made = judged(name, f"{case.kind}_disguised", mutant, left, hidden, found)
        if made is not None:
            yield made


def equal(name: str, form: Form, corpus: list[bytes]) -> Iterator[Case]:
    """The rewritten grammars."""
    for kind, offer in LAWS.items():
        random = Random(f"{name} {kind}")
        for mutant in candidates(offer, form, random):
            left, right = sides(form, mutant)
            if str(left) == str(right):
                continue
            texts = asked(left, right, mutant, corpus, random)
            verdicts = [
                [judge.accepts(text) for text in texts] for judge in map(Judge, (left, right))
            ]
            assert verdicts[0] == verdicts[1], f"{name} {mutant}: it is no law"
            reason = agree(left, right, texts, verdicts)
            if reason is not None:
                print(f"left out: {name} {kind} ({mutant.what} in {mutant.rule}): {reason}")
                continue
            yield case_of(name, kind, mutant, left, right, texts=len(texts))
            break


def asked(
    left: Form, right: Form, mutant: Mutant, corpus: list[bytes], random: Random
) -> list[bytes]:
    """Texts of both sides, near them, and through the rule where they differ."""
    made = list(corpus)
    for form, rule in (
        (left, mutant.rule),
        (right, mutant.rule if not mutant.root else right.root),
    ):
        texts = Texts(form)
        for look in range(TEXTS):
            whole = (
                texts.around(rule, form.rules[rule].body, random, look % 3) if look % 4 else None
            )
            text = texts.sample(whole or Ref(form.root), random, look // 4)
            if text is not None and len(text) <= MAX_TEXT:
                made += [text, nudged(text, random)]
    return list(dict.fromkeys(made))


def main() -> None:
    import xgrammar  # noqa: F401 - before processes that need it

    cases: list[Case] = []
    for name in recorded.names():
        form = recorded.base(name)
        files = sorted((recorded.path_of(name).parent).glob("*valid/*.*"))
        corpus = [path.read_bytes() for path in files if path.suffix != ".json" or name == "json"]
        corpus = [text for text in corpus if len(text) <= MAX_TEXT]
        different = list(changed(name, form))
        different += disguised(name, form, different)
        same = list(equal(name, form, corpus))
        print(f"{name}: {len(different)} different, {len(same)} equal", flush=True)
        cases += [*different, *same]
    header = {
        "recorded by": "tests/laboratory/record_mutants.py",
        "judges": {"earley": "tests/oracles", "xgrammar": metadata.version("xgrammar")},
    }
    recorded.write(cases, header)
    print(sorted(Counter((case.label, case.kind) for case in cases).items()))
    print(Counter(case.label for case in cases), recorded.FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
