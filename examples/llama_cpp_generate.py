"""Generate with llama-cpp-python within a grammar.

pip install ".[llama-cpp]"
python examples/llama_cpp_generate.py path/to/model.gguf "A person, as JSON:"
"""

import sys

import tokfold
from llama_cpp import Llama, LogitsProcessorList, StoppingCriteriaList
from tokfold.llama_cpp import GrammarLogitsProcessor, vocabulary

path, prompt = sys.argv[1:]
llm = Llama(path, n_ctx=512, verbose=False)
person = tokfold.Grammar.from_ebnf(r"""
root   ::= "{\"name\": " string ", \"age\": " [1-9] [0-9]? "}"
string ::= "\"" [A-Za-z ]{1,24} "\""
""")
compiled = tokfold.compile(person, vocabulary(llm))

processor = GrammarLogitsProcessor(compiled)
answer = llm.create_completion(
    prompt,
    max_tokens=100,
    logits_processor=LogitsProcessorList([processor]),
    stopping_criteria=StoppingCriteriaList([processor.should_stop]),
)
print(answer["choices"][0]["text"])
