//! Tests on the tokens of the expansion.
