//! Grammar text (XGrammar's EBNF, GBNF) to [`crate::grammar::Grammar`] and back.
