//! An extraction as a state machine without I/O.
//!
//! The extraction asks for its next step ([`ExtractionStep::Ask`]), receives the result
//! ([`Extraction::answer`]), and repeats this until the end. The driver has the device and the
//! clock. The algorithms are `async` functions, which the compiler turns into state machines.
//! Nothing else of asynchronous Rust is used.

use crate::extract::ExtractError;
use fullstroke_contract::Extent;
use fullstroke_units::{Cylinder, Duration, Lbn, Sectors, Time};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The next request of an extraction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExtractionRequest {
    /// Read this extent, with nothing else outstanding.
    Read(Extent),
    /// Issue all of these reads at once, and answer each.
    Burst(Vec<Extent>),
    /// Write the present data again, with nothing else outstanding.
    Rewrite(Extent),
    /// Translate an address into a place.
    Translate(Lbn),
    /// Wait for this time.
    Idle(Duration),
}

/// Place of an address, as the device reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PhysicalPlace {
    /// Cylinder of the address.
    pub cylinder: Cylinder,
    /// Surface of the address.
    pub surface: u32,
    /// Sector number on the track.
    pub sector: u32,
}

/// The result of an [`ExtractionRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RequestAnswer {
    /// Time of issue.
    pub issued: Time,
    /// Time of completion.
    pub completed: Time,
    /// Place of the address, for a translation.
    pub place: PhysicalPlace,
}

impl RequestAnswer {
    /// Returns the time from issue to completion, in ns.
    pub fn response_ns(&self) -> u64 {
        self.completed.saturating_since(self.issued).as_nanos()
    }
}

/// Cost of an extraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Effort {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes. They repeat the data on the medium.
    pub writes: u64,
    /// Number of address translations.
    pub translations: u64,
    /// Time from the first issue to the last completion, in ns of the device's clock.
    pub time_ns: u64,
}

/// Progress of an extraction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtractionProgress {
    /// Name of the current stage.
    pub stage: &'static str,
    /// Number of finished addresses, or of other units of the stage.
    pub done: u64,
    /// Total number of units.
    pub of: u64,
}

/// The next action of an extraction's driver.
#[derive(Debug)]
pub enum ExtractionStep<T> {
    /// Carry out this request and call [`answer`](Extraction::answer).
    Ask(ExtractionRequest),
    /// The extraction has ended.
    Done(Result<T, ExtractError>),
}

/// Data exchanged between algorithm and driver.
#[derive(Debug, Default)]
struct Mailbox {
    ask: Option<ExtractionRequest>,
    answers: Option<Result<Vec<RequestAnswer>, ExtractError>>,
    effort: Effort,
    began: Option<Time>,
    progress: ExtractionProgress,
}

/// The algorithm's side.
#[derive(Clone, Debug)]
pub struct ExtractionAlgorithm {
    desk: Rc<RefCell<Mailbox>>,
    capacity: Sectors,
}

impl ExtractionAlgorithm {
    /// Returns the capacity: the addresses are `0..capacity`.
    pub fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Reads `sectors` from `lbn` on.
    ///
    /// # Errors
    /// If the device fails.
    pub async fn read(&self, lbn: u64, sectors: u64) -> Result<RequestAnswer, ExtractError> {
        self.ask(ExtractionRequest::Read(Extent::new(lbn, sectors)))
            .await
    }

    /// Reads all of `extents` at once. Returns one answer for each, in the order of `extents`.
    ///
    /// # Errors
    /// If the device fails, or takes only one command at a time.
    pub async fn burst(&self, extents: Vec<Extent>) -> Result<Vec<RequestAnswer>, ExtractError> {
        self.asked(ExtractionRequest::Burst(extents)).await
    }

    /// Writes the present data of `sectors` from `lbn` on again.
    ///
    /// # Errors
    /// If the device fails, or may not be written.
    pub async fn rewrite(&self, lbn: u64, sectors: u64) -> Result<RequestAnswer, ExtractError> {
        self.ask(ExtractionRequest::Rewrite(Extent::new(lbn, sectors)))
            .await
    }

