//! The walk through a server that offers the shared catalogue of `interop/README.md`.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use toolwire::{
    Client, ErrorCode,
    client::{CallOutcome, Error, ErrorKind},
    protocol::{Method, Notification},
    wire::{
        CompletionReference, LoggingLevel, PromptReference, ResourceContents, ResourceTemplateReference, Role,
    },
};

use crate::report::Report;

/// Everything that completion may offer.
const NAMES: [&str; 5] = ["Ada", "Alan", "Barbara", "Grace", "Linus"];

/// The log notifications that have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logs(Arc<Mutex<Vec<Value>>>);

impl Logs {
    /// Keeps a notification if it is a log message.
    pub(crate) fn note(&self, notification: &Notification) {
        if notification.method.known() == Some(Method::LoggingMessage) {
            let params = notification.params.decode().unwrap_or_default();
            self.0.lock().unwrap_or_else(PoisonError::into_inner).push(params);
        }
    }

    fn take(&self) -> Vec<Value> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A walk: where to report, whom to ask.
pub(crate) struct Walk<'a> {
    pub(crate) report: &'a mut Report,
    pub(crate) client: &'a Client,
    pub(crate) logs: &'a Logs,
}

impl Walk<'_> {
    /// Makes all checks.
    pub(crate) async fn run(mut self) {
        self.lists().await;
        self.tools().await;
        self.progress_and_logs().await;
        self.resources().await;
        self.prompts().await;
        self.completion().await;
        self.lifecycle().await;
    }

    async fn lists(&mut self) {
        let Self { report, client, .. } = self;
        report.check("tools/list", tools_list(client)).await;
        let resources = async {
            let resources = client.all_resources().await?;
            let uris: Vec<_> = resources.iter().map(|resource| resource.uri.as_str()).collect();
            ensure!(uris.contains(&"demo://greeting") && uris.contains(&"demo://logo"), "{uris:?}");
            Ok(())
        };
        report.check("resources/list", resources).await;
        let templates = async {
            let templates = client.all_resource_templates().await?;
            ensure!(templates.iter().any(|template| template.uri_template == "demo://users/{name}"));
            Ok(())
        };
        report.check("resources/templates/list", templates).await;
        let prompts = async {
            let prompts = client.all_prompts().await?;
            let greet = prompts.iter().find(|prompt| prompt.name == "greet").context("no greet")?;
            let arguments: Vec<_> =
                greet.arguments.iter().flatten().map(|it| (it.name.as_str(), it.required)).collect();
            ensure!(arguments == [("name", Some(true))], "{arguments:?}");
            Ok(())
        };
        report.check("prompts/list", prompts).await;
    }

    async fn tools(&mut self) {
        let Self { report, client, .. } = self;
        let structured = async {
            let sum = client.call("add", json!({ "a": 2, "b": 40 })).await?.into_result()?;
            let data: Value = sum.structured().context("no structured content")?.decode()?;
            ensure!(data == json!({ "sum": 42 }), "{data}");
            ensure!(sum.text().contains("42"), "{:?}", sum.text());
            Ok(())
        };
        report.check("tools/call with structured content", structured).await;
        let text = "héllo\n\"wörld\" \u{2028} 🦀".to_owned();
        report.check("tools/call with text", echo(client.clone(), text)).await;
        let large = "x".repeat(256 * 1024);
        report.check("tools/call with 256 KiB", echo(client.clone(), large)).await;
        report.check("32 calls at once", many_calls(client)).await;
        let fails = async { is_error(&client.call("fail", json!({})).await?) };
        report.check("a tool that fails is a result with isError", fails).await;
        let unfit = async { is_error(&client.call("add", json!({ "a": "two", "b": 40 })).await?) };
        report.check("arguments that do not fit are a result with isError", unfit).await;
        let unknown = async {
            // Older SDKs answer with a failed result, which the early revisions left open.
            match client.call("no-such-tool", json!({})).await {
                Ok(outcome) => is_error(&outcome),
                refused => has_code(&refusal(refused)?, &[ErrorCode::INVALID_PARAMS]),
            }
        };
        report.check("an unknown tool is refused", unknown).await;
    }

    async fn progress_and_logs(&mut self) {
        let Self { report, client, logs } = self;
        report.check("progress", progress(client)).await;
        if client.version().is_modern() {
            let silent = async {
                logs.take();
                client.call("count", json!({ "to": 2 })).await?.into_result()?;
                let logs = logs.take();
                ensure!(logs.is_empty(), "{logs:?}");
                Ok(())
            };
            report.check("no log without asking", silent).await;
        } else {
            let set = async { Ok(client.set_log_level(LoggingLevel::Debug).await?) };
            report.check("logging/setLevel", set).await;
        }
        let loud = async {
            logs.take();
            let call = client.call("count", json!({ "to": 2 })).log_level(LoggingLevel::Debug);
            call.await?.into_result()?;
            let logs = logs.take();
            let fits = |log: &Value| log["level"].is_string() && log.get("data").is_some();
            ensure!(!logs.is_empty() && logs.iter().all(fits), "{logs:?}");
            Ok(())
        };
        report.check("log messages", loud).await;
    }

    async fn resources(&mut self) {
        let Self { report, client, .. } = self;
        let text = async {
            let (text, mime_type) = read_text(client, "demo://greeting").await?;
            ensure!(text == "Hello from Toolwire", "{text:?}");
            ensure!(mime_type.as_deref() == Some("text/plain"), "{mime_type:?}");
            Ok(())
        };
        report.check("resources/read of text", text).await;
        let blob = async {
            let ResourceContents::Blob(blob) = read(client, "demo://logo").await? else {
                bail!("not a blob")
            };
            ensure!(blob.mime_type.as_deref() == Some("image/png"), "{:?}", blob.mime_type);
            // The signature of a PNG file in base64.
            ensure!(blob.blob.starts_with("iVBORw0KGgo"), "not a PNG");
            Ok(())
        };
        report.check("resources/read of a blob", blob).await;
        let template = async {
            let (text, _) = read_text(client, "demo://users/Ada").await?;
            ensure!(text == "Hello, Ada!", "{text:?}");
            Ok(())
        };
        report.check("resources/read of a template", template).await;
        let unknown = async {
            let refused = refusal(client.read("demo://no/such/resource").await)?;
            has_code(&refused, &[ErrorCode::INVALID_PARAMS, ErrorCode::RESOURCE_NOT_FOUND])
        };
        report.check("an unknown resource is refused", unknown).await;
    }

    async fn prompts(&mut self) {
        let Self { report, client, .. } = self;
        let greet = async {
            let prompt = client.get_prompt("greet", json!({ "name": "Ada" })).await?;
            let [message] = prompt.messages.as_slice() else { bail!("{:?}", prompt.messages) };
            ensure!(message.role == Role::User, "{:?}", message.role);
            let text = message.content.as_text();
            ensure!(text == Some("Please greet Ada warmly."), "{text:?}");
            Ok(())
        };
        report.check("prompts/get", greet).await;
        let without = async { refusal(client.get_prompt("greet", Value::Null).await).map(drop) };
        report.check("a prompt without its argument is refused", without).await;
        let unknown = async { refusal(client.get_prompt("no-such-prompt", Value::Null).await).map(drop) };
        report.check("an unknown prompt is refused", unknown).await;
    }

    async fn completion(&mut self) {
        let Self { report, client, .. } = self;
        let prompt = async {
            completes(client, PromptReference::new("greet"), "A", &["Ada", "Alan"]).await?;
            completes(client, PromptReference::new("greet"), "", &NAMES).await
        };
        report.check("completion of a prompt argument", prompt).await;
        let template = ResourceTemplateReference::new("demo://users/{name}");
        let template = completes(client, template, "G", &["Grace"]);
        report.check("completion of a template variable", template).await;
    }

    async fn lifecycle(&mut self) {
        let Self { report, client, .. } = self;
        if client.version().is_modern() {
            let discover = async {
                let versions = client.discover().fresh().await?.supported_versions;
                ensure!(versions.iter().any(|version| version == "2026-07-28"), "{versions:?}");
                Ok(())
            };
            report.check("server/discover", discover).await;
            let listen = async { Ok(client.listen().tools().await.map(drop)?) };
            report.check("subscriptions/listen is acknowledged", listen).await;
        } else {
            report.check("ping", async { Ok(client.ping().await?) }).await;
        }
        let unknown = async {
            let refused = refusal(client.raw().request("no/such/method", json!({})).await)?;
            has_code(&refused, &[ErrorCode::METHOD_NOT_FOUND])
        };
        report.check("an unknown method is -32601", unknown).await;
    }
}

