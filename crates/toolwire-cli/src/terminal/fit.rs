//! Text that is cut off where there is no more room.

use unicode_width::UnicodeWidthChar;

/// As much of a text as fits.
pub(crate) fn fit(text: &str, width: usize) -> String {
    let mut used = 0;
    let mut kept = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let wide = c.width().unwrap_or(0);
        let room = if rest.peek().is_none() { width } else { width.saturating_sub(1) };
        if used + wide > room {
            kept.push('…');
            break;
        }
        used += wide;
        kept.push(c);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_cut_off() {
        assert_eq!(fit("abcdef", 6), "abcdef");
        assert_eq!(fit("abcdef", 5), "abcd…");
        assert_eq!(fit("日本語", 5), "日本…");
        assert_eq!(fit("", 0), "");
    }
}
