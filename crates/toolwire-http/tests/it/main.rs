//! The endpoint over real sockets.
