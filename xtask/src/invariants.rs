//! The invariants of ARCHITECTURE.md that can be seen in the sources. Those about dependencies are in `edges`, the one
//! about eras in `eras`, those about what happens at run time in the tests of the crates.

use crate::sources::{self, Source};
use crate::steps::{Outcome, none};
use crate::workspace::root;

/// Words that must not be in the code of some files.
struct Rule {
    /// The invariant, as it is told when it is broken.
    says: &'static str,
    files: &'static [&'static str],
    words: &'static [&'static str],
    /// Files that may, each for a reason.
    except: &'static [(&'static str, &'static str)],
}

const RULES: &[Rule] = &[
    Rule {
        says: "the protocol never knows a runtime, a clock, randomness or IO",
        files: &["crates/toolwire-protocol/src/"],
        words: &[
            "Instant::now",
            "SystemTime",
            "std::env",
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "std::thread",
            "thread_local!",
            "RandomState::new",
            "getrandom",
            "tokio",
        ],
        except: &[],
    },
    Rule {
        says: "transports never know JSON-RPC",
        files: &["crates/toolwire-transport/src/"],
        words: &["serde", "jsonrpc", "toolwire_protocol::envelope", "Envelope", "Version", "Method::"],
        except: &[],
    },
    Rule {
        says: "handlers, extractors, outputs and layers never know the revision",
        files: &[
            "crates/toolwire-server/src/extract/",
            "crates/toolwire-server/src/output/",
            "crates/toolwire-server/src/handler.rs",
            "crates/toolwire-server/src/layer.rs",
        ],
        words: &["Version", ".version"],
        except: &[("crates/toolwire-server/src/extract/progress.rs", "chooses which fields to fill")],
    },
    Rule {
        says: "the router never knows a session",
        files: &["crates/toolwire-server/src/route/", "crates/toolwire-server/src/dispatch.rs"],
        words: &["session", "Session"],
        except: &[],
    },
];

/// Files in which something secret, or what stands for it, is compared with what a peer sends.
const COMPARES_SECRETS: &[(&str, &str)] = &[
    ("crates/toolwire-auth/src/secret.rs", "tokens, codes, states and secrets of clients"),
    ("crates/toolwire-auth/src/server/verify/static_keys.rs", "digests of static keys"),
    ("crates/toolwire-auth/src/jose/thumbprint.rs", "thumbprints of keys that tokens are bound to"),
    ("crates/toolwire-auth/src/dpop/check.rs", "hashes of tokens in proofs"),
];

/// The crate that knows the text of secrets.
const EXPOSES_SECRETS: &str = "crates/toolwire-auth/src/";

pub(crate) fn run() -> Outcome {
    let sources = sources::read(&root())?;
    let ruled = RULES.iter().flat_map(|rule| rule.violations(&sources));
    none(&ruled.chain(comparisons(&sources)).collect::<Vec<_>>())
}

/// Places where the time of a comparison could tell how much of a secret was guessed.
fn comparisons(sources: &[Source]) -> Vec<String> {
    let is_constant = |source: &Source| source.lines.iter().any(|(_, line)| line.contains(".ct_eq("));
    let missing = COMPARES_SECRETS
        .iter()
        .filter(|(path, _)| !sources.iter().any(|source| source.path == *path && is_constant(source)));
    let missing = missing.map(|(path, what)| format!("{path}: no `ct_eq`, but {what} are compared there"));
    let compares = |line: &str| line.contains(".expose()") && (line.contains("==") || line.contains("!="));
    let exposed =
        sources.iter().filter(|source| source.path.starts_with(EXPOSES_SECRETS)).flat_map(|source| {
            let lines = source.lines.iter().filter(|(_, line)| compares(line));
            lines.map(|(number, _)| {
                format!("{}:{number}: the text of a secret is compared; compare the secrets", source.path)
            })
        });
    missing.chain(exposed).collect()
}

