//! Comparing all redundancy with what it should be, a bit at a time, so that
//! clients are served meanwhile.

use crate::inbox::Answer;
use crate::server::Server;
use crate::world::World;
use fullstroke_bytes::{self as bytes, Comparison};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// What is compared at once, at least.
const STEP: Sectors = Sectors((1 << 20) / SECTOR_BYTES);
/// How long it rests after a step while clients wait for something.
const PAUSE: Duration = Duration::from_millis(5);

/// A comparison that is under way.
#[derive(Debug)]
pub(crate) struct Scrub {
    on_bytes: bytes::Scrub,
    /// When it goes on, unless no client waits for anything.
    rests_until: Instant,
    askers: Vec<Sender<Answer>>,
}

impl Scrub {
    /// How much has been compared of a volume so large.
    pub(crate) fn share(&self, capacity: Sectors) -> f64 {
        self.on_bytes.next.0 as f64 / capacity.0.max(1) as f64
    }
}

impl Server {
    /// Begins to compare an export's redundancy. Who asks while that is under way
    /// waits for the same answer.
    pub(crate) fn begin_scrub(&mut self, export: Option<&str>, asker: Sender<Answer>) {
        match self.export(export) {
            Ok(index) => {
                let scrub = self.worlds[index].scrub.get_or_insert_with(|| Scrub {
                    on_bytes: bytes::Scrub::default(),
                    rests_until: Instant::now(),
                    askers: Vec::new(),
                });
                scrub.askers.push(asker);
            }
            // Whoever asked may have lost patience.
            Err(message) => drop(asker.send(Answer::Refused { message })),
        }
    }

    /// Goes on comparing, one step at least and not much longer than `until`.
    pub(crate) fn scrub_on(&mut self, index: usize, until: Instant) {
        let world = &mut self.worlds[index];
        let Some(mut scrub) = world.scrub.take() else { return };
        let busy = world.machine.in_flight() > 0;
        if busy && Instant::now() < scrub.rests_until {
            world.scrub = Some(scrub);
            return;
        }
        loop {
            match world.store.scrub_step(&mut scrub.on_bytes, STEP) {
                Ok(true) => {}
                Ok(false) => return answer(&scrub, &verdict(&scrub.on_bytes.found)),
                Err(error) => return answer(&scrub, &Answer::Refused { message: error.to_string() }),
            }
            if busy || Instant::now() >= until {
                break;
            }
        }
        scrub.rests_until = Instant::now() + PAUSE;
        world.scrub = Some(scrub);
    }

    /// How long comparing rests; `None` if nothing is compared.
    pub(crate) fn scrub_pause(&self) -> Option<Duration> {
        let pause = |world: &World| {
            let scrub = world.scrub.as_ref()?;
            let busy = world.machine.in_flight() > 0;
            let rest = scrub.rests_until.saturating_duration_since(Instant::now());
            Some(if busy { rest } else { Duration::ZERO })
        };
        self.worlds.iter().filter_map(pause).min()
    }

    /// The server ends: whoever waits for a comparison is told so.
    pub(crate) fn end_scrubs(&mut self) {
        for world in &mut self.worlds {
            if let Some(scrub) = world.scrub.take() {
                answer(&scrub, &Answer::Refused { message: "the server ends before all is compared".into() });
            }
        }
    }
}

fn answer(scrub: &Scrub, answer: &Answer) {
    for asker in &scrub.askers {
        // Whoever asked may have lost patience.
        let _ = asker.send(answer.clone());
    }
}

fn verdict(found: &Comparison) -> Answer {
    if found.mismatched_sectors == 0 {
        return Answer::Done {
            message: format!("all redundancy is right ({} sectors compared)", found.compared_sectors),
        };
    }
    Answer::Wrong {
        message: format!(
            "{} sectors of redundancy are wrong ({} compared)",
            found.mismatched_sectors, found.compared_sectors
        ),
    }
}
