//! The client against a server that follows a script.

mod cache;
mod calls;
mod child;
mod close;
mod hostile;
mod listen;
mod negotiate;
mod pages;
mod rounds;
mod script;
mod server_requests;
mod timeouts;
