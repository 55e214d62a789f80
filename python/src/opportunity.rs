//! An opportunity written in Python, for experiments. Each arrival and each completion of a request
//! calls the interpreter once or twice. After an exception no request is held and no signal is
//! sent.

use crate::failed::Failed;
use crate::given::{SECTORS_MAX, Whole};
use fullstroke_contract::{ConfigError, Extent, Gauge, Operation, Request, Signal, RequestStatus};
use fullstroke_opportunity::{Opportunity, OwnRequest, OpportunityView, OpportunitySite, Trial};
use fullstroke_units::{Lbn, Sectors, Time};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::collections::VecDeque;

/// Maximum number of an opportunity's own requests that the array has not started.
const ASKED_MAX: usize = 1 << 16;

/// Properties of the array of an opportunity.
#[pyclass(frozen, name = "Storage")]
pub(crate) struct PyStorage(OpportunitySite);

#[pymethods]
impl PyStorage {
    /// Bytes of the largest page cache of a host above the array.
    #[getter]
    fn page_cache(&self) -> u64 {
        self.0.page_cache.0
    }

    #[getter]
    fn hosts(&self) -> usize {
        self.0.hosts
    }

    #[getter]
    fn stop(&self) -> Option<u64> {
        self.0.stop.map(|stop| stop.as_nanos())
    }

    /// Returns the first sector and the length of the track.
    fn track(&self, sector: Whole) -> PyResult<(u64, u64)> {
        let sector = sector.within("sector", 0..=SECTORS_MAX)?;
        let tracks = self
            .0
            .tracks
            .as_ref()
            .map_err(|why| PyValueError::new_err(why.to_string()))?;
        let track = tracks.track_at(Lbn(sector)).ok_or_else(|| {
            PyValueError::new_err(format!(
                "found sector {sector}; expected less than {}",
                tracks.capacity().0
            ))
        })?;
        Ok((track.start.0, track.sectors.0))
    }

    /// Returns the seek and rotation time in ns before a transfer, if the arm leaves now.
    #[pyo3(signature = (seen, sector, *, write = false))]
    fn positioning(&self, seen: &PySeen, sector: Whole, write: bool) -> PyResult<u64> {
        let sector = sector.within("sector", 0..=SECTORS_MAX)?;
        let drive = self
            .0
            .drive
            .as_ref()
            .map_err(|why| PyValueError::new_err(why.to_string()))?;
        Ok(drive
            .positioning(Time::from_nanos(seen.now), &seen.arm, Lbn(sector), write)
            .as_nanos())
    }
}

/// State of the array.
#[pyclass(frozen, name = "Seen")]
pub(crate) struct PySeen {
    #[pyo3(get)]
    now: u64,
    #[pyo3(get)]
    inside: u32,
    #[pyo3(get)]
    standing: u32,
    #[pyo3(get)]
    cleaning: u32,
    arm: Gauge,
}

impl From<OpportunityView> for PySeen {
    fn from(seen: OpportunityView) -> PySeen {
        let OpportunityView {
            now,
            inside,
            arm,
            standing,
            cleaning,
        } = seen;
        PySeen {
            now: now.as_nanos(),
            inside,
            standing,
            cleaning,
            arm,
        }
    }
}

#[pymethods]
impl PySeen {
    #[getter]
    fn head(&self) -> u32 {
        self.arm.head.0
    }

    #[getter]
    fn queue_length(&self) -> u32 {
        self.arm.queue_length
    }
}

/// A request before or after its service by the array.
#[pyclass(frozen, get_all, name = "Access")]
pub(crate) struct PyAccess {
    operation: &'static str,
    start: u64,
    sectors: u64,
    process: u32,
    synchronous: bool,
}

impl From<&Request> for PyAccess {
    fn from(request: &Request) -> PyAccess {
        PyAccess {
            operation: request.operation.name(),
            start: request.extent.start.0,
            sectors: request.extent.sectors.0,
            process: request.hints.process,
            synchronous: request.hints.synchronous,
        }
    }
}

#[pymethods]
impl PyAccess {
    #[getter]
    fn end(&self) -> u64 {
        self.start + self.sectors
    }

    fn __repr__(&self) -> String {
        format!("Access({} {}+{})", self.operation, self.start, self.sectors)
    }
}

fn some(sectors: Whole) -> PyResult<Sectors> {
    sectors.within("sectors", 1..=SECTORS_MAX).map(Sectors)
}

fn extent(start: Whole, sectors: Sectors) -> PyResult<Extent> {
    Ok(Extent {
        start: start.within("start", 0..=SECTORS_MAX).map(Lbn)?,
        sectors,
    })
}

/// PULL: asks hosts for dirty data.
#[pyclass(frozen, name = "Pull")]
pub(crate) struct PyPull(Signal);

#[pymethods]
impl PyPull {
    #[new]
    #[pyo3(signature = (sectors, start = None))]
    fn new(sectors: Whole, start: Option<Whole>) -> PyResult<PyPull> {
        let sectors = some(sectors)?;
        let of = start.map(|start| extent(start, sectors)).transpose()?;
        Ok(PyPull(Signal::Pull {
            extent: of,
            sectors,
        }))
    }
}

