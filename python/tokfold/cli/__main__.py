"""``python -m tokfold.cli`` is ``tokfold``."""

from tokfold.cli import main

main()
