//! Every limit of a client, with its name, its default and what it protects.

use std::time::Duration;

use toolwire_protocol::caching::{CacheLimits, DEFAULT_MAX_BYTES, DEFAULT_MAX_ENTRIES, MAX_TTL};
use toolwire_transport::fair::QUEUE_BYTES;

const MIB: usize = 1024 * 1024;

/// Makes the struct, its defaults and its setters out of one table.
macro_rules! client_limits {
    ($($(#[$doc:meta])+ $name:ident: $kind:ty = $default:expr;)+) => {
        /// The limits of a client: what a server can make it hold, and for how long it can make it wait.
        ///
        /// All are finite; change those that do not fit. An error that is about one of them names it, in its text and
        /// in [`Error::limit`](crate::Error::limit).
        ///
        /// ```
        /// use toolwire_client::{Client, ClientLimits};
        ///
        /// let limits = ClientLimits::default().list_items(1_000).list_bytes(1024 * 1024);
        /// let builder = Client::builder("demo", "1.0").limits(limits);
        /// # let _ = builder;
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct ClientLimits {
            $($(#[$doc])+ pub $name: $kind,)+
        }

        impl Default for ClientLimits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl ClientLimits {
            $($(#[$doc])+
            #[must_use]
            pub const fn $name(mut self, limit: $kind) -> Self {
                self.$name = limit;
                self
            })+
        }
    };
}

client_limits! {
    /// How long a request may stay without an answer or progress. Default one minute.
    request_timeout: Duration = Duration::from_secs(60);
    /// How long a request may take altogether, whatever progress it makes. Default ten minutes.
    total_timeout: Duration = Duration::from_secs(10 * 60);
    /// How long the first `server/discover` may stay unanswered before the server is taken for a legacy one. Default
    /// five seconds.
    probe_timeout: Duration = Duration::from_secs(5);
    /// How many requests may wait for their answers at once; further ones fail as busy. Default 4096. Worst case:
    /// little more than its own message for each, and 64 KiB for each answer that has come and was not yet taken.
    pending_requests: usize = 4096;
    /// How many bytes may wait to be written to a server that does not read before calls and notifications wait, too.
    /// At twice that, answers to the server's own requests are dropped. Default 8 MiB.
    outgoing_bytes: usize = QUEUE_BYTES;
    /// How many bytes of the server's messages may wait in the client for somebody to take them: answers, progress,
    /// requests for a handler, the names of changed resources. Everything but answers may use a quarter of it. A call
    /// whose answer does not fit fails; one message of any size fits when nothing else waits. Default 64 MiB.
    waiting_bytes: usize = 64 * MIB;
    /// How many requests of the server may wait for a free handler; further ones are refused. Default 64.
    queued_server_requests: usize = 64;
    /// How many handlers may run at once for requests of the server. Default 16.
    concurrent_handlers: usize = 16;
    /// How many messages one batch of protocol version 2025-03-26 may hold. Default 256.
    batch_messages: usize = 256;
    /// How often a server may ask for input before one request is done. Default 10.
    rounds: usize = 10;
    /// How long a task is followed, whatever its server says of its life. Default 30 days.
    task_time: Duration = Duration::from_secs(30 * 24 * 60 * 60);
    /// How long the server of a task that is followed may be out of reach. Default five minutes.
    task_outage: Duration = Duration::from_secs(5 * 60);
    /// The shortest pause between two looks at a task, however often its server would like to be asked. Default
    /// 100 milliseconds.
    shortest_poll: Duration = Duration::from_millis(100);
    /// The longest pause between two looks at a task, however seldom its server would like to be asked. Default one
    /// minute.
    longest_poll: Duration = Duration::from_secs(60);
    /// How many questions one task may ask. Default 100.
    task_questions: usize = 100;
    /// How many tasks a server may have the client keep, those that have ended included. Default 256. Worst case:
    /// the answers of as many handlers.
    hosted_tasks: usize = 256;
    /// For how long the client keeps a task of a server, whatever that wishes. Default one hour.
    hosted_task_ttl: Duration = Duration::from_secs(60 * 60);
    /// How many pages of a list are fetched. Default 1000.
    list_pages: usize = 1000;
    /// How many items of a list are fetched, over all of its pages. Default 100,000. Worst case: about 1 KiB for each
    /// beside its text.
    list_items: usize = 100_000;
    /// How many bytes of a list are fetched, over all of its pages. Default 64 MiB. Worst case: that much for each
    /// list that is collected.
    list_bytes: usize = 64 * MIB;
    /// How many bytes a server may say of itself when a connection is made: its name, icons, capabilities and
    /// instructions. Default 1 MiB. Worst case: some ten times as much for each connection.
    server_info_bytes: usize = MIB;
    /// How many listeners may be open at once. Default 256.
    listeners: usize = 256;
    /// How many results the response cache may hold; with none there is no cache. Default 256.
    cache_entries: usize = DEFAULT_MAX_ENTRIES;
    /// How many bytes the response cache may hold. Default 16 MiB.
    cache_bytes: usize = DEFAULT_MAX_BYTES;
    /// The longest time for which a stored result is taken to be fresh, whatever the server says. Default one day.
    cache_ttl: Duration = MAX_TTL;
}

impl ClientLimits {
    pub(crate) fn cache(&self) -> CacheLimits {
        CacheLimits { entries: self.cache_entries, bytes: self.cache_bytes, ttl: self.cache_ttl }
    }
}