async fn tools_list(client: &Client) -> Result<()> {
    let tools = client.all_tools().await?;
    let named = |name: &str| tools.iter().find(|tool| tool.name == name).context(format!("no tool {name}"));
    for name in ["echo", "fail", "count"] {
        named(name)?;
    }
    let add = named("add")?;
    let mut required: Vec<_> = add.input_schema["required"].as_array().into_iter().flatten().collect();
    required.sort_by_key(|name| name.as_str());
    ensure!(required == ["a", "b"], "{required:?}");
    let output = add.output_schema.as_ref().context("add does not declare its output")?;
    ensure!(output["properties"].get("sum").is_some(), "{output:?}");
    Ok(())
}

async fn echo(client: Client, text: String) -> Result<()> {
    let said = client.call("echo", json!({ "text": text })).await?.into_result()?.text();
    ensure!(said == text, "{} bytes came back as {}", text.len(), said.len());
    Ok(())
}

async fn many_calls(client: &Client) -> Result<()> {
    let calls: JoinSet<_> = (0..32).map(|call| echo(client.clone(), format!("call {call}"))).collect();
    calls.join_all().await.into_iter().collect()
}

async fn progress(client: &Client) -> Result<()> {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let steps = Arc::clone(&seen);
    let note = move |step: f64| steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
    let call = client.call("count", json!({ "to": 3 })).progress(move |step| note(step.progress.as_f64()));
    call.await?.into_result()?;
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    ensure!(seen.last() == Some(&3.0) && seen.is_sorted(), "{seen:?}");
    Ok(())
}

