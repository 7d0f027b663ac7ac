//! `toolwire call`: call a tool.

mod check;
mod words;

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};
use toolwire::{
    Client,
    client::{CallOutcome, Error, Started},
    wire::{CallToolResult, Tool},
};

use crate::{
    arguments,
    ask::{self, AnswerOptions, Asker, Field},
    commands::tasks,
    failure::{Code, Failure, Result},
    render::{Blocks, Live},
    session::{self, Stop},
    target::{self, Target, TargetOptions},
    terminal::{Terminal, closest, printable_line},
    tickets::{LeftTask, Ticket, Tickets},
    tools::{self, Tools},
};

pub(crate) use check::arguments as check_arguments;
pub(crate) use words::with_server;

/// The number of arguments that a user is asked for; more are not filled in by hand.
const MAX_ASKED: usize = 32;

const USAGE: &str = "toolwire call [SERVER] TOOL [KEY=VALUE]... [OPTIONS] [-- COMMAND [ARGUMENTS]...]";

const AFTER_HELP: &str = "\
How arguments are written:
  a=2 b=yes            values become what the tool's schema wants
  user.name=Ada        a member of an object
  tags=a tags=b        items of a list; also tags[]=a, or tags[0]=a
  filter:='{\"n\":1}'    JSON as it is
  text=@FILE text=-    the contents of a file, or of standard input
  text=@@home          a text that begins with @

Examples:
  toolwire call add a=2 b=3 -- some-server
  toolwire call github.search query=mcp      SERVER.TOOL is one word for both
  toolwire call order --answer name=Ada --yes -- toolwire demo --stdio";

/// Call a tool
#[derive(Args, Debug)]
#[command(after_help = AFTER_HELP, override_usage = USAGE)]
pub(crate) struct Options {
    /// The server (not with -- COMMAND), the tool, and its arguments
    #[arg(value_name = "WORDS")]
    pub(crate) words: Vec<String>,

    /// All arguments as a JSON object: text, @FILE or -
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,

    /// Send arguments that do not fit the schema as well
    #[arg(long)]
    pub(crate) no_check: bool,

    /// Save pictures and sounds to this file or folder
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,

    /// Do not wait for work that goes on as a task: print its ticket
    #[arg(long)]
    pub(crate) detach: bool,

    #[command(flatten)]
    pub(crate) answers: AnswerOptions,

    #[command(flatten)]
    pub(crate) target: TargetOptions,
}

/// Runs the command.
pub(crate) async fn run(options: &Options, terminal: Terminal) -> Result<()> {
    let words = with_server(&options.words, &options.target);
    let words = options.target.words(&words, terminal)?;
    let Some((name, assignments)) = words.rest.split_first() else {
        let hint = "toolwire tools lists them: toolwire tools [SERVER] [-- COMMAND]";
        return Err(Failure::new(Code::Usage, "which tool?").hint(hint));
    };
    let given = options.args.as_ref().map(|text| arguments::object("--args", text)).transpose()?;
    let (live, stop) = (Live::new(terminal, "connecting"), Stop::default());
    let asker = Asker::new(terminal, &words.target.name, &options.answers, &live, &stop)?;
    let given = given.unwrap_or_default();
    let call = Call { name, assignments, given, options, asker: &asker, terminal };
    let builder = asker.attend(target::builder(&words.target));
    let mut begun = None;
    let work = async |client: &Client| call.make(client, &words.target, &live, &mut begun).await;
    let outcome = session::attended(&words.target, builder, &stop, work).await;
    asker.leave();
    let (tool, outcome) = outcome.map_err(|failure| match &begun {
        Some(task) if failure.code() == Code::Interrupted => tasks::left(task),
        _ => failure,
    })?;
    match outcome {
        Made::Done(outcome) => call.show(&tool, &outcome),
        Made::Detached(task) => detached(&task, &words.target, terminal),
    }
}

/// What became of a call.
enum Made {
    Done(CallOutcome),
    /// It goes on as this task, and nobody waits for it.
    Detached(Ticket),
}

/// Prints what is needed to go on with a task.
fn detached(task: &Ticket, target: &Target, terminal: Terminal) -> Result<()> {
    if terminal.json {
        let ticket: Value = serde_json::from_str(&task.text).unwrap_or_default();
        return terminal
            .print_json(&json!({ "task": { "taskId": task.id, "tool": task.tool, "ticket": ticket } }));
    }
    terminal.print(&task.text)?;
    terminal.note(LeftTask::new(&task.id, target, task.names_server()).next_steps("go on", ""));
    Ok(())
}

/// A call that is wanted.
struct Call<'a> {
    name: &'a str,
    assignments: &'a [String],
    given: Map<String, Value>,
    options: &'a Options,
    asker: &'a Asker,
    terminal: Terminal,
}

