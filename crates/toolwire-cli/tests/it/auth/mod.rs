//! Logins: a real issuer on this machine, a real server that asks for its tokens, and the program between them.

mod faults;
mod keeping;
mod login;
mod person;
mod world;
