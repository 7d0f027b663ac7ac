//! A counter: a service struct whose methods are tools, prompts and resources.
//!
//! Run it with `cargo run -p toolwire-examples --example counter`, or look at it with
//! `toolwire call -- cargo run -p toolwire-examples --example counter`.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::Duration,
};

use toolwire::{prelude::*, wire::JsonObject};

/// What all callers share. `Session<T>` would be for what each session has of its own.
#[derive(Default)]
struct Counter {
    value: AtomicI64,
}

#[tools]
impl Counter {
    /// Adds one and says what the counter is at.
    #[tool]
    async fn increment(&self) -> String {
        self.add(1)
    }

    /// Takes one away and says what the counter is at.
    #[tool]
    async fn decrement(&self) -> String {
        self.add(-1)
    }

    /// Says what the counter is at.
    #[tool(read_only)]
    async fn get_value(&self) -> String {
        self.value().to_string()
    }

    /// Takes its time and tells how far it has come.
    #[tool]
    async fn long_task(&self, progress: Progress) -> &'static str {
        for second in 1..=10 {
            tokio::time::sleep(Duration::from_secs(1)).await;
            progress.report(f64::from(second), 10.0);
        }
        "done"
    }

    /// Greets whoever calls, by name if it gave one.
    #[tool(read_only)]
    async fn say_hello(&self, caller: Caller) -> String {
        let name = caller.info().map_or("whoever you are", |info| &info.name);
        format!("hello, {name}")
    }

    /// Gives back whatever it is sent.
    #[tool(read_only)]
    fn echo(&self, Args(anything): Args<JsonObject>) -> String {
        json!(anything).to_string()
    }

    /// Adds two numbers.
    #[tool(read_only)]
    fn sum(&self, a: i32, b: i32) -> Json<i64> {
        Json(i64::from(a) + i64::from(b))
    }

    /// How often this session has asked.
    #[tool]
    async fn visits(&self, visits: Session<AtomicI64>) -> String {
        (visits.fetch_add(1, Ordering::Relaxed) + 1).to_string()
    }

    /// Puts a message into a prompt.
    #[prompt]
    async fn example_prompt(&self, message: String) -> String {
        format!("Answer this message: {message}")
    }

    /// How to get from where the counter is to a goal.
    #[prompt]
    async fn counter_analysis(
        &self,
        /// Where to get.
        goal: i64,
        /// "fast" or "careful".
        strategy: Option<String>,
    ) -> Vec<PromptMessage> {
        let (value, strategy) = (self.value(), strategy.as_deref().unwrap_or("careful"));
        let (missing, direction) = ((goal - value).abs(), if goal < value { "down" } else { "up" });
        vec![
            PromptMessage::assistant("Let us see how far it is."),
            PromptMessage::user(format!(
                "The counter is at {value} and should be at {goal}: {missing} steps {direction}. Be {strategy}."
            )),
        ]
    }

    /// The folder that the server works in.
    #[resource("counter://cwd")]
    async fn cwd(&self) -> &'static str {
        "/srv/counter"
    }

    /// What was found out so far.
    #[resource("memo://insights")]
    async fn insights(&self) -> String {
        format!("The counter is at {}.", self.value())
    }

    fn add(&self, step: i64) -> String {
        (self.value.fetch_add(step, Ordering::Relaxed) + step).to_string()
    }

    fn value(&self) -> i64 {
        self.value.load(Ordering::Relaxed)
    }
}

/// The server, for any transport.
pub(crate) fn server() -> Result<Server> {
    Ok(Server::builder("counter", "1.0")
        .instructions("Count with increment and decrement; counter_analysis helps to reach a goal.")
        .routes(Counter::default())
        .build()?)
}

#[tokio::main]
async fn main() -> Result<()> {
    server()?.serve(stdio()?).await?;
    Ok(())
}
