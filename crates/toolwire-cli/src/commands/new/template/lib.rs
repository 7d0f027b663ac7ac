//! What the server offers: a tool, a tool that asks back, and a prompt.
//!
//! Doc comments become descriptions, and arguments become schemas. Nothing here knows which revision of the
//! protocol a client speaks.

use toolwire::{BuildError, prelude::*};

/// Makes the server.
pub fn server() -> Result<Server, BuildError> {
    Server::builder(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
        .instructions("Counts words, and writes greeting cards after asking who they are for.")
        .routes(routes![count, card, summarise])
        .build()
}

/// What there is in a text.
#[derive(Serialize, JsonSchema)]
struct Count {
    words: usize,
    lines: usize,
}

/// Counts the words and lines of a text.
#[tool(read_only)]
async fn count(
    /// The text to look at.
    text: String,
) -> Json<Count> {
    Json(Count {
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
    })
}

/// What has to be known before a card can be written.
#[derive(Deserialize, JsonSchema)]
struct Card {
    /// Who is the card for?
    to: String,
    /// Shall it be a formal one?
    #[serde(default)]
    formal: bool,
}

/// Writes a greeting card, after asking the person in front of the screen who it is for.
#[tool]
async fn card(
    /// What is celebrated, such as a birthday.
    occasion: String,
    cx: Context,
) -> Result<String> {
    let question = format!("A card for a {occasion}: some details, please.");
    match cx.elicit::<Card>(question).await? {
        Answer::Accept(Card { to, formal: true }) => {
            Ok(format!("Dear {to}, best wishes for your {occasion}."))
        }
        Answer::Accept(Card { to, formal: false }) => Ok(format!("Hey {to}, happy {occasion}!")),
        _ => Ok("No card was written.".into()),
    }
}

/// Asks the model for a summary.
#[prompt]
async fn summarise(
    /// The text to summarise.
    text: String,
    /// What the reader wants to know most.
    focus: Option<String>,
) -> String {
    let focus = focus
        .map(|focus| format!(" Pay attention to {focus}."))
        .unwrap_or_default();
    format!("Summarise this in three sentences.{focus}\n\n{text}")
}
