//! The table of flash devices beside the disks: caches, special vdevs and logs.

use super::dash;
use fullstroke_advise::{Finalist, FlashOutcome};
use fullstroke_measure::{number, table as empty_table};

/// Returns the wear of a year as a percentage, or a dash.
pub(crate) fn worn_a_year(flash: &FlashOutcome) -> String {
    let percent = |share| format!("{} %", number(100.0 * share));
    flash.wear_share_a_year.map_or_else(dash, percent)
}

/// Returns the table of the finalists with flash devices; `None` if there is none.
pub(super) fn table(finalists: &[Finalist]) -> Option<String> {
    let header = [
        "",
        "layout",
        "flash",
        "price",
        "W",
        "GB a day",
        "worn a year",
        "only there, MB",
    ];
    let mut table = empty_table(header, &[1]);
    let mut left_out = false;
    for one in finalists {
        let Some(flash) = &one.flash else { continue };
        left_out |= flash.price.is_none() && one.price.is_some();
        table.add_row([
            one.place.to_string(),
            one.name.clone(),
            flash.devices.to_string(),
            flash.price.map_or_else(dash, number),
            flash.mean_w.map_or_else(dash, number),
            number(flash.written_gb_a_day),
            worn_a_year(flash),
            flash.dirty_mb.map_or_else(dash, number),
        ]);
    }
    if table.is_empty() {
        return None;
    }
    let prices = match left_out {
        true => " The prices of the layouts leave flash devices without a price out.",
        false => "",
    };
    Some(format!(
        "{}\n\nFlash devices beside the disks, with all drives. worn a year: share of the rated writes. only there: data that only the cache has at the end of a run.{prices}",
        table.trim_fmt()
    ))
}
