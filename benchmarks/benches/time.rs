//! The same as `instructions.rs`, by the clock.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use toolwire::{Era, Server, protocol::Message, resource};
use toolwire_benchmarks::{
    DUMMIES,
    hot::{Endpoint, Operation, Pipe},
};

const ERAS: [(Era, &str); 2] = [(Era::Legacy, "legacy"), (Era::Modern, "modern")];

fn parse(criterion: &mut Criterion) {
    for (era, name) in ERAS {
        let message = Operation::Echo.request(era);
        criterion.bench_function(&format!("parse/{name}"), |bencher| {
            bencher.iter(|| Message::parse_and_peek(black_box(&message)));
        });
    }
}

fn pipe(criterion: &mut Criterion) {
    for (era, name) in ERAS {
        let mut pipe = Pipe::open(era, DUMMIES).expect("a pipe");
        for (operation, what) in [(Operation::Echo, "echo"), (Operation::List, "list")] {
            let request = operation.request(era);
            criterion.bench_function(&format!("pipe/{what}_{name}"), |bencher| {
                bencher.iter(|| pipe.call(black_box(&request)));
            });
        }
    }
}

fn endpoint(criterion: &mut Criterion) {
    for (era, name) in ERAS {
        let mut endpoint = Endpoint::open(era, usize::from(era == Era::Legacy)).expect("an endpoint");
        for (operation, what) in [(Operation::Echo, "echo"), (Operation::List, "list")] {
            let request = endpoint.request(operation).expect("a request");
            criterion.bench_function(&format!("endpoint/{what}_{name}"), |bencher| {
                bencher.iter_batched(
                    || request.clone(),
                    |request| endpoint.call(request),
                    BatchSize::SmallInput,
                );
            });
        }
    }
}

/// A hundred thousand resources that are added one by one while serving. It has to cost by the resource, so the whole
/// should stay far below a second.
fn offers(criterion: &mut Criterion) {
    const RESOURCES: usize = 100_000;
    let mut group = criterion.benchmark_group("offers");
    group.sample_size(10);
    group.bench_function("add_100_000", |bencher| {
        bencher.iter_batched(
            || {
                let server = Server::builder("bench", "0.0.0").build().expect("a server");
                let routes: Vec<_> =
                    (0..RESOURCES).map(|number| resource(format!("r://{number}"), || async { "" })).collect();
                (server, routes)
            },
            |(server, routes)| {
                for route in routes {
                    server.add_resource(route).expect("a free URI");
                }
                server
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, parse, pipe, endpoint, offers);
criterion_main!(benches);
