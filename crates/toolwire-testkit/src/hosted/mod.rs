//! A server of this process behind a socket, for as long as somebody is connected to it.
//!
//! Only whole clients are connected like this. What single HTTP requests look like, and what strangers can do to a
//! socket, is tested where they are made.

#[cfg(feature = "http")]
mod http;
#[cfg(all(unix, feature = "unix"))]
mod unix;

use std::{io, marker::PhantomData, sync::Arc};

use bytes::Bytes;
use tokio::task::JoinHandle;
use toolwire_client::{
    Connection, Connector,
    link::{Exchange, Inbox, Link, LinkError, Outgoing},
};
use toolwire_protocol::{RequestId, Version, probe::ProbeLink};
use toolwire_server::Server;
use toolwire_transport::BoxFuture;

use crate::Target;

/// A server that is served until the last link to it is gone.
#[derive(Clone)]
pub(crate) struct Hosted<C> {
    connector: C,
    serving: Arc<Serving>,
}

impl<C> Hosted<C> {
    fn new<T: Send + 'static>(connector: C, serving: impl Future<Output = T> + Send + 'static) -> Self {
        let task = tokio::spawn(async move {
            serving.await;
        });
        Self { connector, serving: Arc::new(Serving { task }) }
    }
}

/// The server behind a target, which has to be in this process.
fn server(target: &impl Target) -> Server {
    target.server().expect("only a server in this process is reached over a socket").clone()
}

/// Tells what is hosted apart from other connectors.
pub(crate) struct Hosting<Kind>(PhantomData<Kind>);

impl<Kind, C: Connector<Kind>> Connector<Hosting<Kind>> for Hosted<C> {
    async fn connect(self, inbox: Inbox) -> io::Result<Connection<Self>> {
        let Connection { link, key, again, fallback } = self.connector.connect(inbox).await?;
        let serving = self.serving;
        let hosted = |connector| Self { connector, serving: Arc::clone(&serving) };
        let (again, fallback) = (again.map(hosted), fallback.map(hosted));
        Ok(Connection { link: Arc::new(HostedLink { link, _serving: serving }), key, again, fallback })
    }
}

/// The task that serves. It does not shut the server down, which may be served elsewhere too.
#[derive(Debug)]
struct Serving {
    task: JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A link that keeps its own server going.
#[derive(Debug)]
struct HostedLink {
    link: Arc<dyn Link>,
    _serving: Arc<Serving>,
}

impl Link for HostedLink {
    fn family(&self) -> ProbeLink {
        self.link.family()
    }

    fn start(&self, request: Outgoing) -> Exchange {
        self.link.start(request)
    }

    fn abandon(&self, id: &RequestId, tell: bool) {
        self.link.abandon(id, tell);
    }

    fn notify(&self, message: Bytes) -> BoxFuture<'static, Result<(), LinkError>> {
        self.link.notify(message)
    }

    fn wants_subject(&self) -> bool {
        self.link.wants_subject()
    }

    fn has_room(&self) -> bool {
        self.link.has_room()
    }

    fn room(&self) -> BoxFuture<'static, ()> {
        self.link.room()
    }

    fn negotiated(&self, version: Version) {
        self.link.negotiated(version);
    }

    fn why_closed(&self) -> BoxFuture<'static, Option<String>> {
        self.link.why_closed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        self.link.close()
    }
}
