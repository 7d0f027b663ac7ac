//! The program as its users meet it: run from outside, judged by what it prints and how it ends.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod demo;
mod doctor;
mod explain;
mod fake_web;
mod probe;
mod program;
mod stdio;
mod usage;
