//! A server from the outside, over memory, line by line.

mod asking;
mod rough;
mod wire;
