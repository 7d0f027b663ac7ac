//! What was answered when the server asked back, in either era.

use serde_json::Value;
use toolwire::{
    ErrorCode, RpcError,
    client::ElicitReply,
    wire::{CreateMessageResult, ElicitResult, Root},
};

use crate::trace::{Conversation, Side};

/// The answers of a trace.
#[derive(Debug, Default)]
pub(super) struct Book(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    method: String,
    params: Value,
    answer: Value,
    used: bool,
}

impl Book {
    /// Collects the answers: to requests of a legacy server, and to the questions in the results of a modern one.
    pub(super) fn of(conversation: &Conversation) -> Self {
        let mut book = Self::default();
        for exchange in conversation.all() {
            if let (Side::Server, Some(answer)) = (exchange.from, exchange.result()) {
                book.add(&exchange.method, &exchange.params, answer);
            }
        }
        for index in conversation.asked() {
            let rounds: Vec<_> = conversation.rounds(index).collect();
            for pair in rounds.windows(2) {
                let [asked, answered] = pair else { continue };
                let questions = asked.result().and_then(|result| result.get("inputRequests"));
                for (key, question) in questions.and_then(Value::as_object).into_iter().flatten() {
                    let answer = answered.params.get("inputResponses").and_then(|answers| answers.get(key));
                    let method = question.get("method").and_then(Value::as_str);
                    if let (Some(method), Some(answer)) = (method, answer) {
                        book.add(method, question.get("params").unwrap_or(&Value::Null), answer);
                    }
                }
            }
        }
        book
    }

    fn add(&mut self, method: &str, params: &Value, answer: &Value) {
        let (method, params, answer) = (method.to_owned(), params.clone(), answer.clone());
        self.0.push(Entry { method, params, answer, used: false });
    }

    /// The answer to a question: that to the same one, or to one with the same words, or to the next of its kind.
    pub(super) fn answer(&mut self, method: &str, params: &Value) -> Option<Value> {
        let message = params.get("message");
        // Roots are the same however often they are asked for.
        let free = |entry: &Entry| !entry.used || method == "roots/list";
        let same_words = |entry: &Entry| message.is_some() && entry.params.get("message") == message;
        let tests: [&dyn Fn(&Entry) -> bool; 4] = [
            &|entry| free(entry) && entry.params == *params,
            &|entry| free(entry) && same_words(entry),
            &free,
            &|entry| entry.params == *params || same_words(entry),
        ];
        let fits = |test: &&dyn Fn(&Entry) -> bool| {
            self.0.iter().position(|entry| entry.method == method && test(entry))
        };
        let entry = tests.iter().find_map(fits).and_then(|index| self.0.get_mut(index))?;
        entry.used = true;
        Some(entry.answer.clone())
    }
}

/// A recorded answer to a form; what was never answered is cancelled.
pub(super) fn elicit_reply(answer: Option<Value>) -> ElicitReply {
    let result = answer.and_then(|answer| serde_json::from_value::<ElicitResult>(answer).ok());
    result.map_or_else(ElicitReply::cancel, ElicitReply::from)
}

/// A recorded answer of a model.
pub(super) fn sample_reply(answer: Option<Value>) -> Result<CreateMessageResult, RpcError> {
    let result = answer.and_then(|answer| serde_json::from_value(answer).ok());
    result.ok_or_else(|| RpcError::new(ErrorCode::SAMPLING_REJECTED, "the trace has no answer to this"))
}

/// The recorded roots.
pub(super) fn roots(answer: Option<Value>) -> Vec<Root> {
    let roots = answer.and_then(|mut answer| answer.get_mut("roots").map(Value::take));
    roots.and_then(|roots| serde_json::from_value(roots).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_question_gets_its_own_answer_and_another_one_the_next() {
        let mut book = Book::default();
        for (message, answer) in [("a", 1), ("b", 2), ("c", 3)] {
            book.add("elicitation/create", &json!({"message": message, "x": 1}), &json!(answer));
        }
        let mut ask = |message: &str| book.answer("elicitation/create", &json!({"message": message}));
        assert_eq!(ask("b"), Some(json!(2)));
        assert_eq!(ask("new words"), Some(json!(1)));
        assert_eq!(ask("c"), Some(json!(3)));
        assert_eq!(ask("b"), Some(json!(2)), "asked again, answered again");
        assert_eq!(ask("more"), None);
        assert_eq!(book.answer("roots/list", &json!({})), None);
    }
}
