//! `toolwire add` and `toolwire remove`: a server in the configuration of a host.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    terminal::Terminal,
};

/// Add a server to the configuration of a host
#[derive(Args, Debug)]
pub(crate) struct AddOptions {}

/// Remove a server from the configuration of a host
#[derive(Args, Debug)]
pub(crate) struct RemoveOptions {}

/// Adds a server.
pub(crate) fn add(_options: &AddOptions, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}

/// Removes a server.
pub(crate) fn remove(_options: &RemoveOptions, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
