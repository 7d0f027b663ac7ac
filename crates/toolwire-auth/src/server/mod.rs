//! Protecting a server.
