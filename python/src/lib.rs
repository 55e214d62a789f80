//! fullstroke from Python, as documented in `python/fullstroke/__init__.pyi`.
//!
//! This module makes no decisions. Stacks are read, run and ranked by the code of the commands
//! `run`, `compare`, `tune`, `energy` and `predict`, and the results have the same values.

mod columns;
mod elevator;
mod failed;
mod given;
mod opportunity;
mod told_apart;

use failed::Failed;
use fullstroke_lab::{
    ComparedStack, EnergyQuestion, LabError, PowerError, Ranking, Recipe, SearchEnd, TuneSearch, Vary,
    candidates,
    RunResult, recipes, run_all, sample_long_work, sample_long_work_of_each,
};
use fullstroke_measure::{Metric, Stop};
use fullstroke_predict::PredictQuestion;
use fullstroke_stack::Overrides;
use fullstroke_study::{Digests, StudyError};
use fullstroke_trace::{TraceOptions, TraceReader};
use fullstroke_units::Duration;
use given::{Given, Whole};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pythonize::pythonize;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

/// Upper limits of seeds per stack, runs at a time, combinations and parts. Larger numbers are
/// probably errors.
const SEEDS_MAX: u64 = 10_000;
const JOBS_MAX: u64 = 1024;
const SAMPLE_MAX: u64 = 1_000_000;
const BATCHES_MAX: u64 = 10_000;

/// Converts an error to a `ValueError` with the command's message.
fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Converts a value through its JSON form. NaN becomes `None`.
fn python<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_value(value).map_err(refused)?;
    pythonize(py, &json).map_err(refused)
}

/// A stack file with overridden keys, perhaps with policies written in Python.
#[pyclass(frozen, from_py_object, module = "fullstroke")]
#[derive(Clone)]
struct Stack {
    #[pyo3(get)]
    path: PathBuf,
    #[pyo3(get)]
    keys: Vec<String>,
    elevator: Option<Arc<Py<PyAny>>>,
    opportunities: Vec<Arc<Py<PyAny>>>,
}

/// Returns the key under which a sweep stores the results of `stack`.
fn key(stack: &fullstroke_stack::Stack, known: &Digests) -> PyResult<(String, u64)> {
    Ok((known.of(stack).map_err(refused)?, stack.seed().0))
}

/// Returns the name of a policy's class.
fn name_of(class: &Py<PyAny>) -> String {
    let name = |py: Python<'_>| {
        class
            .bind(py)
            .getattr("__name__")
            .and_then(|name| name.extract::<String>())
    };
    Python::attach(name).unwrap_or_else(|_| "one of Python's".into())
}

fn again(class: &Py<PyAny>) -> Py<PyAny> {
    Python::attach(|py| class.clone_ref(py))
}

impl Stack {
    fn overrides(&self) -> Overrides {
        Overrides {
            set: self.keys.clone(),
            ..Overrides::default()
        }
    }

    fn recipe(&self) -> PyResult<Recipe> {
        let found = recipes(std::slice::from_ref(&self.path), &self.overrides(), &[]);
        found
            .into_iter()
            .next()
            .ok_or_else(|| refused(format!("{}: no stack", self.path.display())))
    }

    fn key(&self, known: &Digests) -> PyResult<(String, u64)> {
        if self.has_policies() {
            return Err(refused(
                "a policy of Python's has no digest under which a sweep could keep results",
            ));
        }
        key(&self.recipe()?.candidate().map_err(refused)?.stack, known)
    }

    fn has_policies(&self) -> bool {
        self.elevator.is_some() || !self.opportunities.is_empty()
    }

    /// Returns the stack if its policies can be built.
    fn checked(self) -> PyResult<Stack> {
        let failed = Failed::default();
        let built = self.candidate(&self.recipe()?, &failed);
        failed.raise()?;
        built.map_err(refused)?;
        Ok(self)
    }

