//! Possible and impossible arrangements of the drives in layouts.

use crate::{AdviceRequest, AdviseError, Controller, FrontCache, Redundancy, Wishes};
use fullstroke_lab::{Condition, LabError, Recipe, Varied, capacity};
use fullstroke_stack::{Overrides, Stack, VolumeSummary};
use fullstroke_units::Bytes;
use serde::Serialize;

/// The layout of a pool and its shape, in the notation of `zpool create`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct PoolShape {
    /// Name of the layout.
    layout: String,
    /// Number of drives of a vdev; `None` means the default of the layout.
    width: Option<u32>,
    /// Data drives of a group, for dRAID.
    data: Option<u32>,
    /// Distributed spares, for dRAID.
    spares: Option<u32>,
    /// Flash drives of the special vdev, and log drives.
    special: Option<u32>,
    logs: Option<u32>,
}

impl PoolShape {
    /// Reads `raidz1`, `raidz1:4`, `mirror:3:1log`, `draid2:4d:11c:1s`; `None` if the layout is no
    /// pool or the shape is none.
    fn read(name: &str) -> Option<PoolShape> {
        let mut parts = name.split(':');
        let layout = parts.next().filter(|layout| is_pool(layout))?.to_owned();
        let is_draid = layout.starts_with("draid");
        let mut shape = PoolShape {
            layout,
            ..PoolShape::default()
        };
        for part in parts {
            let digits = part.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
            let number = digits.parse().ok()?;
            let place = match &part[digits.len()..] {
                "" | "c" => &mut shape.width,
                "d" if is_draid => &mut shape.data,
                "s" if is_draid => &mut shape.spares,
                "special" => &mut shape.special,
                "log" => &mut shape.logs,
                _ => return None,
            };
            *place = Some(number);
        }
        Some(shape)
    }

    /// Returns the keys of the shape in a stack file.
    fn keys(&self) -> String {
        let keys = [
            ("width", self.width),
            ("data", self.data),
            ("spares", self.spares),
            ("special", self.special),
            ("logs", self.logs),
        ];
        keys.iter()
            .filter_map(|(key, value)| Some(format!(", {key}={}", (*value)?)))
            .collect()
    }

    /// Returns the number of flash drives beside the disks.
    fn flash(&self) -> u32 {
        let (special, logs) = (self.special.unwrap_or(0), self.logs.unwrap_or(0));
        special.saturating_add(logs)
    }

    /// Returns the number of drives of each vdev of a pool of `drives` drives.
    fn vdev_drives(&self, drives: u32) -> u32 {
        let usual = match self.layout.as_str() {
            "mirror" => 2,
            _ => drives,
        };
        self.width.unwrap_or(usual).clamp(1, drives)
    }
}

/// A layout with a number of drives.
#[derive(Clone, Debug)]
pub(crate) struct Arrangement {
    pub(crate) layout: String,
    pub(crate) drives: u32,
    pub(crate) controller: Controller,
    pub(crate) cache: FrontCache,
    /// Places in the tree of the flash devices beside the disks: the cache, special vdevs, logs.
    pub(crate) flash: Vec<String>,
    pub(crate) summary: VolumeSummary,
    /// Capacity of a disk. Flash drives beside the disks do not count.
    pub(crate) disk: Bytes,
    /// Recipe with the load, and this volume in place of the stack's.
    pub(crate) recipe: Recipe,
}

/// A layout excluded before any run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExcludedLayout {
    /// Name of the layout.
    pub layout: String,
    /// Number of drives.
    pub drives: u32,
    /// Reason of the exclusion.
    pub why: String,
}

impl Arrangement {
    pub(crate) fn name(&self) -> String {
        name(&self.layout, self.drives, self.controller, &self.cache)
    }

    /// Returns the price of the flash devices beside the disks; `None` without such a device, or
    /// without a price.
    pub(crate) fn flash_price(&self, request: &AdviceRequest) -> Option<f64> {
        let each = request.flash_price.filter(|_| !self.flash.is_empty())?;
        Some(each * self.flash.len() as f64)
    }

    /// Returns the price of the disks, the controller and the flash devices. A flash device without
    /// a price is left out.
    pub(crate) fn price(&self, request: &AdviceRequest) -> Option<f64> {
        let controller = self
            .controller
            .0
            .and(request.controller_price)
            .unwrap_or(0.0);
        let flash = self.flash_price(request).unwrap_or(0.0);
        Some(request.drive_price? * f64::from(self.drives) + controller + flash)
    }

