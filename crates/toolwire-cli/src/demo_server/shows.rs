//! The tools that show what results can be: a table, a picture and a sound, and a long wait that can be cancelled.

use std::{io::Write, time::Duration};

use serde::{Deserialize, Serialize};
use toolwire::{
    Args, Json, Log, Progress,
    schemars::{self, JsonSchema},
    wire::{Content, ResourceContents},
};

use super::LOGO;

/// The longest that `wait` waits.
const MAX_SECONDS: u16 = 600;
/// How often `wait` tells how it goes.
const TICK: Duration = Duration::from_millis(100);
/// How many samples a second of sound has; few, because it is only a beep.
const SAMPLE_RATE: u32 = 8_000;

/// One row of `planets`.
#[derive(Serialize, JsonSchema)]
pub(super) struct Planet {
    name: &'static str,
    /// In kilometres.
    diameter: u32,
    moons: u16,
    rings: bool,
}

/// What `planets` returns.
#[derive(Serialize, JsonSchema)]
pub(super) struct Planets {
    /// From the sun outwards.
    planets: Vec<Planet>,
}

/// The arguments of `planets`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Which {
    /// How many to list, from the sun outwards.
    #[schemars(range(min = 1, max = 8))]
    #[serde(default = "all")]
    limit: u8,
    /// Only those with at least so many moons.
    #[serde(default)]
    moons: u16,
}

fn all() -> u8 {
    8
}

pub(super) async fn planets(Args(which): Args<Which>) -> Json<Planets> {
    let known = [
        ("Mercury", 4_879, 0, false),
        ("Venus", 12_104, 0, false),
        ("Earth", 12_756, 1, false),
        ("Mars", 6_792, 2, false),
        ("Jupiter", 142_984, 97, true),
        ("Saturn", 120_536, 274, true),
        ("Uranus", 51_118, 28, true),
        ("Neptune", 49_528, 16, true),
    ];
    let planets = known
        .into_iter()
        .map(|(name, diameter, moons, rings)| Planet { name, diameter, moons, rings })
        .filter(|planet| planet.moons >= which.moons)
        .take(which.limit.into())
        .collect();
    Json(Planets { planets })
}

pub(super) async fn gallery() -> Vec<Content> {
    vec![
        Content::text("a picture, a sound and a note"),
        Content::image(LOGO, "image/png"),
        Content::audio(beep(), "audio/wav"),
        Content::resource(
            ResourceContents::text("demo://greeting", "Hello from Toolwire").mime_type("text/plain"),
        ),
        Content::resource_link("demo://logo", "logo"),
    ]
}

/// A tenth of a second of sound, in the simplest format there is.
fn beep() -> Vec<u8> {
    let samples = SAMPLE_RATE / 10;
    let mut wav = Vec::new();
    wav.extend(b"RIFF");
    wav.extend((36 + samples).to_le_bytes());
    wav.extend(b"WAVEfmt ");
    wav.extend(16_u32.to_le_bytes());
    // Uncompressed, one channel.
    wav.extend([1, 0, 1, 0]);
    wav.extend(SAMPLE_RATE.to_le_bytes());
    wav.extend(SAMPLE_RATE.to_le_bytes());
    // One byte per sample, eight bits.
    wav.extend([1, 0, 8, 0]);
    wav.extend(b"data");
    wav.extend(samples.to_le_bytes());
    // A square wave of 500 Hz.
    wav.extend((0..samples).map(|sample| if sample / 8 % 2 == 0 { 96_u8 } else { 160 }));
    wav
}

/// The arguments of `wait`.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Wait {
    /// How long to wait.
    #[schemars(range(min = 1, max = MAX_SECONDS))]
    seconds: u16,
}

pub(super) async fn wait(Args(Wait { seconds }): Args<Wait>, progress: Progress, log: Log) -> String {
    log.named("wait").info(format!("waiting for {seconds} s"));
    let mut unfinished = Unfinished(true);
    let steps = u32::from(seconds) * 10;
    for step in 1..=steps {
        tokio::time::sleep(TICK).await;
        let left = (steps - step).div_ceil(10);
        progress.report_message(f64::from(step), f64::from(steps), format!("{left} s left"));
    }
    unfinished.0 = false;
    format!("waited for {seconds} s")
}

/// Tells on standard error when the wait ends early, so that people see that a cancellation has arrived.
struct Unfinished(bool);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.0 {
            let _ = writeln!(std::io::stderr(), "wait: cancelled");
        }
    }
}
