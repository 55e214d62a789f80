//! An elevator written in Python, for experiments. Each choice calls the interpreter.
//!
//! After an exception the run is about to end. Until then requests go in order of arrival, without
//! Python.

use crate::failed::Failed;
use crate::given::Whole;
use fullstroke_contract::ConfigError;
use fullstroke_host::block::{JoinKind, Queued, Requests};
use fullstroke_host::elevator::fifos::{RequestFifo, Fifos};
use fullstroke_host::elevator::{Context, Elevator, Trial};
use fullstroke_units::Time;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;

/// Properties of the place of an elevator.
#[pyclass(frozen, get_all, name = "Site")]
pub(crate) struct PySite {
    queue_depth: u32,
    nr_requests: u32,
    capacity: u64,
    drive: bool,
}

/// Snapshot of a waiting request. A merge creates a new object.
#[pyclass(frozen, get_all, name = "Request")]
pub(crate) struct PyRequest {
    slot: u32,
    start: u64,
    sectors: u64,
    operation: &'static str,
    process: u32,
    synchronous: bool,
    queued: u64,
}

impl PyRequest {
    fn new(slot: u32, request: &Queued) -> PyRequest {
        PyRequest {
            slot,
            start: request.extent.start.0,
            sectors: request.extent.sectors.0,
            operation: request.operation.name(),
            process: request.process,
            synchronous: request.synchronous,
            queued: request.queued.as_nanos(),
        }
    }
}

#[pymethods]
impl PyRequest {
    #[getter]
    fn end(&self) -> u64 {
        self.start + self.sectors
    }

    fn __repr__(&self) -> String {
        format!(
            "Request({} {}+{})",
            self.operation, self.start, self.sectors
        )
    }
}

/// State of the device below.
#[pyclass(frozen, get_all, name = "Device")]
pub(crate) struct PyDevice {
    issued: u32,
    queue_depth: u32,
    queue_length: u32,
}

/// Returns a builder that creates an object of `class` for each elevator of the stack.
pub(crate) fn trial(class: Py<PyAny>, name: String, failed: Failed) -> Trial {
    Trial::new(name, move |site| {
        let site = PySite {
            queue_depth: site.queue_depth,
            nr_requests: site.nr_requests,
            capacity: site.capacity.0,
            drive: site.drive,
        };
        let made = Python::attach(|py| class.bind(py).call1((site,)).and_then(Calls::of));
        match made {
            Ok(calls) => Ok(Box::new(Tried::new(calls, failed.clone())) as Box<dyn Elevator>),
            Err(error) => {
                let message = error.to_string();
                failed.keep(error);
                Err(ConfigError::new("elevator", message))
            }
        }
    })
}

/// Methods of the Python object. Optional ones may be absent.
struct Calls {
    choose: Py<PyAny>,
    arrived: Option<Py<PyAny>>,
    completed: Option<Py<PyAny>>,
    next_wake: Option<Py<PyAny>>,
    may_join: Option<Py<PyAny>>,
}

impl Calls {
    fn of(object: Bound<'_, PyAny>) -> PyResult<Calls> {
        let method = |name: &str| {
            object
                .getattr_opt(name)
                .map(|found| found.map(Bound::unbind))
        };
        Ok(Calls {
            choose: object.getattr("choose")?.unbind(),
            arrived: method("arrived")?,
            completed: method("completed")?,
            next_wake: method("next_wake")?,
            may_join: method("may_join")?,
        })
    }
}

struct Tried {
    calls: Calls,
    /// First exception. After it no method is called.
    failed: Failed,
    waiting: RequestFifo,
    links: Fifos,
    /// Python objects of the waiting requests, by slot.
    shown: Vec<Option<Py<PyRequest>>>,
    wake: Time,
}

impl Tried {
    fn new(calls: Calls, failed: Failed) -> Tried {
        let (waiting, links) = (RequestFifo::default(), Fifos::default());
        Tried {
            calls,
            failed,
            waiting,
            links,
            shown: Vec::new(),
            wake: Time::NEVER,
        }
    }

