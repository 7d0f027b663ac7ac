//! `toolwire login`: log in to a server, so that the other commands can use it.

pub(crate) mod tell;
mod way;

use std::time::Duration;

use clap::Args;
use toolwire::{
    auth::client::{AuthErrorKind, Event, Step, Verdict, store::Summary},
    http::client::fetch::Fetcher,
};

use crate::{
    auth::{self, ChainOptions, Keeper, Knock, Settings, Site},
    failure::{Code, Failure, Result},
    session,
    target::seconds,
    terminal::Terminal,
    trust::Gate,
};
use way::Way;

const AFTER_HELP: &str = "\
The browser of $BROWSER or of the system is opened, and comes back to this program. Without a
screen, or over SSH, you are asked whether to paste the address that a browser ends up at, or to
type a code on another device. Without a terminal to ask on, the code is tried first.

Examples:
  toolwire login https://example.com/mcp
  toolwire login github --scope repo            ask for more
  toolwire login github --client abc --secret-env GITHUB_SECRET --issuer https://github.com/login/oauth
  toolwire login work --device                  with a phone";

/// Log in to a server, and keep the login for the other commands
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// The server: a configured name or a URL
    server: String,

    /// Ask for this scope besides those that the server wants; may be given several times
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,

    /// Log in with another device, by a code
    #[arg(long, conflicts_with = "paste")]
    device: bool,

    /// Paste the address that the browser ends up at, for browsers that cannot come back
    #[arg(long)]
    paste: bool,

    /// Ask for consent even if it was given before
    #[arg(long)]
    consent: bool,

    /// Register a new client, and forget how the last login was made
    #[arg(long)]
    fresh: bool,

    /// Let the browser come back here; what the client was registered with
    #[arg(long, value_name = "URI", requires = "client", conflicts_with_all = ["paste", "device"], help_heading = "Provider")]
    redirect: Option<String>,

    #[command(flatten)]
    chain: ChainOptions,

    /// Seconds to wait for the server's first answer
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,

    /// Use servers of the project's files in this run, trusted or not
    #[arg(long)]
    trust: bool,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let site = auth::site(&options.server, Gate { terminal, open: options.trust })?;
    let store = auth::store_of_user()?;
    let earlier = if options.fresh { Settings::default() } else { Settings::load(&store, &site)? };
    let mut settings = options.chain.over(earlier)?;
    settings.redirect = options.redirect.clone().or(settings.redirect);
    site.endpoint(&settings)?;
    let fetcher = Fetcher::new();
    let summary = session::interruptible(async {
        let knock =
            site.knock(&fetcher, options.timeout).await.map_err(|error| unreachable(&site, &error))?;
        log_in(options, &site, &settings, &fetcher, &knock, terminal).await
    })
    .await?;
    settings.save(&store, &site)?;
    if site.has_credentials {
        terminal.warn("a header of the configuration says who is calling, and is used instead of this login");
    }
    tell::done(&site, &summary, terminal)
}

fn unreachable(site: &Site, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Code::Unreachable, format!("{} cannot be asked: {error}", site.shown()))
        .hint(format!("why? toolwire doctor {}", site.typed))
}

/// Tries one way after the other, as far as the issuer does not know the first.
async fn log_in(
    options: &Options,
    site: &Site,
    settings: &Settings,
    fetcher: &Fetcher,
    knock: &Knock,
    terminal: Terminal,
) -> Result<Summary> {
    let ways = Way::choose(options.device, options.paste, |name| std::env::var_os(name).is_some());
    let ways = Way::chosen(ways, terminal).await?;
    let mut last = None;
    for way in ways {
        let mut builder = settings
            .oauth()
            .login(way.person(settings.redirect.as_deref(), terminal))
            .store(Keeper::new(auth::store_of_user()?))
            .scopes(options.scope.iter().flat_map(|scope| scope.split_whitespace()))
            .on_event(move |event| tell_event(event, terminal));
        if options.consent {
            builder = builder.consent();
        }
        if options.fresh {
            builder = builder.fresh();
        }
        let oauth = builder.build().map_err(|error| auth::failure(&error, site))?;
        match oauth.log_in(&site.url, fetcher.clone(), knock.refusal()).await {
            Ok(summary) => return Ok(summary),
            Err(error) if error.kind == AuthErrorKind::DeviceUnsupported => last = Some(error),
            Err(error) => return Err(refused(&error, site, knock)),
        }
    }
    Err(last
        .map_or_else(|| Failure::new(Code::Other, "nobody was asked"), |error| refused(&error, site, knock)))
}

fn refused(error: &toolwire::auth::client::AuthError, site: &Site, knock: &Knock) -> Failure {
    let failure = auth::failure(error, site);
    if error.kind == AuthErrorKind::NoResourceMetadata && knock.answer.status.is_success() {
        return failure.hint("it answers without a login, so none may be needed");
    }
    failure
}

/// What could not be stored is told always, the rest to those who want to know.
fn tell_event(event: &Event, terminal: Terminal) {
    if event.step == Step::Store && event.verdict == Verdict::Warning {
        terminal.warn(crate::terminal::printable(&event.detail));
    } else if terminal.verbose > 0 && !terminal.json {
        terminal.note(crate::terminal::printable(&event.to_string()));
    } else if terminal.verbose > 0 {
        terminal.note_json(&auth::Hop::of(event).to_json());
    }
}
