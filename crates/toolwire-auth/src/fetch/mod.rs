//! Fetching metadata and tokens, from addresses that may be asked.
