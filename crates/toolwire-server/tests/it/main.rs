//! A server from the outside, over memory, line by line.

mod rough;
mod wire;
