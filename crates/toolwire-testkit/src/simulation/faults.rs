//! What goes wrong on the way.

use std::time::Duration;

use super::Random;

/// What the network does to what goes one way.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "meant to be written as a literal with ..Faults::calm()")]
pub struct Faults {
    /// Each piece may take up to so much longer.
    pub delay: Duration,
    /// Takes nothing for a while.
    pub stall: Option<Stall>,
    /// The largest piece in bytes; a message is always one piece.
    pub piece_bytes: usize,
    /// How many pieces are on the way before the sender has to wait.
    pub capacity: usize,
    /// In how many of a hundred polls that have to wait the task is woken for nothing.
    pub needless_wakes: u64,
}

/// The receiver takes nothing for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct Stall {
    /// After so many pieces.
    pub after: u64,
    /// For so long; `None` means that it never comes back.
    pub time: Option<Duration>,
}

/// How a link ends before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a choice that callers make, not one they match on")]
pub enum Break {
    /// Both ways at once; what is on the way is lost.
    Reset,
    /// Both ways; what is on the way still arrives.
    Close,
    /// The first end has nothing more to say, but goes on to listen.
    HalfClose,
}

/// When a link ends before its time, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a pair")]
pub struct Cut {
    /// At this poll of either end, counted from 1: so it can fall upon every await.
    pub at_poll: u64,
    /// How.
    pub how: Break,
}

/// What goes wrong with one link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "meant to be written as a literal with ..Plan::calm()")]
pub struct Plan {
    /// On the way from the first end to the second.
    pub there: Faults,
    /// On the way back.
    pub back: Faults,
    /// How it ends, if before its time.
    pub cut: Option<Cut>,
}

impl Faults {
    /// A network that does what it should.
    pub const fn calm() -> Self {
        Self { delay: Duration::ZERO, stall: None, piece_bytes: usize::MAX, capacity: 64, needless_wakes: 0 }
    }

    /// Whatever may happen; more than half of the time, most of it does not.
    pub fn random(random: &mut Random) -> Self {
        let mut faults = Self::calm();
        if random.percent(40) {
            faults.delay = Duration::from_millis(random.between(1, 300));
        }
        if random.percent(20) {
            let time = random.percent(70).then(|| Duration::from_millis(random.between(10, 15_000)));
            faults.stall = Some(Stall { after: random.below(12), time });
        }
        if random.percent(30) {
            faults.piece_bytes = *random.pick(&[1, 7, 64, 500]);
            // Or a few hundred bytes would take minutes.
            faults.delay = faults.delay.min(Duration::from_millis(3));
        }
        if random.percent(40) {
            faults.capacity = *random.pick(&[1, 2, 5]);
        }
        if random.percent(30) {
            faults.needless_wakes = random.between(1, 60);
        }
        faults
    }
}

impl Plan {
    /// A network that does what it should.
    pub const fn calm() -> Self {
        Self { there: Faults::calm(), back: Faults::calm(), cut: None }
    }

    /// Whatever may happen.
    pub fn random(random: &mut Random) -> Self {
        let (there, back) = (Faults::random(random), Faults::random(random));
        let cut = random.percent(35).then(|| Cut {
            // Most links see less than a hundred polls.
            at_poll: random.between(1, 120),
            how: *random.pick(&[Break::Reset, Break::Close, Break::HalfClose]),
        });
        Self { there, back, cut }
    }

    /// Whether everything arrives soon: within so much for each piece.
    pub fn is_prompt(&self, delay: Duration) -> bool {
        let soon = |faults: &Faults| faults.stall.is_none() && faults.delay <= delay;
        self.cut.is_none() && soon(&self.there) && soon(&self.back)
    }

    /// Whether everything arrives in the end.
    pub fn is_reliable(&self) -> bool {
        let arrives = |faults: &Faults| faults.stall.is_none_or(|stall| stall.time.is_some());
        self.cut.is_none() && arrives(&self.there) && arrives(&self.back)
    }
}
