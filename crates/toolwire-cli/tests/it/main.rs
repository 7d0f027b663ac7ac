//! The program as its users meet it: run from outside, judged by what it prints and how it ends.

mod demo;
mod program;
mod usage;
