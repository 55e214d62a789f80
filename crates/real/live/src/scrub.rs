//! Compares all redundancy with the data in small steps, so that clients are served meanwhile.

use crate::control_queue::ControlResponse;
use crate::scrub_state::Scrub;
use crate::served_stack::ServedStack;
use fullstroke_store::Repair;
use fullstroke_store::bytes::{self as bytes, Mismatch, RedundancyCheck};
use fullstroke_units::{SECTOR_BYTES, Sectors};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Least amount compared at once.
const STEP: Sectors = Sectors((1 << 20) / SECTOR_BYTES);
/// Pause after a step while clients wait.
const PAUSE: Duration = Duration::from_millis(5);

impl ServedStack {
    /// Begins to compare the redundancy, and to mend it if that is wanted. Who
    /// asks for the same while that is under way waits for the same answer.
    pub(crate) fn begin_scrub(&mut self, repair: Repair, asker: Sender<ControlResponse>) {
        let scrub = self.comparisons.begin(|| Scrub {
            on_bytes: bytes::Scrub {
                repair,
                ..bytes::Scrub::default()
            },
            rests_until: Instant::now(),
            askers: Vec::new(),
        });
        if scrub.on_bytes.repair == repair {
            return scrub.askers.push(asker);
        }
        let other = match scrub.on_bytes.repair {
            Repair::Nothing => "a scrub without --repair is running; ask again after its end",
            Repair::Proven => "a scrub --repair is running; ask again after its end",
            Repair::Data => "a scrub --repair=data is running; ask again after its end",
        };
        // The asker may have given up.
        let _ = asker.send(ControlResponse::Refused {
            message: other.into(),
        });
    }

    /// Continues the comparison: at least one step, and not much longer than `until`.
    pub(crate) fn scrub_on(&mut self, until: Instant) {
        let Some(mut scrub) = self.comparisons.take() else {
            return;
        };
        let busy = self.machine.in_flight() > 0;
        // The comparison reads the same disks of the host as the clients' requests.
        if busy && Instant::now() < scrub.rests_until {
            self.comparisons.put_back(scrub);
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
            // While clients wait, one step is all.
            if busy || Instant::now() >= until {
                break;
            }
        }
        scrub.rests_until = Instant::now() + PAUSE;
        self.comparisons.put_back(scrub);
    }

    /// Returns the pause of the comparison; `None` if none is running.
    pub(crate) fn scrub_pause(&self) -> Option<Duration> {
        let scrub = self.comparisons.running()?;
        let busy = self.machine.in_flight() > 0;
        let rest = scrub.rests_until.saturating_duration_since(Instant::now());
        Some(if busy { rest } else { Duration::ZERO })
    }

    /// Ends the comparison with the server, and tells the waiting askers.
    pub(crate) fn end_scrub(&mut self) {
        if let Some(scrub) = self.comparisons.take() {
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
    let RedundancyCheck {
        compared_sectors,
        mismatched_sectors,
        undecided_sectors,
        repaired_sectors,
        first,
        ..
    } = &scrub.found;
    // What lacks a member cannot be told from what protects it.
    let left_out = if scrub.repair.changes() && impaired {
        "; parity of missing drives was not changed: repair again when all drives are filled"
    } else {
        ""
    };
    if *mismatched_sectors == 0 {
        return ControlResponse::Done {
            message: format!(
                "all redundancy is right ({compared_sectors} sectors compared){left_out}"
            ),
        };
    }
    let mut parts = vec![format!(
        "{mismatched_sectors} sectors of redundancy or data were found wrong ({compared_sectors} compared): {}",
        places(first)
    )];
    if *repaired_sectors > 0 {
        parts.push(format!("{repaired_sectors} were written again"));
    }
    if *undecided_sectors > 0 {
        parts.push(format!(
            "{undecided_sectors} are undecided and were left as they are: nothing proves which of copy, parity and data is \
             wrong; scrub --repair=data trusts the data, and writes parity and the other copies again"
        ));
    }
    let proven = mismatched_sectors - undecided_sectors - repaired_sectors;
    if proven > 0 {
        parts.push(format!(
            "{proven} are proven to be wrong; scrub --repair writes them again"
        ));
    }
    let message = parts.join("; ") + left_out;
    match repaired_sectors == mismatched_sectors {
        true => ControlResponse::Done { message },
        false => ControlResponse::Wrong { message },
    }
}

fn places(first: &[Mismatch]) -> String {
    let place = |place: &Mismatch| {
        let address = place
            .address
            .map_or_else(String::new, |address| format!(", address {}", address.0));
        let undecided = if place.undecided { ", undecided" } else { "" };
        let (drive, lbn) = (&place.member, place.lbn.0);
        match address.is_empty() && undecided.is_empty() {
            true => format!("drive {drive} from sector {lbn}"),
            false => {
                let rest = format!("{address}{undecided}");
                format!("drive {drive} from sector {lbn} ({})", &rest[2..])
            }
        }
    };
    first.iter().map(place).collect::<Vec<_>>().join(", ")
}
