//! A travel agency that asks before it books: a choice, a form, a page to visit, and a model for the summary.
//!
//! The same code serves every revision of the protocol. A client that keeps the call open is asked while the
//! handler waits; a stateless one gets the questions as a result and comes back with the answers.
//!
//! Connect any MCP client to `cargo run -p toolwire-examples --example booking`.

use std::time::Duration;

use toolwire::{
    prelude::*,
    server::CallerCan,
    wire::{CreateMessageRequestParams, SamplingMessage},
};

/// How to travel.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Class {
    /// Cheap, with a window
    Second,
    /// Quiet, with coffee
    First,
}

#[derive(Deserialize, JsonSchema)]
struct Choice {
    /// Which class do you want to travel in?
    class: Class,
    /// Do you need a place for a bicycle?
    #[serde(default)]
    bicycle: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    /// Book it?
    book: bool,
}

#[derive(Serialize, Deserialize)]
struct Offer {
    train: String,
    euros: u32,
}

/// Books a train journey, after asking everything it needs to know.
#[tool(destructive)]
async fn book(
    /// Where the journey starts.
    from: String,
    /// Where it ends.
    to: String,
    cx: Context,
) -> Result<String> {
    // A choice. Whoever says no here has lost nothing.
    let Answer::Accept(choice) = cx.elicit::<Choice>(format!("From {from} to {to}. How?")).key("how").await?
    else {
        return Ok("Nothing was booked.".to_owned());
    };

    // Looking for a train takes time and should not be done again when the handler is run again.
    let offer = cx.once("offer", find_train(&from, &to, choice.class)).await?;

    let question = format!("{} costs {} euros. Shall I book it?", offer.train, offer.euros);
    if !cx.elicit::<Confirm>(question).key("book").accepted().await?.book {
        return Ok("Nothing was booked.".to_owned());
    }

    // Card numbers must not pass through a chat: the user pays on a page of our own, if the client can open one.
    let order = cx.idempotency_key("order");
    if cx.caller().can(CallerCan::ElicitUrl) {
        let page = format!("https://trains.example/pay/{order}");
        let paid = cx.elicit_url(page, "Please pay for your ticket.").key("pay").await?;
        let Answer::Accept(visit) = paid else {
            return Ok("You did not pay, so nothing was booked.".to_owned());
        };
        visit.complete().await;
    }

    let bicycle = if choice.bicycle { " and a bicycle" } else { "" };
    let ticket =
        format!("{} from {from} to {to}, {:?} class{bicycle}, order {order}", offer.train, choice.class);
    Ok(format!("Booked: {ticket}.{}", summary(&cx, &ticket).await?))
}

/// A friendly word from the client's own model, if it lends us one.
async fn summary(cx: &Context, ticket: &str) -> Result<String> {
    if !cx.caller().can(CallerCan::Sample) {
        return Ok(String::new());
    }
    let prompt = format!("In one short sentence, wish somebody a good journey: {ticket}");
    let request = CreateMessageRequestParams::new(vec![SamplingMessage::user(prompt)], 60_u64);
    let said = cx.sample(request).key("wish").await?;
    let text = said.content.iter().find_map(Content::as_text).unwrap_or_default().to_owned();
    Ok(format!("\n{text}"))
}

async fn find_train(from: &str, to: &str, class: Class) -> Offer {
    tokio::time::sleep(Duration::from_millis(200)).await;
    let euros = 19
        + u32::try_from(from.len() * to.len()).unwrap_or(0)
            * if matches!(class, Class::First) { 2 } else { 1 };
    Offer { train: format!("EC {}", 100 + from.len() * 7 + to.len()), euros }
}

#[tokio::main]
async fn main() -> Result<()> {
    let server = Server::builder("booking", "1.0")
        .title("A travel agency")
        .instructions("Book journeys with `book`. It asks the user whatever it needs to know.")
        .routes(routes![book])
        .replay_check(true)
        .build()?;
    server.serve(stdio()?).await?;
    Ok(())
}