/// PUSH: offers stored data to hosts.
#[pyclass(frozen, name = "Push")]
pub(crate) struct PyPush(Signal);

#[pymethods]
impl PyPush {
    #[new]
    fn new(start: Whole, sectors: Whole) -> PyResult<PyPush> {
        Ok(PyPush(Signal::Push(extent(start, some(sectors)?)?)))
    }
}

/// A request of the opportunity itself to the array.
#[pyclass(frozen, name = "Own")]
pub(crate) struct PyOwn(OwnRequest);

#[pymethods]
impl PyOwn {
    #[new]
    #[pyo3(signature = (operation, start, sectors, *, verify = false, members = false))]
    fn new(
        operation: &str,
        start: Whole,
        sectors: Whole,
        verify: bool,
        members: bool,
    ) -> PyResult<PyOwn> {
        let operation = match operation {
            "read" => Operation::Read,
            "write" if !verify && !members => Operation::Write,
            _ => {
                let found = match (verify, members) {
                    (true, _) => format!("{operation:?}, verified"),
                    (_, true) => format!("{operation:?} of members"),
                    _ => format!("{operation:?}"),
                };
                return Err(PyValueError::new_err(format!(
                    "found {found}; expected \"read\", or \"write\" of what was written there last"
                )));
            }
        };
        Ok(PyOwn(OwnRequest {
            operation,
            extent: extent(start, some(sectors)?)?,
            verify,
            members,
        }))
    }

    #[getter]
    fn operation(&self) -> &'static str {
        self.0.operation.name()
    }

    #[getter]
    fn start(&self) -> u64 {
        self.0.extent.start.0
    }

    #[getter]
    fn sectors(&self) -> u64 {
        self.0.extent.sectors.0
    }

    #[getter]
    fn verify(&self) -> bool {
        self.0.verify
    }

    #[getter]
    fn members(&self) -> bool {
        self.0.members
    }
}

/// Returns a builder that creates an object of `class` for each array of the stack.
pub(crate) fn trial(class: Py<PyAny>, name: String, failed: Failed) -> Trial {
    Trial::new(name, move |site| {
        let made = Python::attach(|py| {
            let object = class.bind(py).call1((PyStorage(site.clone()),))?;
            Tried::new(object, site, failed.clone())
        });
        match made {
            Ok(tried) => Ok(Box::new(tried) as Box<dyn Opportunity>),
            Err(error) => {
                let message = error.to_string();
                failed.keep(error);
                Err(ConfigError::new("opportunities", message))
            }
        }
    })
}

/// Methods of the Python object. Optional ones may be absent.
struct Calls {
    look: Py<PyAny>,
    next_look: Py<PyAny>,
    arrived: Option<Py<PyAny>>,
    released: Option<Py<PyAny>>,
    left: Option<Py<PyAny>>,
    holding: Option<Py<PyAny>>,
    served: Option<Py<PyAny>>,
}

struct Tried {
    calls: Calls,
    failed: Failed,
    /// `unverifiable` is the reason why no write can be verified. `closed` is the reason why
    /// members cannot be read separately.
    unverifiable: Option<&'static str>,
    closed: Option<&'static str>,
    /// Last results of `next_look` and `holding`. They are stored, because the layer needs them at
    /// each event.
    next_look: Time,
    holding: bool,
    /// Number of requests held by this opportunity.
    held: u64,
    /// Own requests that the array has not taken yet.
    own: VecDeque<OwnRequest>,
}

impl Tried {
    fn new(object: Bound<'_, PyAny>, site: &OpportunitySite, failed: Failed) -> PyResult<Tried> {
        let method = |name: &str| {
            object
                .getattr_opt(name)
                .map(|found| found.map(Bound::unbind))
        };
        let calls = Calls {
            look: object.getattr("look")?.unbind(),
            next_look: object.getattr("next_look")?.unbind(),
            arrived: method("arrived")?,
            released: method("released")?,
            left: method("left")?,
            holding: method("holding")?,
            served: method("served")?,
        };
        let (next_look, own) = (Time::NEVER, VecDeque::new());
        let (unverifiable, closed) = (site.unverifiable, site.members.err());
        let mut tried = Tried {
            calls,
            failed,
            unverifiable,
            closed,
            next_look,
            holding: false,
            held: 0,
            own,
        };
        tried.ask(object.py(), None)?;
        Ok(tried)
    }