    /// Returns the last value of a key.
    fn value(&self, key: &str) -> Option<&str> {
        self.assignments()
            .rev()
            .find(|(known, _)| *known == key)
            .map(|(_, value)| value)
    }

    fn assignments(&self) -> impl DoubleEndedIterator<Item = (&str, &str)> {
        let set = self
            .keys
            .iter()
            .filter_map(|assignment| assignment.split_once('='));
        set.map(|(key, value)| (key.trim(), value.trim()))
    }

    /// Builds the candidate of a recipe. `failed` stops its runs.
    fn candidate(&self, recipe: &Recipe, failed: &Failed) -> Result<ComparedStack, LabError> {
        let mut candidate = recipe.candidate()?;
        candidate.stop = failed.stop().clone();
        candidate.name = self.name_from(&candidate.name);
        if let Some(class) = &self.elevator {
            let trial = elevator::trial(again(class), name_of(class), failed.clone());
            candidate.stack = candidate.stack.with_elevator(trial)?;
        }
        for class in &self.opportunities {
            let trial = opportunity::trial(again(class), name_of(class), failed.clone());
            candidate.stack = candidate.stack.with_opportunity(trial)?;
        }
        Ok(candidate)
    }

    /// Appends the names of the policies to `name`.
    fn name_from(&self, name: &str) -> String {
        let policies: Vec<String> = self
            .elevator
            .iter()
            .chain(&self.opportunities)
            .map(|class| name_of(class))
            .collect();
        match policies.as_slice() {
            [] => name.to_owned(),
            _ => format!("{name} with {}", policies.join(" and ")),
        }
    }
}

#[pymethods]
impl Stack {
    #[new]
    #[pyo3(signature = (path, *keys))]
    fn new(path: PathBuf, keys: Vec<String>) -> PyResult<Stack> {
        let overrides = Overrides {
            set: keys.clone(),
            ..Overrides::default()
        };
        candidates(std::slice::from_ref(&path), &overrides, &[]).map_err(refused)?;
        Ok(Stack {
            path,
            keys,
            elevator: None,
            opportunities: Vec::new(),
        })
    }

    #[pyo3(signature = (*keys))]
    fn set(&self, keys: Vec<String>) -> PyResult<Stack> {
        let Stack { path, keys, .. } =
            Stack::new(self.path.clone(), [self.keys.clone(), keys].concat())?;
        Ok(Stack {
            path,
            keys,
            ..self.clone()
        })
    }

    fn with_elevator(&self, class: Py<PyAny>) -> PyResult<Stack> {
        Stack {
            elevator: Some(Arc::new(class)),
            ..self.clone()
        }
        .checked()
    }

    fn with_opportunity(&self, class: Py<PyAny>) -> PyResult<Stack> {
        let mut stack = self.clone();
        stack.opportunities.push(Arc::new(class));
        stack.checked()
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self
            .candidate(&self.recipe()?, &Failed::default())
            .map_err(refused)?
            .name)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        if self.has_policies() {
            return Err(PyTypeError::new_err(
                "a stack with a policy of Python's stays in its process",
            ));
        }
        let path = self
            .path
            .to_str()
            .ok_or_else(|| refused("the path is no Unicode"))?;
        let again = py.import("fullstroke._fullstroke")?.getattr("_unchecked")?;
        Ok((again, (path, self.keys.clone()).into_pyobject(py)?))
    }

    fn __repr__(&self) -> String {
        let keys: String = self.keys.iter().map(|key| format!(", {key:?}")).collect();
        format!("Stack({:?}{keys})", self.path)
    }
}