    fn attempt<R>(
        &mut self,
        call: impl FnOnce(&mut Tried, Python<'_>) -> PyResult<R>,
    ) -> Option<R> {
        let failed = self.failed.clone();
        failed.attempt(|py| call(self, py))
    }

    fn show(&mut self, slot: u32, request: &Queued) {
        self.attempt(|tried, py| {
            let at = slot as usize;
            tried
                .shown
                .resize_with(tried.shown.len().max(at + 1), || None);
            tried.shown[at] = Some(Py::new(py, PyRequest::new(slot, request))?);
            Ok(())
        });
    }

    /// Asks the object for a choice: a waiting request, or `None` for a later choice.
    fn choose(
        &mut self,
        py: Python<'_>,
        now: Time,
        context: &Context<'_>,
    ) -> PyResult<Option<u32>> {
        let slots = self.links.iter(&self.waiting);
        let waiting = PyList::new(
            py,
            slots.filter_map(|slot| self.shown[slot as usize].as_ref()),
        )?;
        let device = PyDevice {
            issued: context.issued,
            queue_depth: context.queue_depth,
            queue_length: context.device.queue_length,
        };
        let chosen = self
            .calls
            .choose
            .bind(py)
            .call1((now.as_nanos(), waiting, device))?;
        if chosen.is_none() {
            self.wake = self.next_wake(py)?;
            return if context.issued > 0 || (self.wake > now && self.wake < Time::NEVER) {
                Ok(None)
            } else {
                Err(PyValueError::new_err(format!(
                    "choose({now:?}) gave None while the device has nothing to do, and next_wake() names no later \
                     instant: nobody would ask again"
                )))
            };
        }
        let chosen = chosen.cast::<PyRequest>()?;
        let slot = chosen.get().slot;
        match self.shown.get(slot as usize).and_then(Option::as_ref) {
            Some(shown) if shown.is(chosen) => Ok(Some(slot)),
            _ => Err(PyValueError::new_err(format!(
                "choose() gave {}, which does not wait; expected one of `waiting`, or None",
                chosen.repr()?
            ))),
        }
    }

    fn next_wake(&self, py: Python<'_>) -> PyResult<Time> {
        let Some(next_wake) = &self.calls.next_wake else {
            return Ok(Time::NEVER);
        };
        let at: Option<Whole> = next_wake.bind(py).call0()?.extract()?;
        at.map_or(Ok(Time::NEVER), |at| {
            at.instant("next_wake()").map(Time::from_nanos)
        })
    }

    fn forget(&mut self, slot: u32) {
        self.links.remove(&mut self.waiting, slot);
        if let Some(shown) = self.shown.get_mut(slot as usize) {
            *shown = None;
        }
    }
}

impl Elevator for Tried {
    /// Allows every merge unless `may_join(kept, other, how)` returns False.
    fn may_join(&self, _: u32, kept: &Queued, other: &Queued, join: JoinKind) -> bool {
        let Some(may_join) = self
            .calls
            .may_join
            .as_ref()
            .filter(|_| !self.failed.is_kept())
        else {
            return true;
        };
        let how = match join {
            JoinKind::Back => "back",
            JoinKind::Front => "front",
            JoinKind::Coalesce => "coalesce",
        };
        let slot = u32::MAX;
        let answer = Python::attach(|py| {
            let (kept, other) = (PyRequest::new(slot, kept), PyRequest::new(slot, other));
            may_join.bind(py).call1((kept, other, how))?.extract()
        });
        answer.unwrap_or_else(|error| {
            self.failed.keep(error);
            true
        })
    }

    fn add(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.links.push_back(&mut self.waiting, slot);
        self.show(slot, &requests[slot]);
        self.attempt(|tried, py| match &tried.calls.arrived {
            Some(arrived) => arrived
                .bind(py)
                .call1((now.as_nanos(), tried.shown[slot as usize].as_ref()))
                .map(drop),
            None => Ok(()),
        });
    }

    fn grown(&mut self, _: Time, slot: u32, _: JoinKind, _: &Queued, _: &Queued, requests: &Requests) {
        self.show(slot, &requests[slot]);
    }

    fn coalesced(&mut self, _: Time, kept: u32, gone: u32, requests: &Requests) {
        self.forget(gone);
        self.show(kept, &requests[kept]);
    }

    fn dispatch(&mut self, now: Time, context: &Context<'_>) -> Option<u32> {
        self.wake = Time::NEVER;
        let chosen = self.attempt(|tried, py| tried.choose(py, now, context));
        let slot = match chosen {
            Some(chosen) => chosen?,
            None => self.waiting.front()?,
        };
        self.forget(slot);
        Some(slot)
    }

    fn completed(&mut self, now: Time, slot: u32, requests: &Requests) {
        self.attempt(|tried, py| match &tried.calls.completed {
            Some(completed) => completed
                .bind(py)
                .call1((now.as_nanos(), PyRequest::new(slot, &requests[slot])))
                .map(drop),
            None => Ok(()),
        });
    }

    fn next_wake(&self) -> Time {
        self.wake
    }

    /// `next_wake()` may name an instant years away, so the object is not asked every 3 ms.
    fn is_asked_again(&self) -> bool {
        false
    }

    fn may_starve(&self) -> bool {
        true
    }
}
