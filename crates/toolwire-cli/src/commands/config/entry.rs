//! What is written about a server, in the words of each host.

use serde_json::{Map, Value, json};

use super::AddOptions;
use crate::{
    config::Host,
    failure::{Code, Failure, Result},
    redact,
    target::{Address, shell_word},
};

/// The fields of a server in the order in which people expect them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry(pub(super) Vec<(&'static str, Field)>);

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Text(String),
    List(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl Entry {
    /// What the host is to be told.
    pub(super) fn new(options: &AddOptions) -> Result<Self> {
        match (options.address.as_ref().or(options.url.as_ref()), options.command.split_first()) {
            (Some(url), _) => Self::remote(options, url),
            (None, Some((program, args))) => Ok(Self::command(options, program, args)),
            (None, None) => Err(Failure::new(Code::Usage, "which server is it?").hint(format!(
                "toolwire add {name} URL, or toolwire add {name} -- COMMAND [ARGUMENTS]",
                name = shell_word(&options.name)
            ))),
        }
    }

    /// Lets the secrets in it be known, so that they are not shown.
    pub(super) fn learn(&self) {
        for (name, field) in &self.0 {
            redact::learn_server(&json!({ *name: match field {
                Field::Text(text) => json!(text),
                Field::List(list) => json!(list),
                Field::Pairs(pairs) => Value::Object(
                    pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>(),
                ),
            } }));
        }
    }

    fn command(options: &AddOptions, program: &str, args: &[String]) -> Self {
        let mut fields = Vec::new();
        if matches!(options.to, Host::VsCode | Host::ClaudeCode) {
            fields.push(("type", Field::Text("stdio".to_owned())));
        }
        fields.push(("command", Field::Text(program.to_owned())));
        fields.push(("args", Field::List(args.to_vec())));
        if !options.env.is_empty() {
            fields.push(("env", Field::Pairs(options.env.clone())));
        }
        Self(fields)
    }

    fn remote(options: &AddOptions, url: &str) -> Result<Self> {
        if !matches!(Address::parse(url), Some(Address::Http(_))) {
            return Err(Failure::new(
                Code::Usage,
                format!("`{url}` is not the URL of a server: it does not begin with http:// or https://"),
            )
            .hint(format!(
                "a program stands behind --: toolwire add {} -- COMMAND",
                shell_word(&options.name)
            )));
        }
        let mut fields = Vec::new();
        if matches!(options.to, Host::VsCode | Host::ClaudeCode | Host::Project) {
            fields.push(("type", Field::Text("http".to_owned())));
        }
        let word = match options.to {
            Host::ClaudeDesktop => return Err(claude_desktop(&options.name, url)),
            Host::Windsurf => "serverUrl",
            Host::Gemini => "httpUrl",
            _ => "url",
        };
        fields.push((word, Field::Text(url.to_owned())));
        if !options.header.is_empty() {
            let headers = if options.to == Host::Codex { "http_headers" } else { "headers" };
            fields.push((headers, Field::Pairs(options.header.clone())));
        }
        Ok(Self(fields))
    }

    /// The entry as a value, to compare with what a file says.
    pub(super) fn value(&self) -> Value {
        let field = |(name, field): &(&'static str, Field)| ((*name).to_owned(), field.value());
        Value::Object(self.0.iter().map(field).collect())
    }
}

impl Field {
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::List(list) => json!(list),
            Self::Pairs(pairs) => Value::Object(
                pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>(),
            ),
        }
    }
}

/// Claude Desktop starts programs only; servers on the network are in its account.
fn claude_desktop(name: &str, url: &str) -> Failure {
    Failure::new(Code::Usage, "the settings of claude-desktop can name programs only, and no URLs").hint(format!(
        "add it under Settings → Connectors, or: toolwire add {} --to claude-desktop -- npx -y mcp-remote {}",
        shell_word(name),
        shell_word(url)
    ))
}