/// Runs a stack. Returns the value of `run --json`.
#[pyfunction]
fn run(py: Python<'_>, stack: Given) -> PyResult<Bound<'_, PyAny>> {
    let (stack, failed) = (stack.stack()?, Failed::default());
    let (recipe, threads) = (stack.recipe()?, threads(None)?);
    let work = || {
        let mut ran = fullstroke_lab::run(&stack.candidate(&recipe, &failed)?, None, &|_, _| {})?;
        if !stack.has_policies() {
            // The windows of a rebuild or scrub are built from the file, which does not have the
            // policies.
            sample_long_work(&recipe, &mut ran, threads, failed.stop())?;
        }
        Ok::<RunResult, LabError>(ran)
    };
    let ran = failed.wait_for(py, work)?;
    python(py, &ran.map_err(refused)?.measured.report)
}

/// Runs and ranks stacks. Returns the value of `compare --json`.
#[pyfunction]
#[pyo3(
    signature = (stacks, *, by = None, seeds = Whole::from(1), jobs = None),
    text_signature = "(stacks, *, by=None, seeds=1, jobs=None)"
)]
fn compare<'py>(
    py: Python<'py>,
    stacks: Vec<Given>,
    by: Option<&str>,
    seeds: Whole,
    jobs: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    if stacks.is_empty() {
        return Err(refused("found no stacks; expected at least one"));
    }
    let (seeds, jobs) = (seeds.count("seeds", 1..=SEEDS_MAX)?, threads(jobs)?);
    let by = by.map(Metric::parse).transpose().map_err(refused)?;
    let stacks: Vec<Stack> = stacks
        .into_iter()
        .map(Given::stack)
        .collect::<PyResult<_>>()?;
    let failed = Failed::default();
    let ran = failed.wait_for(py, || {
        let candidates = told_apart::candidates(&stacks, seeds, &failed)?;
        let (candidates, recipes): (Vec<ComparedStack>, Vec<Option<Recipe>>) =
            candidates.into_iter().unzip();
        let mut ran = run_all(&candidates, jobs, &|_| {})?;
        for (recipe, ran) in recipes.iter().zip(ran.chunks_mut(1)) {
            sample_long_work_of_each(recipe, ran, by, jobs, failed.stop())?;
        }
        Ok::<Vec<RunResult>, LabError>(ran)
    })?;
    python(
        py,
        &Ranking::by(&ran.map_err(refused)?, seeds, by).map_err(refused)?,
    )
}

/// Refuses Python policies for a command that reads the stack file again, because they are not in
/// the file.
fn without_policies(stack: Given, what: &str) -> PyResult<Stack> {
    let stack = stack.stack()?;
    if stack.has_policies() {
        return Err(refused(format!(
            "a policy of Python's is run and compared; {what} is the command's"
        )));
    }
    Ok(stack)
}

/// Calculates whether spin-down pays. Returns the value of `energy --json`.
#[pyfunction]
#[pyo3(
    signature = (stack, *, after = Vec::new(), trace = None, assume_power = false, jobs = None),
    text_signature = "(stack, *, after=[], trace=None, assume_power=False, jobs=None)"
)]
fn energy<'py>(
    py: Python<'py>,
    stack: Given,
    after: Vec<String>,
    trace: Option<PathBuf>,
    assume_power: bool,
    jobs: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let (stack, jobs) = (without_policies(stack, "energy")?, threads(jobs)?);
    let after = after
        .iter()
        .map(|time| time.parse::<Duration>().map_err(refused));
    let question = EnergyQuestion {
        overrides: Overrides {
            trace,
            ..stack.overrides()
        },
        after: after.collect::<PyResult<_>>()?,
        assume_power,
        price: None,
        stack: stack.path,
    };
    let failed = Failed::default();
    let answer = failed.wait_for(py, || -> Result<_, PowerError> {
        Ok(question.runs()?.run(jobs, failed.stop(), &|_| {})?)
    })?;
    python(py, &answer.map_err(refused)?)
}

