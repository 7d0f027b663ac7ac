//! The scenarios of the suite, as it lists them.

/// A scenario and the revisions it is for; extensions are for none in particular.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) revisions: Vec<String>,
}

/// All scenarios of a release of the suite.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scenarios {
    pub(super) server: Vec<Scenario>,
    pub(super) client: Vec<Scenario>,
}

/// The names of the scenarios that the suite runs for the requirements of a revision, scored or not.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Required {
    pub(super) server: Vec<String>,
    pub(super) client: Vec<String>,
}

impl Scenario {
    /// Returns whether it is run at this revision. A scenario of an extension is run at every one.
    pub(super) fn is_for(&self, revision: &str) -> bool {
        self.is_extension() || self.revisions.iter().any(|known| known == revision)
    }

    pub(super) fn is_extension(&self) -> bool {
        self.revisions.iter().any(|revision| revision == "extension")
    }
}

impl Scenarios {
    /// Reads the output of `conformance list`: sections with a line `- name [revision,…]` for each scenario.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut scenarios = Self::default();
        for (heading, entry) in entries(text) {
            let side = match heading {
                _ if heading.starts_with("Server scenarios") => &mut scenarios.server,
                _ if heading.starts_with("Client scenarios") => &mut scenarios.client,
                _ if heading.starts_with("Authorization server scenarios") => continue,
                _ => return Err(unknown(heading, entry)),
            };
            let (name, revisions) = bracketed(entry).ok_or_else(|| unknown(heading, entry))?;
            let revisions = revisions.split(',').map(str::to_owned).collect();
            side.push(Scenario { name: name.to_owned(), revisions });
        }
        if scenarios.server.is_empty() || scenarios.client.is_empty() {
            return Err("the suite lists no scenarios in a form we know".to_owned());
        }
        Ok(scenarios)
    }
}

impl Required {
    /// Reads the output of `conformance list --requirements`: a section with lines `- name` for each side, and one with
    /// lines `- name [side]` for the scenarios that are run without being scored.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut required = Self::default();
        for (heading, entry) in entries(text) {
            let (name, side) = match bracketed(entry) {
                None if heading.starts_with("Server scenarios") => (entry, "server"),
                None if heading.starts_with("Client scenarios") => (entry, "client"),
                Some(parts) if heading.starts_with("Run and reported") => parts,
                _ => return Err(unknown(heading, entry)),
            };
            match side {
                "server" => required.server.push(name.to_owned()),
                "client" => required.client.push(name.to_owned()),
                _ => return Err(unknown(heading, entry)),
            }
        }
        if required.server.is_empty() || required.client.is_empty() {
            return Err("the suite lists no requirements in a form we know".to_owned());
        }
        Ok(required)
    }
}

/// Returns the entries of a list, each with the heading of its section. Headings are not indented.
fn entries(text: &str) -> Vec<(&str, &str)> {
    let (mut heading, mut entries) = ("", Vec::new());
    for line in text.lines() {
        match line.trim().strip_prefix("- ") {
            Some(entry) => entries.push((heading, entry)),
            None if line.is_empty() || line.starts_with(' ') => {}
            None => heading = line,
        }
    }
    entries
}

/// Splits an entry `name [words]`.
fn bracketed(entry: &str) -> Option<(&str, &str)> {
    let (name, words) = entry.split_once(" [")?;
    Some((name, words.strip_suffix(']')?))
}

fn unknown(heading: &str, entry: &str) -> String {
    format!("the suite lists `{entry}` below `{heading}`, a form we do not know")
}

#[cfg(test)]
mod tests {
    use super::{Required, Scenarios};

    const LIST: &str = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n  \
        - tasks [extension]\n\nClient scenarios (test against a client):\n  - call [2025-11-25]\n\n\
        Authorization server scenarios (test against an authorization server):\n  - grant [2025-11-25]\n";

    const REQUIREMENTS: &str = "Required for 2025-11-25 (2 scenarios, frozen; run at the 2025-11-25 wire):\n\n\
        Server scenarios (test against a server):\n  - ping\n\n\
        Client scenarios (test against a client):\n  - auth/basic\n\n\
        Run and reported, but never scored:\n  extension (1):\n    - auth/dpop [client]\n  \
        pending (1):\n    - polling [server]\n\n";

    #[test]
    fn list_is_read_by_sections() {
        let scenarios = Scenarios::parse(LIST).unwrap();
        let names =
            |side: &[super::Scenario]| -> Vec<String> { side.iter().map(|it| it.name.clone()).collect() };
        assert_eq!(names(&scenarios.server), ["ping", "tasks"]);
        assert_eq!(names(&scenarios.client), ["call"]);
        assert!(scenarios.server[0].is_for("2025-11-25") && !scenarios.server[0].is_for("2026-07-28"));
        assert!(scenarios.server[1].is_for("2026-07-28"));
    }

    #[test]
    fn requirements_include_scenarios_that_are_not_scored() {
        let required = Required::parse(REQUIREMENTS).unwrap();
        assert_eq!(required.server, ["ping", "polling"]);
        assert_eq!(required.client, ["auth/basic", "auth/dpop"]);
    }

    #[test]
    fn list_in_another_form_is_an_error() {
        assert!(Scenarios::parse("").is_err());
        assert!(Scenarios::parse("Server scenarios:\n  - ping\n").is_err());
        assert!(Scenarios::parse(&LIST.replace("Authorization server", "Gateway")).is_err());
        assert!(Scenarios::parse(REQUIREMENTS).is_err());
        assert!(Required::parse("").is_err());
        assert!(Required::parse(LIST).is_err());
        assert!(Required::parse(&REQUIREMENTS.replace("[server]", "[gateway]")).is_err());
    }
}
