//! Setting a client up.

use std::{fmt, sync::Arc, time::Duration};

use toolwire_protocol::{
    Notification, RawJson, RpcError,
    wire::{
        ClientCapabilities, CreateMessageRequestParams, CreateMessageResult, Implementation, JsonObject,
        LoggingLevel, LoggingMessageNotificationParams, Root,
    },
};

use crate::{
    client::Client,
    clock::Clock,
    connect::{ConnectionState, Connector, EraCache, EraChoice, Keep, Plan, Reconnect, connect},
    error::Error,
    host::{Elicit, ElicitReply, Handlers, ServerRequest},
    limits::ClientLimits,
    listen::Change,
    observe::{Observed, Observer},
    settings::Settings,
};

impl Client {
    /// Begins with the name and version of the program that is the client.
    ///
    /// ```no_run
    /// # use toolwire_client::{Client, ElicitReply, Error};
    /// # async fn example() -> Result<(), Error> {
    /// # let (transport, _) = toolwire_transport::memory::pair();
    /// let client = Client::builder("demo", "1.0")
    ///     .on_elicit(|question| async move {
    ///         println!("{}", question.message());
    ///         ElicitReply::decline()
    ///     })
    ///     .connect(transport)
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            info: Implementation::new(name, version),
            settings: Settings::default(),
            handlers: Handlers::default(),
            eras: None,
        }
    }
}

/// Sets a client up. What the client can do follows from the handlers it is given.
///
/// Handlers answer the server's questions, in both eras, and may run at the same time. Listeners (`on_log`,
/// `on_change`, `on_notification`) are called while messages are being read, so they must not block.
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    info: Implementation,
    settings: Settings,
    handlers: Handlers,
    eras: Option<Arc<EraCache>>,
}

/// Who the client is.
impl ClientBuilder {
    /// The name of the client for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Everything about the client that a server is told, its name and version included.
    pub fn info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Declares an extension with its settings.
    pub fn extension(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.handlers.extensions.insert(name.into(), settings);
        self
    }

    /// Declares an experiment with its settings.
    pub fn experimental(mut self, name: impl Into<String>, settings: JsonObject) -> Self {
        self.handlers.experimental.insert(name.into(), settings);
        self
    }
}

