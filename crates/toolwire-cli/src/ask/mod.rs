//! Asking in the terminal: the forms, pages and models that servers ask for, and arguments that are missing.
//!
//! Without a terminal nobody is asked: what `--answer` and `--yes` do not answer is declined, and said so.

mod answers;
mod field;
mod form;
mod format;
mod sampling;
mod url;

use std::{
    collections::HashSet,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use inquire::InquireError;
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;
use toolwire::{
    ErrorCode, RpcError,
    client::{ClientBuilder, Elicit, ElicitReply},
    wire::{CreateMessageRequestParams, CreateMessageResult, LoggingLevel, RequestedSchema},
};

use crate::{
    failure::{Code, Failure, Result},
    render::Live,
    session::{Signal, Stop, interrupted},
    target::shell_word,
    terminal::{Terminal, printable},
    tickets::LeftTask,
};

pub(crate) use answers::AnswerOptions;
use answers::Answers;
pub(crate) use field::Field;

/// The number of fields that a hint names.
const MAX_HINTED: usize = 8;

/// How many questions are open in the terminal.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// Declares what [`Asker`] can be asked, for commands during which nobody is: servers offer by what clients can.
pub(crate) fn declare(builder: ClientBuilder) -> ClientBuilder {
    let refused = || RpcError::new(ErrorCode::SAMPLING_REJECTED, "nothing is sampled while lists are made");
    builder
        .elicit_url(true)
        .on_elicit(async |_| ElicitReply::decline())
        .on_sample(move |_| std::future::ready(Err(refused())))
}

/// Gives the terminal back when a question is left open, which nobody will answer any more.
pub(crate) fn release_terminal() {
    if OPEN.load(Ordering::Acquire) > 0 {
        let _ = crossterm::terminal::disable_raw_mode();
        let _ = crossterm::execute!(std::io::stderr(), crossterm::cursor::Show);
    }
}

/// Runs a question where it may block, and keeps count of it.
pub(crate) async fn in_terminal<T: Send + 'static>(
    question: impl FnOnce() -> Result<T, InquireError> + Send + 'static,
) -> Result<T, InquireError> {
    let asked = tokio::task::spawn_blocking(move || {
        OPEN.fetch_add(1, Ordering::AcqRel);
        let answer = question();
        OPEN.fetch_sub(1, Ordering::AcqRel);
        answer
    });
    asked.await.unwrap_or(Err(InquireError::OperationCanceled))
}

/// Asks for arguments that are missing.
pub(crate) async fn for_fields(fields: Vec<Field>) -> Result<Map<String, Value>> {
    let asked = in_terminal(move || {
        let mut values = Map::new();
        for field in fields {
            if let Some(value) = field.ask()? {
                values.insert(field.name, value);
            }
        }
        Ok(values)
    });
    asked.await.map_err(|error| match error {
        InquireError::OperationCanceled => {
            Failure::new(Code::Usage, "nothing was called: arguments are missing")
        }
        InquireError::OperationInterrupted => interrupted(Signal::INTERRUPT),
        other => Failure::new(Code::Io, format!("the terminal cannot be used: {other}")),
    })
}

/// The names of the fields that must be filled in.
fn required(schema: &RequestedSchema) -> HashSet<&str> {
    schema.required.iter().flatten().map(String::as_str).collect()
}

