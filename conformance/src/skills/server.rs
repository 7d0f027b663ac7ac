//! A server's side of skills: files as resources, and the methods that list them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value, json};
use toolwire::{
    Context, RpcError, resource,
    serde::Deserialize,
    server::{ResourceRoute, ServerBuilder},
};

use super::{EXTENSION, SKILL_FILE, SkillEntry, SkillResource, SkillResources, frontmatter};

/// The media type of a folder.
const DIRECTORY: &str = "inode/directory";

/// A skill to be served: a folder and the texts in it, all of them Markdown.
#[derive(Clone, Debug)]
pub struct Skill {
    entry: SkillEntry,
    /// By URI.
    files: BTreeMap<String, String>,
}

impl Skill {
    /// A skill in the folder `directory`, whose `SKILL.md` has this text.
    ///
    /// `None` when the text does not begin with frontmatter.
    pub fn new(directory: &str, text: &str) -> Option<Self> {
        let uri = format!("{directory}/{SKILL_FILE}");
        let resources = SkillResources::Listed(Vec::new());
        let entry = SkillEntry { uri, frontmatter: frontmatter(text)?, resources };
        Some(Self { entry, files: BTreeMap::new() }.file(directory, SKILL_FILE, text))
    }

    /// Adds a file, by its path within the folder.
    #[must_use]
    pub fn file(mut self, directory: &str, path: &str, text: &str) -> Self {
        let uri = format!("{directory}/{path}");
        if let SkillResources::Listed(listed) = &mut self.entry.resources {
            listed.push(SkillResource::of(uri.clone(), text.as_bytes()));
        }
        self.files.insert(uri, text.to_owned());
        self
    }

    fn word(&self, key: &str) -> String {
        self.entry.frontmatter.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    fn routes(&self) -> Vec<ResourceRoute> {
        let route = |(uri, text): (&String, &String)| {
            let contents = text.clone();
            let route = resource(uri.clone(), move || std::future::ready(contents.clone()))
                .mime_type("text/markdown")
                .size(u64::try_from(text.len()).unwrap_or(u64::MAX));
            if *uri == self.entry.uri {
                route.name(self.word("name")).description(self.word("description"))
            } else {
                route.name(uri.rsplit('/').next().unwrap_or(uri))
            }
        };
        self.files.iter().map(route).collect()
    }
}

/// The skill that the suite looks at.
pub fn sample() -> Vec<Skill> {
    let directory = "skill://pdf-processing";
    let text = "---\nname: pdf-processing\ndescription: Extracts, fills in and assembles PDF documents\n---\n\n\
                Read references/FORMS.md before filling in a form.\n";
    let skill = Skill::new(directory, text);
    let forms = "# Forms\n\nList the fields first, then fill them in one by one.\n";
    skill.map(|skill| skill.file(directory, "references/FORMS.md", forms)).into_iter().collect()
}

#[derive(Deserialize)]
#[serde(crate = "toolwire::serde")]
struct At {
    uri: String,
}

/// Adds the skills to a server: their files as resources, and the methods of the extension.
pub fn serve(server: ServerBuilder, skills: Vec<Skill>) -> ServerBuilder {
    let settings = Map::from_iter([("directoryRead".to_owned(), Value::Bool(true))]);
    let mut server = server.extension(EXTENSION, settings);
    for route in skills.iter().flat_map(Skill::routes) {
        server = server.resource(route);
    }
    let skills: Arc<[Skill]> = skills.into();
    let (listed, found, read) = (Arc::clone(&skills), Arc::clone(&skills), skills);
    server
        .method("skills/list", move |_: Context| {
            let entries: Vec<&SkillEntry> = listed.iter().map(|skill| &skill.entry).collect();
            let result = json!({ "skills": entries, "ttlMs": 0, "cacheScope": "public" });
            async move { Ok(result) }
        })
        .method("skills/get", move |cx: Context| {
            let skills = Arc::clone(&found);
            async move {
                let At { uri } = cx.decode()?;
                let skill = skills.iter().find(|skill| skill.entry.uri == uri);
                let skill = skill.ok_or_else(|| RpcError::invalid_params(format!("no skill at {uri:?}")))?;
                Ok(json!({ "skill": skill.entry, "ttlMs": 0, "cacheScope": "public" }))
            }
        })
        .method("resources/directory/read", move |cx: Context| {
            let skills = Arc::clone(&read);
            async move {
                let At { uri } = cx.decode()?;
                let children = children(&skills, uri.trim_end_matches('/'));
                if children.is_empty() {
                    return Err(RpcError::invalid_params(format!("no directory at {uri:?}")));
                }
                Ok(json!({ "resources": children }))
            }
        })
}

/// What lies directly in a folder, as resources.
fn children(skills: &[Skill], directory: &str) -> Vec<Value> {
    let mut found = BTreeMap::new();
    for (uri, text) in skills.iter().flat_map(|skill| &skill.files) {
        let Some(path) = uri.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/')) else {
            continue;
        };
        let (name, child) = if let Some((folder, _)) = path.split_once('/') {
            let uri = format!("{directory}/{folder}");
            (folder, json!({ "uri": uri, "name": folder, "mimeType": DIRECTORY }))
        } else {
            let size = text.len();
            (path, json!({ "uri": uri, "name": path, "mimeType": "text/markdown", "size": size }))
        };
        found.insert(name, child);
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::{children, sample};

    #[test]
    fn a_folder_has_its_files_and_folders() {
        let skills = sample();
        let names = |directory| -> Vec<String> {
            children(&skills, directory)
                .iter()
                .map(|child| child["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names("skill://pdf-processing"), ["SKILL.md", "references"]);
        assert_eq!(names("skill://pdf-processing/references"), ["FORMS.md"]);
        assert!(names("skill://pdf-processing/SKILL.md").is_empty());
        assert!(names("skill://pdf").is_empty());
    }
}
