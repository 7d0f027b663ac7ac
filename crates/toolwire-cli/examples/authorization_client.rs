//! Calls tools of a protected server with Toolwire's client, which logs in when it has to. For `authorization/`.
//!
//! ```text
//! authorization_client URL browser|device|paste|robot|workload|enterprise|stored [TOOL[:TEXT]]...
//! ```
//!
//! `browser` opens `$BROWSER`; `device` and `paste` print what a person has to open, and `paste` reads the address that
//! they end up at from standard input; `robot` is the client `robot` with the secret in `ROBOT_SECRET`; `workload`
//! and `enterprise` hand in what `ASSERTION` has, the latter at the identity provider in `IDP`; all three are known to the issuer in
//! `ISSUER`; `stored` asks nobody. Credentials are kept below `TOOLWIRE_AUTH_DIR`. It lists the tools, calls those that are
//! named, with the text behind the colon if there is one, and prints one JSON line for each step; the first that fails is
//! the last.

use std::{io::Write, process::ExitCode};

use anyhow::{Result, bail};
use serde_json::Value;
use toolwire::{
    Client,
    auth::{
        Issuer, Secret,
        client::{
            AuthError, OAuth, OAuthBuilder,
            device::DeviceCode,
            flow::Idp,
            login::{Browser, Device, PasteBack},
            register::ClientId,
            store::FileStore,
            token::SubjectKind,
        },
    },
    client::Error,
    http::client::Http,
    json,
};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Err(error) = run(&arguments).await else { return ExitCode::SUCCESS };
    say(&describe(&error));
    ExitCode::FAILURE
}

async fn run(arguments: &[String]) -> Result<()> {
    let [url, way, calls @ ..] = arguments else {
        bail!(
            "usage: authorization_client URL browser|device|paste|robot|workload|enterprise|stored [TOOL[:TEXT]]..."
        );
    };
    let oauth = oauth(way)?.store(FileStore::of("authorization-client")?).build()?;
    let http = Http::builder(url).auth(oauth).build()?;
    let client = Client::builder("authorization-client", "1.0").connect(http).await?;
    let tools = client.all_tools().await?;
    say(&json!({ "tools": tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>() }));
    for call in calls {
        let (tool, arguments) = match call.split_once(':') {
            Some((tool, text)) => (tool, json!({ "text": text })),
            None => (call.as_str(), json!({})),
        };
        say(&json!({ "text": client.call(tool, arguments).await?.text() }));
    }
    client.close().await?;
    Ok(())
}

fn oauth(way: &str) -> Result<OAuthBuilder> {
    let people = OAuth::builder("Notes of a test");
    Ok(match way {
        "browser" => people.login(Browser::loopback()),
        "device" => people.login(Device::new(|code: &DeviceCode| {
            say(&json!({ "device": {
                "page": code.verification_uri.as_str(), "code": code.user_code,
                "issuer": code.issuer.as_str(), "server": code.server.as_str(),
            } }));
        })),
        "paste" => people.login(PasteBack::new(|url| async move {
            say(&json!({ "open": url, "paste": true }));
            tokio::task::spawn_blocking(|| std::io::stdin().lines().next()?.ok()).await.ok()?
        })),
        "robot" => {
            OAuth::client_credentials(&issuer()?, ClientId::new("robot"), Secret::env("ROBOT_SECRET")?)
        }
        "workload" => {
            OAuth::workload(&issuer()?, ClientId::new("pod"), |_| async { Secret::env("ASSERTION") })
        }
        "enterprise" => {
            let idp = Idp {
                issuer: Issuer::parse(&std::env::var("IDP")?)?,
                client_id: "desk-idp".to_owned(),
                subject: SubjectKind::IdToken,
            };
            OAuth::enterprise(idp, || async { Secret::env("ASSERTION") }, &issuer()?, ClientId::new("desk"))
        }
        "stored" => people,
        other => bail!("there is no way {other:?} to log in"),
    })
}

/// The issuer that knows the clients without a user. No other receives what they authenticate with.
fn issuer() -> Result<String> {
    Ok(std::env::var("ISSUER")?)
}

/// The status that ended it, if there was one, and what the login says about it.
fn describe(error: &anyhow::Error) -> Value {
    let status = error.downcast_ref::<Error>().and_then(Error::status);
    let login = error.chain().find_map(|cause| cause.downcast_ref::<AuthError>());
    json!({
        "error": format!("{error:#}"),
        "status": status,
        "kind": login.map(|login| format!("{:?}", login.kind)),
    })
}

fn say(line: &Value) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
