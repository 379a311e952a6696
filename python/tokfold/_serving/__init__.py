"""What the backends of inference servers share: settings, vocabularies, compilers, conversations.

The servers themselves are known to :mod:`tokfold.sglang` and :mod:`tokfold.vllm` alone.

- ``settings``: what an operator may choose
- ``requests``: what requests ask for, checked, before anything is compiled
- ``compiling``: the vocabulary of a server, and the grammars of its requests
- ``conversation``: one request on its way through its grammar, and what it does where a mask fails
"""

from tokfold._serving.compiling import Grammars, grammars_of, vocabulary_of
from tokfold._serving.conversation import Conversation, fill_rows
from tokfold._serving.requests import Passed, any_tag, checked, choices
from tokfold._serving.settings import SWITCHES, Settings

__all__ = [
    "SWITCHES",
    "Conversation",
    "Grammars",
    "Passed",
    "Settings",
    "any_tag",
    "checked",
    "choices",
    "fill_rows",
    "grammars_of",
    "vocabulary_of",
]