/// Predicts a load by formulas. Returns the value of `predict --json`.
#[pyfunction]
#[pyo3(
    signature = (stack, *, trace = None, assume_power = false, simulate = true),
    text_signature = "(stack, *, trace=None, assume_power=False, simulate=True)"
)]
fn predict<'py>(
    py: Python<'py>,
    stack: Given,
    trace: Option<PathBuf>,
    assume_power: bool,
    simulate: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let stack = without_policies(stack, "the prediction")?;
    let overrides = Overrides {
        trace,
        ..stack.overrides()
    };
    let question = PredictQuestion {
        assume_power,
        simulate,
        ..PredictQuestion::new(stack.path, overrides)
    };
    let failed = Failed::default();
    let answer = failed.wait_for(py, || question.answer(failed.stop()))?;
    python(py, &answer.map_err(refused)?)
}

/// Returns the number of threads. Without `jobs` that is the number of cores.
fn threads(jobs: Option<Whole>) -> PyResult<usize> {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(|| Ok(cores()), |jobs| jobs.count("jobs", 1..=JOBS_MAX))
}

/// Returns the number of runs at a time.
#[pyfunction]
fn _threads(jobs: Option<Whole>) -> PyResult<usize> {
    threads(jobs)
}

/// Searches the best values of keys. Returns the value of `tune --json`.
#[pyfunction]
#[pyo3(
    signature = (
        stack, vary, *, by = "response_ms.mean", sample = Whole::from(64), batches = Whole::from(64),
        first = Whole::from(8), confidence = 0.95, jobs = None
    ),
    text_signature = "(stack, vary, *, by='response_ms.mean', sample=64, batches=64, first=8, confidence=0.95, jobs=None)"
)]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
fn tune<'py>(
    py: Python<'py>,
    stack: Given,
    vary: Vec<(String, Vec<String>)>,
    by: &str,
    sample: Whole,
    batches: Whole,
    first: Whole,
    confidence: f64,
    jobs: Option<Whole>,
) -> PyResult<Bound<'py, PyAny>> {
    let stack = without_policies(stack, "the race")?;
    let sample = sample.count("sample", 1..=SAMPLE_MAX)?;
    let batches = batches.count("batches", 4..=BATCHES_MAX)?;
    let first = first.count("first", 2..=BATCHES_MAX)?;
    if vary.is_empty() || !(confidence > 0.0 && confidence < 1.0) {
        return Err(refused(
            "found no keys, or a confidence that is not between 0 and 1",
        ));
    }
    let varied = vary
        .into_iter()
        .map(|(key, values)| format!("{key}={}", values.join(",")).parse());
    let varied: Vec<Vary> = varied.collect::<Result<_, LabError>>().map_err(refused)?;
    let by = Metric::parse(by).map_err(refused)?;
    let search = TuneSearch {
        by,
        sample,
        batches,
        first,
        confidence,
        jobs: threads(jobs)?,
        end: SearchEnd::default(),
    };
    let recipe = stack.recipe()?;
    let failed = Failed::default();
    let tuned = failed.wait_for(py, || {
        search.run_with_whole_load(failed.stop(), &recipe, &varied, &|_, _| {})
    })?;
    python(py, &tuned.map_err(refused)?)
}

/// Builds a stack from another process without a check, because that process has checked it. An
/// error on this machine appears at the first use.
#[pyfunction]
fn _unchecked(path: PathBuf, keys: Vec<String>) -> Stack {
    Stack {
        path,
        keys,
        elevator: None,
        opportunities: Vec::new(),
    }
}

/// Returns the keys of a sweep's results: a digest of stack, drives and trace, and the seed.
#[pyfunction]
fn _keys(py: Python<'_>, stacks: Vec<Stack>) -> PyResult<Vec<(String, u64)>> {
    let known = Digests::default();
    let key = |stack: &Stack| {
        py.check_signals()?;
        py.detach(|| stack.key(&known))
    };
    stacks.iter().map(key).collect()
}

/// Stops the remaining runs of a sweep.
#[pyclass(frozen, name = "_Stop")]
#[derive(Default)]
struct PyStop(Stop);

#[pymethods]
impl PyStop {
    #[new]
    fn new() -> PyStop {
        PyStop::default()
    }

    fn set(&self) {
        self.0.set();
    }
}