async fn read(client: &Client, uri: &str) -> Result<ResourceContents> {
    let mut contents = client.read(uri).await?.contents;
    ensure!(contents.len() == 1, "{} contents", contents.len());
    let contents = contents.remove(0);
    ensure!(contents.uri() == uri, "{}", contents.uri());
    Ok(contents)
}

async fn read_text(client: &Client, uri: &str) -> Result<(String, Option<String>)> {
    match read(client, uri).await? {
        ResourceContents::Text(contents) => Ok((contents.text, contents.mime_type)),
        other => bail!("not a text: {other:?}"),
    }
}

async fn completes(
    client: &Client,
    reference: impl Into<CompletionReference>,
    typed: &str,
    expected: &[&str],
) -> Result<()> {
    let values = client.complete(reference, "name", typed).await?.completion.values;
    ensure!(values == expected, "{values:?}");
    Ok(())
}

fn is_error(outcome: &CallOutcome) -> Result<()> {
    ensure!(outcome.is_error(), "it succeeded");
    ensure!(outcome.content().iter().any(|content| content.as_text().is_some()), "it has no text");
    Ok(())
}

/// What a server refused with; fails when it did not refuse, or when nobody was there to refuse.
fn refusal<T>(answer: Result<T, Error>) -> Result<Error> {
    match answer {
        Ok(_) => bail!("it was not refused"),
        Err(error) if error.kind() == ErrorKind::Rpc => Ok(error),
        Err(error) => Err(error.into()),
    }
}

fn has_code(refused: &Error, expected: &[ErrorCode]) -> Result<()> {
    let code = refused.rpc().map(|error| error.code);
    ensure!(code.is_some_and(|code| expected.contains(&code)), "{refused}");
    Ok(())
}
