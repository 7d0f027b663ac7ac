//! `toolwire tools`, `resources`, `templates` and `prompts`: what a server offers.

use clap::Args;

use crate::{
    failure::{Code, Failure, Result},
    target::TargetOptions,
    terminal::Terminal,
};

/// List what a server offers
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The server
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Lists the tools.
pub(crate) async fn tools(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}

/// Lists the resources.
pub(crate) async fn resources(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}

/// Lists the templates.
pub(crate) async fn templates(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}

/// Lists the prompts.
pub(crate) async fn prompts(_options: &Options, _terminal: &Terminal) -> Result<()> {
    Err(Failure::new(Code::Other, "not built yet"))
}
