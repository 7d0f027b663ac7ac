//! A conversation for people: one line per message, what belongs to a call indented below it.

use owo_colors::{OwoColorize, Style};
use serde_json::Value;

use crate::{
    commands::trace::{
        Recorded,
        summary::{self, one_line},
    },
    render::room,
    terminal::{fit, printable},
    trace::{Conversation, Exchange, Item, Notice, Outcome, Side, asks_for_input},
};

/// How wide the times are.
const TIME_WIDTH: usize = 8;

/// All lines, coloured.
pub(super) fn of(recorded: &Recorded, long: bool) -> Vec<String> {
    let conversation = &recorded.conversation;
    let several = conversation.all().iter().any(|exchange| exchange.server != recorded.header.server);
    let mut page = Page { conversation, long, several, lines: Vec::new() };
    page.items(&conversation.items, 0);
    page.lines
}

struct Page<'a> {
    conversation: &'a Conversation,
    long: bool,
    /// Whether it has to be said which server is spoken to.
    several: bool,
    lines: Vec<String>,
}

/// One message to be shown.
struct Line<'a> {
    micros: u64,
    from: Option<Side>,
    depth: usize,
    style: Style,
    text: String,
    /// What stands at the end of the line, such as how long it took.
    note: Option<String>,
    body: Option<&'a Value>,
}

impl<'a> Page<'a> {
    fn items(&mut self, items: &'a [Item], depth: usize) {
        let mut rest = items;
        while let Some((item, after)) = rest.split_first() {
            rest = after;
            match item {
                Item::Exchange(index) => self.call(*index, depth),
                Item::Notice(notice) => {
                    let alike =
                        |item: &&Item| matches!(item, Item::Notice(other) if same_kind(notice, other));
                    let more = if self.long { 0 } else { rest.iter().take_while(alike).count() };
                    self.notices(notice, rest.get(..more).unwrap_or_default(), depth);
                    rest = rest.get(more..).unwrap_or_default();
                }
                Item::Failed { micros, why, .. } => {
                    self.aside(*micros, depth, Style::new().red(), format!("! {}", one_line(why)));
                }
                Item::Closed { micros, why, .. } => {
                    self.aside(*micros, depth, Style::new().dimmed(), format!("closed: {}", one_line(why)));
                }
            }
        }
    }

    /// A request with its rounds, and what was said meanwhile.
    fn call(&mut self, index: usize, depth: usize) {
        let rounds: Vec<_> = self.conversation.rounds(index).collect();
        for (number, round) in rounds.iter().enumerate() {
            if number == 0 {
                self.question(round, depth);
            } else {
                self.retry(round, depth + 1);
            }
            self.items(&round.during, depth + 1);
            if let Some(result) = round.result().filter(|result| asks_for_input(result)) {
                self.needs_input(round, result, depth + 1);
            } else {
                let begun = rounds.first().map_or(0, |first| first.begun);
                self.answer(round, rounds.len(), begun, depth);
            }
        }
    }

    fn question(&mut self, exchange: &'a Exchange, depth: usize) {
        let mut text = summary::request(&exchange.method, &exchange.params);
        if self.several && depth == 0 {
            text = format!("{}: {text}", one_line(&exchange.server));
        }
        self.line(Line {
            micros: exchange.begun,
            from: Some(exchange.from),
            depth,
            style: Style::new().bold(),
            text,
            note: None,
            body: Some(&exchange.params),
        });
    }

    /// The answers with which a call is made again.
    fn retry(&mut self, exchange: &'a Exchange, depth: usize) {
        let answers = exchange.params.get("inputResponses").and_then(Value::as_object);
        let texts: Vec<_> = answers
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{}: {}", one_line(key), summary::answer(value)))
            .collect();
        let text = if texts.is_empty() { "again".to_owned() } else { texts.join("; ") };
        self.line(Line {
            micros: exchange.begun,
            from: Some(exchange.from),
            depth,
            style: Style::new(),
            text,
            note: None,
            body: Some(&exchange.params),
        });
    }

    /// The questions that are the result of a round.
    fn needs_input(&mut self, exchange: &'a Exchange, result: &'a Value, depth: usize) {
        let asked = result.get("inputRequests").and_then(Value::as_object);
        let mut texts: Vec<String> = asked
            .into_iter()
            .flatten()
            .map(|(key, request)| {
                let method = request.get("method").and_then(Value::as_str).unwrap_or("?");
                let params = request.get("params").unwrap_or(&Value::Null);
                format!("{}: {}", one_line(key), summary::request(method, params))
            })
            .collect();
        if texts.is_empty() {
            texts.push("call again later".to_owned());
        }
        let last = texts.len() - 1;
        for (number, text) in texts.into_iter().enumerate() {
            let note = (number == last).then(|| exchange.took().map(duration)).flatten();
            self.line(Line {
                micros: exchange.ended.unwrap_or(exchange.begun),
                from: Some(Side::Server),
                depth,
                style: Style::new().yellow(),
                text,
                note,
                body: (number == last).then_some(result),
            });
        }
    }

