"""The grammar laboratory: what a grammar costs, what is wrong with it, and how to write it better.

Engines answer alike for every way of writing one language, but not at the same cost. The
laboratory looks at the way of writing: lint, profile, optimize, compare, and what a mask does to
the distribution of a model. Nothing here is needed to decode, and it is a distribution of its own,
``tokfold-laboratory``: only its commands are imported from outside, by :mod:`tokfold.cli`.

- ``lint``, ``optimize``, ``equivalence``: what is wrong, the same language written better, whether
  it is the same
- ``forest``, ``cost_model``, ``instruments``: what a form costs, and engines that count
- ``fidelity``, ``neural``: what masks do to a model, and the grammar as its input
- ``form``, ``errors``: what the parts share
- ``commands``: the laboratory at the command line
"""
