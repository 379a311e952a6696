"""Special tokens in the texts of tags: whether a marker is that token, or its letters too.

The oracle lists the texts of a few tags as tokens and letters, one by one.
"""

from __future__ import annotations

from typing import Any

import pytest
import tokfold
from tokfold import Matcher, Vocabulary

CALL, STOP = 256, 257
VOCABULARY = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"<call>", b"</s>"],
    stop_token_ids=[STOP],
    special_token_ids=[CALL],
)


def tag(begin: str, value: str = "x") -> dict[str, Any]:
    content = {"type": "const_string", "value": value}
    return {"type": "tag", "begin": begin, "content": content, "end": "."}


def compiled(markers: str, triggers: list[str], tags: list[dict[str, Any]], **more: Any) -> Any:
    format = {"type": "triggered_tags", "triggers": triggers, "tags": tags, **more}
    return tokfold.compile({"format": format, "markers": markers}, VOCABULARY)


def reads(found: Any, *pieces: int | str) -> bool:
    """Whether a text is read: ids of tokens, and letters."""
    matcher = Matcher(found)
    return all(
        matcher.accept_token(one) if isinstance(one, int) else matcher.accept_bytes(one.encode())
        for one in pieces
    )


@pytest.mark.parametrize("count", [1, 31, 32, 40])
@pytest.mark.parametrize("stop_after_first", [False, True])
@pytest.mark.parametrize("trigger", ["<", "<call>", "<call>f"])
def test_a_tag_that_must_come_begins_with_its_token(
    count: int, stop_after_first: bool, trigger: str
) -> None:
    """However many tags there are: many are handed over as they are."""
    tags = [tag(f"<call>f{number};") for number in range(count)]
    more = {"at_least_one": True, "stop_after_first": stop_after_first}
    only = compiled("tokens", [trigger], tags, **more)
    both = compiled("both", [trigger], tags, **more)
    for found in (only, both):
        assert reads(found, CALL, "f0;x.")
        assert not reads(found, CALL, "g")
        assert not reads(found, CALL, "f0;y")
        assert not reads(found, "a")
        assert reads(found, CALL, "f0;x.", "a") != stop_after_first
        assert reads(found, CALL, "f0;x.", CALL, "f0;x") != stop_after_first
    assert not reads(only, "<call>f0;x.")
    assert reads(both, "<call>f0;x.")


@pytest.mark.parametrize("count", [1, 31, 40])
@pytest.mark.parametrize("at_least_one", [False, True])
def test_tags_with_and_without_a_token_share_a_trigger(count: int, at_least_one: bool) -> None:
    """What letters have begun goes on with a tag that letters may begin."""
    tags = [tag("<call>", "x"), *(tag(f"<cabs{number};", "y") for number in range(count))]
    only = compiled("tokens", ["<ca"], tags, at_least_one=at_least_one)
    both = compiled("both", ["<ca"], tags, at_least_one=at_least_one)
    for found in (only, both):
        assert reads(found, CALL, "x.")
        assert reads(found, "<cabs0;y.")
        assert reads(found, "<cabs0;y.", "free <c", CALL, "x.", "<cabs0;y.")
        assert not reads(found, "<cabs0;z")
        assert not reads(found, "<cax")
        assert not reads(found, CALL, "y")
        assert reads(found, "free <c") != at_least_one
    assert reads(both, "<call>x.")
    assert not reads(only, "<cal")