    /// Calls a method and then [`ask`](Tried::ask). After an exception nothing more is called.
    fn attempt<R>(
        &mut self,
        looked: Option<Time>,
        call: impl FnOnce(&mut Tried, Python<'_>) -> PyResult<R>,
    ) -> Option<R> {
        let failed = self.failed.clone();
        let called = failed.attempt(|py| {
            let answer = call(self, py)?;
            self.ask(py, looked)?;
            Ok(answer)
        });
        if called.is_none() {
            (self.next_look, self.holding) = (Time::NEVER, false);
            self.own.clear();
        }
        called
    }

    /// Asks for the next time to look, and whether requests are held.
    fn ask(&mut self, py: Python<'_>, looked: Option<Time>) -> PyResult<()> {
        let next: Option<Whole> = self.calls.next_look.bind(py).call0()?.extract()?;
        self.next_look = next.map_or(Ok(Time::NEVER), |next| {
            next.instant("next_look()").map(Time::from_nanos)
        })?;
        if let Some(now) = looked.filter(|&now| self.next_look <= now) {
            let next = self.next_look.as_nanos();
            return Err(PyValueError::new_err(format!(
                "next_look() gave {next} after it has looked at {}; expected a later instant, or None",
                now.as_nanos()
            )));
        }
        self.holding = match &self.calls.holding {
            Some(holding) if self.held > 0 => holding.bind(py).call0()?.extract()?,
            _ => false,
        };
        match self.holding && self.next_look == Time::NEVER {
            true => Err(PyValueError::new_err(
                "holding() is true and next_look() None: what waits would wait for ever; expected an instant",
            )),
            false => Ok(()),
        }
    }

    fn say(&mut self, said: &Bound<'_, PyAny>, say: &mut dyn FnMut(Signal)) -> PyResult<()> {
        if let Ok(pull) = said.cast::<PyPull>() {
            say(pull.get().0);
        } else if let Ok(push) = said.cast::<PyPush>() {
            say(push.get().0);
        } else if let Ok(own) = said.cast::<PyOwn>() {
            let own = own.get().0;
            if let Some(why) = self.closed.filter(|_| own.members) {
                return Err(PyValueError::new_err(format!(
                    "members cannot be read: {why}"
                )));
            }
            if let Some(why) = self.unverifiable.filter(|_| own.verify && !own.members) {
                return Err(PyValueError::new_err(format!(
                    "nothing can be verified: {why}"
                )));
            }
            if self.own.len() >= ASKED_MAX {
                return Err(PyValueError::new_err(format!(
                    "look() has asked for {ASKED_MAX} requests that the drives have not begun; expected fewer: ask \
                     for more when served() says that earlier ones are done"
                )));
            }
            self.own.push_back(own);
        } else {
            let found = said.repr()?;
            return Err(PyTypeError::new_err(format!(
                "look() gave {found}; expected Pull, Push and Own"
            )));
        }
        Ok(())
    }
}

impl Opportunity for Tried {
    fn arrived(&mut self, seen: OpportunityView, request: &Request) -> bool {
        let waits = self.attempt(None, |tried, py| {
            let Some(arrived) = &tried.calls.arrived else {
                return Ok(false);
            };
            let answer = arrived
                .bind(py)
                .call1((PySeen::from(seen), PyAccess::from(request)))?;
            let waits = !answer.is_none() && answer.extract::<bool>()?;
            tried.held += u64::from(waits);
            Ok(waits)
        });
        waits.unwrap_or(false)
    }

    fn released(&mut self, request: &Request) {
        self.held = self.held.saturating_sub(1);
        self.attempt(None, |tried, py| match &tried.calls.released {
            Some(released) => released
                .bind(py)
                .call1((PyAccess::from(request),))
                .map(drop),
            None => Ok(()),
        });
    }

    fn left(&mut self, seen: OpportunityView, request: &Request, status: RequestStatus) {
        self.attempt(None, |tried, py| match &tried.calls.left {
            Some(left) => left
                .bind(py)
                .call1((PySeen::from(seen), PyAccess::from(request), name_of(status)))
                .map(drop),
            None => Ok(()),
        });
    }

    fn holding(&self) -> bool {
        self.holding
    }

    fn next_look(&self) -> Time {
        self.next_look
    }

    fn look(&mut self, seen: OpportunityView, say: &mut dyn FnMut(Signal)) {
        self.attempt(Some(seen.now), |tried, py| {
            let words = tried.calls.look.bind(py).call1((PySeen::from(seen),))?;
            if words.is_none() {
                return Ok(());
            }
            for said in words.try_iter()? {
                tried.say(&said?, say)?;
            }
            Ok(())
        });
    }

    fn next_request(&mut self, _: OpportunityView) -> Option<OwnRequest> {
        self.own.pop_front()
    }

    fn served(&mut self, seen: OpportunityView, own: &OwnRequest, status: RequestStatus) {
        self.attempt(None, |tried, py| match &tried.calls.served {
            Some(served) => served
                .bind(py)
                .call1((PySeen::from(seen), PyOwn(*own), name_of(status)))
                .map(drop),
            None => Ok(()),
        });
    }
}

fn name_of(status: RequestStatus) -> &'static str {
    match status {
        RequestStatus::Done => "done",
        RequestStatus::Differs => "differs",
        RequestStatus::Lost => "lost",
        RequestStatus::Refused => "refused",
        RequestStatus::OutOfRange => "out of range",
    }
}
