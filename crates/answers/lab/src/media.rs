//! Rates above those of the media: a run that ends before the buffers of the drives are full shows
//! the speed of the buffers.

use fullstroke_drive::DriveModel;
use fullstroke_measure::MemberReport;
use fullstroke_units::SECTOR_BYTES;

/// Rate of a drive above which the buffer must have held the data, as a multiple of the rate of the
/// outermost zone.
const ABOVE: f64 = 1.05;

/// Returns a sentence for each model of a disk that moved data faster than its medium can. A drive with
/// several arms has a member for each arm, and no sentence.
pub(crate) fn faster_than_media(models: &[&DriveModel], members: &[MemberReport]) -> Vec<String> {
    let mut found: Vec<(&str, f64, f64)> = Vec::new();
    if models.len() != members.len() {
        return Vec::new();
    }
    for (model, member) in models.iter().zip(members) {
        let config = model.config();
        // A flash device has no zones of its own, and its file has the rates of its caches.
        if config.flash.is_some() || member.seconds <= 0.0 {
            continue;
        }
        let zones = model.mechanics().geometry().zones();
        let medium = zones
            .map(|zone| zone.rate_mb_per_s(config.rpm))
            .fold(0.0, f64::max);
        let counts = &member.statistics;
        let sectors = (counts.sectors_read + counts.sectors_written).0 as f64;
        let moved = sectors * SECTOR_BYTES as f64 / 1e6 / member.seconds;
        if moved <= medium * ABOVE {
            continue;
        }
        let title = config.title.as_str();
        match found.iter_mut().find(|(known, ..)| *known == title) {
            Some((_, most, _)) => *most = most.max(moved),
            None => found.push((title, moved, medium)),
        }
    }
    let sentence = |(title, moved, medium): (&str, f64, f64)| {
        format!(
            "The drive {title} moved {moved:.0} MB/s, and its medium moves at most {medium:.0} MB/s: the buffer of the drive held data. A longer load, or one of more addresses, shows the rate of the medium."
        )
    };
    found.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullstroke_contract::MemberStatistics;
    use fullstroke_stack::drives;
    use fullstroke_units::Sectors;

    /// Returns the notes of two drives that wrote so many MB in two seconds.
    fn notes(name: &str, megabytes: [u64; 2]) -> Vec<String> {
        let model = drives::load(name).unwrap();
        let members = megabytes.map(|megabytes| MemberReport {
            name: "0".to_owned(),
            statistics: MemberStatistics {
                sectors_written: Sectors(megabytes * 1_000_000 / SECTOR_BYTES),
                ..MemberStatistics::default()
            },
            seconds: 2.0,
        });
        faster_than_media(&[&model, &model], &members)
    }

    #[test]
    fn only_rates_above_those_of_the_medium_are_noted() {
        // The outermost zone moves 180 MB/s.
        assert_eq!(notes("wd-red-plus-4tb", [360, 0]), Vec::<String>::new());
        let found = notes("wd-red-plus-4tb", [400, 1000]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("moved 500 MB/s, and its medium moves at most 180 MB/s"),
            "{found:?}"
        );
        // A flash device writes into its cache at the rate of its file.
        assert_eq!(
            notes("samsung-870-evo-1tb", [1000, 1000]),
            Vec::<String>::new()
        );
    }
}
