"""The laboratory at the command line: ``tokfold lint``, ``optimize``, ``cost`` and others.

A command is the module of its name, as those of :mod:`tokfold.cli`, which imports it when it is
asked for: ``lint``, ``optimize``, ``equiv``, ``maskdiff``, ``cost``, ``profile`` and ``fidelity``,
which has ``fidelity_models`` and ``fidelity_report`` beside it. What the commands share is in
:mod:`tokfold.cli`.
"""
