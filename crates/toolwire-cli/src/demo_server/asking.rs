//! The tools that ask back: a form, a page to visit, a model, the folders of the client.

use serde::{Deserialize, Serialize};
use toolwire::{
    Answer, Args, Context, Json,
    schemars::{self, JsonSchema},
    server::CallerCan,
    wire::{Content, CreateMessageRequestParams, SamplingMessage},
};

/// How many tokens the client's model may spend on an answer.
const MAX_TOKENS: u64 = 200;

/// How large a cup is.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Size {
    /// Small, for a short break
    Small,
    /// Medium, as most people have it
    Medium,
    /// Large, for a long night
    Large,
}

/// What goes into a cup.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Extra {
    Milk,
    Sugar,
    Lemon,
}

/// The form of `order`: a field of every kind.
#[derive(Deserialize, JsonSchema)]
struct Order {
    /// Who is it for?
    #[schemars(title = "Name", length(min = 2, max = 40))]
    name: String,
    /// Where does the receipt go?
    #[schemars(title = "E-mail", email)]
    email: Option<String>,
    /// How large is the cup?
    #[schemars(title = "Size")]
    #[serde(default = "medium")]
    size: Size,
    /// How many cups?
    #[schemars(title = "Cups", range(min = 1, max = 12))]
    #[serde(default = "one")]
    cups: u8,
    /// What goes into it?
    #[schemars(title = "Extras", length(max = 2))]
    #[serde(default)]
    extras: Vec<Extra>,
    /// Do you take it with you?
    #[schemars(title = "To go")]
    #[serde(default)]
    to_go: bool,
}

fn medium() -> Size {
    Size::Medium
}

fn one() -> u8 {
    1
}

/// What `order` returns.
#[derive(Serialize, JsonSchema)]
pub(super) struct Receipt {
    /// Whether anything was ordered.
    ordered: bool,
    /// What was ordered, in words.
    summary: String,
}

pub(super) async fn order(cx: Context) -> toolwire::Result<Json<Receipt>> {
    let Answer::Accept(order) = cx.elicit::<Order>("What kind of tea would you like?").key("order").await?
    else {
        return Ok(Json(Receipt { ordered: false, summary: "no tea today".to_owned() }));
    };
    let size = format!("{:?}", order.size).to_lowercase();
    let mut summary = format!("{} × {size} tea for {}", order.cups, order.name);
    for extra in &order.extras {
        summary += &format!(", {extra:?}").to_lowercase();
    }
    if order.to_go {
        summary += ", to go";
    }
    if let Some(email) = order.email {
        summary = format!("{summary}; receipt to {email}");
    }
    Ok(Json(Receipt { ordered: true, summary }))
}

pub(super) async fn visit(cx: Context) -> toolwire::Result<&'static str> {
    let page = "https://example.com/welcome?from=toolwire-demo";
    let answer = cx.elicit_url(page, "Please read the welcome page.").key("visit").await?;
    Ok(match answer {
        Answer::Accept(visit) => {
            visit.complete().await;
            "thank you for visiting"
        }
        Answer::Decline => "you would rather not",
        Answer::Cancel => "you went away without an answer",
    })
}

/// The arguments of `ask_model`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ForModel {
    /// What the model is asked.
    question: String,
}

pub(super) async fn ask_model(
    Args(ForModel { question }): Args<ForModel>,
    cx: Context,
) -> toolwire::Result<String> {
    let request = CreateMessageRequestParams::new(vec![SamplingMessage::user(question)], MAX_TOKENS)
        .system_prompt("Answer in one short sentence.");
    let said = cx.sample(request).key("model").await?;
    let text = said.content.iter().find_map(Content::as_text).unwrap_or("nothing in words");
    Ok(format!("the model says: {text}"))
}

pub(super) async fn show_roots(cx: Context) -> toolwire::Result<String> {
    if !cx.caller().can(CallerCan::ListRoots) {
        return Ok("this client shares no folders".to_owned());
    }
    let roots = cx.roots().key("roots").await?;
    let lines: Vec<String> = roots
        .iter()
        .map(|root| match &root.name {
            Some(name) => format!("{} ({name})", root.uri),
            None => root.uri.clone(),
        })
        .collect();
    Ok(lines.join("\n"))
}
