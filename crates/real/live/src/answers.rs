//! Answers of a running server to questions and orders.

use crate::clock::WorldPace;
use crate::control_queue::{ControlRequest, ControlResponse};
use crate::member_names::dotted;
use crate::served_stack::ServedStack;
use crate::server::ConfiguredServer;
use crate::status::{
    DriveState, DriveStatus, ExportStatus, Health, RebuildStatus, ServerStatus, VolumeState,
};
use crate::totals::DriveTotals;
use fullstroke_contract::{RebuildSpeed, Refusal};
use fullstroke_nbd::Features;
use fullstroke_store::Repair;
use fullstroke_store::bytes::MemberStatus;
use fullstroke_units::{Bytes, Duration};
use std::sync::mpsc::Sender;

impl ConfiguredServer {
    /// Answers a question, or carries out an order. The answer comes at once or at the end of the
    /// order.
    pub(crate) fn ask(&mut self, question: ControlRequest, asker: Sender<ControlResponse>) {
        // The status is that of the present, and an order takes effect now. Without a clock the
        // world stands at its last event anyway.
        if let WorldPace::Times(_) = self.pace {
            let now = self.clock.now();
            self.worlds.iter_mut().for_each(|world| world.advance(now));
        }
        let answer = match question {
            ControlRequest::Status => ControlResponse::Status(Box::new(self.status())),
            ControlRequest::Fail { export, drive } => {
                answered(self.fail(export.as_deref(), &drive))
            }
            ControlRequest::Restore {
                export,
                drive,
                rate,
                accept_data_loss,
            } => answered(self.restore(export.as_deref(), &drive, rate, accept_data_loss)),
            ControlRequest::ReAdd { export, drive } => {
                answered(self.re_add(export.as_deref(), &drive))
            }
            ControlRequest::Slow {
                export,
                drive,
                factor,
            } => answered(self.slow(export.as_deref(), &drive, factor)),
            ControlRequest::Speed {
                export,
                least,
                most,
            } => {
                let least = least.unwrap_or(RebuildSpeed::default().least);
                answered(self.speed(export.as_deref(), RebuildSpeed { least, most }))
            }
            ControlRequest::Scrub { export, repair } => {
                match self.scrubbed(export.as_deref(), repair) {
                    // A scrub and a question for signals are answered later, by their owner.
                    Ok(index) => return self.worlds[index].begin_scrub(repair, asker),
                    Err(Refusal(message)) => ControlResponse::Refused { message },
                }
            }
            ControlRequest::Signals {
                export,
                after,
                host,
                wrote,
            } => match self.export(export.as_deref()) {
                Ok(index) => {
                    return self.worlds[index].signals.listen(
                        after,
                        host.map(|name| (name, wrote)),
                        asker,
                    );
                }
                Err(Refusal(message)) => ControlResponse::Refused { message },
            },
        };
        // The asker may have given up.
        let _ = asker.send(answer);
    }

