//! The scenarios of the suite, as it lists them.

/// A scenario and the revisions it is for; extensions are for none in particular.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) revisions: Vec<String>,
}

/// All scenarios of the suite.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Scenarios {
    pub(super) server: Vec<Scenario>,
    pub(super) client: Vec<Scenario>,
}

impl Scenario {
    /// Whether it is run at this revision. What belongs to an extension is run at every one.
    pub(super) fn is_for(&self, revision: &str) -> bool {
        self.is_extension() || self.revisions.iter().any(|known| known == revision)
    }

    pub(super) fn is_extension(&self) -> bool {
        self.revisions.iter().any(|revision| revision == "extension")
    }
}

impl Scenarios {
    /// Reads what `conformance list` prints: sections, and a line `- name [revision,…]` for each scenario.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut scenarios = Self::default();
        let mut section = None;
        for line in text.lines() {
            match line.trim().strip_prefix("- ") {
                None if line.starts_with("Server scenarios") => section = Some(&mut scenarios.server),
                None if line.starts_with("Client scenarios") => section = Some(&mut scenarios.client),
                None if line.trim().is_empty() => {}
                None => section = None,
                Some(entry) => {
                    if let Some(section) = &mut section {
                        section.push(parse_entry(entry).ok_or_else(|| format!("not a scenario: {line}"))?);
                    }
                }
            }
        }
        if scenarios.server.is_empty() || scenarios.client.is_empty() {
            return Err("the suite lists no scenarios in a form we know".to_owned());
        }
        Ok(scenarios)
    }
}

fn parse_entry(entry: &str) -> Option<Scenario> {
    let (name, rest) = entry.split_once(" [")?;
    let revisions = rest.strip_suffix(']')?.split(',').map(str::to_owned).collect();
    Some(Scenario { name: name.to_owned(), revisions })
}

#[cfg(test)]
mod tests {
    use super::Scenarios;

    const LIST: &str = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n  \
        - tasks [extension]\n\nClient scenarios (test against a client):\n  - call [2025-11-25]\n\n\
        Authorization server scenarios (test against an authorization server):\n  - grant [2025-11-25]\n";

    #[test]
    fn the_list_is_read_by_sections() {
        let scenarios = Scenarios::parse(LIST).unwrap();
        let names =
            |side: &[super::Scenario]| -> Vec<String> { side.iter().map(|it| it.name.clone()).collect() };
        assert_eq!(names(&scenarios.server), ["ping", "tasks"]);
        assert_eq!(names(&scenarios.client), ["call"]);
        assert!(scenarios.server[0].is_for("2025-11-25") && !scenarios.server[0].is_for("2026-07-28"));
        assert!(scenarios.server[1].is_for("2026-07-28"));
    }

    #[test]
    fn another_form_is_an_error() {
        assert!(Scenarios::parse("").is_err());
        assert!(Scenarios::parse("Server scenarios:\n  - ping\n").is_err());
    }
}
