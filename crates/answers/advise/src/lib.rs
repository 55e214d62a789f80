//! Recommends a layout for given drives, a load and wishes.
//!
//! [`advise`] first excludes impossible layouts by arithmetic. Chunks, elevators and caches of each
//! remaining layout race on parts of the load. The best candidate of each layout runs on the whole
//! load with all drives, with a failed drive, during a rebuild, and with a slow drive. The result is a recommendation
//! with its reasons, the second choice, and the changes that would alter the answer.
//!
//! | file | contents |
//! |---|---|
//! | `wishes.rs` | the wish file |
//! | `request.rs`, `choices.rs` | the question, and the layouts and settings to try |
//! | `layouts.rs` | layouts with numbers of drives, possible and impossible |
//! | `advise.rs` | the finalists and their runs |
//! | `finalist.rs` | the best candidate of one layout |
//! | `flash.rs` | flash devices beside the disks: price, wear, power |
//! | `devices.rs` | the devices of compared stacks |
//! | `settings.rs` | the race of chunks, elevators and caches |
//! | `loads.rs` | the answer at multiples of the load |
//! | `gradual.rs` | advice that becomes surer step by step |
//! | `outcome.rs` | outcome of a run in comparison with the wishes |
//! | `slow_drive.rs` | finalists with a slow drive |
//! | `order.rs` | the order of finalists |
//! | `loss.rs` | the chance of data loss |
//! | `words.rs` | the recommendation in sentences |
//! | `changes.rs` | changes that would alter the answer |

mod advise;
mod changes;
mod choices;
mod devices;
mod finalist;
mod flash;
mod gradual;
mod layouts;
mod loads;
mod loss;
mod order;
mod outcome;
mod request;
mod settings;
mod slow_drive;
mod wishes;
mod words;

pub use advise::{Advice, advise};
pub use changes::AtLoad;
pub use choices::{
    CacheShape, Choices, Controller, ControllerError, CountsError, DriveCounts, FrontCache,
    FrontCacheError,
};
pub use devices::{DevicePrices, StackDevices};
pub use finalist::Finalist;
pub use flash::FlashOutcome;
pub use gradual::{GradualAdvice, GradualProgress, PossibleLayout, RoundPlan};
pub use layouts::ExcludedLayout;
pub use loss::{Assumptions, DataLossChance, FORMULA, Redundancy, loss};
pub use outcome::{ArrayOutcome, Condition, DoubtfulWish, MissedWish};
pub use request::{AdviceRequest, AdviseError};
pub use wishes::{Costs, DEFAULT_CURRENCY, WishError, WishFile, Wishes};