    /// Returns the place of `lbn`.
    ///
    /// # Errors
    /// If the device does not translate.
    pub async fn translate(&self, lbn: u64) -> Result<PhysicalPlace, ExtractError> {
        Ok(self
            .ask(ExtractionRequest::Translate(Lbn(lbn)))
            .await?
            .place)
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// If the device has failed.
    pub async fn idle(&self, span: Duration) -> Result<(), ExtractError> {
        self.ask(ExtractionRequest::Idle(span)).await.map(|_| ())
    }

    /// Reports the progress.
    pub fn progress(&self, stage: &'static str, done: u64, of: u64) {
        self.desk.borrow_mut().progress = ExtractionProgress { stage, done, of };
    }

    /// Returns the cost so far.
    pub fn effort(&self) -> Effort {
        self.desk.borrow().effort
    }

    async fn ask(&self, ask: ExtractionRequest) -> Result<RequestAnswer, ExtractError> {
        Ok(self.asked(ask).await?.pop().unwrap_or_default())
    }

    async fn asked(&self, ask: ExtractionRequest) -> Result<Vec<RequestAnswer>, ExtractError> {
        // The borrow ends before the await, because the driver borrows the mailbox while the
        // algorithm waits.
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
    desk: Rc<RefCell<Mailbox>>,
}

impl<T> Extraction<T> {
    /// Creates the extraction by `algorithm` of a device of `capacity`.
    pub fn new<F>(
        capacity: Sectors,
        algorithm: impl FnOnce(ExtractionAlgorithm) -> F,
    ) -> Extraction<T>
    where
        F: Future<Output = Result<T, ExtractError>> + 'static,
    {
        let desk = Rc::new(RefCell::new(Mailbox::default()));
        let probe = ExtractionAlgorithm {
            desk: Rc::clone(&desk),
            capacity,
        };
        Extraction {
            future: Box::pin(algorithm(probe)),
            desk,
        }
    }

    /// Returns the next step. The caller must answer an ask before the next call.
    pub fn step(&mut self) -> ExtractionStep<T> {
        match self
            .future
            .as_mut()
            // Nobody wakes the future: the driver polls again after each answer.
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(result) => ExtractionStep::Done(result),
            Poll::Pending => {
                let ask = self.desk.borrow_mut().ask.take();
                // An algorithm that waits without an ask would wait for ever.
                ask.map_or_else(
                    || {
                        ExtractionStep::Done(Err(ExtractError::cannot_tell(
                            "anything",
                            "the last ask has no answer",
                        )))
                    },
                    ExtractionStep::Ask,
                )
            }
        }
    }

    /// Hands in the result of the last ask: one answer, or one for each read of a burst.
    pub fn answer(
        &mut self,
        ask: &ExtractionRequest,
        answers: Result<Vec<RequestAnswer>, ExtractError>,
    ) {
        let mut desk = self.desk.borrow_mut();
        match ask {
            ExtractionRequest::Read(_) => desk.effort.reads += 1,
            ExtractionRequest::Burst(extents) => desk.effort.reads += extents.len() as u64,
            ExtractionRequest::Rewrite(_) => desk.effort.writes += 1,
            ExtractionRequest::Translate(_) => desk.effort.translations += 1,
            ExtractionRequest::Idle(_) => {}
        }
        for answer in answers.iter().flatten() {
            let began = *desk.began.get_or_insert(answer.issued);
            let until = answer.completed.saturating_since(began).as_nanos();
            // The latest completion: the answers of a burst come in any order.
            desk.effort.time_ns = desk.effort.time_ns.max(until);
        }
        desk.answers = Some(answers);
    }

    /// Returns the cost so far.
    pub fn effort(&self) -> Effort {
        self.desk.borrow().effort
    }

    /// Returns the progress.
    pub fn progress(&self) -> ExtractionProgress {
        self.desk.borrow().progress
    }
}

/// A device to extract from.
pub trait ExtractedDevice {
    /// Returns the capacity: the addresses are `0..capacity`.
    fn capacity(&self) -> Sectors;

    /// Reads `extent`, with nothing else outstanding. Returns the times of issue and completion.
    ///
    /// # Errors
    /// If the device fails.
    fn read(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError>;

    /// Issues all of `extents` at once. Returns the times of each, in the order of `extents`.
    ///
    /// # Errors
    /// If a read fails. The default implementation allows only one outstanding read.
    fn burst(&mut self, extents: &[Extent]) -> Result<Vec<RequestAnswer>, ExtractError> {
        let saw = format!(
            "{} reads at once were wanted, and this device is given one at a time",
            extents.len()
        );
        Err(ExtractError::cannot_tell("the depth of the queue", saw))
    }

    /// Writes the present data of `extent` again, with nothing else outstanding.
    ///
    /// # Errors
    /// If the device fails. The default implementation never writes.
    fn rewrite(&mut self, extent: Extent) -> Result<RequestAnswer, ExtractError> {
        Err(ExtractError::Device {
            extent,
            reason: "it was not opened for writing".into(),
        })
    }

    /// Returns the place of `lbn`.
    ///
    /// # Errors
    /// If the device does not translate. The default implementation never translates.
    fn translate(&mut self, lbn: Lbn) -> Result<RequestAnswer, ExtractError> {
        Err(ExtractError::Translation {
            lbn,
            reason: "it has no such command".into(),
        })
    }

    /// Lets time pass.
    fn idle(&mut self, span: Duration) -> RequestAnswer;
}

/// Drives an extraction of `device` to its end, and reports the progress to `watch` after each
/// answer.
///
/// # Errors
/// As the extraction's.
pub fn run<T>(
    device: &mut dyn ExtractedDevice,
    mut extraction: Extraction<T>,
    watch: &mut dyn FnMut(ExtractionProgress, Effort),
) -> Result<(T, Effort), ExtractError> {
    loop {
        match extraction.step() {
            ExtractionStep::Done(result) => {
                return result.map(|result| (result, extraction.effort()));
            }
            ExtractionStep::Ask(ask) => {
                let one = |answer: RequestAnswer| vec![answer];
                let answers = match &ask {
                    ExtractionRequest::Read(extent) => device.read(*extent).map(one),
                    ExtractionRequest::Burst(extents) => device.burst(extents),
                    ExtractionRequest::Rewrite(extent) => device.rewrite(*extent).map(one),
                    ExtractionRequest::Translate(lbn) => device.translate(*lbn).map(one),
                    ExtractionRequest::Idle(span) => Ok(one(device.idle(*span))),
                };
                extraction.answer(&ask, answers);
                watch(extraction.progress(), extraction.effort());
            }
        }
    }
}
