//! Markdown for a terminal: just as much of it as the pages use.
//!
//! Headings are bold, code between backticks and in indented lines has a colour, everything else stays as it is.
//! The pages keep their lines short themselves.

use owo_colors::OwoColorize;

/// A page as people see it.
pub(super) fn page(markdown: &str) -> String {
    let lines: Vec<_> = markdown.trim_end().lines().map(line).collect();
    lines.join("\n")
}

fn line(line: &str) -> String {
    if let Some(heading) = line.strip_prefix("# ") {
        return heading.bold().underline().to_string();
    }
    if let Some(heading) = line.strip_prefix("## ") {
        return heading.bold().to_string();
    }
    if line.starts_with("    ") {
        return line.cyan().to_string();
    }
    // Every second piece is between backticks.
    let pieces = line.split('`').enumerate();
    pieces
        .map(|(index, piece)| if index % 2 == 1 { piece.cyan().to_string() } else { piece.to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_become_colours_and_words_stay() {
        let shown = page("# a: b\n\nRun `x`, then\n\n## Fix\n\n    toolwire doctor `y`\n");
        assert!(shown.contains("\u{1b}["), "{shown}");
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert_eq!(plain, "a: b\n\nRun x, then\n\nFix\n\n    toolwire doctor `y`");
    }
}
