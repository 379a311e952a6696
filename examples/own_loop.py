"""A decoding loop of one's own: masks, text that is forced, and a draft. Needs numpy alone.

python examples/own_loop.py
"""

import numpy as np
import tokfold

grammar = tokfold.Grammar.from_ebnf(r"""
root   ::= "{\"name\": " string ", \"age\": " [1-9] [0-9]? "}"
string ::= "\"" [a-z]{1,8} "\""
""")
words = [b'{"', b'":', b'"}', b"name", b"age", b"ada", b"bob", b', "', b": ", b"36"]
tokens = [*(bytes([byte]) for byte in range(32, 127)), *words, b"</s>"]
vocabulary = tokfold.Vocabulary(tokens, stop_token_ids=[len(tokens) - 1])
compiled = tokfold.compile(grammar, vocabulary)

random, DRAFT = np.random.default_rng(5), 3


def model(contexts):
    """Stands for yours: a row of logits for each context."""
    return random.normal(size=(len(contexts), len(vocabulary)))


matcher = tokfold.Matcher(compiled)
bitmask = tokfold.allocate_bitmask(DRAFT + 1, len(vocabulary))
output, calls = [], 0
while not matcher.is_terminated:
    forced = matcher.forced_tokens()  # needs no model; pass the encode of your tokenizer
    assert matcher.accept_tokens(forced) == len(forced)
    output += forced

    # A cheap model proposes tokens, here the first ones that are allowed.
    draft, ahead = [], matcher.fork()
    while len(draft) < DRAFT and not ahead.is_terminated:
        ahead.fill_bitmask(bitmask)
        draft.append(int(tokfold.allowed_tokens(bitmask[0], len(vocabulary))[0]))
        ahead.accept_token(draft[-1])

    # The model looks at all of them at once. Row i is what may come after i tokens of the draft.
    matcher.fill_bitmask_draft(draft, bitmask)
    logits = model([output + draft[:length] for length in range(len(draft) + 1)])
    calls += 1
    tokfold.apply_token_bitmask_(logits, bitmask[: len(draft) + 1], len(vocabulary))
    for row, scores in enumerate(logits):
        token = int(scores.argmax())
        output.append(token)
        matcher.accept_token(token)
        if matcher.is_terminated or draft[row : row + 1] != [token]:
            break

print(matcher.text.decode())
print(f"{len(output)} tokens, {calls} calls of the model")
