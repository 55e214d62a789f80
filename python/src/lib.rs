//! fullstroke from Python: what `python/fullstroke/__init__.pyi` documents.
//!
//! Nothing is decided here: stacks are read, run and ranked by the same code as by
//! the commands `run` and `compare`, and their results are the same values.

mod columns;

use fullstroke_lab::{LabError, Ranking, Recipe, candidates, recipes, run_all};
use fullstroke_measure::Metric;
use fullstroke_stack::Overrides;
use fullstroke_trace::{Options, TraceReader};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pythonize::pythonize;
use std::fmt::Display;
use std::path::PathBuf;

/// Bad input is a `ValueError` with the words of the command.
fn refused(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// The value as JSON has it: what is no number there is `None`.
fn python<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_value(value).map_err(refused)?;
    pythonize(py, &json).map_err(refused)
}

/// A stack file with keys set in it.
#[pyclass(frozen, from_py_object)]
#[derive(Clone)]
struct Stack {
    #[pyo3(get)]
    path: PathBuf,
    #[pyo3(get)]
    keys: Vec<String>,
}

impl Stack {
    fn recipe(&self) -> PyResult<Recipe> {
        let overrides = Overrides { set: self.keys.clone(), ..Overrides::default() };
        let found = recipes(std::slice::from_ref(&self.path), &overrides, &[]);
        found.into_iter().next().ok_or_else(|| refused(format!("{}: no stack", self.path.display())))
    }
}

#[pymethods]
impl Stack {
    #[new]
    #[pyo3(signature = (path, *keys))]
    fn new(path: PathBuf, keys: Vec<String>) -> PyResult<Stack> {
        let overrides = Overrides { set: keys.clone(), ..Overrides::default() };
        candidates(std::slice::from_ref(&path), &overrides, &[]).map_err(refused)?;
        Ok(Stack { path, keys })
    }

    #[pyo3(signature = (*keys))]
    fn set(&self, keys: Vec<String>) -> PyResult<Stack> {
        Stack::new(self.path.clone(), [self.keys.clone(), keys].concat())
    }

    #[getter]
    fn name(&self) -> PyResult<String> {
        Ok(self.recipe()?.candidate().map_err(refused)?.name)
    }

    fn __repr__(&self) -> String {
        let keys: String = self.keys.iter().map(|key| format!(", {key:?}")).collect();
        format!("Stack({:?}{keys})", self.path)
    }
}

/// Stacks are given as such, or as the files' paths.
#[derive(FromPyObject)]
enum Given {
    Stack(Stack),
    Path(PathBuf),
}

impl Given {
    fn stack(self) -> PyResult<Stack> {
        match self {
            Given::Stack(stack) => Ok(stack),
            Given::Path(path) => Stack::new(path, Vec::new()),
        }
    }
}

/// Runs a stack; what `run --json` prints.
#[pyfunction]
fn run(py: Python<'_>, stack: Given) -> PyResult<Bound<'_, PyAny>> {
    let recipe = stack.stack()?.recipe()?;
    let ran = py
        .detach(|| fullstroke_lab::run(&recipe.candidate()?, None, &|_, _| {}))
        .map_err(|error: LabError| refused(error))?;
    python(py, &ran.measured.report)
}

/// Runs stacks and ranks them; what `compare --json` prints.
#[pyfunction]
#[pyo3(signature = (stacks, *, by = None, seeds = 1, jobs = None))]
fn compare<'py>(
    py: Python<'py>,
    stacks: Vec<Given>,
    by: Option<&str>,
    seeds: usize,
    jobs: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    if stacks.is_empty() || seeds == 0 {
        return Err(refused("found no stacks or no seeds; expected at least one of each"));
    }
    let by = by.map(Metric::parse).transpose().map_err(refused)?;
    let recipes: Vec<Recipe> =
        stacks.into_iter().map(|stack| stack.stack()?.recipe()).collect::<PyResult<_>>()?;
    let jobs = jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let ran = py.detach(|| -> Result<_, LabError> {
        let each: Vec<Vec<Recipe>> =
            recipes.iter().map(|recipe| recipe.with_seeds(seeds)).collect::<Result<_, _>>()?;
        let candidates: Vec<_> = each.concat().iter().map(Recipe::candidate).collect::<Result<_, _>>()?;
        run_all(&candidates, jobs.max(1), &|_| {})
    });
    python(py, &Ranking::by(&ran.map_err(refused)?, seeds, by).map_err(refused)?)
}

/// Reads a trace of any format as columns.
#[pyfunction]
fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<columns::Trace> {
    py.detach(|| {
        let mut reader = TraceReader::open(&path, &Options::default()).map_err(refused)?;
        columns::Trace::read(&mut reader)
    })
}

#[pymodule]
fn _fullstroke(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<Stack>()?;
    module.add_class::<columns::Trace>()?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(compare, module)?)?;
    module.add_function(wrap_pyfunction!(read_trace, module)?)
}
