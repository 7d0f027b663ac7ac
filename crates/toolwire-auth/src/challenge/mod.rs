//! `WWW-Authenticate`, read and written.
