//! Who waits for news of which task. News only wake: whoever is woken asks the server how the task stands, so that
//! nothing depends on their order, and many of them weigh no more than one.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use serde::Deserialize;
use tokio::sync::Notify;
use toolwire_protocol::{
    Params,
    wire::{Meta, ProgressNotificationParams, RelatedTaskMetadata, meta::RELATED_TASK},
};

use crate::lock::lock;

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    by_task: Mutex<HashMap<Box<str>, Vec<Arc<Watcher>>>>,
}

#[derive(Debug, Default)]
struct Watcher {
    news: Mutex<News>,
    woken: Notify,
}

/// What there is to know.
#[derive(Debug, Default)]
pub(super) struct News {
    /// It may stand differently.
    pub(super) changed: bool,
    /// The latest progress.
    pub(super) progress: Option<ProgressNotificationParams>,
}

/// Waits for news of one task until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    id: Box<str>,
    watcher: Arc<Watcher>,
    all: Arc<Watchers>,
}

impl Watchers {
    pub(super) fn watch(self: &Arc<Self>, id: &str) -> Watch {
        let watcher = Arc::new(Watcher::default());
        lock(&self.by_task).entry(id.into()).or_default().push(Arc::clone(&watcher));
        Watch { id: id.into(), watcher, all: Arc::clone(self) }
    }

    /// The server tells how a task stands.
    pub(crate) fn changed(&self, params: &Params) {
        #[derive(Deserialize)]
        struct About {
            #[serde(rename = "taskId")]
            id: String,
        }

        if !self.is_empty()
            && let Ok(About { id }) = params.decode()
        {
            self.tell(&id, |news| news.changed = true);
        }
    }

    /// The server tells of progress that belongs to a task.
    pub(crate) fn progress(&self, params: &Params) {
        #[derive(Deserialize)]
        struct Tagged {
            #[serde(rename = "_meta")]
            meta: Option<Meta>,
        }

        if self.is_empty() {
            return;
        }
        let meta = params.decode::<Tagged>().ok().and_then(|tagged| tagged.meta);
        let related = meta.and_then(|meta| meta.decode::<RelatedTaskMetadata>(RELATED_TASK)?.ok());
        if let (Some(related), Ok(progress)) = (related, params.decode()) {
            self.tell(&related.task_id, |news| news.progress = Some(progress));
        }
    }

    fn is_empty(&self) -> bool {
        lock(&self.by_task).is_empty()
    }

    fn tell(&self, id: &str, note: impl FnOnce(&mut News) + Clone) {
        let watchers = lock(&self.by_task).get(id).cloned().unwrap_or_default();
        for watcher in watchers {
            note.clone()(&mut lock(&watcher.news));
            watcher.woken.notify_one();
        }
    }
}

impl Watch {
    /// Wakes whoever waits here.
    pub(super) fn wake(&self) {
        lock(&self.watcher.news).changed = true;
        self.watcher.woken.notify_one();
    }

    /// Waits for news.
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready has taken none.
    pub(super) async fn next(&self) -> News {
        loop {
            {
                let mut news = lock(&self.watcher.news);
                if news.changed || news.progress.is_some() {
                    return std::mem::take(&mut news);
                }
            }
            self.watcher.woken.notified().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut by_task = lock(&self.all.by_task);
        if let Some(watchers) = by_task.get_mut(&self.id) {
            watchers.retain(|other| !Arc::ptr_eq(other, &self.watcher));
            if watchers.is_empty() {
                by_task.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolwire_protocol::RawJson;

    use super::*;

    fn params(value: &serde_json::Value) -> Params {
        RawJson::from(value).into()
    }

    #[tokio::test]
    async fn a_flood_of_news_is_one_and_only_of_the_own_task() {
        let all = Arc::new(Watchers::default());
        all.changed(&params(&json!({"taskId": "a"})));
        let (a, again) = (all.watch("a"), all.watch("a"));
        for progress in 0..10_000 {
            all.changed(&params(&json!({"taskId": "a"})));
            all.changed(&params(&json!({"taskId": "b"})));
            let meta = json!({RELATED_TASK: {"taskId": "a"}});
            all.progress(&params(&json!({"progressToken": 1, "progress": progress, "_meta": meta})));
        }
        for watch in [&a, &again] {
            let news = watch.next().await;
            assert!(news.changed);
            assert_eq!(news.progress.unwrap().progress.as_f64().to_string(), "9999");
            assert!(tokio::time::timeout(std::time::Duration::ZERO, watch.next()).await.is_err());
        }
        drop(a);
        assert_eq!(lock(&all.by_task).len(), 1);
        drop(again);
        assert!(all.is_empty());
    }
}