/// What a person did with a question.
#[derive(Debug)]
enum Reply {
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

/// Answers what a server asks, one question at a time.
#[derive(Debug)]
pub(crate) struct Asker {
    terminal: Terminal,
    /// Who asks.
    server: String,
    answers: Answers,
    live: Live,
    stop: Stop,
    turn: Mutex<()>,
    /// The task that is waited for, whose questions are open until somebody answers them.
    task: OnceLock<LeftTask>,
}

impl Asker {
    /// Somebody who answers for this server, as the options say.
    pub(crate) fn new(
        terminal: Terminal,
        server: &str,
        options: &AnswerOptions,
        live: &Live,
        stop: &Stop,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            terminal,
            server: server.to_owned(),
            answers: Answers::new(options, terminal)?,
            live: live.clone(),
            stop: stop.clone(),
            turn: Mutex::new(()),
            task: OnceLock::new(),
        }))
    }

    /// From now on, questions are those of this task.
    pub(crate) fn in_task(&self, task: LeftTask) {
        let _ = self.task.set(task);
    }

    /// Answers for this client, and shows what the server logs.
    pub(crate) fn attend(self: &Arc<Self>, builder: ClientBuilder) -> ClientBuilder {
        let live = self.live.clone();
        let mut builder = builder.on_log(move |message| live.log(&message));
        if self.terminal.verbose > 0 {
            builder = builder.log_level(LoggingLevel::Debug);
        }
        let asker = Arc::clone(self);
        builder = builder.elicit_url(true).on_elicit(move |question| {
            let asker = Arc::clone(&asker);
            async move { asker.elicit(question).await }
        });
        let asker = Arc::clone(self);
        builder.on_sample(move |request| {
            let asker = Arc::clone(&asker);
            async move { asker.sample(request).await }
        })
    }

    /// Stops showing what goes on, and tells of answers that none of the forms asked for: they may be misspelt.
    pub(crate) fn leave(&self) {
        self.live.end();
        let unused = self.answers.unused();
        if unused.is_empty() {
            return;
        }
        if self.terminal.json {
            return self.terminal.note_json(&json!({ "unused": { "answers": unused } }));
        }
        let names: Vec<String> = unused.iter().map(|name| format!("`{name}`")).collect();
        self.terminal.warn(format!("{} did not ask for {}", self.server, names.join(", ")));
    }

    async fn elicit(&self, question: Elicit) -> ElicitReply {
        let _turn = self.turn.lock().await;
        if let Some(url) = question.url() {
            return self.visit(question.message(), url).await;
        }
        match question.schema() {
            Some(schema) => self.fill_in(question.message(), schema).await,
            None => ElicitReply::cancel(),
        }
    }

    async fn fill_in(&self, message: &str, schema: &RequestedSchema) -> ElicitReply {
        let quiet = self.live.quiet();
        let answered = self.answers.to(schema);
        drop(quiet);
        let (given, missing) = match answered {
            Ok(given) => given,
            Err(failure) => {
                return self.end_with(failure).await;
            }
        };
        match given {
            Some(content) if missing.is_empty() => return ElicitReply::accept(content),
            Some(_) if !self.terminal.can_ask() => {
                // Whoever answers it has to give what was given here as well.
                let all: Vec<String> = schema.required.iter().flatten().cloned().collect();
                let names: Vec<&str> = missing.iter().map(String::as_str).collect();
                self.leave_task(message, &names, &how_to_answer(&all)).await;
                let text = format!("{}: `{message}` needs an answer to: {}", self.server, missing.join(", "));
                let hint = format!("{} answers it", how_to_answer(&missing));
                let failure = Failure::new(Code::InvalidArguments, printable(&text)).hint(printable(&hint));
                return self.end_with(failure).await;
            }
            None if !self.terminal.can_ask() => {
                // What must be answered is the best example.
                let mut names: Vec<&str> = schema.properties.keys().collect();
                let required = required(schema);
                names.sort_by_key(|name| !required.contains(name));
                self.declined(message, &names, &how_to_answer(&missing)).await;
                return ElicitReply::decline();
            }
            _ => {}
        }
        let _quiet = self.live.quiet();
        let form = form::Form::new(self.terminal, &self.server, message, schema, given.unwrap_or_default());
        match self.answered(in_terminal(move || form.ask()).await).await {
            Reply::Accept(content) => ElicitReply::accept(content),
            Reply::Decline => ElicitReply::decline(),
            Reply::Cancel => ElicitReply::cancel(),
        }
    }

    async fn visit(&self, message: &str, url: &str) -> ElicitReply {
        if !self.terminal.can_ask() {
            self.declined(&format!("{message} ({url})"), &[], "").await;
            return ElicitReply::decline();
        }
        let _quiet = self.live.quiet();
        let page = url::Page::new(self.terminal, &self.server, message, url);
        match self.answered(in_terminal(move || page.ask()).await).await {
            Reply::Accept(_) => ElicitReply::accept_defaults(),
            Reply::Decline => ElicitReply::decline(),
            Reply::Cancel => ElicitReply::cancel(),
        }
    }

    async fn sample(&self, request: CreateMessageRequestParams) -> Result<CreateMessageResult, RpcError> {
        let _turn = self.turn.lock().await;
        if !self.terminal.can_ask() {
            self.leave_task("an answer of a model", &[], "").await;
            let text = "not interactive, so the sampling request is refused";
            if self.terminal.json {
                self.live.say(&json!({ "refused": { "messages": request.messages } }).to_string());
            } else {
                self.live.say(&printable(&format!("{}: {text}", self.server)));
            }
            return Err(RpcError::new(ErrorCode::SAMPLING_REJECTED, text));
        }
        let _quiet = self.live.quiet();
        let (terminal, server) = (self.terminal, self.server.clone());
        let asked = in_terminal(move || sampling::ask(terminal, &server, &request)).await;
        let refused = || RpcError::new(ErrorCode::SAMPLING_REJECTED, "the user refused the sampling request");
        match asked {
            Ok(Some(answer)) => Ok(answer),
            Ok(None) => Err(refused()),
            Err(error) => {
                self.answered(Err(error)).await;
                Err(refused())
            }
        }
    }

    /// What was answered; Ctrl-C ends more than the question.
    async fn answered(&self, asked: Result<Reply, InquireError>) -> Reply {
        match asked {
            Ok(reply) => reply,
            Err(InquireError::OperationCanceled) => Reply::Cancel,
            Err(InquireError::OperationInterrupted) => self.end_with(interrupted(Signal::INTERRUPT)).await,
            Err(error) => {
                self.end_with(Failure::new(Code::Io, format!("the terminal cannot be used: {error}"))).await
            }
        }
    }

    /// Ends the session. Nothing is answered any more, so that the server does not go on with half an answer.
    async fn end_with<T>(&self, failure: Failure) -> T {
        self.stop.with(failure);
        std::future::pending().await
    }

    /// Ends the session if the question is one of a task's: the task waits until somebody answers it.
    async fn leave_task(&self, message: &str, names: &[&str], how: &str) {
        let Some(task) = self.task.get() else { return };
        let mut text = format!("the task asks: {message}; this is not a terminal, so it is left waiting");
        if task.started {
            text = format!("{text}; {}", task.fate());
        }
        let way = if how.is_empty() { "answer it in a terminal" } else { "answer it" };
        let hint = task.next_steps(way, how);
        let failure = Failure::new(Code::InputRequired, printable(&text)).hint(printable(&hint));
        let told = json!({ "taskId": task.id, "message": message, "fields": names });
        self.end_with::<()>(failure.data(told)).await;
    }

    /// Says that a question is declined because nobody is there, and how it can be answered.
    async fn declined(&self, message: &str, names: &[&str], how: &str) {
        self.leave_task(message, names, how).await;
        if self.terminal.json {
            let told = json!({ "declined": { "message": message, "fields": names } });
            return self.live.say(&told.to_string());
        }
        self.live.say(&printable(&format!("{} asks: {message}", self.server)));
        let how = match names {
            [] => "a terminal is needed for that".to_owned(),
            _ => format!("{how} answers it"),
        };
        self.live.say(&printable(&format!("  not interactive, so it is declined; {how}")));
    }
}

/// The options that answer a form of which these fields must be filled in and have no default.
fn how_to_answer(missing: &[String]) -> String {
    match missing {
        [] => "--yes".to_owned(),
        _ if missing.len() > MAX_HINTED => "--answers JSON".to_owned(),
        _ => missing
            .iter()
            .map(|name| format!("--answer {}=…", shell_word(name)))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_answers_every_field_that_has_no_default() {
        let names = |count: usize| (0..count).map(|n| format!("n{n}")).collect::<Vec<_>>();
        assert_eq!(how_to_answer(&names(0)), "--yes");
        assert_eq!(how_to_answer(&names(2)), "--answer n0=… --answer n1=…");
        assert_eq!(how_to_answer(&names(1000)), "--answers JSON");
    }
}
