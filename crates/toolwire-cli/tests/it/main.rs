//! The program as its users meet it: run from outside, judged by what it prints and how it ends.

#![expect(clippy::unwrap_used, reason = "what does not hold here is a failed test")]

#[cfg(unix)]
mod auth;
mod calls;
mod config;
mod demo;
mod doctor;
mod explain;
mod fake_web;
mod home;
#[cfg(unix)]
mod hostile;
#[cfg(unix)]
mod leaving;
mod lists;
mod new;
mod overview;
mod person;
mod probe;
mod program;
mod reading;
#[cfg(unix)]
mod secrets;
mod serve;
mod shell;
mod stdio;
mod stores;
mod tasks;
mod trace;
mod trust;
mod usage;
