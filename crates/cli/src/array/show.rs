//! Text output of `fullstroke array`.

use fullstroke_store::{
    ArrayStatus, AssemblyReport, Copies, MemberRates, Roster, Serving, SlotState,
};
use fullstroke_units::Bytes;
use serde_json::Value;
use std::fmt;

/// Lines of the output.
pub(super) struct ArrayLines(Vec<String>);

impl fmt::Display for ArrayLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.join("\n"))
    }
}

fn state_of(state: SlotState) -> String {
    match state {
        SlotState::Alive => "alive".into(),
        SlotState::Failed => "failed".into(),
        SlotState::Filling {
            missed_only: true, ..
        } => "the missed changes are being filled".into(),
        SlotState::Filling { .. } => "being filled".into(),
    }
}

/// Keys with values in bytes.
const BYTES: [&str; 2] = ["chunk", "blocking"];

/// Returns the layout's keys without long lists. `--json` shows the lists.
fn keys_of(roster: &Roster) -> Option<String> {
    shown_keys(&Value::Object(roster.keys.clone()))
}

fn shown_keys(keys: &Value) -> Option<String> {
    let short = |value: &Value| match value {
        // A list of tables (the zones of members) fills pages; a list of numbers, such as failed
        // members, is short.
        Value::Array(all) if all.iter().any(|one| !one.is_number()) => {
            format!("[{} in all]", all.len())
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let shown = |key: &str, value: &Value| match value.as_u64().filter(|_| BYTES.contains(&key)) {
        Some(bytes) => Bytes(bytes).to_string(),
        None => short(value),
    };
    let keys = keys.as_object().into_iter().flatten();
    let keys = keys.map(|(key, value)| format!("{key} = {}", shown(key, value)));
    let keys: Vec<String> = keys.collect();
    (!keys.is_empty()).then(|| keys.join(", "))
}

/// Returns the measured rates of a member for the line of its name.
fn measured(found: &MemberRates) -> String {
    let mb_per_s = |rate: u64| rate as f64 / 1e6;
    format!(
        ": {:.1} to {:.1} MB/s in {} zones, measured in {:.0} s",
        mb_per_s(found.outer_bytes_per_s),
        mb_per_s(found.inner_bytes_per_s),
        found.zones,
        found.seconds
    )
}

impl ArrayLines {
    pub(super) fn created(roster: &Roster, warnings: &[String]) -> ArrayLines {
        let journal = match roster.journal_bytes {
            0 => "no journal".to_owned(),
            bytes => format!("a journal of {} on each member", Bytes(bytes)),
        };
        let first = format!(
            "made `{}`: {} of {}, regions of {}, {journal}",
            roster.name,
            roster.layout,
            roster.slots.len(),
            // Regions are kept in sectors of 512 bytes.
            Bytes(roster.region_sectors * 512),
        );
        let keys = keys_of(roster).map(|keys| format!("keys   {keys}"));
        let slots = roster.slots.iter().enumerate();
        let slots = slots.map(|(index, slot)| {
            let measured = slot.measured.as_ref().map_or_else(String::new, measured);
            format!(
                "{index}  {}  {}{measured}",
                state_of(slot.state),
                slot.device
            )
        });
        let spares = roster
            .spares
            .iter()
            .map(|spare| format!("spare  {}", spare.device));
        let warnings = warnings.iter().map(|warning| format!("warning: {warning}"));
        ArrayLines(
            std::iter::once(first)
                .chain(keys)
                .chain(slots)
                .chain(spares)
                .chain(warnings)
                .collect(),
        )
    }

    pub(super) fn started(
        status: &ArrayStatus,
        report: &AssemblyReport,
        serving: &Serving,
    ) -> ArrayLines {
        let mut lines = Vec::new();
        if !report.clean {
            lines.push(format!(
                "the array was not stopped in order: {} changes repeated from the journals, {} regions compared, {} sectors repaired",
                report.replayed_changes, report.compared_regions, report.mended.mismatched_sectors
            ));
        }
        // The write hole: parity was being written with the data, so that the lost member's block
        // can no longer be computed from the others.
        if report.regions_at_risk > 0 {
            lines.push(format!(
                "{} regions were being written when a member was lost: unflushed data of that member in rows that were being written whole may be neither old nor new",
                report.regions_at_risk
            ));
        }
        if report.torn_superblocks > 0 {
            lines.push(format!(
                "{} copies of superblocks were not whole",
                report.torn_superblocks
            ));
        }
        lines.extend(serving.warnings.iter().cloned());
        // Devices that are gone come before the members that fail for it, because they are the
        // cause.
        lines.extend(report.gone.iter().chain(&report.remarks).cloned());
        lines.extend(
            report
                .newly_failed
                .iter()
                .map(|member| format!("continues without {member}")),
        );
        lines.extend(
            report
                .left_out
                .iter()
                .map(|member| format!("left out: {member}")),
        );
        // Containers and old kernels refuse io_uring (seccomp filters of Docker,
        // `kernel.io_uring_disabled` since Linux 6.6), and the array is then slower without any
        // error.
        if !serving.parallel {
            lines.push("io_uring is not available: members are used one after the other".into());
        }
        let device = serving
            .block_device
            .iter()
            .map(|path| path.display().to_string());
        let places = serving.uris.iter().cloned().chain(device);
        lines.extend(places.map(|place| {
            format!(
                "serving {} ({}, {}) at {place}",
                status.name, status.layout, status.state
            )
        }));
        lines.extend(
            serving
                .metrics
                .iter()
                .map(|address| format!("metrics at {address}")),
        );
        lines.push(format!("orders at {}", serving.control.display()));
        ArrayLines(lines)
    }

    pub(super) fn answer(answer: &Value) -> ArrayLines {
        match answer["answer"].as_str() {
            Some("status") => ArrayLines(status_lines(answer)),
            Some("detail") => ArrayLines(detail_lines(answer)),
            Some("scrub") => ArrayLines(scrub_lines(answer)),
            // Orders answer with one sentence. An unknown kind of answer comes from a newer server,
            // and its sentence is still right.
            _ => ArrayLines(vec![answer["what"].as_str().unwrap_or_default().to_owned()]),
        }
    }

    pub(super) fn examined(device: &str, copies: Option<&Copies>, owners: &[&str]) -> ArrayLines {
        let Some(copies) = copies else {
            let what = if owners.is_empty() {
                "unknown".to_owned()
            } else {
                owners.join(", ")
            };
            return ArrayLines(vec![format!(
                "{device}: no member of an array; content: {what}"
            )]);
        };
        let superblock = &copies.superblock;
        let roster = &superblock.roster;
        let slot = roster
            .slots
            .iter()
            .position(|slot| slot.member == superblock.member);
        let place = slot.map_or_else(|| "a spare".to_owned(), |slot| format!("place {slot}"));
        let torn = copies.whole.iter().filter(|&&whole| !whole).count();
        let mut lines = vec![
            format!(
                "{device}: {place} of `{}`, {} of {}",
                roster.name,
                roster.layout,
                roster.slots.len()
            ),
            format!("  array   {}", superblock.array),
            format!("  member  {}", superblock.member),
            format!(
                "  events  {}{}",
                roster.events,
                if roster.clean {
                    ", stopped in order"
                } else {
                    ", in use, or not stopped in order"
                }
            ),
            format!(
                "  data    from byte {}; journal at {}, bitmap at {}",
                roster.data_at, roster.journal_at, roster.bitmap_at
            ),
        ];
        lines.extend(keys_of(roster).map(|keys| format!("  keys    {keys}")));
        if let Some(low) = &roster.low_gear {
            let standing: Vec<String> = low.standing.iter().map(ToString::to_string).collect();
            lines.push(format!(
                "  gear    low since event {}; in place {} members stand, and hear of no events",
                low.since,
                standing.join(", ")
            ));
        }
        if torn > 0 {
            lines.push(format!(
                "  {torn} of the two copies of its superblock is not whole"
            ));
        }
        let doubts = copies.doubts.iter();
        lines.extend(doubts.map(|doubt| format!("  doubt   {doubt}")));
        for (index, slot) in roster.slots.iter().enumerate() {
            lines.push(format!(
                "  place {index}: {}, {}, {}{}",
                state_of(slot.state),
                slot.member,
                slot.device,
                slot.measured.as_ref().map_or_else(String::new, measured)
            ));
        }
        ArrayLines(lines)
    }
}

fn text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn status_lines(status: &Value) -> Vec<String> {
    let size = Bytes(status["capacity_bytes"].as_u64().unwrap_or(0));
    let mut lines = vec![format!(
        "{}: {}, {size}, {}",
        text(&status["name"]),
        text(&status["layout"]),
        text(&status["state"])
    )];
    if let Some(gear) = status["gear"].as_str() {
        let stale = status["stale_rows"]
            .as_u64()
            .map(|rows| format!(", {rows} rows of the soft state to copy"));
        lines.push(format!("gear {gear}{}", stale.unwrap_or_default()));
    }
    if let Some(why) = status["shift_trouble"].as_str() {
        lines.push(format!("the shift does not go on: {why}"));
    }
    if let Some(why) = status["read_only"].as_str() {
        lines.push(format!("the array accepts no changes: {why}"));
    }
    if let Some(why) = status["halted"].as_str() {
        lines.push(format!("the array accepts no more changes: {why}"));
    }
    lines.extend(late_line(&status["late"]));
    for (index, slot) in status["slots"].as_array().into_iter().flatten().enumerate() {
        let filled = slot["filled"].as_f64().unwrap_or(0.0);
        let state = match slot["state"].as_str() {
            Some("filling") => format!("filling, {:.1} %", filled * 100.0),
            _ => text(&slot["state"]),
        };
        let state = if slot["stands"] == true {
            format!("{state}, stands")
        } else {
            state
        };
        let state = if slot["standby"] == true {
            format!("{state}, in standby")
        } else {
            state
        };
        let state = match slot["slowness"].as_f64() {
            Some(factor) => format!("{state}, {factor:.1}x slow"),
            None => state,
        };
        let state = match slot["late_io"].as_u64().filter(|late| *late > 0) {
            Some(late) => format!("{state}, {late} reads around it"),
            None => state,
        };
        let state = if slot["sits_out"] == true {
            format!("{state}, sits out of reads")
        } else {
            state
        };
        lines.push(format!("{index}  {state}  {}", text(&slot["device"])));
    }
    let spares = status["spares"].as_array().into_iter().flatten();
    lines.extend(spares.map(|spare| format!("spare  {}", text(spare))));
    lines
}

/// Returns the line of the policy against slow members; `None` for an array that waits.
fn late_line(late: &Value) -> Option<String> {
    let policy = late["policy"].as_str()?;
    let after = late["after_ms"]
        .as_f64()
        .map(|after| format!(" after {after:.1} ms"));
    Some(format!(
        "late members: {policy}{}, {} reads around members, {} of them first, {} reads of other members",
        after.unwrap_or_default(),
        late["late_io"],
        late["late_read_around"],
        late["late_member_io"]
    ))
}

fn detail_lines(detail: &Value) -> Vec<String> {
    let (status, roster) = (&detail["status"], &detail["roster"]);
    let mut lines = status_lines(status);
    let bytes = |value: &Value| Bytes(value.as_u64().unwrap_or(0));
    lines.push(format!("array    {}", text(&status["array"])));
    lines.push(format!("events   {}", status["events"]));
    lines.push(format!(
        "bitmap   regions of {}, {} dirty",
        bytes(&status["region_bytes"]),
        status["dirty_regions"]
    ));
    lines.push(format!(
        "journal  {} on each member, {}",
        bytes(&roster["journal_bytes"]),
        text(&roster["journal"])
    ));
    if let Some(since) = roster["low_gear"]["since"].as_u64() {
        lines.push(format!("gear     low since event {since}"));
    }
    lines.push(format!(
        "keys     {}",
        shown_keys(&roster["keys"]).unwrap_or_default()
    ));
    for (index, slot) in roster["slots"].as_array().into_iter().flatten().enumerate() {
        let found: Option<MemberRates> = serde_json::from_value(slot["measured"].clone()).ok();
        let found = found.as_ref().map_or_else(String::new, measured);
        lines.push(format!("member {index} {}{found}", text(&slot["member"])));
    }
    lines
}

fn scrub_lines(found: &Value) -> Vec<String> {
    let (compared, wrong) = (&found["compared_sectors"], &found["mismatched_sectors"]);
    let mut lines = vec![format!(
        "{compared} sectors compared, {wrong} sectors of parity, copies or data do not agree with the rest"
    )];
    let count = |key: &str| found[key].as_u64().unwrap_or(0);
    let (repaired, undecided) = (count("repaired_sectors"), count("undecided_sectors"));
    // The counts of an older server may not add up.
    let proven = count("mismatched_sectors").saturating_sub(repaired + undecided);
    if repaired > 0 {
        lines.push(format!("{repaired} sectors were written again"));
    }
    if proven > 0 {
        lines.push(format!(
            "{proven} sectors are proven to be wrong; scrub --repair writes them again"
        ));
    }
    if undecided > 0 {
        lines.push(format!(
            "{undecided} sectors are undecided and were left as they are: nothing proves which of copy, parity and data is \
             wrong; scrub --repair=data trusts the data, and writes parity and the other copies again"
        ));
    }
    if let Some(failed) = found["failed_reads"].as_u64().filter(|failed| *failed > 0) {
        lines.push(format!(
            "{failed} reads failed: data was computed from the other members and written again; unreadable parity and copies count \
             as sectors that do not agree"
        ));
    }
    for mismatch in found["first"].as_array().into_iter().flatten() {
        lines.push(format!(
            "place {} from sector {} of its data on{}{}",
            mismatch["slot"],
            mismatch["lbn"],
            mismatch["address"]
                .as_u64()
                .map_or_else(String::new, |address| format!(
                    ", at the array's address {address}"
                )),
            if mismatch["undecided"] == true {
                ": undecided"
            } else {
                ""
            }
        ));
    }
    lines
}
