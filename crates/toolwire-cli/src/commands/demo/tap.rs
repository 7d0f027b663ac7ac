//! Notes what passes, so that the tour shows what was said and not what should have been.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde::Deserialize;
use toolwire::client::Observed;

/// How many messages are kept, from the first on. A connection is made with three at most.
const MAX_KEPT: usize = 8;

/// What has passed between a client and its server.
#[derive(Clone, Debug, Default)]
pub(super) struct Tap(Arc<Mutex<Vec<(Direction, Bytes)>>>);

/// Which way a message went, seen from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Sent,
    Received,
}

impl Tap {
    /// What a client is to be observed with.
    pub(super) fn listener(&self) -> impl Fn(Observed) + Send + Sync + 'static + use<> {
        let tap = self.clone();
        move |observed| match observed {
            Observed::Sent(message) => tap.note(Direction::Sent, message),
            Observed::Received(message) => tap.note(Direction::Received, message),
            _ => {}
        }
    }

    /// The first messages, each by its method, or as the answer to one.
    pub(super) fn first_messages(&self) -> Vec<(Direction, String)> {
        #[derive(Deserialize)]
        struct Named {
            method: Option<String>,
        }

        let name = |message: &Bytes| match serde_json::from_slice(message) {
            Ok(Named { method: Some(method) }) => method,
            Ok(Named { method: None }) => "result".to_owned(),
            Err(_) => "not a message".to_owned(),
        };
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|(direction, message)| (*direction, name(message))).collect()
    }

    fn note(&self, direction: Direction, message: Bytes) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_KEPT {
            kept.push((direction, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_messages_are_kept() {
        let tap = Tap::default();
        let hear = tap.listener();
        for message in ["{\"method\":\"ping\"}", "{\"result\":{}}", "?"].iter().cycle().take(20) {
            hear(Observed::Sent(Bytes::from_static(message.as_bytes())));
        }
        let seen = tap.first_messages();
        assert_eq!(seen.len(), MAX_KEPT);
        let names: Vec<_> = seen.iter().take(3).map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["ping", "result", "not a message"]);
        assert!(seen.iter().all(|(direction, _)| *direction == Direction::Sent));
    }
}