impl Call<'_> {
    /// Makes the call. `begun` is told the task that it becomes.
    async fn make(
        &self,
        client: &Client,
        target: &Target,
        live: &Live,
        begun: &mut Option<LeftTask>,
    ) -> Result<(Tool, Made)> {
        let tool = find(tools::all(client).await?, self.name, target)?;
        let arguments = self.arguments(&tool, target, live).await?;
        live.doing(&format!("calling {}", printable_line(&tool.name)));
        let steps = live.clone();
        let call = client.call(&tool.name, &arguments).progress(move |step| steps.step(&step));
        let task = match call.start().await? {
            Started::Done(outcome) => return Ok((tool, Made::Done(outcome))),
            Started::Task(task) => task,
        };
        let ticket = Ticket::new(target, &self.options.target, &tool.name, task.id(), task.ticket());
        let left = begun.insert(LeftTask::new(task.id(), target, ticket.names_server())).clone();
        Tickets::here().keep(ticket.clone())?;
        if self.options.detach {
            return Ok((tool, Made::Detached(ticket)));
        }
        // A server that was started for the call ends with it, and a task in its memory as well. So its questions are
        // those of a plain call.
        if !left.started {
            self.asker.in_task(left);
        }
        let outcome = task.result_with(|state| live.doing(&tasks::line(&tool.name, state))).await;
        tasks::forget_if_over(&task, outcome.as_ref().err().map(Error::kind))?;
        Ok((tool, Made::Done(outcome?)))
    }

    /// The arguments as they are sent: typed, asked for, and checked.
    async fn arguments(&self, tool: &Tool, target: &Target, live: &Live) -> Result<Map<String, Value>> {
        let schema = Value::Object(tool.input_schema.clone());
        let mut arguments = arguments::assign(self.assignments, &schema, self.given.clone())?;
        if self.options.no_check {
            return Ok(arguments);
        }
        let missing = check::missing(&schema, &arguments);
        if let Some(failure) = check::unknown(tool, &schema, &missing, &arguments) {
            return Err(failure);
        }
        if (1..=MAX_ASKED).contains(&missing.len()) && self.terminal.can_ask() {
            let _quiet = live.quiet();
            let fields = missing.iter().map(|name| Field::of_argument(name, &schema)).collect();
            arguments.extend(ask::for_fields(fields).await?);
        } else if !missing.is_empty() {
            return Err(check::incomplete(tool, &schema, &missing, self.assignments, target));
        }
        let _quiet = live.quiet();
        check::arguments(tool, &schema, &arguments, self.terminal).map_err(|failure| {
            let hint = format!("{}; --no-check sends them anyway", failure.advice().unwrap_or_default());
            failure.hint(hint)
        })?;
        Ok(arguments)
    }

    /// Shows the result, and says how it went.
    fn show(&self, tool: &Tool, outcome: &CallOutcome) -> Result<()> {
        let result: &CallToolResult = outcome.as_result();
        if self.terminal.json {
            self.save_quietly(outcome)?;
            self.terminal.print_json(result)?;
        } else {
            let blocks = Blocks { content: outcome.content(), structured: outcome.structured() };
            blocks.show(self.terminal, self.options.output.as_deref())?;
        }
        if outcome.is_error() {
            let text = format!("the tool `{}` returned an error", printable_line(&tool.name));
            return Err(Failure::new(Code::ToolError, text));
        }
        check::output(tool, outcome.structured(), self.terminal)
    }

    /// With `--json` the bytes are in the result already, and are saved as well when that is wanted.
    fn save_quietly(&self, outcome: &CallOutcome) -> Result<()> {
        match &self.options.output {
            Some(path) => Blocks { content: outcome.content(), structured: None }.save(path),
            None => Ok(()),
        }
    }
}

/// The tool of this name, or what may have been meant.
pub(crate) fn find(tools: Tools, name: &str, target: &Target) -> Result<Tool> {
    let Tools { good: tools, bad } = tools;
    if let Some(bad) = bad.iter().find(|tool| tool.name == name) {
        let text =
            printable_line(&format!("the tool `{name}` of {} cannot be used: {}", target.name, bad.why));
        return Err(Failure::new(Code::InvalidAnswer, text).hint("that is a fault of the server"));
    }
    let close: Vec<String> = closest(name, tools.iter().map(|tool| tool.name.as_str()))
        .into_iter()
        .map(|name| format!("`{}`", printable_line(name)))
        .collect();
    let count = tools.len();
    tools.into_iter().find(|tool| tool.name == name).ok_or_else(|| {
        let failure = Failure::new(Code::UnknownName, format!("{} has no tool `{name}`", target.name));
        match (close.as_slice(), count) {
            ([], 0) => {
                failure.hint("it has no tools at all; toolwire prompts and toolwire resources show the rest")
            }
            ([], count) => failure.hint(format!("toolwire tools lists the {count} that it has")),
            (close, _) => failure.hint(format!("did you mean {}?", close.join(" or "))),
        }
    })
}
