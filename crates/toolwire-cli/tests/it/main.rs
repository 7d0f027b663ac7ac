//! The program as its users meet it: run from outside, judged by what it prints and how it ends.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

mod config;
mod demo;
mod doctor;
mod explain;
mod fake_web;
mod home;
mod new;
mod overview;
mod probe;
mod program;
mod serve;
mod shell;
mod stdio;
mod trace;
mod usage;
