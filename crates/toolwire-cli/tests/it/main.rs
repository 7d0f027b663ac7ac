//! The program as its users meet it: run from outside, judged by what it prints and how it ends.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod calls;
mod demo;
mod lists;
mod person;
mod program;
mod reading;
mod stdio;
mod usage;