    /// Returns the parameters of the chance of data loss.
    pub(crate) fn redundancy(&self) -> Redundancy {
        let survived = self.summary.failures_survived;
        let drive_bytes = self.disk.0;
        let shape = PoolShape::read(&self.layout);
        let group = shape.map_or(self.drives, |shape| shape.vdev_drives(self.drives));
        let (partners, bare_bytes) = match self.layout.as_str() {
            // The partner is the other half of a pair. With an odd number of drives, each of two
            // neighbours holds half of the lost data.
            "raid10" => (1 + self.drives % 2, drive_bytes),
            _ => {
                // A layout that survives the failure of all its drives has none left to read. Only
                // drives of the same vdev lose data together.
                let left = group.saturating_sub(survived);
                (left, drive_bytes * u64::from(left))
            }
        };
        Redundancy {
            drives: self.drives,
            group,
            survived,
            partners,
            bare_bytes,
        }
    }
}

/// Returns the possible arrangements, and the impossible ones with the reason.
///
/// # Errors
/// A stack that cannot be used with any volume, or wishes that nothing can meet, with possible
/// values.
pub(crate) fn arrangements(
    request: &AdviceRequest,
) -> Result<(Vec<Arrangement>, Vec<ExcludedLayout>), AdviseError> {
    let (mut able, mut left_out) = (Vec::new(), Vec::new());
    let mut seen: Vec<(Arrangement, &'static str)> = Vec::new();
    let mut refused = None;
    let (controllers, caches) = (&request.choices.controllers, &request.choices.caches);
    let devices: Vec<(Controller, &FrontCache)> = controllers
        .iter()
        .flat_map(|&controller| caches.iter().map(move |cache| (controller, cache)))
        .collect();
    for &drives in &request.counts {
        for layout in &request.choices.layouts {
            for &(controller, cache) in &devices {
                let mut leave = |why: String| {
                    let one = ExcludedLayout {
                        layout: layout.clone(),
                        drives,
                        why,
                    };
                    // The same reason with another controller or cache is not repeated.
                    if !left_out.contains(&one) {
                        left_out.push(one);
                    }
                };
                match arrangement(request, layout, drives, controller, cache) {
                    Ok(arrangement) => match missing(request, &arrangement) {
                        None => able.push(arrangement),
                        Some((wish, why)) => {
                            leave(why);
                            seen.push((arrangement, wish));
                        }
                    },
                    Err(error) => {
                        leave(in_short(&error));
                        refused = Some(error);
                    }
                }
            }
        }
    }
    match (able.is_empty(), seen.is_empty(), refused) {
        (true, true, Some(error)) => Err(error),
        (true, ..) => Err(AdviseError::Impossible(possible(request, &seen))),
        _ => Ok((able, left_out)),
    }
}

/// Returns the overrides for the load on `drives` drives in this layout.
pub(crate) fn on_drives(request: &AdviceRequest, layout: &str, drives: u32) -> Overrides {
    let mut overrides = request.overrides.clone();
    // `--drive` replaces the drives of all members, also the flash drives of a pool. The table of
    // the volume below names each drive.
    overrides.drive = None;
    // The whole volume is replaced, so that no key of the stack's own volume is left. The user's
    // keys of the volume follow.
    let (of_volume, mut set): (Vec<String>, Vec<String>) = overrides
        .set
        .drain(..)
        .partition(|assignment| assignment.starts_with("volume."));
    let shape = PoolShape::read(layout);
    let chunk = match has_chunks(layout) {
        true => {
            format!(
                ", chunk={}",
                quoted(
                    request
                        .choices
                        .chunks
                        .first()
                        .map_or("64KiB", String::as_str)
                )
            )
        }
        false => String::new(),
    };
    let drive = quoted(&request.drive);
    let members = match shape.as_ref().map_or(0, PoolShape::flash) {
        0 => format!("drive={drive}, drives={drives}"),
        // The members are listed in the order data, special, logs.
        flash => format!(
            "members=[{{drive={drive}, count={drives}}}, {{drive={}, count={flash}}}]",
            quoted(&request.choices.flash)
        ),
    };
    set.push(format!(
        "volume={{layout={}{chunk}{}, {members}}}",
        quoted(shape.as_ref().map_or(layout, |shape| &shape.layout)),
        shape.as_ref().map_or_else(String::new, PoolShape::keys),
    ));
    // Layouts without parity refuse the key, and a key of the user must not exclude these layouts.
    let fits =
        |assignment: &String| has_parity(layout) || !assignment.starts_with("volume.stripe_cache");
    set.extend(of_volume.into_iter().filter(fits));
    overrides.set = set;
    overrides
}

/// Returns a number of failed drives in words.
fn failed_drives(number: u32) -> String {
    match number {
        0 => "no failed drive".to_owned(),
        1 => "the failure of one drive".to_owned(),
        _ => format!("the failure of any {number} drives"),
    }
}

/// Returns true if a layout distributes chunks over its drives.
pub(crate) fn has_chunks(layout: &str) -> bool {
    !matches!(layout, "raid1" | "jbod" | "lzvs" | "lzvs-geo") && !is_pool(layout)
}

/// Returns true for a pool like ZFS: the vdevs have records, and no chunks.
pub(crate) fn is_pool(layout: &str) -> bool {
    layout.split(':').next() == Some("mirror")
        || layout.starts_with("raidz")
        || layout.starts_with("draid")
}

/// Returns true if a layout has parity, and therefore may have a stripe cache.
pub(crate) fn has_parity(layout: &str) -> bool {
    matches!(layout, "raid4" | "raid5" | "raid6")
}

/// Returns the name: `raid6 of 6`, `raid6 of 6 behind 1GiB`, `raid5 of 4 under bcache:4GiB`.
fn name(layout: &str, drives: u32, controller: Controller, cache: &FrontCache) -> String {
    let behind = controller
        .0
        .map_or_else(String::new, |memory| format!(" behind {memory}"));
    let under = match cache {
        FrontCache(Some(_)) => format!(" under {cache}"),
        FrontCache(None) => String::new(),
    };
    format!("{layout} of {drives}{behind}{under}")
}

/// Returns the places in the tree of the flash devices beside `drives` disks: of `beside` devices
/// in the pool, behind the disks, and of a cache. Below a cache, the array is member 0 and the
/// device of the cache is member 1.
fn flash_places(drives: u32, beside: u32, has_cache: bool) -> Vec<String> {
    let array = if has_cache { "0." } else { "" };
    let in_pool = (drives..drives.saturating_add(beside)).map(|place| format!("{array}{place}"));
    in_pool.chain(has_cache.then(|| "1".to_owned())).collect()
}

/// Replaces the stack's cache by a cache of the choices. The user's keys of the cache follow.
fn set_cache(request: &AdviceRequest, cache: &FrontCache, set: &mut Vec<String>) {
    if request.choices.caches.iter().all(|cache| cache.0.is_none()) {
        return;
    }
    let (own, mut kept): (Vec<String>, Vec<String>) = set
        .drain(..)
        .partition(|assignment| assignment.starts_with("cache."));
    if let Some(shape) = &cache.0 {
        let mode = shape
            .mode
            .as_ref()
            .map_or_else(String::new, |mode| format!(", mode={}", quoted(mode)));
        kept.push(format!(
            "cache={{kind={}{mode}, drive={}, size={}}}",
            quoted(&shape.kind),
            quoted(&request.choices.flash),
            quoted(&shape.size.to_string())
        ));
        kept.extend(own);
    }
    *set = kept;
}

fn arrangement(
    request: &AdviceRequest,
    layout: &str,
    drives: u32,
    controller: Controller,
    cache: &FrontCache,
) -> Result<Arrangement, AdviseError> {
    let mut overrides = on_drives(request, layout, drives);
    set_cache(request, cache, &mut overrides.set);
    // The other keys keep the defaults of a controller: half of the memory for writes, write-back.
    let table = controller
        .0
        .map(|memory| format!("controller={{memory={}}}", quoted(&memory.to_string())));
    overrides.set.extend(table);
    if let Some(streams) = request.wishes.streams {
        overrides.set.push(format!("workload.streams={streams}"));
    }
    let recipe = Recipe {
        name: name(layout, drives, controller, cache),
        varied: Varied::default(),
        file: request.stack.clone(),
        overrides,
    };
    let stack = Stack::load(&recipe.file, &recipe.overrides)?;
    let beside = PoolShape::read(layout).map_or(0, |shape| shape.flash());
    let flash = flash_places(drives, beside, stack.has_cache());
    for condition in [Condition::Degraded, Condition::Rebuilding] {
        if let Some(recipe) = recipe.in_condition(condition)? {
            recipe.candidate()?;
        }
    }
    let disk = stack
        .drives()
        .first()
        .map_or(Bytes(0), |model| model.config().capacity_sectors.bytes());
    Ok(Arrangement {
        layout: layout.to_owned(),
        drives,
        controller,
        cache: cache.clone(),
        flash,
        disk,
        summary: stack.summary()?,
        recipe,
    })
}

/// Returns the error of a layout, without a key that `advise` has set itself.
fn in_short(error: &AdviseError) -> String {
    match error {
        AdviseError::Stack(error) | AdviseError::Lab(LabError::Stack(error)) => {
            let what = error
                .message
                .rsplit_once("`: ")
                .map_or(error.message.as_str(), |(_, what)| what);
            if error.key.starts_with("volume.") || error.key.starts_with("cache.") {
                format!("{}: {what}", error.key)
            } else {
                what.to_owned()
            }
        }
        other => other.to_string(),
    }
}

/// Returns a TOML string.
fn quoted(text: &str) -> String {
    let escaped: String = text
        .chars()
        .flat_map(|letter| match letter {
            '"' | '\\' => vec!['\\', letter],
            letter => vec![letter],
        })
        .collect();
    format!("\"{escaped}\"")
}

/// Returns the first wish that an arrangement cannot meet with any load, and the reason.
fn missing(request: &AdviceRequest, arrangement: &Arrangement) -> Option<(&'static str, String)> {
    let Wishes {
        usable,
        failures,
        price,
        ..
    } = request.wishes;
    let VolumeSummary {
        usable: has,
        failures_survived,
        ..
    } = arrangement.summary;
    let cost = arrangement.price(request);
    if let Some(failures) = failures.filter(|wished| *wished > failures_survived) {
        return Some((
            "failures",
            format!(
                "{} is survived, wished {failures}",
                failed_drives(failures_survived)
            ),
        ));
    }
    if let Some(usable) = usable.filter(|wished| *wished > has) {
        return Some((
            "usable",
            format!(
                "{} are usable, wished {}",
                capacity(has.0),
                capacity(usable.0)
            ),
        ));
    }
    match (price, cost) {
        (Some(wished), Some(cost)) if cost > wished => {
            let flash = arrangement.flash_price(request).is_some();
            let what = match (arrangement.controller.0.is_some(), flash) {
                (true, true) => "drives, controller and flash devices",
                (true, false) => "drives and controller",
                (false, true) => "drives and flash devices",
                (false, false) => "its drives",
            };
            Some((
                "price",
                format!("{what} cost {cost}, wished at most {wished}"),
            ))
        }
        _ => None,
    }
}

/// Returns the reason why nothing meets the wishes, with possible values.
fn possible(request: &AdviceRequest, seen: &[(Arrangement, &'static str)]) -> String {
    let counts = match request.counts.as_slice() {
        [one] => one.to_string(),
        [first, .., last] => format!("{first} to {last}"),
        [] => "no".to_owned(),
    };
    let safe = seen.iter().filter(|(one, _)| {
        request
            .wishes
            .failures
            .is_none_or(|failures| one.summary.failures_survived >= failures)
    });
    let head = format!(
        "no layout of {counts} drives ({}) meets these wishes",
        request.drive
    );
    let largest = safe.clone().max_by_key(|(one, _)| one.summary.usable.0);
    let Some((largest, _)) = largest else {
        let safest = seen
            .iter()
            .max_by_key(|(one, _)| (one.summary.failures_survived, one.summary.usable.0));
        return match safest {
            Some((one, _)) => format!(
                "{head}: at most {} failed drives are survived, by {} ({} usable); lower --failures, or give more drives",
                one.summary.failures_survived,
                one.name(),
                capacity(one.summary.usable.0)
            ),
            None => format!("{head}: no layout was tried"),
        };
    };
    let cost = largest
        .price(request)
        .map_or_else(String::new, |price| format!(", for {price}"));
    format!(
        "{head}: with as many failures survived as wished, at most {} are usable, by {}{cost}; lower --usable or --failures, raise \
         --price, or give more or larger drives",
        capacity(largest.summary.usable.0),
        largest.name()
    )
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Assumptions, Choices, Costs, advise};

    pub(crate) fn request(layouts: &[&str], drives: u32, set: &[&str]) -> AdviceRequest {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        AdviceRequest {
            stack: concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../../stacks/bench/closed-random-8k.toml"
            )
            .into(),
            overrides: Overrides {
                set: texts(set),
                ..Overrides::default()
            },
            drive: "seagate-ironwolf-8tb".to_owned(),
            counts: vec![drives],
            drive_price: None,
            controller_price: None,
            flash_price: None,
            wishes: Wishes::default(),
            choices: Choices {
                layouts: texts(layouts),
                ..Choices::default()
            },
            assumptions: Assumptions::default(),
            jobs: 1,
            timeline: false,
            costs: Costs::default(),
            budget: None,
        }
    }

    fn stack_of(request: &AdviceRequest) -> Stack {
        let layout = &request.choices.layouts[0];
        Stack::load(
            &request.stack,
            &on_drives(request, layout, request.counts[0]),
        )
        .unwrap()
    }

    #[test]
    fn pools_of_several_vdevs_lose_data_vdev_by_vdev() {
        for (layout, drives, survived, group, partners, data) in [
            ("raidz2", 8, 2, 8, 6, 6.0),
            ("raidz1:4", 8, 1, 4, 3, 6.0),
            ("mirror", 8, 1, 2, 1, 4.0),
            ("mirror:4", 8, 3, 4, 1, 2.0),
            ("draid2:4d:1s", 9, 2, 9, 7, 8.0 * 4.0 / 6.0),
        ] {
            let (able, left_out) = arrangements(&request(&[layout], drives, &[])).unwrap();
            assert!(left_out.is_empty(), "{left_out:?}");
            let found = able[0].redundancy();
            assert_eq!(
                (found.survived, found.group, found.partners),
                (survived, group, partners),
                "{layout}"
            );
            assert_eq!(able[0].name(), format!("{layout} of {drives}"));
            // A volume takes 80 % of the space without slop, metaslabs and padding.
            let drives_of_data = able[0].summary.usable.0 as f64 * f64::from(drives)
                / able[0].summary.raw.0 as f64
                / 0.8;
            let ratio = drives_of_data / data;
            assert!((0.9..1.0).contains(&ratio), "{layout}: {drives_of_data}");
        }
    }

    #[test]
    fn a_pool_may_have_flash_drives_beside_its_disks() {
        let (able, left_out) =
            arrangements(&request(&["raidz2:3special:1log", "mirror:1log"], 8, &[])).unwrap();
        assert!(left_out.is_empty(), "{left_out:?}");
        let disk = able[1].disk.0;
        for (one, drives, group, partners) in [(&able[0], 12, 8, 6), (&able[1], 9, 2, 1)] {
            assert_eq!((one.summary.drives, one.drives), (drives, 8));
            let found = one.redundancy();
            assert_eq!((found.group, found.partners), (group, partners));
            assert_eq!(found.bare_bytes, u64::from(partners) * disk);
        }
        let (_, left_out) = arrangements(&request(&["raidz2:2special", "raidz2"], 8, &[])).unwrap();
        assert!(left_out[0].why.contains("special"), "{left_out:?}");
    }

    #[test]
    fn a_shape_that_is_none_is_refused_with_its_name() {
        for layout in ["raidz1:x", "raidz1:4d", "raid5:4", "mirror:"] {
            let error = arrangements(&request(&[layout], 8, &[])).unwrap_err();
            assert!(error.to_string().contains(layout), "{error}");
        }
        let error = arrangements(&request(&["raidz1:3"], 8, &[])).unwrap_err();
        assert!(error.to_string().contains("whole vdevs"), "{error}");
    }

    #[test]
    fn of_an_odd_raid10_one_drive_s_bytes_have_no_copy_left_but_two_drives_hold_them() {
        for (layout, drives, partners, bare) in [
            ("raid10", 4, 1, 1),
            ("raid10", 5, 2, 1),
            ("raid5", 5, 4, 4),
            ("raid6", 6, 4, 4),
            ("raid1", 2, 1, 1),
        ] {
            let (able, left_out) = arrangements(&request(&[layout], drives, &[])).unwrap();
            let redundancy = able[0].redundancy();
            let drive_bytes = able[0].summary.raw.0 / u64::from(drives);
            assert_eq!(
                (redundancy.partners, redundancy.bare_bytes),
                (partners, bare * drive_bytes),
                "{layout}"
            );
            assert_eq!(left_out, []);
        }
    }

    #[test]
    fn what_is_set_of_the_volume_stays_and_what_is_tried_cannot_be_set() {
        let kept = stack_of(&request(
            &["raid5"],
            4,
            &["volume.chunk=\"16KiB\"", "volume.stripe_cache=256"],
        ));
        let other = stack_of(&request(&["raid5"], 4, &[]));
        assert_ne!(kept.digest(), other.digest());
        // A layout without parity has no stripe cache.
        let mirror = stack_of(&request(&["raid10"], 4, &["volume.stripe_cache=256"]));
        assert_eq!(
            mirror.digest(),
            stack_of(&request(&["raid10"], 4, &[])).digest()
        );
        for set in [
            "volume.layout=\"raid99\"",
            "volume.drives=9",
            "volume.failed=[0]",
            "volume={}",
        ] {
            let error = advise(&request(&["raid5"], 4, &[set]), &|_| {})
                .unwrap_err()
                .to_string();
            assert!(error.contains(set) && error.contains("--drives"), "{error}");
        }
        let error = advise(&request(&["raid5"], 4, &["volume.nonsense=1"]), &|_| {})
            .unwrap_err()
            .to_string();
        assert!(error.contains("nonsense"), "{error}");
    }

    #[test]
    fn what_cannot_be_tried_without_a_drive_is_left_out_with_its_reason() {
        let (able, left_out) = arrangements(&request(&["raid10", "xor"], 4, &[])).unwrap();
        assert_eq!(
            able.iter()
                .map(|one| one.layout.as_str())
                .collect::<Vec<_>>(),
            ["raid10"]
        );
        assert!(
            left_out
                .iter()
                .any(|one| one.layout == "xor" && !one.why.is_empty()),
            "{left_out:?}"
        );
    }

    #[test]
    fn pools_are_tried_without_chunks_and_lose_data_by_their_pairs() {
        let (able, left_out) = arrangements(&request(&["raidz2", "mirror"], 6, &[])).unwrap();
        assert!(left_out.is_empty(), "{left_out:?}");
        let names: Vec<String> = able.iter().map(Arrangement::name).collect();
        assert_eq!(names, ["raidz2 of 6", "mirror of 6"]);
        let (raidz2, mirror) = (able[0].redundancy(), able[1].redundancy());
        assert_eq!((raidz2.survived, raidz2.partners), (2, 4));
        assert_eq!((mirror.survived, mirror.partners), (1, 1));
    }

    #[test]
    fn numbers_that_cannot_be_and_choices_that_stand_twice_are_refused_by_their_key() {
        let refused = |change: &dyn Fn(&mut AdviceRequest), word: &str| {
            let mut request = request(&["raid5"], 4, &[]);
            change(&mut request);
            let error = advise(&request, &|_| {}).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(
            &|request| request.assumptions.mttf_hours = -5.0,
            "mttf_hours: found -5",
        );
        refused(
            &|request| request.assumptions.unreadable_bits = 0.5,
            "unreadable_bits: found 0.5",
        );
        refused(
            &|request| request.assumptions.replace_hours = f64::NAN,
            "replace_hours: found NaN",
        );
        refused(
            &|request| request.wishes.price = Some(f64::NAN),
            "price: found NaN",
        );
        refused(
            &|request| request.wishes.watts = Some(0.0),
            "watts: found 0",
        );
        refused(
            &|request| request.wishes.mb_per_s = Some(f64::INFINITY),
            "mb_per_s: found inf",
        );
        refused(
            &|request| request.drive_price = Some(-10.0),
            "--drive-price: found -10",
        );
        refused(
            &|request| request.choices.layouts.push("raid5".to_owned()),
            "raid5 is given twice",
        );
        refused(
            &|request| {
                request.choices.controllers = ["1GiB", "1024MiB"]
                    .map(|text| Controller(Some(text.parse().unwrap())))
                    .to_vec();
            },
            "is given twice",
        );
    }
}
