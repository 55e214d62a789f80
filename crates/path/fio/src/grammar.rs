//! Values with their own grammar.

use crate::job::OffsetDistribution;
use crate::units::{Amount, amount, each_direction, integer};
use fullstroke_contract::{Reason, reason};
use fullstroke_units::order_by_key;

/// Parses `kb_base`: 1000 or 1024.
pub(crate) fn kb_base(text: &str) -> Result<u64, Reason> {
    match text {
        "1000" => Ok(1000),
        "1024" => Ok(1024),
        _ => Err(reason!("found `{text}`; expected 1000 or 1024")),
    }
}

/// Parses a whole number that may be negative.
pub(crate) fn signed(text: &str, kb_base: u64) -> Result<i64, Reason> {
    let (digits, negative) = text
        .strip_prefix('-')
        .map_or((text, false), |digits| (digits, true));
    let number = integer(digits, kb_base)?;
    let number = i64::try_from(number)
        .map_err(|_| reason!("found `{text}`; it does not fit into 63 bits"))?;
    Ok(if negative { -number } else { number })
}

/// Largest number of sizes for one direction in a split, as in fio.
const PARTS_MAX: usize = 64;
/// Largest number of zones for one direction in a distribution, as in fio.
const ZONES_MAX: usize = 256;

/// Parses `4k/10:64k/90`: sizes with percentages. Sizes without a percentage share the rest.
pub(crate) fn split(text: &str, kb_base: u64) -> Result<Vec<(u64, u8)>, Reason> {
    let mut parts: Vec<(u64, Option<u64>)> = Vec::new();
    for part in text.split(':') {
        let (size, percent) = part.split_once('/').unwrap_or((part, ""));
        let size = integer(size.trim(), kb_base)?;
        if size == 0 {
            return Err(reason!("found `{part}`; expected a size of at least 1"));
        }
        let percent = match percent.trim() {
            "" => None,
            percent => Some(integer(percent, kb_base)?),
        };
        parts.push((size, percent));
    }
    if parts.len() > PARTS_MAX {
        return Err(reason!(
            "found {} sizes; expected at most {PARTS_MAX}",
            parts.len()
        ));
    }
    let said = parts
        .iter()
        .filter_map(|(_, percent)| *percent)
        .fold(0u64, u64::saturating_add);
    let blank = parts
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count() as u64;
    if said > 100 {
        return Err(reason!(
            "the percentages add up to {said}; expected at most 100"
        ));
    }
    // The remaining percentage goes to the parts without a percentage. If there is none, the
    // largest size takes the rest, as in fio 3.33.
    order_by_key(&mut parts, |(size, _)| *size);
    let rest = 100 - said;
    let last = parts.len() - 1;
    let mut given = 0;
    let share = |(index, (size, percent)): (usize, (u64, Option<u64>))| {
        let mut share = percent.unwrap_or_else(|| {
            given += 1;
            // Differences of rounded sums add up to the rest exactly.
            rest * given / blank - rest * (given - 1) / blank
        });
        if blank == 0 && index == last {
            share += rest;
        }
        (size, share as u8)
    };
    Ok(parts.into_iter().enumerate().map(share).collect())
}

/// Parses a distribution: `random`, `zipf:1.2:0.25`, `zoned:60/10:40/90` and others.
pub(crate) fn distribution(text: &str, kb_base: u64) -> Result<OffsetDistribution, Reason> {
    // fio's HOWTO writes `zoned_abs=`, but the program expects `:`.
    let (name, rest) = text
        .split_once([':', '='])
        .map_or((text, None), |(name, rest)| (name, Some(rest)));
    match name {
        "random" => Ok(OffsetDistribution::Uniform),
        "zipf" => {
            let (theta, center) = shape(rest, 1.1)?;
            // fio's `zipf_next` (`lib/zipf.c`) divides by 1 - theta.
            if !(theta > 0.0 && theta.is_finite()) || theta == 1.0 {
                return Err(reason!(
                    "found theta {theta}; expected a positive number other than 1"
                ));
            }
            Ok(OffsetDistribution::Zipf { theta, center })
        }
        "pareto" => {
            let (h, center) = shape(rest, 0.2)?;
            if !(h > 0.0 && h < 1.0) {
                return Err(reason!("found h {h}; expected more than 0 and less than 1"));
            }
            Ok(OffsetDistribution::Pareto { h, center })
        }
        "normal" | "gauss" => {
            let (percent, center) = shape(rest, 0.0)?;
            if !(0.0..100.0).contains(&percent) {
                return Err(reason!(
                    "found a deviation of {percent} %; expected 0 to less than 100"
                ));
            }
            Ok(OffsetDistribution::Normal { percent, center })
        }
        "zoned" | "zoned_abs" => match rest.filter(|rest| !rest.is_empty()) {
            Some(rest) => zones(rest, name == "zoned_abs", kb_base),
            None => Err(reason!(
                "found `{text}`; expected its zones, as in {name}:60/10:40/90"
            )),
        },
        _ => Err(reason!(
            "found `{name}`; expected random, zipf, pareto, normal, zoned or zoned_abs"
        )),
    }
}

