//! An extraction as a state machine that does no I/O.
//!
//! It says what it wants next ([`Step::Ask`]), is told what came of it
//! ([`Extraction::answer`]), and so on until it is done. Whoever drives it has
//! the device and the clock. The algorithms are `async` functions, which the
//! compiler turns into that machine; nothing else of asynchrony is used.

use crate::extract::ExtractError;
use fullstroke_contract::Extent;
use fullstroke_units::{Cylinder, Duration, Lbn, Sectors, Time};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// What an extraction wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Read this, with nothing else outstanding.
    Read(Extent),
    /// Issue all of these reads at once, and answer each.
    Burst(Vec<Extent>),
    /// Write what stands there anew, with nothing else outstanding.
    Rewrite(Extent),
    /// Say where an address lies.
    Translate(Lbn),
    /// Let so much time pass.
    Idle(Duration),
}

/// Where an address lies, as a device says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Place {
    /// Its cylinder.
    pub cylinder: Cylinder,
    /// Its surface.
    pub surface: u32,
    /// Its sector, counted on the track.
    pub sector: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Answer {
    /// When it was issued.
    pub issued: Time,
    /// When it completed.
    pub completed: Time,
    /// Where an address lies, if that was asked.
    pub place: Place,
}

impl Answer {
    /// The time from issue to completion, in ns.
    pub fn response_ns(&self) -> u64 {
        self.completed.saturating_since(self.issued).as_nanos()
    }
}

/// What an extraction has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Effort {
    /// Reads.
    pub reads: u64,
    /// Writes of what stood there before.
    pub writes: u64,
    /// Address translations.
    pub translations: u64,
    /// From the first issue to the last completion, in ns of the device's clock.
    pub time_ns: u64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What is being done.
    pub stage: &'static str,
    /// Addresses, or whatever the stage counts.
    pub done: u64,
    /// Of so many.
    pub of: u64,
}

/// The next thing to do with an extraction.
#[derive(Debug)]
pub enum Step<T> {
    /// Do this and [`answer`](Extraction::answer).
    Ask(Ask),
    /// It is over.
    Done(Result<T, ExtractError>),
}

/// What algorithm and driver pass to each other.
#[derive(Debug, Default)]
struct Desk {
    ask: Option<Ask>,
    answers: Option<Result<Vec<Answer>, ExtractError>>,
    effort: Effort,
    began: Option<Time>,
    progress: Progress,
}

/// The algorithm's side.
#[derive(Clone, Debug)]
pub struct Probe {
    desk: Rc<RefCell<Desk>>,
    capacity: Sectors,
}

impl Probe {
    /// Addresses `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Reads `sectors` from `lbn` on.
    ///
    /// # Errors
    /// If the device cannot.
    pub async fn read(&self, lbn: u64, sectors: u64) -> Result<Answer, ExtractError> {
        self.ask(Ask::Read(Extent::new(lbn, sectors))).await
    }

    /// Reads all of `extents` at once: an answer for each, in their order.
    ///
    /// # Errors
    /// If the device cannot, or takes one command at a time only.
    pub async fn burst(&self, extents: Vec<Extent>) -> Result<Vec<Answer>, ExtractError> {
        self.asked(Ask::Burst(extents)).await
    }

    /// Writes `sectors` from `lbn` on as they are.
    ///
    /// # Errors
    /// If the device cannot, or may not be written.
    pub async fn rewrite(&self, lbn: u64, sectors: u64) -> Result<Answer, ExtractError> {
        self.ask(Ask::Rewrite(Extent::new(lbn, sectors))).await
    }

    /// Where `lbn` lies.
    ///
    /// # Errors
    /// If the device does not say.
    pub async fn translate(&self, lbn: u64) -> Result<Place, ExtractError> {
        Ok(self.ask(Ask::Translate(Lbn(lbn))).await?.place)
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// If the device has failed.
    pub async fn idle(&self, span: Duration) -> Result<(), ExtractError> {
        self.ask(Ask::Idle(span)).await.map(|_| ())
    }

    /// Says how far it is.
    pub fn progress(&self, stage: &'static str, done: u64, of: u64) {
        self.desk.borrow_mut().progress = Progress { stage, done, of };
    }

    /// What it has cost so far.
    pub fn effort(&self) -> Effort {
        self.desk.borrow().effort
    }

    async fn ask(&self, ask: Ask) -> Result<Answer, ExtractError> {
        Ok(self.asked(ask).await?.pop().unwrap_or_default())
    }

    async fn asked(&self, ask: Ask) -> Result<Vec<Answer>, ExtractError> {
        self.desk.borrow_mut().ask = Some(ask);
        poll_fn(|_| match self.desk.borrow_mut().answers.take() {
            Some(answers) => Poll::Ready(answers),
            None => Poll::Pending,
        })
        .await
    }
}

/// One extraction.
///
/// - **Events in**: [`answer`](Extraction::answer), after each ask.
/// - **Effects out**: [`step`](Extraction::step).
/// - **Getters**: [`effort`](Extraction::effort), [`progress`](Extraction::progress).
pub struct Extraction<T> {
    future: Pin<Box<dyn Future<Output = Result<T, ExtractError>>>>,
    desk: Rc<RefCell<Desk>>,
}

impl<T> Extraction<T> {
    /// The extraction by `algorithm` of a device of `capacity`.
    pub fn new<F>(capacity: Sectors, algorithm: impl FnOnce(Probe) -> F) -> Extraction<T>
    where
        F: Future<Output = Result<T, ExtractError>> + 'static,
    {
        let desk = Rc::new(RefCell::new(Desk::default()));
        let probe = Probe {
            desk: Rc::clone(&desk),
            capacity,
        };
        Extraction {
            future: Box::pin(algorithm(probe)),
            desk,
        }
    }

