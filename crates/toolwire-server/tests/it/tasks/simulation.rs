//! Three nodes, one store, and everything that may go wrong between them, from a seed.
//!
//! A node can be cut off for a while or for ever, its store can be slow or lose its reply after the write, and its wakes
//! can be lost. Whatever happens: every task that a caller was told of ends, no step is run after it was recorded, every
//! run of a handler sees the same results, and no answer that was taken is lost. `TOOLWIRE_SEED=n` runs one seed,
//! `TOOLWIRE_SEEDS=n` so many. Ids and jitter are random, so a seed fixes the faults and the workload, not every moment.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, atomic::AtomicU64},
};

use serde_json::json;
use toolwire_server::{Context, TaskPolicy, tool};
use toolwire_store::{Bus, Hub, Op, Store, Topic, Wakes};

use super::{
    tap::{Fate, Tap},
    *,
};

const SEEDS: u64 = 60;
const TASKS: usize = 6;
const STEPS: [&str; 3] = ["one", "two", "three"];

/// A generator of numbers that are random enough.
#[derive(Clone)]
struct Dice(Arc<AtomicU64>);

impl Dice {
    fn new(seed: u64) -> Self {
        Self(Arc::new(AtomicU64::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)))
    }

    fn below(&self, most: u64) -> u64 {
        let mut x = self.0.load(std::sync::atomic::Ordering::SeqCst);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, std::sync::atomic::Ordering::SeqCst);
        (x >> 11) % most
    }
}

/// A bus whose wakes never come.
#[derive(Debug, Default)]
struct DeafBus(Hub);

impl Bus for DeafBus {
    fn wake<'a>(&'a self, _: &'a [Topic]) -> Op<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    fn listen(&self) -> Wakes {
        self.0.listen()
    }
}

/// What handlers have done.
#[derive(Default)]
struct Ledger {
    /// The value of each step that was recorded, by task and step.
    recorded: Mutex<BTreeMap<(String, &'static str), u64>>,
    executions: AtomicU64,
    faults: Mutex<Vec<String>>,
}

impl Ledger {
    fn fault(&self, fault: String) {
        self.faults.lock().unwrap().push(fault);
    }

    fn runs(&self, call: &str, step: &'static str) -> u64 {
        if self.recorded.lock().unwrap().contains_key(&(call.to_owned(), step)) {
            self.fault(format!("{step} of {call} is run after it was recorded"));
        }
        self.executions.fetch_add(1, std::sync::atomic::Ordering::SeqCst)
    }

    fn records(&self, call: &str, step: &'static str, value: u64) {
        let known = *self.recorded.lock().unwrap().entry((call.to_owned(), step)).or_insert(value);
        if known != value {
            self.fault(format!("{step} of {call} was {known} and is {value}"));
        }
    }
}

async fn work(cx: Context, ledger: Arc<Ledger>, dice: Dice) -> String {
    let call = cx.idempotency_key("call");
    let mut values = Vec::new();
    for (number, step) in STEPS.into_iter().enumerate() {
        let pause = Duration::from_millis(dice.below(8000));
        let value = cx.once(step, async {
            let value = ledger.runs(&call, step);
            tokio::time::sleep(pause).await;
            value
        });
        let value = value.await.unwrap();
        ledger.records(&call, step, value);
        values.push(value.to_string());
        if number == 0 {
            let name = cx.elicit::<Name>("Name?").key("n").accepted().await.unwrap().name;
            values.push(name);
        }
        if number == 1 {
            cx.sleep("rest", seconds(70)).await.unwrap();
        }
    }
    values.join(" ")
}

struct World {
    bench: Bench,
    dice: Dice,
    ledger: Arc<Ledger>,
}

impl World {
    /// Returns a node that reaches the store by a tap of its own.
    fn node(&self) -> (Server, Tap) {
        let tap = Tap::to(&self.bench);
        let mut store = self.bench.store.clone().with_tasks(Arc::new(tap.clone()));
        if self.dice.below(3) == 0 {
            let deaf: Arc<dyn Bus> = Arc::new(DeafBus::default());
            store = Store::new(
                store.tasks().clone(),
                store.sessions().clone(),
                store.log().clone(),
                deaf,
                store.nonces().clone(),
            );
        }
        let (ledger, dice) = (Arc::clone(&self.ledger), self.dice.clone());
        let handler = move |cx: Context| work(cx, Arc::clone(&ledger), dice.clone());
        let route = tool("work", handler).task(TaskPolicy::required().attempts(50));
        (Server::builder("t", "1").store(store).tool(route).build().unwrap(), tap)
    }