/// Parses `shape[:center]`.
fn shape(rest: Option<&str>, unless_said: f64) -> Result<(f64, Option<f64>), Reason> {
    let Some(rest) = rest else {
        return Ok((unless_said, None));
    };
    let (shape, center) = rest
        .split_once(':')
        .map_or((rest, None), |(shape, center)| (shape, Some(center)));
    let number = |text: &str| {
        text.parse::<f64>()
            .map_err(|_| reason!("found `{text}`; expected a number"))
    };
    let center = center.map(number).transpose()?;
    if center.is_some_and(|center| !(0.0..=1.0).contains(&center)) {
        return Err(reason!(
            "found a centre of {}; expected 0 to 1",
            center.unwrap_or_default()
        ));
    }
    Ok((number(shape)?, center))
}

/// Parses `60/10:40/90`: percentage of the accesses, and percentage or size of the zone. Zones with
/// an open end, as in `60/10:40/`, share the rest of the region (`zone_split_ddir` in fio's
/// `options.c`).
fn zones(text: &str, absolute: bool, kb_base: u64) -> Result<OffsetDistribution, Reason> {
    let list = |text: &str| {
        let zones = text.split(':').map(|part| zone(part, absolute, kb_base));
        let zones = zones.collect::<Result<Vec<(u8, Option<Amount>)>, Reason>>()?;
        shared_rest(zones, absolute)
    };
    let each = each_direction(text, list)?;
    let unless_said = || vec![(100, Amount::Percent(100))];
    Ok(OffsetDistribution::Zoned(
        each.map(|zones| zones.unwrap_or_else(unless_said)),
    ))
}

/// Parses `60/10` of a zone. The size is `None` for an open end: no size, or 0.
fn zone(part: &str, absolute: bool, kb_base: u64) -> Result<(u8, Option<Amount>), Reason> {
    let wrong = || reason!("found `{part}`; expected percent/zone, as in 60/10");
    let (access, zone) = part.split_once('/').unwrap_or((part, ""));
    let access: u8 = access
        .trim()
        .parse()
        .ok()
        .filter(|access| *access <= 100)
        .ok_or_else(wrong)?;
    let zone = match zone.trim() {
        "" => None,
        zone if absolute => Some(Amount::Bytes(integer(zone, kb_base)?)),
        zone => Some(amount(&format!("{zone}%"), kb_base)?),
    };
    // fio treats a zone of 0 as a zone without a size.
    let open = |size: &Amount| matches!(size, Amount::Percent(0) | Amount::Bytes(0));
    Ok((access, zone.filter(|size| !open(size))))
}

/// Gives the zones with an open end their sizes: an equal share of the remaining percentage, or
/// with `absolute` everything behind the zones in front.
fn shared_rest(
    zones: Vec<(u8, Option<Amount>)>,
    absolute: bool,
) -> Result<Vec<(u8, Amount)>, Reason> {
    let access: u64 = zones.iter().map(|(access, _)| u64::from(*access)).sum();
    let share: u64 = zones
        .iter()
        .map(|(_, zone)| match zone {
            Some(Amount::Percent(percent)) => *percent,
            _ => 0,
        })
        .sum();
    if zones.len() > ZONES_MAX {
        return Err(reason!(
            "found {} zones; expected at most {ZONES_MAX}",
            zones.len()
        ));
    }
    if access != 100 {
        return Err(reason!("the accesses add up to {access} %; expected 100 %"));
    }
    if share > 100 {
        return Err(reason!(
            "the zones add up to {share} %; expected at most 100 %"
        ));
    }
    let open = zones.iter().filter(|(_, zone)| zone.is_none()).count() as u64;
    let rest = if absolute {
        Amount::Percent(100)
    } else {
        Amount::Percent((100 - share).checked_div(open).unwrap_or(0))
    };
    Ok(zones
        .into_iter()
        .map(|(access, zone)| (access, zone.unwrap_or(rest)))
        .collect())
}

