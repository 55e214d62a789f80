//! Flash devices beside the disks in sentences, and whether a cache is worth its device.

use crate::{Costs, Finalist, FlashOutcome, FrontCache};
use fullstroke_measure::number;

/// Returns the price, the wear and the power of the flash devices of a finalist, and the data that
/// only they have; empty without such a device.
pub(super) fn devices(first: &Finalist, costs: &Costs) -> String {
    let Some(flash) = &first.flash else {
        return String::new();
    };
    let sentences = [price(first, flash, costs), load(flash), loss(flash)];
    let known: Vec<String> = sentences.into_iter().flatten().collect();
    known.join(" ")
}

fn called(flash: &FlashOutcome) -> String {
    match flash.devices {
        1 => "the flash device".to_owned(),
        count => format!("the {count} flash devices"),
    }
}

/// Returns the price, or the statement that the price leaves the devices out.
fn price(first: &Finalist, flash: &FlashOutcome, costs: &Costs) -> Option<String> {
    let devices = called(flash);
    let verb = if flash.devices == 1 { "costs" } else { "cost" };
    match (first.price, flash.price) {
        (Some(_), Some(price)) => Some(format!(
            "Of this price {devices} {verb} {} {}.",
            number(price),
            costs.currency
        )),
        (None, Some(price)) => Some(format!(
            "For {} {} the array has {devices}.",
            number(price),
            costs.currency
        )),
        (Some(_), None) => Some(format!(
            "This price leaves {devices} out: the price of a flash device is not given (--flash-price, or flash_price under [drives])."
        )),
        (None, None) => None,
    }
}

/// Returns the written data, the wear and the power.
fn load(flash: &FlashOutcome) -> Option<String> {
    if !flash.written_gb_a_day.is_finite() {
        return None;
    }
    let (verbs, whose) = match flash.devices {
        1 => (["receives", "takes"], "its rated writes in a year"),
        _ => (
            ["receive", "take"],
            "the rated writes of one device in a year",
        ),
    };
    let worn = flash.wear_share_a_year.map_or_else(String::new, |share| {
        format!(", {} % of {whose}", number(100.0 * share))
    });
    let watts = flash.mean_w.map_or_else(String::new, |watts| {
        format!(", and {} {} W", verbs[1], number(watts))
    });
    Some(format!(
        "Under this load {} {} {} GB a day{worn}{watts}.",
        called(flash),
        verbs[0],
        number(flash.written_gb_a_day)
    ))
}

/// Returns the data that a cache alone has.
fn loss(flash: &FlashOutcome) -> Option<String> {
    let dirty = flash.dirty_mb?;
    Some(if dirty > 0.0 {
        format!(
            "At the end of a run {} MB were on the flash device alone: without the device these data are lost.",
            number(dirty)
        )
    } else {
        "The array has all data, also without the flash device.".to_owned()
    })
}

/// Returns the speed of the recommended array with each cache and without a cache; empty if no other
/// finalist has the same array.
pub(super) fn caches(
    first: &Finalist,
    finalists: &[Finalist],
    reached: &dyn Fn(&Finalist) -> String,
    costs: &Costs,
) -> String {
    let same = |one: &&Finalist| {
        (&one.layout, one.volume.drives, one.controller)
            == (&first.layout, first.volume.drives, first.controller)
    };
    let group: Vec<&Finalist> = finalists.iter().filter(same).collect();
    if group.iter().all(|one| one.cache == first.cache) {
        return String::new();
    }
    let without = group.iter().find(|one| one.cache.0.is_none());
    let each = group.iter().map(|one| {
        let head = match &one.cache {
            FrontCache(None) => "no cache".to_owned(),
            cache => cache.to_string(),
        };
        let more = without
            .and_then(|without| without.price.zip(one.price))
            .map(|(less, price)| price - less)
            .filter(|more| *more > 0.0)
            .map_or_else(String::new, |more| {
                format!(" for {} {} more", number(more), costs.currency)
            });
        format!("{head}: {}{more}", reached(one))
    });
    let each: Vec<String> = each.collect();
    format!("The same array with each cache: {}.", each.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayOutcome, CacheShape};
    use fullstroke_units::Bytes;

    fn cached(mean_ms: f64, gib: u64, price: Option<f64>) -> Finalist {
        Finalist {
            layout: "raid5".to_owned(),
            healthy: ArrayOutcome {
                mean_ms,
                ..ArrayOutcome::default()
            },
            cache: FrontCache((gib > 0).then(|| CacheShape {
                kind: "bcache".to_owned(),
                mode: None,
                size: Bytes(gib << 30),
            })),
            flash: (gib > 0).then(|| FlashOutcome {
                devices: 1,
                price: price.map(|_| 90.0),
                written_gb_a_day: 20.0,
                wear_share_a_year: Some(0.05),
                mean_w: None,
                dirty_mb: Some(3.0),
            }),
            price,
            ..Finalist::default()
        }
    }

    #[test]
    fn a_flash_device_has_its_price_its_wear_and_its_own_data() {
        let costs = Costs::default();
        let words = devices(&cached(2.0, 4, Some(890.0)), &costs);
        for part in [
            "Of this price the flash device costs 90.0 EUR.",
            "receives 20.0 GB a day, 5.00 % of its rated writes in a year.",
            "3.00 MB were on the flash device alone",
        ] {
            assert!(words.contains(part), "{words}");
        }
        let mut without = cached(2.0, 4, Some(800.0));
        without.flash.as_mut().unwrap().price = None;
        let words = devices(&without, &costs);
        assert!(
            words.starts_with("This price leaves the flash device out"),
            "{words}"
        );
        assert_eq!(devices(&cached(6.0, 0, Some(800.0)), &costs), "");
    }

    #[test]
    fn the_same_array_is_shown_with_each_cache() {
        let all = [cached(2.0, 4, Some(890.0)), cached(6.0, 0, Some(800.0))];
        let reached = |one: &Finalist| format!("{} ms on average", one.healthy.mean_ms);
        let words = caches(&all[0], &all, &reached, &Costs::default());
        assert_eq!(
            words,
            "The same array with each cache: bcache:4GiB: 2 ms on average for 90.0 EUR more; no cache: 6 ms on average."
        );
        assert_eq!(caches(&all[1], &all[1..], &reached, &Costs::default()), "");
    }
}