/// Handlers and listeners.
impl ClientBuilder {
    /// Asks the person in front of the client. Forms come here, and URLs after
    /// [`elicit_url(true)`](Self::elicit_url).
    pub fn on_elicit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(Elicit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ElicitReply> + Send + 'static,
    {
        self.handlers.elicit = Some(Box::new(move |elicit| Box::pin(handler(elicit))));
        self
    }

    /// Whether the elicitation handler can send the person to a URL; it is not by default.
    pub const fn elicit_url(mut self, can: bool) -> Self {
        self.handlers.elicit_url = can;
        self
    }

    /// Declares that there is a person who can be asked later, although there is no handler for that: forms that a task
    /// asks for are left open until [`TaskHandle::answer`](crate::TaskHandle::answer). It is not declared by default, nor to
    /// servers of 2025-11-25 and before, whose questions only handlers can answer. A question outside a task fails its call.
    pub const fn elicit_later(mut self, can: bool) -> Self {
        self.handlers.elicit_later = can;
        self
    }

    /// Asks the model. An error is the refusal that a legacy server is told; with a modern one the call fails.
    pub fn on_sample<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageRequestParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, RpcError>> + Send + 'static,
    {
        self.handlers.sample = Some(Box::new(move |request| Box::pin(handler(request))));
        self
    }

    /// Whether the sampling handler lets the model use tools; it is not by default.
    pub const fn sample_tools(mut self, can: bool) -> Self {
        self.handlers.sample_tools = can;
        self
    }

    /// Whether the sampling handler includes the context of servers; it is not by default.
    pub const fn sample_context(mut self, can: bool) -> Self {
        self.handlers.sample_context = can;
        self
    }

    /// The folders and files that a server may work on.
    pub fn roots(self, roots: impl Into<Vec<Root>>) -> Self {
        let roots: Arc<[Root]> = roots.into().into();
        self.on_roots(move || {
            let roots = Arc::clone(&roots);
            async move { roots.to_vec() }
        })
    }

    /// Lists the folders and files that a server may work on, each time it asks. When they change, call
    /// [`Client::roots_changed`].
    pub fn on_roots<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<Root>> + Send + 'static,
    {
        self.handlers.roots = Some(Box::new(move |()| Box::pin(handler())));
        self
    }

    /// Answers everything a server asks of its client, as it came and in the place of all other handlers: for those who
    /// pass requests on to somebody else. The `capabilities` are what is declared to the server.
    ///
    /// An error is what a legacy server is told; with a modern one the call fails.
    ///
    /// ```
    /// # use toolwire_client::{Client, Error};
    /// # use toolwire_protocol::{RawJson, RpcError};
    /// use toolwire_protocol::wire::{ClientCapabilities, ElicitationCapability};
    ///
    /// # async fn ask_elsewhere(method: &str, params: &RawJson) -> Result<RawJson, RpcError> {
    /// #     RawJson::parse(r#"{"action":"decline"}"#).map_err(|error| RpcError::internal(error.to_string()))
    /// # }
    /// # async fn example() -> Result<(), Error> {
    /// # let (transport, _) = toolwire_transport::memory::pair();
    /// let can = ClientCapabilities::new().elicitation(ElicitationCapability::new());
    /// let client = Client::builder("proxy", "1.0")
    ///     .on_request(can, |asked| async move {
    ///         println!("asked during {:?}", asked.during());
    ///         ask_elsewhere(asked.method().as_str(), asked.params()).await
    ///     })
    ///     .connect(transport)
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn on_request<F, Fut>(mut self, capabilities: ClientCapabilities, handler: F) -> Self
    where
        F: Fn(ServerRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        self.handlers.request = Some((Box::new(move |request| Box::pin(handler(request))), capabilities));
        self
    }

    /// Whether tasks of servers are followed, and questions that a server wants answered as tasks are; it is so by
    /// default.
    ///
    /// Without them a server is told nothing of tasks: it answers calls at once, or refuses those of tools that
    /// cannot do without.
    pub const fn tasks(mut self, follow: bool) -> Self {
        self.handlers.without_tasks = !follow;
        self
    }

    /// Hears every notification of the server, after the client has dealt with it. Progress comes here only if it
    /// belongs to a token in a raw request.
    pub fn on_notification(mut self, listener: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.handlers.notification = Some(Box::new(listener));
        self
    }

    /// Hears the server's log messages, from level `info` on unless [`log_level`](Self::log_level) says otherwise.
    pub fn on_log(
        mut self,
        listener: impl Fn(LoggingMessageNotificationParams) + Send + Sync + 'static,
    ) -> Self {
        self.handlers.log = Some(Box::new(listener));
        self.settings.log_level.get_or_insert(LoggingLevel::Info);
        self
    }

    /// Hears of changes. A modern server only tells of those that somebody [listens](Client::listen) to.
    pub fn on_change(mut self, listener: impl Fn(Change) + Send + Sync + 'static) -> Self {
        self.handlers.change = Some(Box::new(listener));
        self
    }

    /// Hears what becomes of the connection after it was made: that it was lost, restored or closed.
    pub fn on_connection(mut self, listener: impl Fn(ConnectionState) + Send + Sync + 'static) -> Self {
        self.handlers.connection = Some(Box::new(listener));
        self
    }

    /// Watches the conversation: hears every message that passes in either direction, whole and in order, whatever
    /// the transport, and what was lost in words. It is called while messages are sent and read, so it must
    /// neither block nor call the client.
    ///
    /// Headers are not messages, so credentials in them do not come here; those in messages do.
    ///
    /// ```
    /// # use toolwire_client::{Client, Error, Observed};
    /// # async fn example() -> Result<(), Error> {
    /// # let (transport, _) = toolwire_transport::memory::pair();
    /// let client = Client::builder("demo", "1.0")
    ///     .observe(|observed| match observed {
    ///         Observed::Sent(message) => eprintln!("-> {}", String::from_utf8_lossy(&message)),
    ///         Observed::Received(message) => eprintln!("<- {}", String::from_utf8_lossy(&message)),
    ///         other => eprintln!("{other:?}"),
    ///     })
    ///     .connect(transport)
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn observe(mut self, observer: impl Fn(Observed) + Send + Sync + 'static) -> Self {
        self.handlers.observer = Some(Observer::new(observer));
        self
    }

    /// The least serious log messages to ask for: with every request of the modern era, once in the legacy era.
    pub const fn log_level(mut self, level: LoggingLevel) -> Self {
        self.settings.log_level = Some(level);
        self
    }
}

/// Versions, times and limits.
impl ClientBuilder {
    /// Which protocol versions to speak: by default whatever the server speaks.
    pub const fn era(mut self, era: EraChoice) -> Self {
        self.settings.era = era;
        self
    }

    /// Remembers what servers speak, over connections and clients.
    pub fn era_cache(mut self, eras: Arc<EraCache>) -> Self {
        self.eras = Some(eras);
        self
    }

