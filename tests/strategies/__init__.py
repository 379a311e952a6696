"""Random grammars, vocabularies and walks.

Every generator is written once, over `random.Random`. With a seed it serves benchmarks; with
Hypothesis' own `Random` (`st.randoms(use_true_random=False)`) the very same code yields examples
that shrink. The simplest choice therefore stands first in every list.
"""