    pub(crate) fn status(&self) -> ServerStatus {
        ServerStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            uptime_s: self.upkeep.elapsed().as_secs_f64(),
            speed: match self.pace {
                WorldPace::Times(speed) => Some(speed),
                WorldPace::Immediate => None,
            },
            clients: self.clients.connected(),
            exports: self.worlds.iter().map(export_status).collect(),
        }
    }

    /// Returns the export called `name`, or the only export.
    pub(crate) fn export(&self, name: Option<&str>) -> Result<usize, Refusal> {
        let names = || {
            self.worlds
                .iter()
                .map(|world| world.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        match name {
            None if self.worlds.len() == 1 => Ok(0),
            None => Err(Refusal(format!(
                "several exports; name one of them: {}",
                names()
            ))),
            Some(name) => {
                let found = self.worlds.iter().position(|world| world.name == name);
                found.ok_or_else(|| {
                    Refusal(format!(
                        "there is no export `{name}`; there are: {}",
                        names()
                    ))
                })
            }
        }
    }

    fn fail(&mut self, export: Option<&str>, drive: &str) -> Result<String, Refusal> {
        let (index, path) = self.drive(export, drive)?;
        self.changes(index)?;
        let now = self.now(index);
        self.worlds[index].fail(now, &path)?;
        Ok(format!("drive {drive} has failed"))
    }

    fn re_add(&mut self, export: Option<&str>, drive: &str) -> Result<String, Refusal> {
        let (index, path) = self.drive(export, drive)?;
        self.changes(index)?;
        let now = self.now(index);
        self.worlds[index].re_add(now, &path)?;
        Ok(format!("drive {drive} is re-added with its bytes"))
    }

    fn restore(
        &mut self,
        export: Option<&str>,
        drive: &str,
        rate: Option<Bytes>,
        accept_data_loss: bool,
    ) -> Result<String, Refusal> {
        let (index, path) = self.drive(export, drive)?;
        self.changes(index)?;
        let now = self.now(index);
        self.worlds[index].restore(now, &path, rate, accept_data_loss)?;
        Ok(format!(
            "drive {drive} is empty and being rebuilt, {}",
            speed_in_words(rate)
        ))
    }

    fn slow(&mut self, export: Option<&str>, drive: &str, factor: f64) -> Result<String, Refusal> {
        let (index, path) = self.drive(export, drive)?;
        let thousandths = thousandths(factor)?;
        let now = self.now(index);
        self.worlds[index].slow(now, &path, thousandths)?;
        Ok(match thousandths == ONE_THOUSANDTHS {
            true => format!("drive {drive} is not slow by order"),
            false => format!("drive {drive} takes {factor} times as long, until the server ends"),
        })
    }

    fn speed(&mut self, export: Option<&str>, speed: RebuildSpeed) -> Result<String, Refusal> {
        let index = self.export(export)?;
        let now = self.now(index);
        self.worlds[index].set_speed(now, speed)?;
        let RebuildSpeed { least, most } = speed;
        Ok(format!(
            "rebuilds run {}; below {least} a second they do not yield to requests",
            speed_in_words(most)
        ))
    }

    /// The export that may be scrubbed, and mended if that is wanted.
    fn scrubbed(&self, export: Option<&str>, repair: Repair) -> Result<usize, Refusal> {
        let index = self.export(export)?;
        if repair.changes() {
            self.changes(index)?;
        }
        Ok(index)
    }

    /// Checks that the data of an export, and the states of its members, may change.
    pub(crate) fn changes(&self, index: usize) -> Result<(), Refusal> {
        if self.exports.all()[index]
            .features
            .contains(Features::READ_ONLY)
        {
            let message = "the export is served read-only (--read-only, or no room for the store), so neither its data nor the \
                        states of its drives can change; serve the stack without --read-only, and with room";
            return Err(Refusal(message.into()));
        }
        Ok(())
    }

    /// Returns the export, and the path of the named drive in it.
    fn drive(&self, export: Option<&str>, drive: &str) -> Result<(usize, Vec<usize>), Refusal> {
        let index = self.export(export)?;
        let tree = self.worlds[index].machine.graph();
        match tree.drive_path(drive) {
            Some(path) => Ok((index, path.to_vec())),
            None if tree.drive_names().any(|name| name == drive) => Err(Refusal(format!(
                "drive `{drive}` is part of an array that supports neither failed nor restored drives"
            ))),
            None => {
                let names = tree.drive_names().collect::<Vec<_>>().join(", ");
                let message = format!("there is no drive `{drive}`; there are: {names}");
                Err(Refusal(message))
            }
        }
    }
}

/// Thousandths of a factor of 1.
const ONE_THOUSANDTHS: u32 = 1000;

/// Returns the thousandths of a factor.
fn thousandths(factor: f64) -> Result<u32, Refusal> {
    let thousandths = (factor * f64::from(ONE_THOUSANDTHS)).round();
    let fits = factor >= 1.0 && thousandths <= f64::from(u32::MAX);
    fits.then_some(thousandths as u32).ok_or_else(|| {
        Refusal(format!(
            "found the factor {factor}; expected 1, which ends the slowness, or more"
        ))
    })
}

fn speed_in_words(most: Option<Bytes>) -> String {
    most.map_or("without a limit".to_owned(), |most| {
        format!("at {most} a second at most")
    })
}

fn answered(result: Result<String, Refusal>) -> ControlResponse {
    match result {
        Ok(message) => ControlResponse::Done { message },
        Err(Refusal(message)) => ControlResponse::Refused { message },
    }
}

fn export_status(world: &ServedStack) -> ExportStatus {
    ExportStatus {
        name: world.name.clone(),
        layout: world.layout.clone(),
        usable_bytes: world.store.capacity().bytes().0,
        world_ns: world.machine.now().as_nanos(),
        requests: world.machine.submitted(),
        in_flight: world.machine.in_flight() as u64,
        operations: world.operations.clone(),
        lateness: world.lateness.summary(),
        health: health(world),
        scrubbed_share: world
            .comparisons
            .running()
            .map(|scrub| scrub.share(world.store.capacity())),
        drives: drives(world),
    }
}

fn health(world: &ServedStack) -> Health {
    let members = world.store.status();
    let state = match () {
        // The worst state first: a volume may have failed and rebuilding members at once.
        () if world.store.has_failed() => VolumeState::Failed,
        () if members.iter().any(MemberStatus::has_failed) => VolumeState::Degraded,
        () if members.iter().any(|member| member.filled().is_some()) => VolumeState::Rebuilding,
        () => VolumeState::Whole,
    };
    let rebuilds = world
        .watch
        .rebuilds
        .all()
        .iter()
        .filter(|rebuild| !rebuild.whole)
        .map(|rebuild| RebuildStatus {
            member: dotted(&rebuild.path),
            share: rebuild.latest.done.0 as f64 / rebuild.used.0.max(1) as f64,
            mb_per_s: rebuild.recent_speed().map(|speed| speed.0 as f64 / 1e6),
            left_s: rebuild.left().map(Duration::as_secs_f64),
        });
    // The layers run ahead of the data. A rebuild that is over in the layers counts until the data
    // are filled.
    let goes_on = |name: &str| {
        members
            .iter()
            .any(|member| member.member == name && member.filled().is_some())
    };
    let rebuilds = rebuilds.filter(|rebuild| goes_on(&rebuild.member));
    Health {
        state,
        data_lost: world.store.has_lost_data(),
        rebuilds: rebuilds.collect(),
        comparing: world.comparing(),
        gears: world.following.gears(),
    }
}

fn drives(world: &ServedStack) -> Vec<DriveStatus> {
    let tree = world.machine.graph();
    let statistics = world.machine.counters().drives;
    let members = world.store.status();
    let slowness = (0..).map(|drive| world.peers.slowness(drive));
    let rows = tree
        .drive_names()
        .zip(tree.drive_gauges())
        .zip(tree.drive_tracks())
        .zip(statistics)
        .zip(slowness);
    rows.map(|((((name, gauge), tracks), statistics), slowness)| {
        let capacity = tracks.capacity();
        // A drive without sectors has no last address; 0 is then the only cylinder.
        let last = fullstroke_units::Lbn(capacity.0.saturating_sub(1));
        let cylinders = tracks.cylinder_of(last).0.max(1);
        let dotted = tree.drive_path(name).map(dotted);
        let member = members
            .iter()
            .find(|member| dotted.as_ref() == Some(&member.member));
        let done = member.and_then(MemberStatus::filled);
        let rebuilt_share = done.map(|done| done.0 as f64 / capacity.0.max(1) as f64);
        DriveStatus {
            name: name.to_owned(),
            state: member.map_or(DriveState::Alive, |member| member.state.into()),
            rebuilt_share,
            slowness,
            queue_length: gauge.queue_length,
            head_share: f64::from(gauge.head.0) / f64::from(cylinders),
            head_cylinder: gauge.head.0,
            busy: gauge.idle_since.is_none(),
            totals: DriveTotals::of(&statistics),
        }
    })
    .collect()
}