    /// How long a request may stay without an answer or progress: a shorthand for
    /// [`ClientLimits::request_timeout`].
    pub const fn request_timeout(mut self, timeout: Duration) -> Self {
        self.settings.limits.request_timeout = timeout;
        self
    }

    /// How long a request may take altogether: a shorthand for [`ClientLimits::total_timeout`].
    pub const fn total_timeout(mut self, timeout: Duration) -> Self {
        self.settings.limits.total_timeout = timeout;
        self
    }

    /// How long a server may be silent before it is taken for a legacy one: a shorthand for
    /// [`ClientLimits::probe_timeout`].
    pub const fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.settings.limits.probe_timeout = timeout;
        self
    }

    /// What the server can make the client hold, and for how long it can make it wait. It replaces timeouts that
    /// were set before.
    pub const fn limits(mut self, limits: ClientLimits) -> Self {
        self.settings.limits = limits;
        self
    }

    /// Connects again when the connection is lost, as when a child process has died: with what was given to
    /// [`connect`](Self::connect), if that can be used more than once. Without it a lost connection stays lost.
    ///
    /// Calls that are made meanwhile wait for the new connection, within their timeouts. Those that were under way
    /// fail, with a [`delivery`](Error::delivery) of [`Unknown`](crate::Delivery::Unknown), because the server may have
    /// acted on them. The log level and subscriptions are restored, and listeners hear a [`Change::Resync`].
    ///
    /// A host that runs for long wants this: servers crash, laptops sleep, and a person expects the tools to be there
    /// again. It has to be asked for all the same. A process that is started again has lost whatever it remembered, so
    /// whoever depends on that has to hear of it ([`on_connection`](Self::on_connection)); a program that makes one call
    /// and ends wants the error, and not a second start of what has just died; and what is connected with has to live as
    /// long as the client, which a borrowed one does not. HTTP needs it only for HTTP+SSE: otherwise there is no
    /// connection to lose, and a lost session is made anew in any case.
    ///
    /// ```no_run
    /// use toolwire_client::{Client, ConnectionState, Reconnect};
    /// # use toolwire_transport::ChildProcess;
    ///
    /// # async fn example() -> Result<(), toolwire_client::Error> {
    /// let client = Client::builder("host", "1.0")
    ///     .on_connection(|state| match state {
    ///         ConnectionState::Lost(why) => eprintln!("the server is gone and will be started again: {why}"),
    ///         state => eprintln!("{state:?}"),
    ///     })
    ///     .reconnect(Reconnect::default())
    ///     .connect(|| async { ChildProcess::command("my-server").spawn() })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// It is the last setting, because a client that connects again has to own what it connects with.
    pub const fn reconnect(self, reconnect: Reconnect) -> ReconnectingBuilder {
        ReconnectingBuilder { builder: self, reconnect }
    }

    /// The clock by which stored responses grow old.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.settings.clock = Arc::new(clock);
        self
    }

    /// Connects, and finds out what the server speaks.
    ///
    /// It takes a [`Duplex`](toolwire_transport::Duplex), an async closure that makes one, or with the feature
    /// `child` a process to be started. A Tokio runtime with time enabled is needed.
    ///
    /// # Errors
    /// When there is no connection, no answer, or no protocol version in common.
    pub async fn connect<Kind, C: Connector<Kind>>(self, connector: C) -> Result<Client, Error> {
        let Self { info, settings, handlers, eras } = self;
        let plan = Plan { info, settings, handlers: Arc::new(handlers), eras };
        // It happens once, so it need not make the futures of all callers large.
        Box::pin(connect(plan, connector, None)).await
    }
}

/// Sets up a client that connects again; from [`ClientBuilder::reconnect`].
#[must_use = "a builder does nothing until it connects"]
#[derive(Debug)]
pub struct ReconnectingBuilder {
    builder: ClientBuilder,
    reconnect: Reconnect,
}

impl ReconnectingBuilder {
    /// Connects, as [`ClientBuilder::connect`] does.
    ///
    /// # Errors
    /// When there is no connection, no answer, or no protocol version in common. The first connection is tried once.
    pub async fn connect<Kind: 'static, C: Connector<Kind> + 'static>(
        self,
        connector: C,
    ) -> Result<Client, Error> {
        let ClientBuilder { info, settings, handlers, eras } = self.builder;
        let plan = Plan { info, settings, handlers: Arc::new(handlers), eras };
        Box::pin(connect(plan, connector, Some(Keep::new(self.reconnect)))).await
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("info", &self.info)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
