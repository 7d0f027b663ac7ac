//! The program as its users meet it: run from outside, judged by what it prints and how it ends.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod demo;
mod new;
mod program;
mod serve;
mod stdio;
mod trace;
mod usage;
