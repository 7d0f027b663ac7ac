//! A client's side of skills: nothing is read before it is needed, and nothing is believed unverified.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::json;
use toolwire::{Client, serde::Deserialize, wire::ResourceContents};

use super::{SkillEntry, SkillResources, digest, frontmatter};

#[derive(Deserialize)]
#[serde(crate = "toolwire::serde", rename_all = "camelCase")]
struct SkillsPage {
    skills: Vec<SkillEntry>,
    next_cursor: Option<String>,
}

/// How many pages of skills are read.
const MAX_PAGES: usize = 100;

/// Lists the skills of a server, without reading any of their files.
///
/// # Errors
/// When the server refuses, or does not answer in the form of the extension.
pub async fn list(client: &Client) -> Result<Vec<SkillEntry>> {
    let mut skills = Vec::new();
    let mut params = json!({});
    for _ in 0..MAX_PAGES {
        let page: SkillsPage = client.raw().request("skills/list", params).await?.decode()?;
        skills.extend(page.skills);
        match page.next_cursor {
            Some(cursor) => params = json!({ "cursor": cursor }),
            None => return Ok(skills),
        }
    }
    bail!("the list of skills does not end")
}

/// Reads all files of a skill, its `SKILL.md` first, and stops at the first one that is not what was listed.
///
/// # Errors
/// When a file cannot be read or is not what was listed.
pub async fn load(client: &Client, skill: &SkillEntry) -> Result<Vec<String>> {
    let main = read(client, skill, &skill.uri).await?;
    let found = frontmatter(&main).context("the skill has no frontmatter that can be compared")?;
    ensure!(found == skill.frontmatter, "the frontmatter of {} is not what was listed", skill.uri);
    let mut texts = vec![main];
    if let SkillResources::Listed(files) = &skill.resources {
        for file in files.iter().filter(|file| file.uri != skill.uri) {
            texts.push(read(client, skill, &file.uri).await?);
        }
    }
    Ok(texts)
}

async fn read(client: &Client, skill: &SkillEntry, uri: &str) -> Result<String> {
    let result = client.read(uri).await?;
    let text = result.contents.into_iter().find_map(|contents| match contents {
        ResourceContents::Text(text) => Some(text.text),
        _ => None,
    });
    let text = text.with_context(|| format!("{uri} has no text"))?;
    if let SkillResources::Listed(files) = &skill.resources {
        let listed = files.iter().find(|file| file.uri == uri);
        let listed = listed.with_context(|| format!("{uri} is not listed"))?;
        ensure!(text.len() == listed.size, "{uri} has {} bytes, not {}", text.len(), listed.size);
        ensure!(digest(text.as_bytes()) == listed.digest, "{uri} does not have the digest that was listed");
    }
    Ok(text)
}
