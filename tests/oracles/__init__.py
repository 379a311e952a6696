"""Slow, obvious truths that the fast code is tested against.

- `model`: grammars as plain values, printed as EBNF, lowered to context-free grammars over bytes;
- `earley`: a naive recognizer of any such grammar, and both meanings of "may stand here";
- `tokens`: the same recognizer along tokens, each read by its bytes or taken whole;
- `sentences`: random sentences of a grammar;
- `gnf`: Greibach normal form and the token displacements of CFGzip (Algorithm 1);
- `congruence`: tokens told apart by contexts that were really tried;
- `bounded`: rules of at most so many characters or tokens;
- `binary_chart`: incremental recognition over rules of two symbols;
- `forest`: Earley items, packed nodes and parse trees;
- `logits`: what masks do to logits, entry by entry;
- `fidelity`: a model under a grammar, by every sequence of tokens;
- `prompts`: prompts that are healed, by all texts and all tokens;
- `family_readers`: readers of what models of each family put out;
- `xgrammar_truth`: what XGrammar itself accepts, byte by byte; `xgrammar_doors`: schemas and
  patterns as its converters write them.

Nothing here is fast, and nothing here shares code with the library.
"""