/// Digests of traces, shared by the runs of a batch, so that each trace is read once.
#[pyclass(frozen, name = "_Known")]
#[derive(Default)]
struct Known(Digests);

#[pymethods]
impl Known {
    #[new]
    fn new() -> Known {
        Known::default()
    }
}

/// Returns the numbers of a run by metric, with the half widths of their intervals if there are
/// any. Raises KeyboardInterrupt if the run was stopped.
#[pyfunction]
#[pyo3(signature = (stack, digest, seed, known, stop = None))]
fn _measure(
    py: Python<'_>,
    stack: Stack,
    digest: &str,
    seed: u64,
    known: &Known,
    stop: Option<&PyStop>,
) -> PyResult<Vec<(String, f64)>> {
    let stop = stop.map_or_else(Stop::default, |stop| stop.0.clone());
    let interrupted = || PyKeyboardInterrupt::new_err(());
    if stop.is_set() {
        return Err(interrupted());
    }
    let recipe = stack.recipe()?;
    let mut candidate = recipe.candidate().map_err(refused)?;
    if key(&candidate.stack, &known.0)? != (digest.to_owned(), seed) {
        return Err(refused(StudyError::Another {
            name: candidate.name,
        }));
    }
    candidate.stop = stop.clone();
    let ran = py.detach(|| {
        let mut ran = fullstroke_lab::run(&candidate, None, &|_, _| {})?;
        if !stack.has_policies() {
            // The windows of a rebuild are few, because the runs of a sweep are many. Each run of a
            // sweep has a thread of its own, and the windows share the thread.
            let runs = std::slice::from_mut(&mut ran);
            sample_long_work_of_each([&recipe], runs, None::<Metric>, 1, &stop)?;
        }
        Ok::<RunResult, LabError>(ran)
    });
    let ran = ran.map_err(|error| {
        if stop.is_set() {
            interrupted()
        } else {
            refused(error)
        }
    })?;
    let kept = fullstroke_study::keep(&ran, &[]).map_err(refused)?;
    let numbers = kept.into_iter().flat_map(|number| {
        let width = number
            .half_width
            .map(|width| (format!("{}.ci95_half_width", number.metric), width));
        let value = (!number.value.is_nan()).then_some((number.metric, number.value));
        [value, width].into_iter().flatten()
    });
    Ok(numbers.collect())
}

/// Reads a trace of any format into columns.
#[pyfunction]
fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<columns::Trace> {
    py.detach(|| {
        let mut reader = TraceReader::open(&path, &TraceOptions::default()).map_err(refused)?;
        columns::Trace::read(&mut reader)
    })
}

#[pymodule]
fn _fullstroke(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("_build", fullstroke_study::VERSION)?;
    module.add(
        "_metrics",
        Metric::all().iter().map(Metric::name).collect::<Vec<_>>(),
    )?;
    module.add_function(wrap_pyfunction!(_unchecked, module)?)?;
    module.add_function(wrap_pyfunction!(_keys, module)?)?;
    module.add_function(wrap_pyfunction!(_threads, module)?)?;
    module.add_class::<Known>()?;
    module.add_class::<PyStop>()?;
    module.add_function(wrap_pyfunction!(_measure, module)?)?;
    module.add_class::<Stack>()?;
    module.add_class::<columns::Trace>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_class::<elevator::PySite>()?;
    module.add_class::<elevator::PyRequest>()?;
    module.add_class::<elevator::PyDevice>()?;
    module.add_class::<opportunity::PyStorage>()?;
    module.add_class::<opportunity::PySeen>()?;
    module.add_class::<opportunity::PyAccess>()?;
    module.add_class::<opportunity::PyPull>()?;
    module.add_class::<opportunity::PyPush>()?;
    module.add_class::<opportunity::PyOwn>()?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(tune, module)?)?;
    module.add_function(wrap_pyfunction!(energy, module)?)?;
    module.add_function(wrap_pyfunction!(predict, module)?)?;
    module.add_function(wrap_pyfunction!(read_trace, module)?)
}
