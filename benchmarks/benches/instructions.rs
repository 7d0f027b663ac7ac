//! Instructions per call, counted by callgrind. `cargo xtask bench` compares them with `budgets.txt`.
#![expect(
    clippy::exit,
    missing_docs,
    unused_qualifications,
    reason = "the macros write public functions and whole paths, and end the process"
)]

use std::hint::black_box;

use bytes::Bytes;
use gungraun::{Callgrind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main};
use http::Request;
use http_body_util::Full;
use toolwire::{Era, protocol::Message};
use toolwire_benchmarks::{
    DUMMIES,
    hot::{Endpoint, Operation, Pipe},
};

const MANY: usize = 10_000;

fn message(era: Era) -> Bytes {
    Operation::Echo.request(era)
}

// The envelope of a message and the shallow look at its parameters.
#[library_benchmark(setup = message)]
#[bench::legacy(Era::Legacy)]
#[bench::modern(Era::Modern)]
fn parse(message: Bytes) -> Bytes {
    let _ = black_box(Message::parse_and_peek(black_box(&message)));
    message
}

fn open_pipe(era: Era, dummies: usize, operation: Operation) -> (Pipe, Bytes) {
    // Made first, so that it takes nothing that the calls before have left for the next one.
    let request = operation.request(era);
    (Pipe::open(era, dummies).expect("a pipe"), request)
}

fn open_traced_pipe(era: Era) -> (Pipe, Bytes) {
    tracing::subscriber::set_global_default(Ignoring).expect("the first subscriber");
    open_pipe(era, DUMMIES, Operation::Echo)
}

// A request over a pipe, from bytes to bytes.
#[library_benchmark]
#[bench::echo_legacy(args = (Era::Legacy, DUMMIES, Operation::Echo), setup = open_pipe)]
#[bench::echo_modern(args = (Era::Modern, DUMMIES, Operation::Echo), setup = open_pipe)]
#[bench::echo_modern_without_dummies(args = (Era::Modern, 0, Operation::Echo), setup = open_pipe)]
#[bench::echo_modern_many_tools(args = (Era::Modern, MANY, Operation::Echo), setup = open_pipe)]
#[bench::echo_modern_ignoring_subscriber(args = (Era::Modern), setup = open_traced_pipe)]
#[bench::list_modern(args = (Era::Modern, DUMMIES, Operation::List), setup = open_pipe)]
fn pipe((mut pipe, request): (Pipe, Bytes)) -> Pipe {
    let _ = black_box(pipe.call(black_box(&request)));
    pipe
}

fn open_endpoint(era: Era, sessions: usize, operation: Operation) -> (Endpoint, Request<Full<Bytes>>) {
    let endpoint = Endpoint::open(era, sessions).expect("an endpoint");
    let request = endpoint.request(operation).expect("a request");
    (endpoint, request)
}

fn open_with_peer(era: Era, sessions: usize) -> (Endpoint, Request<Full<Bytes>>) {
    let endpoint = Endpoint::open_with_peer(era, sessions).expect("an endpoint");
    let request = endpoint.request(Operation::Echo).expect("a request");
    (endpoint, request)
}

fn open_guarded(era: Era, sessions: usize) -> (Endpoint, Request<Full<Bytes>>) {
    let endpoint = Endpoint::open_guarded(era, sessions).expect("an endpoint");
    let request = endpoint.request(Operation::Echo).expect("a request");
    (endpoint, request)
}

// A request over HTTP, from its parsed headers and its body to the body of the response.
#[library_benchmark]
#[bench::echo_legacy(args = (Era::Legacy, 1, Operation::Echo), setup = open_endpoint)]
#[bench::echo_legacy_many_sessions(args = (Era::Legacy, MANY, Operation::Echo), setup = open_endpoint)]
#[bench::echo_modern(args = (Era::Modern, 0, Operation::Echo), setup = open_endpoint)]
#[bench::list_modern(args = (Era::Modern, 0, Operation::List), setup = open_endpoint)]
#[bench::peer_echo_legacy(args = (Era::Legacy, 1), setup = open_with_peer)]
#[bench::peer_echo_modern(args = (Era::Modern, 0), setup = open_with_peer)]
#[bench::guarded_echo_legacy(args = (Era::Legacy, 1), setup = open_guarded)]
#[bench::guarded_echo_modern(args = (Era::Modern, 0), setup = open_guarded)]
fn endpoint((mut endpoint, request): (Endpoint, Request<Full<Bytes>>)) -> Endpoint {
    let _ = black_box(endpoint.call(black_box(request)));
    endpoint
}

/// A subscriber that wants nothing of us, as most programs have one.
struct Ignoring;

impl tracing::Subscriber for Ignoring {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

library_benchmark_group!(name = protocol, benchmarks = parse);
library_benchmark_group!(name = server, benchmarks = [pipe, endpoint]);

main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = [protocol, server]
);
