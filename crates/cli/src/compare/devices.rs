//! The table of the devices of each stack: price, wear and power of flash devices and disks.

use crate::advise::dash;
use crate::advise::flash::worn_a_year;
use clap::Args;
use fullstroke_advise::{DevicePrices, StackDevices};
use fullstroke_lab::{Recipe, RunResult};
use fullstroke_measure::{number, table as empty_table};

/// Prices of the devices.
#[derive(Debug, Args)]
pub(super) struct Prices {
    /// Price of a disk. With a price, a table shows the price of each stack.
    #[arg(long, value_name = "NUMBER", conflicts_with = "find", value_parser = price)]
    drive_price: Option<f64>,

    /// Price of a flash device.
    #[arg(long, value_name = "NUMBER", conflicts_with = "find", value_parser = price)]
    flash_price: Option<f64>,
}

/// Reads a price.
fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err(format!("found {text}; expected a price, 0 or more")),
    }
}

impl Prices {
    /// Returns the devices of each stack; see [`StackDevices::of_each`].
    pub(super) fn devices(
        &self,
        recipes: &[Recipe],
        ran: &[RunResult],
        seeds: usize,
    ) -> Vec<StackDevices> {
        let prices = DevicePrices {
            disk: self.drive_price,
            flash: self.flash_price,
        };
        StackDevices::of_each(recipes, ran, seeds, prices)
    }
}

/// Returns the table, with an empty line before it. Empty without devices.
pub(super) fn table(devices: &[StackDevices]) -> String {
    if devices.is_empty() {
        return String::new();
    }
    let header = [
        "devices",
        "disks",
        "flash",
        "price",
        "flash W",
        "GB a day",
        "worn a year",
        "only there, MB",
    ];
    let mut table = empty_table(header, &[0]);
    for one in devices {
        let flash = one.flash.as_ref();
        let of = |value: Option<f64>| value.map_or_else(dash, number);
        table.add_row([
            one.name.clone(),
            one.disks.to_string(),
            flash.map_or(0, |flash| flash.devices).to_string(),
            of(one.price),
            of(flash.and_then(|flash| flash.mean_w)),
            of(flash.map(|flash| flash.written_gb_a_day)),
            flash.map_or_else(dash, worn_a_year),
            of(flash.and_then(|flash| flash.dirty_mb)),
        ]);
    }
    format!(
        "\n\n{}\n\nprice: with --drive-price and --flash-price. GB a day: data that flash devices receive. worn a year: share of the rated writes. only there: data that only the cache has at the end of a run, lost with its device.",
        table.trim_fmt()
    )
}
