//! Compares all redundancy with the data in small steps, so that clients are served meanwhile.

use crate::control_queue::ControlResponse;
use crate::world::World;
use fullstroke_store::bytes::{self as bytes, Comparison};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Least amount compared at once.
const STEP: Sectors = Sectors((1 << 20) / SECTOR_BYTES);
/// Pause after a step while clients wait.
const PAUSE: Duration = Duration::from_millis(5);

/// A running comparison.
#[derive(Debug)]
pub(crate) struct Scrub {
    on_bytes: bytes::Scrub,
    /// Time when the comparison continues, or earlier if no client waits.
    rests_until: Instant,
    askers: Vec<Sender<ControlResponse>>,
}

impl Scrub {
    /// Returns the compared share of a volume of this capacity.
    pub(crate) fn share(&self, capacity: Sectors) -> f64 {
        self.on_bytes.next.0 as f64 / capacity.0.max(1) as f64
    }
}

impl World {
    /// Begins to compare the redundancy, with repair if requested. If the same scrub is running,
    /// the asker waits for the same answer.
    pub(crate) fn begin_scrub(&mut self, repair: bool, asker: Sender<ControlResponse>) {
        let scrub = self.scrub.get_or_insert_with(|| Scrub {
            on_bytes: bytes::Scrub {
                mend: repair,
                ..bytes::Scrub::default()
            },
            rests_until: Instant::now(),
            askers: Vec::new(),
        });
        let other = match (scrub.on_bytes.mend, repair) {
            (true, false) => "a scrub --repair is under way; ask again when it is done",
            (false, true) => "a scrub without --repair is under way; ask again when it is done",
            _ => return scrub.askers.push(asker),
        };
        // The asker may have given up.
        let _ = asker.send(ControlResponse::Refused {
            message: other.into(),
        });
    }

    /// Continues the comparison: at least one step, and not much longer than `until`.
    pub(crate) fn scrub_on(&mut self, until: Instant) {
        let Some(mut scrub) = self.scrub.take() else {
            return;
        };
        let busy = self.machine.in_flight() > 0;
        if busy && Instant::now() < scrub.rests_until {
            self.scrub = Some(scrub);
            return;
        }
        loop {
            match self.store.scrub_step(&mut scrub.on_bytes, STEP) {
                Ok(true) => {}
                Ok(false) => {
                    let impaired = self.store.has_impaired_parity();
                    return answer(&scrub, &verdict(&scrub.on_bytes, impaired));
                }
                Err(error) => {
                    return answer(
                        &scrub,
                        &ControlResponse::Refused {
                            message: error.to_string(),
                        },
                    );
                }
            }
            if busy || Instant::now() >= until {
                break;
            }
        }
        scrub.rests_until = Instant::now() + PAUSE;
        self.scrub = Some(scrub);
    }

    /// Returns the pause of the comparison; `None` if none is running.
    pub(crate) fn scrub_pause(&self) -> Option<Duration> {
        let scrub = self.scrub.as_ref()?;
        let busy = self.machine.in_flight() > 0;
        let rest = scrub.rests_until.saturating_duration_since(Instant::now());
        Some(if busy { rest } else { Duration::ZERO })
    }

    /// Ends the comparison with the server, and tells the waiting askers.
    pub(crate) fn end_scrub(&mut self) {
        if let Some(scrub) = self.scrub.take() {
            let message = "the server ends before all is compared".into();
            answer(&scrub, &ControlResponse::Refused { message });
        }
    }
}

fn answer(scrub: &Scrub, answer: &ControlResponse) {
    for asker in &scrub.askers {
        // The asker may have given up.
        let _ = asker.send(answer.clone());
    }
}

/// Returns the result, for people.
fn verdict(scrub: &bytes::Scrub, impaired: bool) -> ControlResponse {
    let Comparison {
        compared_sectors,
        mismatched_sectors,
        first,
    } = &scrub.found;
    // Parity that lacks a drive cannot be told from the parity that protects the drive's data.
    let left_out = if scrub.mend && impaired {
        "; parity that lacks a drive was left as it is: repair again when all drives are filled"
    } else {
        ""
    };
    let places: Vec<String> = first
        .iter()
        .map(|place| format!("drive {} from sector {}", place.member, place.lbn.0))
        .collect();
    let places = places.join(", ");
    match (*mismatched_sectors, scrub.mend) {
        (0, _) => ControlResponse::Done {
            message: format!(
                "all redundancy is right ({compared_sectors} sectors compared){left_out}"
            ),
        },
        (wrong, true) => ControlResponse::Done {
            message: format!(
                "{wrong} sectors of redundancy were wrong, and follow from the data again \
                 ({compared_sectors} compared): {places}{left_out}"
            ),
        },
        (wrong, false) => ControlResponse::Wrong {
            message: format!(
                "{wrong} sectors of redundancy are wrong ({compared_sectors} compared): {places}; \
                 scrub --repair makes them follow from the data"
            ),
        },
    }
}
