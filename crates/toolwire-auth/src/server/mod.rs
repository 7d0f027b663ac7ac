//! The server side: who is let in, and with which rights.

pub mod verify;
