"""Slow, obvious truths that the fast code is tested against.

- `model`: grammars as plain values, printed as EBNF, lowered to context-free grammars over bytes;
- `earley`: a naive recognizer of any such grammar, and both meanings of "may stand here";
- `tokens`: the same recognizer along tokens, each read by its bytes or taken whole;
- `sentences`: random sentences of a grammar;
- `gnf`: Greibach normal form and the token displacements of CFGzip (Algorithm 1);
- `congruence`: tokens told apart by contexts that were really tried;
- `xgrammar_truth`: what XGrammar itself accepts, byte by byte.

Nothing here is fast, and nothing here shares code with the library.
"""
