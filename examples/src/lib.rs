//! Examples. Each is a program of its own: `cargo run -p toolwire-examples --example NAME`.
