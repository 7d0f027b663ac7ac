//! Variables in settings: `${VAR}`, `${VAR:-default}`, `${env:VAR}`, and the folders that editors know.
//!
//! Gemini CLI also has `$VAR`. What only a host can answer, such as `${input:token}`, is explained and not
//! guessed. In a file that is not trusted nothing is replaced: it is only noted what would be.

use std::{borrow::Cow, cell::RefCell, collections::BTreeSet, path::Path};

use super::{Host, places::Places};
use crate::redact;

/// What is written like a variable and is none of the environment.
const FOLDERS: [&str; 5] =
    ["workspaceFolder", "workspaceRoot", "workspaceFolderBasename", "userHome", "pathSeparator"];

/// What variables stand for in one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variables<'a> {
    pub(super) values: Values<'a>,
    pub(super) host: Host,
    /// What `${workspaceFolder}` is.
    pub(super) folder: &'a Path,
}

/// Where the values come from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Values<'a> {
    /// The environment.
    Of(&'a Places),
    /// Nowhere: texts stay as they are written, and what they ask for is noted.
    Noted(&'a RefCell<Wants>),
}

/// What the settings of a server ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    /// The variables of the environment.
    pub(crate) variables: BTreeSet<String>,
    /// The files with variables.
    pub(crate) files: BTreeSet<String>,
}

/// Why a text could not be completed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unknown {
    pub(super) what: String,
    pub(super) hint: String,
}

impl<'a> Variables<'a> {
    /// Replaces the variables in a text.
    pub(super) fn expand(&self, text: &str) -> Result<String, Unknown> {
        let mut expanded = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let (before, from) = rest.split_at(at);
            expanded += before;
            let braced = from.strip_prefix("${").and_then(|inner| inner.split_once('}'));
            rest = if let Some((inner, after)) = braced {
                expanded += &self.braced(inner)?;
                after
            } else {
                let after = from.strip_prefix('$').unwrap_or_default();
                let length = name_length(after);
                let (name, behind) = after.split_at(length);
                if self.host == Host::Gemini && length > 0 {
                    expanded += &match self.values {
                        Values::Of(_) => self.variable(name)?,
                        Values::Noted(_) => {
                            self.variable(name)?;
                            format!("${name}").into()
                        }
                    };
                    behind
                } else {
                    expanded.push('$');
                    after
                }
            };
        }
        Ok(expanded + rest)
    }

    /// What is between `${` and `}`.
    fn braced(&self, inner: &str) -> Result<String, Unknown> {
        let places = match self.values {
            Values::Of(places) => places,
            Values::Noted(wants) => {
                if let Some(name) = variable_in(inner) {
                    wants.borrow_mut().variables.insert(name.to_owned());
                }
                return Ok(format!("${{{inner}}}"));
            }
        };
        if let Some((name, default)) = inner.split_once(":-").filter(|(name, _)| is_name(name)) {
            let value = places.variable(name).filter(|value| !value.is_empty());
            redact::remember_variable(name, value.unwrap_or(default));
            return Ok(value.unwrap_or(default).to_owned());
        }
        let folder = self.folder.display().to_string();
        match inner {
            "workspaceFolder" | "workspaceRoot" => return Ok(folder),
            "workspaceFolderBasename" => {
                let name = self.folder.file_name().unwrap_or_default();
                return Ok(name.to_string_lossy().into_owned());
            }
            "userHome" => {
                let home = places.home("").map(|home| home.display().to_string());
                return home.map(|home| home.trim_end_matches('/').to_owned()).ok_or_else(|| unset("HOME"));
            }
            "pathSeparator" | "/" => return Ok(std::path::MAIN_SEPARATOR_STR.to_owned()),
            _ => {}
        }
        match inner.split_once(':') {
            Some(("env", name)) => self.variable(name).map(Cow::into_owned),
            Some(("input", name)) => Err(Unknown {
                what: format!("${{input:{name}}} is asked for by {} when it starts the server", self.host),
                hint: format!("put the value into a variable and write ${{env:{}}} instead", upper(name)),
            }),
            Some((kind, _)) if is_name(kind) => Err(Unknown {
                what: format!("only {} knows what ${{{inner}}} stands for", self.host),
                hint: "write the value itself, or ${env:VARIABLE}".to_owned(),
            }),
            None if is_name(inner) => self.variable(inner).map(Cow::into_owned),
            // It is no variable, so it is itself.
            _ => Ok(format!("${{{inner}}}")),
        }
    }

    /// The value of a variable of the environment.
    pub(super) fn variable(&self, name: &str) -> Result<Cow<'a, str>, Unknown> {
        match self.values {
            Values::Of(places) => {
                let value = places.variable(name).ok_or_else(|| unset(name))?;
                redact::remember_variable(name, value);
                Ok(Cow::Borrowed(value))
            }
            Values::Noted(wants) => {
                wants.borrow_mut().variables.insert(name.to_owned());
                Ok(Cow::Owned(format!("${{{name}}}")))
            }
        }
    }
}

