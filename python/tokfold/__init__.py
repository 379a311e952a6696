"""Grammar-constrained decoding, exact and nearly free."""
