//! Which layout for these drives, this load and these wishes.
//!
//! [`advise`] leaves out by arithmetic what cannot be, lets chunks, elevators and caches of each layout that is
//! left race on parts of the load, runs the best of each layout on all of it, healthy, with a drive gone
//! and while one is rebuilt, and says which to take, why, what comes second and what would change that.
//!
//! | file | what |
//! |---|---|
//! | `wishes.rs` | what is wished, as a file |
//! | `layouts.rs` | the layouts of so many drives, and which of them cannot be |
//! | `advise.rs` | races and runs |
//! | `outcome.rs` | what a run came to beside the wishes |
//! | `order.rs` | who comes before whom |
//! | `loss.rs` | the chance that data are lost |
//! | `words.rs` | the recommendation in sentences |
//! | `changes.rs` | what would change it |

mod advise;
mod changes;
mod layouts;
mod loss;
mod order;
mod outcome;
mod wishes;
mod words;

pub use advise::{Advice, AdviseError, Finalist, Request, advise};
pub use changes::AtLoad;
pub use layouts::{Choices, Controller, ControllerError, Counts, CountsError, LeftOut};
pub use loss::{Assumptions, FORMULA, Loss, Redundancy, loss};
pub use outcome::{Condition, Miss, Outcome};
pub use wishes::{WishError, WishFile, Wishes};
