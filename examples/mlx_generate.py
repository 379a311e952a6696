"""Generate with mlx-lm within a grammar.

pip install ".[mlx]"
python examples/mlx_generate.py path/to/model "A person, as JSON:"
"""

import sys

import mlx_lm
import tokfold
from mlx_lm.generate import BatchGenerator
from tokfold.mlx import GrammarLogitsProcessor

path, prompt = sys.argv[1:]
model, tokenizer = mlx_lm.load(path)

# The tokens at which mlx-lm stops must be those that end the grammar's text.
vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, stop_token_ids=tokenizer.eos_token_ids)
person = tokfold.Grammar.from_ebnf(r"""
root   ::= "{\"name\": " string ", \"age\": " [1-9] [0-9]? "}"
string ::= "\"" [A-Za-z ]{1,24} "\""
""")
answer = tokfold.Grammar.from_ebnf('root ::= ("yes" | "no" | "perhaps") "."')
compiled = [tokfold.compile(grammar, vocabulary) for grammar in (person, answer)]

processor = GrammarLogitsProcessor(compiled[0])
print(mlx_lm.generate(model, tokenizer, prompt, max_tokens=100, logits_processors=[processor]))

# In a batch each sequence has a processor of its own.
batch = BatchGenerator(model, max_tokens=100, stop_tokens=[[i] for i in tokenizer.eos_token_ids])
numbers = batch.insert(
    [tokenizer.encode(prompt), tokenizer.encode("Is the sky blue?")],
    logits_processors=[[GrammarLogitsProcessor(grammar)] for grammar in compiled],
)
texts = {number: [] for number in numbers}
while responses := batch.next_generated():
    for response in responses:
        if response.finish_reason != "stop":
            texts[response.uid].append(response.token)
batch.close()
for number in numbers:
    print(tokenizer.decode(texts[number]))
