"""No page has a dead link, and the questions of a newcomer are two clicks from the index."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOOR = "docs/index.md"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/**/*.md", "grammars/**/*.md")
    for path in ROOT.glob(pattern)
)
FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)")
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
HEADING = re.compile(r"^#{1,6} (.+?)\s*#*$", re.MULTILINE)

QUESTIONS = {
    "How is it installed?": "README.md#install",
    "What does an extra bring?": "docs/install.md",
    "How does a transformers model write a pydantic object?": (
        "README.md#from-a-model-folder-to-an-object"
    ),
    "How does it go into my own loop?": "docs/own-loop.md#what-a-matcher-can-do",
    "What does compile take?": "docs/own-loop.md#what-compile-takes",
    "Which options has a schema?": "docs/json-schema.md#options",
    "Which schemas are refused?": "docs/json-schema.md#what-is-refused",
    "What happens when the tokens run out?": "docs/ending-in-time.md",
    "Why is a mask empty?": "docs/masked.md#a-mask-is-empty",
    "Why does a text never end?": "docs/masked.md#a-text-never-ends",
    "Why is a token refused?": "docs/masked.md#a-token-is-refused",
    "Which flags has vLLM?": "docs/serving.md#vllm",
    "Which flags has SGLang?": "docs/serving.md#sglang",
    "Where are the methods of Matcher?": "docs/own-loop.md#what-a-matcher-can-do",
    "How is a call cancelled?": "docs/serving.md#limits",
    "Where is the cache folder set?": "docs/serving.md#settings-of-both",
    "May threads share a matcher?": "docs/serving.md#what-is-shared",
    "How does a model choose from a list?": "docs/regular-expressions.md#choices",
    "How does a model call tools?": "docs/structural-tags.md#model-families",
    "Which family fits my model?": "docs/model-families.md",
    "Does it read my tokenizer?": "docs/tokenizers.md",
    "What is the name of what XGrammar has?": "docs/names.md",
    "What does it do with a Lark grammar?": "docs/lark.md#what-a-text-means",
    "How fast is it, and how was that measured?": "docs/benchmarks.md",
    "How do I embed the Rust core?": "docs/rust-core.md",
    "How do I report a bug?": "docs/command-line.md#a-report-for-an-issue",
}


@functools.cache
def prose(page: str) -> str:
    return FENCE.sub("", (ROOT / page).read_text(encoding="utf-8"))


@functools.cache
def anchors(page: str) -> frozenset[str]:
    """As GitHub makes them: the second of two equal headings gets a number."""
    found: dict[str, int] = {}
    result = set()
    for heading in HEADING.findall(prose(page)):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        count = found.get(anchor, 0)
        found[anchor] = count + 1
        result.add(f"{anchor}-{count}" if count else anchor)
    return frozenset(result)


@functools.cache
def links(page: str) -> tuple[str, ...]:
    """The targets of relative links of a page: file, and anchor where there is one."""
    found = []
    for link in LINK.findall(CODE.sub("", prose(page)) if "`" in page else prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        path = ((ROOT / page).parent / file).resolve() if file else ROOT / page
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else f"../{path.name}"
        found.append(f"{name}#{anchor}" if anchor else name)
    return tuple(found)


@pytest.mark.parametrize("page", PAGES)
def test_no_link_is_dead(page: str) -> None:
    dead = []
    for link in links(page):
        file, _, anchor = link.partition("#")
        is_there = (ROOT / file).exists() and not file.startswith("../")
        if not is_there or (anchor and file.endswith(".md") and anchor not in anchors(file)):
            dead.append(link)
    assert dead == []


def test_dead_links_would_be_found() -> None:
    assert "masked.md#none" not in anchors("docs/masked.md")
    assert "docs/json-schema.md#options" in links("docs/index.md")
    assert {"limits", "what-is-promised-what-is-refused"} <= anchors("docs/promises.md")


@functools.cache
def clicks() -> dict[str, int]:
    """How many clicks each page is from the index, and each anchor that a link names."""
    found = {DOOR: 0}
    for distance in (1, 2):
        for page in [page for page, at in found.items() if at == distance - 1 and "#" not in page]:
            if page.endswith(".md") and (ROOT / page).exists():
                for link in links(page):
                    found.setdefault(link, distance)
                    found.setdefault(link.partition("#")[0], distance)
    return found


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_an_answer_is_two_clicks_away(question: str, answer: str) -> None:
    page, _, anchor = answer.partition("#")
    assert not anchor or anchor in anchors(page), question
    # A heading of a page is a click on its table of contents.
    there = min(clicks().get(answer, 9), clicks().get(page, 9) + bool(anchor))
    assert there <= 2, question
