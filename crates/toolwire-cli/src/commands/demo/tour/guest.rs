//! A client on the tour: one for each era, both at the same server.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::task::JoinHandle;
use toolwire::{
    Client, Server, Version,
    client::EraChoice,
    memory,
    protocol::Method,
    server::ServeError,
    wire::{LoggingMessageNotificationParams, ServerCapabilities},
};

use super::unexpected;
use crate::{
    commands::demo::tap::{Direction, Tap},
    failure::{Explain, Result},
};

/// A client, and what is remembered of its connection.
pub(super) struct Guest {
    pub(super) client: Client,
    pub(super) connected_in: Duration,
    tap: Tap,
    logs: Logs,
    service: JoinHandle<Result<(), ServeError>>,
}

/// The log messages that have come, as JSON.
type Logs = Arc<Mutex<Vec<String>>>;

impl Guest {
    /// Connects to the server inside this process, in one version of the protocol.
    pub(super) async fn connect(server: &Server, version: Version) -> Result<Self> {
        let (near, far) = memory::pair();
        let host = server.clone();
        let service = tokio::spawn(async move { host.serve(far).await });
        let (tap, logs) = (Tap::default(), Logs::default());
        let heard = Arc::clone(&logs);
        let builder = Client::builder("toolwire", env!("CARGO_PKG_VERSION"))
            .era(EraChoice::Version(version))
            // Nothing that it calls is long work, so it need not find out which tools are.
            .tasks(false)
            .observe(tap.listener())
            .on_notification(move |notification| {
                if notification.method.known() == Some(Method::LoggingMessage)
                    && let Ok(log) = notification.params.decode::<LoggingMessageNotificationParams>()
                {
                    heard.lock().unwrap_or_else(PoisonError::into_inner).push(log.data.text().to_owned());
                }
            });
        let begin = Instant::now();
        let client = builder.connect(near).await.context(format_args!("no connection in {version}"))?;
        let connected_in = begin.elapsed();
        // The first call of a program pays for memory and code that nobody has touched yet, so it does not count.
        client.call("echo", json!({ "text": "warm" })).await?;
        Ok(Self { client, connected_in, tap, logs, service })
    }

    /// What people call its era.
    pub(super) fn era(&self) -> &'static str {
        self.client.era().as_str()
    }

    /// The messages that made the connection, as they crossed the wire.
    pub(super) fn how_connected(&self) -> Vec<(Direction, String)> {
        self.tap.first_messages().into_iter().take_while(|(_, name)| name != "tools/call").collect()
    }

    /// Takes the log messages that have come since the last time.
    pub(super) fn take_logs(&self) -> Vec<String> {
        std::mem::take(&mut self.logs.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the server offers.
    pub(super) fn offers(&self) -> String {
        let ServerCapabilities { tools, resources, prompts, completions, logging, .. } =
            self.client.capabilities();
        let offered = [
            (tools.is_some(), "tools"),
            (resources.is_some(), "resources"),
            (prompts.is_some(), "prompts"),
            (completions.is_some(), "completions"),
            (logging.is_some(), "logging"),
        ];
        let names = offered.into_iter().filter_map(|(is, name)| is.then_some(name));
        names.collect::<Vec<_>>().join(", ")
    }

    /// Leaves, and makes sure that the server has noticed.
    pub(super) async fn leave(self) -> Result<()> {
        self.client.close().await?;
        self.service.await.map_err(unexpected)?.map_err(unexpected).context("the server did not end in order")
    }
}