/// Largest number of percentiles that fio reports.
const PERCENTILES_MAX: usize = 20;

/// Parses `50:99:99.9`.
pub(crate) fn percentiles(text: &str) -> Result<Vec<f64>, Reason> {
    let number = |part: &str| match part.trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent),
        _ => Err(reason!(
            "found `{part}`; expected more than 0 and at most 100"
        )),
    };
    let mut list = text
        .split(':')
        .map(number)
        .collect::<Result<Vec<f64>, Reason>>()?;
    if list.len() > PERCENTILES_MAX {
        return Err(reason!(
            "found {} percentiles; expected at most {PERCENTILES_MAX}",
            list.len()
        ));
    }
    list.sort_by(f64::total_cmp);
    list.dedup();
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_percentages_share_the_rest() {
        assert_eq!(
            split("4k/10:64k/90", 1024),
            Ok(vec![(4096, 10), (65536, 90)])
        );
        assert_eq!(
            split("4k/50:1k/:32k/", 1024),
            Ok(vec![(1024, 25), (4096, 50), (32768, 25)])
        );
        assert_eq!(
            split("4k:1k:2k", 1024),
            Ok(vec![(1024, 33), (2048, 33), (4096, 34)])
        );
        assert_eq!(split("4k/10:8k/20", 1024), Ok(vec![(4096, 10), (8192, 90)]));
        assert_eq!(split("8k/20:4k/10", 1024), Ok(vec![(4096, 10), (8192, 90)]));
        assert_eq!(split("4k/50", 1024), Ok(vec![(4096, 100)]));
    }

    #[test]
    fn splits_that_do_not_add_up_are_refused() {
        for text in [
            "4k/50:8k/60",
            "0/100",
            "",
            "4k/x",
            "4k/18446744073709551615:4k/18446744073709551615",
        ] {
            assert!(split(text, 1024).is_err(), "{text}");
        }
    }

    #[test]
    fn distributions_are_read_with_their_shapes() {
        let read = |text: &str| distribution(text, 1024);
        assert_eq!(
            read("zipf"),
            Ok(OffsetDistribution::Zipf {
                theta: 1.1,
                center: None
            })
        );
        assert_eq!(
            read("zipf:1.2:0.25"),
            Ok(OffsetDistribution::Zipf {
                theta: 1.2,
                center: Some(0.25)
            })
        );
        assert_eq!(
            read("normal:20"),
            Ok(OffsetDistribution::Normal {
                percent: 20.0,
                center: None
            })
        );
        let Ok(OffsetDistribution::Zoned([reads, writes, _])) = read("zoned:60/10:40/90,100/50")
        else {
            panic!("zones were not read")
        };
        assert_eq!(
            reads,
            [(60, Amount::Percent(10)), (40, Amount::Percent(90))]
        );
        assert_eq!(writes, [(100, Amount::Percent(50))]);
        let zones = |text: &str| match read(text) {
            Ok(OffsetDistribution::Zoned([reads, _, _])) => reads,
            other => panic!("{text}: {other:?}"),
        };
        let percent = Amount::Percent;
        assert_eq!(
            zones("zoned:50/5:30/15:20/"),
            [(50, percent(5)), (30, percent(15)), (20, percent(80))]
        );
        assert_eq!(
            zones("zoned:50/5:30/:20"),
            [(50, percent(5)), (30, percent(47)), (20, percent(47))]
        );
        assert_eq!(
            zones("zoned_abs:50/1m:50/"),
            [(50, Amount::Bytes(1 << 20)), (50, percent(100))]
        );
        for text in [
            "zipf:1",
            "zipf:x",
            "pareto:1.5",
            "normal:101",
            "zoned:60/10:30/20",
            "zoned",
            "zipf:1.2:2",
            "uniform",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
