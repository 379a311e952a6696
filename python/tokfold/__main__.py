"""``python -m tokfold`` is ``tokfold``."""

from tokfold.cli import main

main()