/// The variable of the environment that is asked for between `${` and `}`, if one is.
fn variable_in(inner: &str) -> Option<&str> {
    if let Some((name, _)) = inner.split_once(":-").filter(|(name, _)| is_name(name)) {
        return Some(name);
    }
    match inner.split_once(':') {
        Some(("env", name)) => Some(name),
        None if is_name(inner) => Some(inner).filter(|name| !FOLDERS.contains(name)),
        _ => None,
    }
}

fn unset(name: &str) -> Unknown {
    let hint = if cfg!(windows) {
        format!("set it first: set {name}=…")
    } else {
        format!("set it first: export {name}=…")
    };
    Unknown { what: format!("the variable {name} is not set"), hint }
}

fn name_length(text: &str) -> usize {
    let bytes = text.bytes().enumerate();
    let belongs = |(at, byte): &(usize, u8)| {
        byte.is_ascii_alphabetic() || *byte == b'_' || (*at > 0 && byte.is_ascii_digit())
    };
    bytes.take_while(belongs).count()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && name_length(text) == text.len()
}

/// A name for a variable, from the name of an input.
fn upper(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    name.chars().map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::places::System;

    fn expand(host: Host, text: &str) -> Result<String, String> {
        let variables = [("HOME", "/home/me"), ("TOKEN", "s3"), ("EMPTY", "")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let places = Places::new(System::Linux, variables.into(), "/code/app".into());
        let variables = Variables { values: Values::Of(&places), host, folder: Path::new("/code/app") };
        variables.expand(text).map_err(|unknown| format!("{} ({})", unknown.what, unknown.hint))
    }

    #[test]
    fn variables_are_replaced_in_all_spellings() {
        for (text, expected) in [
            ("Bearer ${TOKEN}", "Bearer s3"),
            ("${env:TOKEN}${TOKEN}", "s3s3"),
            ("${NOT_SET:-else}/${EMPTY:-x}/${TOKEN:-y}", "else/x/s3"),
            ("${NOT_SET:-}", ""),
            ("${EMPTY}", ""),
            ("${workspaceFolder}/bin:${userHome}${/}x", "/code/app/bin:/home/me/x"),
            ("${workspaceFolderBasename}", "app"),
            ("$TOKEN costs $5, ${ and ${} and ${1} and $", "$TOKEN costs $5, ${ and ${} and ${1} and $"),
            ("é${TOKEN}é", "és3é"),
        ] {
            assert_eq!(expand(Host::Cursor, text), Ok(expected.to_owned()), "{text}");
        }
        assert_eq!(expand(Host::Gemini, "a$TOKEN-$5"), Ok("as3-$5".to_owned()));
    }

    #[test]
    fn what_is_only_noted_stays_as_it_is() {
        let wants = RefCell::default();
        let noted = |host, text: &str| {
            let variables = Variables { values: Values::Noted(&wants), host, folder: Path::new("/code/app") };
            variables.expand(text).unwrap()
        };
        for text in
            ["${A}", "${env:B}/${C:-d}", "${workspaceFolder}${/}${userHome}${input:i}${command:c}", "$x ${"]
        {
            assert_eq!(noted(Host::Cursor, text), text);
        }
        assert_eq!(noted(Host::Gemini, "a $D"), "a $D");
        let names: Vec<_> = wants.borrow().variables.iter().cloned().collect();
        assert_eq!(names, ["A", "B", "C", "D"]);
    }

    #[test]
    fn what_is_unknown_is_named() {
        let told = |host, text| expand(host, text).unwrap_err();
        for text in ["${MISSING}", "x${env:MISSING}"] {
            assert!(told(Host::Cursor, text).starts_with("the variable MISSING is not set"));
        }
        assert!(told(Host::Gemini, "$MISSING").contains("MISSING"));
        let input = told(Host::VsCode, "${input:api-key}");
        assert!(input.contains("asked for by vscode") && input.contains("${env:API_KEY}"), "{input}");
        assert!(told(Host::VsCode, "${command:x.y}").contains("only vscode knows"));
    }
}