    /// What is wanted next. Answer it before the next call.
    pub fn step(&mut self) -> Step<T> {
        match self
            .future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(result) => Step::Done(result),
            Poll::Pending => {
                let ask = self.desk.borrow_mut().ask.take();
                ask.map_or_else(
                    || {
                        Step::Done(Err(ExtractError::cannot_tell(
                            "anything",
                            "the last ask has no answer",
                        )))
                    },
                    Step::Ask,
                )
            }
        }
    }

    /// What came of the last ask: one answer, or one for each read of a burst.
    pub fn answer(&mut self, ask: &Ask, answers: Result<Vec<Answer>, ExtractError>) {
        let mut desk = self.desk.borrow_mut();
        match ask {
            Ask::Read(_) => desk.effort.reads += 1,
            Ask::Burst(extents) => desk.effort.reads += extents.len() as u64,
            Ask::Rewrite(_) => desk.effort.writes += 1,
            Ask::Translate(_) => desk.effort.translations += 1,
            Ask::Idle(_) => {}
        }
        for answer in answers.iter().flatten() {
            let began = *desk.began.get_or_insert(answer.issued);
            let until = answer.completed.saturating_since(began).as_nanos();
            desk.effort.time_ns = desk.effort.time_ns.max(until);
        }
        desk.answers = Some(answers);
    }

    /// What it has cost so far.
    pub fn effort(&self) -> Effort {
        self.desk.borrow().effort
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.desk.borrow().progress
    }
}

/// Something that is extracted from.
pub trait Device {
    /// Addresses `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// Reads `extent`, with nothing else outstanding, and says when.
    ///
    /// # Errors
    /// If it cannot.
    fn read(&mut self, extent: Extent) -> Result<Answer, ExtractError>;

    /// Issues all of `extents` at once, and says when each came back, in their
    /// order.
    ///
    /// # Errors
    /// If one fails. Unless implemented, only one can be outstanding.
    fn burst(&mut self, extents: &[Extent]) -> Result<Vec<Answer>, ExtractError> {
        let saw = format!(
            "{} reads at once were wanted, and this device is given one at a time",
            extents.len()
        );
        Err(ExtractError::cannot_tell("the depth of the queue", saw))
    }

    /// Writes what stands at `extent` there again, with nothing else outstanding.
    ///
    /// # Errors
    /// If it cannot. Unless implemented, nothing is ever written.
    fn rewrite(&mut self, extent: Extent) -> Result<Answer, ExtractError> {
        Err(ExtractError::Device {
            extent,
            reason: "it was not opened for writing".into(),
        })
    }

    /// Where `lbn` lies.
    ///
    /// # Errors
    /// If it does not say; unless implemented, it never does.
    fn translate(&mut self, lbn: Lbn) -> Result<Answer, ExtractError> {
        Err(ExtractError::Translation {
            lbn,
            reason: "it has no such command".into(),
        })
    }

    /// Lets time pass.
    fn idle(&mut self, span: Duration) -> Answer;
}

/// Drives an extraction of `device` to its end, and tells `watch` how far it is
/// after each answer.
///
/// # Errors
/// As the extraction's.
pub fn run<T>(
    device: &mut dyn Device,
    mut extraction: Extraction<T>,
    watch: &mut dyn FnMut(Progress, Effort),
) -> Result<(T, Effort), ExtractError> {
    loop {
        match extraction.step() {
            Step::Done(result) => return result.map(|result| (result, extraction.effort())),
            Step::Ask(ask) => {
                let one = |answer: Answer| vec![answer];
                let answers = match &ask {
                    Ask::Read(extent) => device.read(*extent).map(one),
                    Ask::Burst(extents) => device.burst(extents),
                    Ask::Rewrite(extent) => device.rewrite(*extent).map(one),
                    Ask::Translate(lbn) => device.translate(*lbn).map(one),
                    Ask::Idle(span) => Ok(one(device.idle(*span))),
                };
                extraction.answer(&ask, answers);
                watch(extraction.progress(), extraction.effort());
            }
        }
    }
}