    fn answer(&mut self, exchange: &'a Exchange, rounds: usize, begun: u64, depth: usize) {
        let other = if exchange.from == Side::Client { Side::Server } else { Side::Client };
        let micros = exchange.ended.unwrap_or(exchange.begun);
        let took = duration(micros.saturating_sub(begun));
        let note = if rounds > 1 { format!("{took}, {rounds} rounds") } else { took };
        let (style, text, body) = match &exchange.outcome {
            Some(Outcome::Result(result)) => {
                let failed = result.get("isError").is_some_and(|is| *is == Value::Bool(true));
                let style = if failed { Style::new().red() } else { Style::new().green() };
                let text = summary::result(&exchange.method, result);
                let text = if text.is_empty() { "ok".to_owned() } else { text };
                (style, if failed { format!("failed: {text}") } else { text }, Some(result))
            }
            Some(Outcome::Error(error)) => {
                (Style::new().red(), format!("error {}", summary::error(error)), Some(error))
            }
            // Why there is none is among what was said meanwhile.
            None if exchange.cancelled || failed_on_the_way(exchange) => return,
            None => return self.aside(micros, depth, Style::new().red(), "no answer".to_owned()),
        };
        self.line(Line { micros, from: Some(other), depth, style, text, note: Some(note), body });
    }

    /// A notification, with those of its kind that followed it.
    fn notices(&mut self, first: &'a Notice, more: &'a [Item], depth: usize) {
        let last = more.last().and_then(|item| match item {
            Item::Notice(notice) => Some(notice),
            _ => None,
        });
        let name = first.method.strip_prefix("notifications/").unwrap_or(&first.method);
        let mut text = match name {
            "message" => summary::request("notifications/message", &first.params).replacen(
                "notifications/message",
                "log",
                1,
            ),
            _ => summary::request(&first.method, &first.params).replacen("notifications/", "", 1),
        };
        if let Some(last) = last {
            let last = summary::request(&last.method, &last.params);
            let last = last.split_once(' ').map(|(_, about)| about).unwrap_or_default();
            let to = if last.is_empty() { String::new() } else { format!(" … {last}") };
            text = format!("{}{to}", fit(&text, room(0) / 2));
        }
        let note = last.map(|_| format!("{} times", more.len() + 1));
        self.line(Line {
            micros: first.micros,
            from: Some(first.from),
            depth,
            style: Style::new().dimmed(),
            text,
            note,
            body: Some(&first.params),
        });
    }

    fn aside(&mut self, micros: u64, depth: usize, style: Style, text: String) {
        self.line(Line { micros, from: None, depth, style, text, note: None, body: None });
    }

    fn line(&mut self, line: Line<'_>) {
        let arrow = match line.from {
            Some(Side::Client) => "→",
            Some(Side::Server) => "←",
            None => " ",
        };
        let seconds = format!("{}.{:03}", line.micros / 1_000_000, line.micros / 1000 % 1000);
        let indent = "  ".repeat(line.depth);
        let note = line.note.map(|note| format!("  {note}")).unwrap_or_default();
        let used = TIME_WIDTH + 4 + indent.len() + note.chars().count();
        let text = if self.long { line.text } else { fit(&line.text, room(used)) };
        let time = format!("{seconds:>TIME_WIDTH$}");
        let shown = format!("{}  {arrow} {indent}{}{}", time.dimmed(), text.style(line.style), note.dimmed());
        self.lines.push(shown.trim_end().to_owned());
        if let Some(body) = line.body.filter(|body| self.long && !body.is_null()) {
            let text = serde_json::to_string_pretty(body).unwrap_or_default();
            let margin = " ".repeat(TIME_WIDTH + 4 + indent.len());
            self.lines.extend(printable(&text).lines().map(|line| format!("{margin}{}", line.dimmed())));
        }
    }
}

fn failed_on_the_way(exchange: &Exchange) -> bool {
    exchange.during.iter().any(|item| matches!(item, Item::Failed { .. }))
}

fn same_kind(one: &Notice, other: &Notice) -> bool {
    one.method == other.method && one.from == other.from && one.server == other.server
}

/// How long something took, in two digits or so.
fn duration(micros: u64) -> String {
    match micros {
        0..10_000 => format!("{}.{} ms", micros / 1000, micros / 100 % 10),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        1_000_000..60_000_000 => format!("{}.{} s", micros / 1_000_000, micros / 100_000 % 10),
        _ => format!("{} min {} s", micros / 60_000_000, micros / 1_000_000 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        let shown = [0, 1234, 45_678, 1_234_567, 123_456_789].map(duration);
        assert_eq!(shown, ["0.0 ms", "1.2 ms", "45 ms", "1.2 s", "2 min 3 s"]);
    }
}
