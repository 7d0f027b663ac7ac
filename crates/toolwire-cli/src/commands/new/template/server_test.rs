//! The server as its clients meet it, in the newest revision of the protocol and in an older one.

use toolwire::{
    Version,
    client::{ElicitReply, EraChoice},
    memory,
    prelude::*,
};

const VERSIONS: [Version; 2] = [Version::V2025_06_18, Version::V2026_07_28];

/// A client inside this process, which answers every question with the same form.
async fn client(version: Version) -> Result<Client> {
    let (near, far) = memory::pair();
    let server = {{crate}}::server()?;
    tokio::spawn(async move { server.serve(far).await });
    let client = Client::builder("test", "1.0")
        .era(EraChoice::Version(version))
        .on_elicit(|_| async { ElicitReply::accept(json!({ "to": "Ada" })) })
        .connect(near)
        .await?;
    Ok(client)
}

#[tokio::test]
async fn words_are_counted() -> Result<()> {
    for version in VERSIONS {
        let client = client(version).await?;
        let counted = client
            .call("count", json!({ "text": "one two\nthree" }))
            .await?;
        assert_eq!(counted.text(), r#"{"words":3,"lines":2}"#);
    }
    Ok(())
}

#[tokio::test]
async fn a_missing_argument_is_told() -> Result<()> {
    let outcome = client(Version::V2026_07_28)
        .await?
        .call("count", json!({}))
        .await?;
    assert!(outcome.is_error());
    assert!(outcome.text().contains("text"), "{}", outcome.text());
    Ok(())
}

#[tokio::test]
async fn a_card_is_written_for_whom_it_is_for() -> Result<()> {
    for version in VERSIONS {
        let client = client(version).await?;
        let card = client
            .call("card", json!({ "occasion": "birthday" }))
            .await?;
        assert_eq!(card.text(), "Hey Ada, happy birthday!", "{version}");
    }
    Ok(())
}

#[tokio::test]
async fn the_prompt_has_the_text_in_it() -> Result<()> {
    for version in VERSIONS {
        let prompt = client(version)
            .await?
            .get_prompt("summarise", json!({ "text": "a tale" }))
            .await?;
        let text = prompt
            .messages
            .first()
            .and_then(|message| message.content.as_text());
        assert!(
            text.is_some_and(|text| text.ends_with("a tale")),
            "{prompt:?}"
        );
    }
    Ok(())
}
