//! Logins: a real issuer on this machine, a real server that asks for its tokens, and the program between them.

mod device;
mod faults;
mod keeping;
mod login;
mod options;
mod person;
mod world;
