//! Signed tokens in their compact form, and the keys they are signed with.