impl Rule {
    fn violations(&self, sources: &[Source]) -> Vec<String> {
        let begins = |source: &Source, paths: &[&str]| paths.iter().any(|path| source.path.starts_with(path));
        let ruled = sources.iter().filter(|source| begins(source, self.files));
        let ruled: Vec<&Source> =
            ruled.filter(|source| !self.except.iter().any(|(path, _)| source.path == *path)).collect();
        let mut violations = Vec::new();
        // A rule whose files have moved would hold for ever.
        for path in self.files {
            if !sources.iter().any(|source| source.path.starts_with(path)) {
                violations.push(format!("there is no {path} for the rule that {}", self.says));
            }
        }
        for source in ruled {
            for (number, line) in &source.lines {
                if let Some(word) = self.words.iter().find(|word| line.contains(**word)) {
                    violations.push(format!("{}:{number}: `{word}`, but {}", source.path, self.says));
                }
            }
        }
        violations
    }
}

#[cfg(test)]
mod tests {
    use super::{COMPARES_SECRETS, RULES, Rule, comparisons, run};
    use crate::sources::{self, Source};
    use crate::workspace::root;

    #[test]
    fn this_workspace_keeps_the_invariants() {
        assert_eq!(run(), Ok(()));
    }

    /// Asserts that the rule with these words is there, and kept.
    #[track_caller]
    fn assert_kept(says: &str) {
        let rule = RULES.iter().find(|rule| rule.says == says);
        let rule = rule.unwrap_or_else(|| panic!("there is no rule that {says}"));
        assert_eq!(rule.violations(&sources::read(&root()).unwrap()), [""; 0]);
    }

    #[test]
    fn the_protocol_never_knows_a_runtime_a_clock_randomness_or_io() {
        assert_kept("the protocol never knows a runtime, a clock, randomness or IO");
    }

    #[test]
    fn handlers_extractors_outputs_and_layers_never_know_the_revision() {
        assert_kept("handlers, extractors, outputs and layers never know the revision");
    }

    #[test]
    fn transports_never_know_json_rpc() {
        assert_kept("transports never know JSON-RPC");
    }

    #[test]
    fn the_router_never_knows_a_session() {
        assert_kept("the router never knows a session");
    }

    #[test]
    fn secrets_are_compared_in_constant_time() {
        assert_eq!(comparisons(&sources::read(&root()).unwrap()), [""; 0]);
    }

    #[test]
    fn a_comparison_of_secrets_that_takes_a_varying_time_is_named_with_its_place() {
        let source =
            |path: &str, line: &str| Source { path: path.to_owned(), lines: vec![(7, line.to_owned())] };
        let mut all: Vec<Source> =
            COMPARES_SECRETS.iter().map(|(path, _)| source(path, "one.ct_eq(two)")).collect();
        assert_eq!(comparisons(&all), [""; 0]);
        all[0] = source(COMPARES_SECRETS[0].0, "#[derive(PartialEq)]");
        for line in ["token.expose() == given", "given != token.expose()", "token.expose().len()"] {
            all.push(source("crates/toolwire-auth/src/a.rs", line));
        }
        all.push(source("crates/other/src/a.rs", "token.expose() == given"));
        let found = comparisons(&all);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("crates/toolwire-auth/src/secret.rs: no `ct_eq`"), "{found:?}");
        assert!(found[1].starts_with("crates/toolwire-auth/src/a.rs:7: "), "{found:?}");
    }

    #[test]
    fn a_word_that_must_not_be_there_is_named_with_its_place() {
        let rule =
            Rule { says: "a is pure", files: &["a/", "gone/"], words: &["tokio"], except: &[("a/x.rs", "")] };
        let source = |path: &str| Source { path: path.to_owned(), lines: vec![(7, "use tokio;".to_owned())] };
        let found = rule.violations(&[source("a/b.rs"), source("a/x.rs"), source("b/c.rs")]);
        assert_eq!(
            found,
            ["there is no gone/ for the rule that a is pure", "a/b.rs:7: `tokio`, but a is pure"]
        );
    }
}
