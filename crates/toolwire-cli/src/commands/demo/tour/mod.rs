//! The tour: the same stops for a client of each era, side by side.
//!
//! Everything that is shown was really asked and really answered; when the eras disagree, or an answer is not
//! the right one, the tour fails.

mod guest;
mod stops;

use std::{
    io::Write,
    time::{Duration, Instant},
};

use toolwire::Version;

use super::page::{Answer, Page};
use crate::{
    demo_server,
    failure::{Code, Explain, Failure, Result},
};
use guest::Guest;

/// One revision for each era: the last with a handshake, and the first without.
const VERSIONS: [Version; 2] = [Version::V2025_11_25, Version::V2026_07_28];

/// Walks through the demonstration server.
pub(super) async fn walk<W: Write>(page: &mut Page<W>) -> Result<()> {
    page.title(concat!("Toolwire ", env!("CARGO_PKG_VERSION")))?;
    page.paragraph(
        "One server, and a client of each era of the Model Context Protocol, all in this process. \
         They ask the same things: → is what was asked, ← what came back, and the columns say how long it took.",
    )?;
    page.gap()?;
    let server = demo_server::server().map_err(unexpected)?;
    let [old, new] = VERSIONS;
    let guests = [Guest::connect(&server, old).await?, Guest::connect(&server, new).await?];
    let mut tour = Tour { page, guests };
    tour.arrive()?;
    stops::tools(&mut tour).await?;
    stops::resources(&mut tour).await?;
    stops::prompts(&mut tour).await?;
    stops::note(&mut tour).await?;
    stops::crowd(&mut tour).await?;
    tour.depart().await
}

/// The tour under way.
struct Tour<'a, W> {
    page: &'a mut Page<W>,
    guests: [Guest; 2],
}

impl<W: Write> Tour<'_, W> {
    /// Shows how each client has connected.
    fn arrive(&mut self) -> Result<()> {
        let [old, new] = &self.guests;
        self.page.column_heads([old.era(), new.era()], VERSIONS.map(Version::as_str))?;
        self.page.title("Connect: a handshake then, a question now")?;
        self.page.exchanged(&old.how_connected(), [Some(old.connected_in), None])?;
        self.page.exchanged(&new.how_connected(), [None, Some(new.connected_in)])?;
        for guest in &self.guests {
            let info =
                guest.client.server_info().ok_or_else(|| unexpected("the server did not say what it is"))?;
            ensure(info.name == demo_server::NAME, || {
                format!("this is {:?}, not our own server", info.name)
            })?;
        }
        ensure(old.offers() == new.offers(), || "the eras see different servers".to_owned())?;
        self.page.aside(format_args!("{} offers {}", demo_server::NAME, new.offers()))?;
        Ok(())
    }

    /// One stop: the clients ask the same, one after the other, and get the same answer.
    async fn stop(
        &mut self,
        title: &str,
        call: &str,
        ask: impl AsyncFn(&Guest) -> Result<Answer>,
    ) -> Result<()> {
        self.page.gap()?;
        self.page.title(title)?;
        self.page.asked(call, "")?;
        self.page.flush()?;
        let [old, new] = &self.guests;
        let (first, first_took) = timed(old, call, &ask).await?;
        let (second, second_took) = timed(new, call, &ask).await?;
        ensure(first.says_the_same(&second), || {
            let (first, second) = (&first.text, &second.text);
            format!("{call} was answered with {first:?} in one era and with {second:?} in the other")
        })?;
        for aside in &second.asides {
            self.page.aside(aside)?;
        }
        self.page.answered(&second, [Some(first_took), Some(second_took)])?;
        Ok(())
    }

    /// Says goodbye, and what was to be seen.
    async fn depart(self) -> Result<()> {
        for guest in self.guests {
            guest.leave().await?;
        }
        self.page.gap()?;
        self.page.paragraph(
            "Every answer was the same in both eras. The handlers behind them are plain async functions \
             that never learn which revision of the protocol their client speaks.",
        )?;
        self.page.flush()?;
        Ok(())
    }
}

async fn timed(
    guest: &Guest,
    call: &str,
    ask: impl AsyncFn(&Guest) -> Result<Answer>,
) -> Result<(Answer, Duration)> {
    let begin = Instant::now();
    let answer = ask(guest).await.context(format_args!("{call} failed in the {} era", guest.era()))?;
    Ok((answer, begin.elapsed()))
}

/// What the tour fails with when something is not as it should be.
fn unexpected(why: impl std::fmt::Display) -> Failure {
    Failure::new(Code::Other, why.to_string())
}

/// Fails unless this is so.
fn ensure(is_so: bool, why: impl FnOnce() -> String) -> Result<()> {
    if is_so { Ok(()) } else { Err(unexpected(why())) }
}

/// A number with its thousands apart.
fn thousands(number: usize) -> String {
    match number {
        0..1000 => number.to_string(),
        _ => format!("{},{:03}", thousands(number / 1000), number % 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_005, "1,234,005")] {
            assert_eq!(thousands(number), text);
        }
    }
}
