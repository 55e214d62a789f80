//! Comparing all redundancy with what it should be, a bit at a time, so that
//! clients are served meanwhile.

use crate::control_queue::ControlResponse;
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
    askers: Vec<Sender<ControlResponse>>,
}

impl Scrub {
    /// How much has been compared of a volume so large.
    pub(crate) fn share(&self, capacity: Sectors) -> f64 {
        self.on_bytes.next.0 as f64 / capacity.0.max(1) as f64
    }
}

impl Server {
    /// Begins to compare an export's redundancy, and to mend it if that is
    /// wanted. Who asks for the same while that is under way waits for the same
    /// answer.
    pub(crate) fn begin_scrub(&mut self, export: Option<&str>, repair: bool, asker: Sender<ControlResponse>) {
        match self.scrub_of(export, repair) {
            Ok(scrub) => scrub.askers.push(asker),
            // Whoever asked may have lost patience.
            Err(message) => drop(asker.send(ControlResponse::Refused { message })),
        }
    }

    /// The export's comparison, which begins now unless it is under way.
    fn scrub_of(&mut self, export: Option<&str>, repair: bool) -> Result<&mut Scrub, String> {
        let index = self.export(export)?;
        if repair {
            self.changes(index)?;
        }
        let scrub = self.worlds[index].scrub.get_or_insert_with(|| Scrub {
            on_bytes: bytes::Scrub { mend: repair, ..bytes::Scrub::default() },
            rests_until: Instant::now(),
            askers: Vec::new(),
        });
        match (scrub.on_bytes.mend, repair) {
            (true, false) => Err("a scrub --repair is under way; ask again when it is done".into()),
            (false, true) => Err("a scrub without --repair is under way; ask again when it is done".into()),
            _ => Ok(scrub),
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
                Ok(false) => {
                    let impaired = world.store.has_impaired_parity();
                    return answer(&scrub, &verdict(&scrub.on_bytes, impaired));
                }
                Err(error) => {
                    return answer(&scrub, &ControlResponse::Refused { message: error.to_string() });
                }
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
                answer(
                    &scrub,
                    &ControlResponse::Refused { message: "the server ends before all is compared".into() },
                );
            }
        }
    }
}

fn answer(scrub: &Scrub, answer: &ControlResponse) {
    for asker in &scrub.askers {
        // Whoever asked may have lost patience.
        let _ = asker.send(answer.clone());
    }
}

/// What was found, for people.
fn verdict(scrub: &bytes::Scrub, impaired: bool) -> ControlResponse {
    let Comparison { compared_sectors, mismatched_sectors, first } = &scrub.found;
    // What lacks a member cannot be told from what protects it.
    let left_out = if scrub.mend && impaired {
        "; parity that lacks a drive was left as it is: repair again when all drives are filled"
    } else {
        ""
    };
    let places: Vec<String> =
        first.iter().map(|place| format!("drive {} from sector {}", place.member, place.lbn.0)).collect();
    let places = places.join(", ");
    match (*mismatched_sectors, scrub.mend) {
        (0, _) => ControlResponse::Done {
            message: format!("all redundancy is right ({compared_sectors} sectors compared){left_out}"),
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
