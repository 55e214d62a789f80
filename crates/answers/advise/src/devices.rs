//! The devices of compared stacks: number, price, and the wear and power of flash devices.

use crate::FlashOutcome;
use fullstroke_lab::{Recipe, RunResult};
use serde::Serialize;

/// Prices of devices. `None` = not given.
#[derive(Clone, Copy, Debug, Default)]
pub struct DevicePrices {
    /// Price of a disk.
    pub disk: Option<f64>,
    /// Price of a flash device.
    pub flash: Option<f64>,
}

/// The devices of a stack.
#[derive(Clone, Debug, Serialize)]
pub struct StackDevices {
    /// Name of the stack.
    pub name: String,
    /// Number of disks.
    pub disks: usize,
    /// Price of all devices; `None` if the price of one of them is not given.
    pub price: Option<f64>,
    /// The flash devices; `None` if there are none.
    pub flash: Option<FlashOutcome>,
}

impl StackDevices {
    /// Returns the devices of each stack. The list is empty if no stack has a flash device and no
    /// price is given. Each recipe has `seeds` adjacent runs.
    pub fn of_each(
        recipes: &[Recipe],
        ran: &[RunResult],
        seeds: usize,
        prices: DevicePrices,
    ) -> Vec<StackDevices> {
        let each = recipes.chunks(seeds).zip(ran.chunks(seeds));
        let devices: Vec<StackDevices> = each
            .filter_map(|(recipes, ran)| StackDevices::new(recipes.first()?.label(), ran, prices))
            .collect();
        let asked = prices.disk.is_some() || prices.flash.is_some();
        if asked || devices.iter().any(|one| one.flash.is_some()) {
            devices
        } else {
            Vec::new()
        }
    }

    fn new(name: String, ran: &[RunResult], prices: DevicePrices) -> Option<StackDevices> {
        let members = ran.first()?.measured.report.array.members.len();
        let places = FlashOutcome::places(&ran.first()?.measured.report);
        let disks = members - places.len();
        let of = |count: usize, each: Option<f64>| match count {
            0 => Some(0.0),
            count => each.map(|each| count as f64 * each),
        };
        let flash_price = prices.flash.map(|each| places.len() as f64 * each);
        let price = of(disks, prices.disk).zip(of(places.len(), prices.flash));
        Some(StackDevices {
            name,
            disks,
            price: price.map(|(disks, flash)| disks + flash),
            flash: FlashOutcome::new(&places, flash_price, ran),
        })
    }
}
