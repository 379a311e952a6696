"""Generate with transformers within a grammar; a tiny model with random weights stands for yours.

pip install ".[transformers]"
python examples/transformers_generate.py
"""

import tokenizers
import tokfold
import torch
from tokfold.transformers import GrammarLogitsProcessor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

# In place of AutoTokenizer.from_pretrained(...) and AutoModelForCausalLM.from_pretrained(...).
alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
words = tokenizers.Tokenizer(
    tokenizers.models.BPE({text: i for i, text in enumerate(["</s>", *alphabet])}, [])
)
words.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
words.decoder = tokenizers.decoders.ByteLevel()
tokenizer = PreTrainedTokenizerFast(
    tokenizer_object=words, eos_token="</s>", pad_token="</s>", padding_side="left"
)
torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=len(tokenizer),
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=1,
    num_attention_heads=2,
    eos_token_id=0,
    pad_token_id=0,
)
model = LlamaForCausalLM(config).eval()

vocabulary = tokfold.Vocabulary.from_huggingface(tokenizer, size=model.config.vocab_size)
person = tokfold.Grammar.from_ebnf(r"""
root   ::= "{\"name\": " string ", \"age\": " [1-9] [0-9]? ", \"likes\": " list "}"
list   ::= "[" (string (", " string){0,2})? "]"
string ::= "\"" [a-z]{1,12} "\""
""")
answer = tokfold.Grammar.from_ebnf('root ::= ("yes" | "no" | "perhaps") "."')
compiled = [tokfold.compile(grammar, vocabulary) for grammar in (person, answer)]


def generate(prompts, grammars):
    """Texts for the prompts; one grammar for all, or one for each."""
    inputs = tokenizer(prompts, padding=True, return_tensors="pt", return_token_type_ids=False)
    processor = GrammarLogitsProcessor(grammars)
    output = model.generate(
        **inputs, max_new_tokens=120, do_sample=True, logits_processor=[processor]
    )
    return tokenizer.batch_decode(output[:, inputs["input_ids"].shape[1] :], True)


print(generate(["A person:"], compiled[0]))
print(generate(["A person:", "Is the sky blue?"], compiled))
