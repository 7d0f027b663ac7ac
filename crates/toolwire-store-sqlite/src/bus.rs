//! Wakes of this process and of others that have the same file open.

use std::sync::Arc;

use toolwire_store::{Bus, Hub, Op, Topic, Wakes};

use crate::thread::Threads;

#[derive(Debug)]
pub(crate) struct SqliteBus {
    threads: Arc<Threads>,
    hub: Hub,
}

impl SqliteBus {
    pub(crate) fn new(threads: Arc<Threads>, hub: Hub) -> Self {
        Self { threads, hub }
    }
}

impl Bus for SqliteBus {
    fn wake<'a>(&'a self, topics: &'a [Topic]) -> Op<'a, ()> {
        let topics = topics.to_vec();
        // The writer tells this process and the others.
        self.threads.write(move |at| {
            at.wakes.extend(topics);
            Ok(())
        })
    }

    fn listen(&self) -> Wakes {
        self.hub.listen()
    }
}
