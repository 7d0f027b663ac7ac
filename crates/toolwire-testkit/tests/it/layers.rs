//! `tower` layers around one tool, a group and the whole server.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context as Task, Poll},
};

use serde_json::{Value, json};
use toolwire_protocol::{ErrorCode, RpcError};
use toolwire_server::{BoxError, Context, Group, Reply, Route, Server, prompt, tool};
use toolwire_testkit::each;
use tower_layer::Layer;
use tower_service::Service;

use crate::text;

/// Counts the requests that pass.
#[derive(Clone, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn seen(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Layer<Route> for Count {
    type Service = Counted;

    fn layer(&self, inner: Route) -> Counted {
        Counted { inner, count: self.clone() }
    }
}

#[derive(Clone)]
struct Counted {
    inner: Route,
    count: Count,
}

impl Service<Context> for Counted {
    type Response = Reply;
    type Error = RpcError;
    type Future = <Route as Service<Context>>::Future;

    fn poll_ready(&mut self, task: &mut Task<'_>) -> Poll<Result<(), RpcError>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, cx: Context) -> Self::Future {
        self.count.0.fetch_add(1, Ordering::SeqCst);
        self.inner.call(cx)
    }
}

/// Refuses everything, with whatever error it was given.
#[derive(Clone)]
struct Refuse(fn() -> BoxError);

impl Layer<Route> for Refuse {
    type Service = Self;

    fn layer(&self, _: Route) -> Self {
        self.clone()
    }
}

impl Service<Context> for Refuse {
    type Response = Reply;
    type Error = BoxError;
    type Future = std::future::Ready<Result<Reply, BoxError>>;

    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Context) -> Self::Future {
        std::future::ready(Err((self.0)()))
    }
}

#[tokio::test]
async fn see_the_requests_they_are_around() {
    each(async |setup| {
        let (one, group, all) = (Count::default(), Count::default(), Count::default());
        let grouped = Group::new()
            .tool(tool("grouped", || async { "grouped" }))
            .tool(tool("one", || async { "one" }).layer(one.clone()))
            .prompt(prompt("grouped", || async { "grouped" }))
            .layer(group.clone())
            .tool(tool("late", || async { "late" }));
        let server = Server::builder("layers", "1.0")
            .layer(all.clone())
            .routes(grouped)
            .tool(tool("alone", || async { "alone" }))
            .build()
            .unwrap();
        let mut wire = setup.wire(&server).await;
        for name in ["one", "grouped", "late", "alone"] {
            let reply = wire.request("tools/call", json!({ "name": name })).await;
            assert_eq!(text(reply.result()), name);
        }
        wire.request("prompts/get", json!({ "name": "grouped" })).await.result();
        wire.request("tools/list", Value::Null).await.result();
        assert_eq!([one.seen(), group.seen(), all.seen()], [1, 3, 6]);
    })
    .await;
}

#[tokio::test]
async fn and_prefixes_belong_to_a_group() {
    let group =
        || Group::new().tool(tool("now", || async { "noon" })).prompt(prompt("ask", || async { "when?" }));
    let server = Server::builder("groups", "1.0")
        .routes(group().prefix("one_"))
        .routes(group().prefix("two_"))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("tools/list", Value::Null).await;
        assert_eq!(crate::names(&reply.result()["tools"], "name"), ["one_now", "two_now"]);
        assert_eq!(text(wire.request("tools/call", json!({ "name": "two_now" })).await.result()), "noon");
        wire.request("prompts/get", json!({ "name": "one_ask" })).await.result();
    })
    .await;
}

#[tokio::test]
async fn may_refuse_with_their_own_error() {
    let coded = || RpcError::new(ErrorCode(4711), "not today").into();
    let server = Server::builder("layers", "1.0")
        .tool(tool("coded", || async { "" }).layer(Refuse(coded)))
        .tool(tool("worded", || async { "" }).layer(Refuse(|| "overloaded".into())))
        .build()
        .unwrap();
    each(async |setup| {
        let mut wire = setup.wire(&server).await;
        let reply = wire.request("tools/call", json!({ "name": "coded" })).await;
        assert_eq!((reply.code(), reply.error_text()), (4711, "not today"));
        let reply = wire.request("tools/call", json!({ "name": "worded" })).await;
        assert_eq!((reply.code(), reply.error_text()), (-32603, "overloaded"));
    })
    .await;
}