    /// Makes trouble for some minutes.
    async fn trouble(&self) {
        let mut nodes: Vec<_> = (0..3).map(|_| self.node()).collect();
        for (server, _) in &nodes {
            server.start_tasks();
        }
        for _ in 0..12 {
            let at = usize::try_from(self.dice.below(3)).unwrap();
            let kind = self.dice.below(6);
            match kind {
                // It is gone for ever, and another one comes.
                0 => {
                    nodes[at].1.all(Fate::Fails);
                    nodes[at] = self.node();
                    nodes[at].0.start_tasks();
                }
                1 => nodes[at].1.all(Fate::Fails),
                2 => nodes[at].1.all(Fate::Takes(Duration::from_millis(self.dice.below(4000)))),
                3 => nodes[at].1.lose_every_third_reply(),
                4 => nodes[at].1.all(Fate::Takes(seconds(6))),
                _ => nodes[at].1.all(Fate::Done),
            }
            tokio::time::sleep(Duration::from_millis(self.dice.below(30_000))).await;
        }
        for (_, tap) in &nodes {
            tap.all(Fate::Done);
        }
        // They go on until everything has ended.
        std::future::pending::<()>().await;
        drop(nodes);
    }

    /// Answers what is asked, each key once, after some time.
    async fn answers(&self, ids: &[TaskId]) {
        let mut answered = BTreeSet::new();
        loop {
            tokio::time::sleep(Duration::from_millis(1 + self.dice.below(3000))).await;
            for id in ids {
                let Some(view) = self.bench.view(*id).await else { continue };
                for open in view.open {
                    if !answered.insert((*id, open.key.clone())) {
                        self.ledger.fault(format!("{} of {id:?} was answered and is open again", open.key));
                    }
                    self.bench.answer(*id, &open.key, json!({"name": "me"})).await;
                }
            }
        }
    }

    async fn run(&self) {
        let (server, _) = self.node();
        let mut client = Modern::connect(&server);
        let mut ids = Vec::new();
        for _ in 0..TASKS {
            ids.push(client.start("work").await);
        }
        let ended = async {
            for id in &ids {
                let view = self.bench.ended(*id).await;
                let said = told(&view);
                if view.head.status != TaskStatus::Completed || said.split(' ').nth(1) != Some("me") {
                    self.ledger.fault(format!("{id:?} came to {:?}: {said}", view.head.status));
                }
            }
        };
        tokio::select! {
            () = ended => {}
            () = self.trouble() => {}
            () = self.answers(&ids) => {}
            () = tokio::time::sleep(seconds(6 * 3600)) => self.ledger.fault("something never ended".to_owned()),
        }
        server.shutdown();
    }
}

fn run(seed: u64) -> Vec<String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let world = World { bench: Bench::new(), dice: Dice::new(seed), ledger: Arc::default() };
        world.run().await;
        world.ledger.faults.lock().unwrap().clone()
    })
}

#[test]
fn whatever_happens_to_its_nodes_every_task_ends_and_nothing_is_done_twice() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seeds = match number("TOOLWIRE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..number("TOOLWIRE_SEEDS").unwrap_or(SEEDS) + 1,
    };
    for seed in seeds {
        let faults = run(seed);
        assert!(faults.is_empty(), "seed {seed}: {faults:#?}");
    }
}
