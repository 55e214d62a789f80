//! A checked study file.

use crate::axes::{Matrix, Pattern, label};
use crate::claims::Claim;
use crate::config::{FigureConfig, SettingConfig, StudyConfig};
use crate::expression::{
    Bindings, Data, Definition, Estimate, Evaluator, Expression, ExpressionError, Problem, Value,
    check_names, parse, parse_signature,
};
use crate::metrics::standard;
use crate::{StudyError, claims};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{nearest, read};
use fullstroke_stack::{Document, Overrides, StackError};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A study whose file was read and checked: every name in it is known, and every
/// point that an expression names is one of the study.
#[derive(Clone, Debug)]
pub struct Study {
    /// `<folder>/<file without ending>`.
    pub id: String,
    /// The file.
    pub file: PathBuf,
    /// What it says.
    pub config: StudyConfig,
    /// Axes and points.
    pub matrix: Matrix,
    /// What expressions may name: all metrics, and the paths of the file.
    pub metrics: Vec<String>,
    /// The metric that `mean(...)` means, by its index.
    pub first_metric: usize,
    /// Names for expressions.
    pub definitions: Vec<Definition>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// What each figure draws.
    pub figures: Vec<Expression>,
    /// Keys that only some points set.
    settings: Settings,
    /// Those of each variant.
    changed: Vec<Settings>,
    /// Sixteen hexadecimal digits of the file and its stack files.
    pub digest: String,
}

/// What is set at which points.
type Settings = Vec<(Pattern, Vec<String>)>;

/// One thing changed in a study; nothing for the study itself.
pub type Variant = Option<usize>;

impl Study {
    /// Reads and checks a study file, which is called `id`.
    ///
    /// # Errors
    /// Names file, line, key and column of what cannot be.
    pub fn load(id: &str, file: &Path) -> Result<Study, StackError> {
        let document = Document::read(file)?;
        let at = |error: ConfigError| document.error(error);
        let config: StudyConfig = read(document.values()).map_err(at)?;
        if config.replications == 0 {
            return Err(at(ConfigError::new("replications", "found 0; expected at least 1")));
        }
        let matrix = Matrix::new(&config).map_err(at)?;
        let mut metrics = standard();
        metrics.extend(
            config.metrics.iter().filter(|path| !metrics.contains(path)).cloned().collect::<Vec<_>>(),
        );
        let first = config.metrics.first().map_or("response_ms.mean", String::as_str);
        let first_metric = metrics.iter().position(|metric| metric == first).unwrap_or(0);
        let mut study = Study {
            id: id.to_owned(),
            file: file.to_owned(),
            digest: String::new(),
            definitions: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
            settings: Vec::new(),
            changed: Vec::new(),
            config,
            matrix,
            metrics,
            first_metric,
        };
        study.define().map_err(at)?;
        study.read_claims().map_err(at)?;
        study.settings = study.settings(&study.config.settings).map_err(at)?;
        study.read_variants().map_err(at)?;
        study.check_figures().map_err(at)?;
        study.digest = study.compute_digest()?;
        Ok(study)
    }

    fn define(&mut self) -> Result<(), ConfigError> {
        for (signature, text) in &self.config.define {
            let fail =
                |error: ExpressionError| ConfigError::new(format!("define.{signature}"), error.to_string());
            let (name, parameters) = parse_signature(signature).map_err(fail)?;
            let body = parse(text).map_err(fail)?;
            self.definitions.push(Definition { name, parameters, body });
        }
        for (index, definition) in self.definitions.iter().enumerate() {
            if self.definitions[..index].iter().any(|other| other.name == definition.name) {
                let message = format!("`{}` is defined twice", definition.name);
                return Err(ConfigError::new("define", message));
            }
            // A definition without parameters may use the variables of where it stands: none.
            check_names(
                &definition.body,
                &definition.parameters,
                &self.matrix,
                &self.metrics,
                &self.definitions,
            )
            .map_err(|error| ConfigError::new("define", format!("`{}`: {error}", definition.name)))?;
        }
        Ok(())
    }

    fn read_claims(&mut self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for (index, config) in self.config.claims.iter().enumerate() {
            let below = |error: ConfigError| error.below(&format!("claims[{index}]"));
            if !seen.insert(&config.id) {
                let message = format!("there are two claims `{}`", config.id);
                return Err(below(ConfigError::new("id", message)));
            }
            let claim = Claim::new(config).map_err(below)?;
            for (key, expression) in claim.expressions() {
                let fail = |error: ExpressionError| below(ConfigError::new(key, error.to_string()));
                let variables =
                    if key == "obtained" { Vec::new() } else { vec![claims::OBTAINED.to_owned()] };
                check_names(expression, &variables, &self.matrix, &self.metrics, &self.definitions)
                    .map_err(fail)?;
                let any = Value::Number(Estimate::exact(1.0));
                let bindings = variables.into_iter().map(|name| (name, any.clone())).collect();
                self.try_out(expression, &bindings).map_err(fail)?;
            }
            self.claims.push(claim);
        }
        Ok(())
    }

    fn settings(&self, of: &[SettingConfig]) -> Result<Settings, ConfigError> {
        let read = |(index, setting): (usize, &SettingConfig)| {
            let points = self.matrix.pattern(&setting.at);
            let points = points.map_err(|error| error.below("at").below(&format!("settings[{index}]")))?;
            Ok((points, setting.set.clone()))
        };
        of.iter().enumerate().map(read).collect()
    }

    fn read_variants(&mut self) -> Result<(), ConfigError> {
        for (index, variant) in self.config.variants.iter().enumerate() {
            let path = format!("variants[{index}]");
            self.changed.push(self.settings(&variant.settings).map_err(|error| error.below(&path))?);
            let known: Vec<&str> = self.config.claims.iter().map(|claim| claim.id.as_str()).collect();
            if let Some(id) = variant.claims.iter().find(|id| !known.contains(&id.as_str())) {
                let near = nearest(id, &known);
                let message = format!("there is no claim `{id}`{near}; known: {}", known.join(", "));
                return Err(ConfigError::new(format!("{path}.claims"), message));
            }
        }
        Ok(())
    }

    fn check_figures(&mut self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for (index, figure) in self.config.figures.iter().enumerate() {
            let fail =
                |key: &str, message: String| ConfigError::new(format!("figures[{index}].{key}"), message);
            let plain = figure.id.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
            if figure.id.is_empty() || !plain || !seen.insert(&figure.id) {
                let message =
                    format!("found `{}`; expected letters, digits and `-`, once in the study", figure.id);
                return Err(fail("id", message));
            }
            let x = self.matrix.axis(&figure.x).map_err(|message| fail("x", message))?;
            let mut series = None;
            if let Some(name) = &figure.series {
                series = Some(self.matrix.domain(name).map_err(|message| fail("series", message))?);
            }
            for published in &figure.published {
                for (value, _) in &published.points {
                    self.matrix.axes[x].index(&label(value)).map_err(|message| fail("published", message))?;
                }
                if let (Some(value), Some((axis, _))) = (&published.series, &series) {
                    self.matrix.axes[*axis]
                        .index(&label(value))
                        .map_err(|message| fail("published", message))?;
                }
            }
            let expression = parse(&figure.y).map_err(|error| fail("y", error.to_string()))?;
            let bindings = self.figure_bindings(figure, 0, series.map(|(axis, values)| (axis, values[0])));
            let variables: Vec<String> = bindings.iter().map(|(name, _)| name.clone()).collect();
            check_names(&expression, &variables, &self.matrix, &self.metrics, &self.definitions)
                .and_then(|()| self.try_out(&expression, &bindings))
                .map_err(|error| fail("y", error.to_string()))?;
            self.figures.push(expression);
        }
        Ok(())
    }

    /// The variables that the expression of a figure may use, at one of its points.
    pub(crate) fn figure_bindings(
        &self,
        figure: &FigureConfig,
        x: usize,
        series: Option<(usize, usize)>,
    ) -> Bindings {
        let along = self.matrix.axis(&figure.x).unwrap_or(0);
        let mut bindings = vec![(figure.x.clone(), Value::Label(along, x))];
        if let Some((axis, value)) = series {
            bindings.push((self.matrix.axes[axis].name.clone(), Value::Label(axis, value)));
        }
        bindings
    }

    /// Evaluates every branch of `expression` as if all points had results, to
    /// find points that are none before anything is run.
    fn try_out(&self, expression: &Expression, bindings: &Bindings) -> Result<(), ExpressionError> {
        let evaluator = Evaluator { thorough: true, ..self.evaluator(&AsIf) };
        match evaluator.evaluate(expression, bindings) {
            Err(Problem::Wrong(error)) => Err(error),
            Ok(_) | Err(Problem::Missing) => Ok(()),
        }
    }

    /// Evaluates expressions over `data`.
    pub fn evaluator<'a>(&'a self, data: &'a dyn Data) -> Evaluator<'a> {
        Evaluator {
            matrix: &self.matrix,
            definitions: &self.definitions,
            metrics: &self.metrics,
            first_metric: self.first_metric,
            data,
            thorough: false,
        }
    }

    /// The stack of a point, and what is set in it.
    pub(crate) fn stack(&self, point: usize, variant: Variant) -> Option<(PathBuf, Vec<String>)> {
        let values = &self.matrix.points()[point];
        let chosen: Vec<_> =
            self.matrix.axes.iter().zip(values).map(|(axis, &value)| &axis.values[value]).collect();
        let stack =
            chosen.iter().rev().find_map(|value| value.stack.as_ref()).or(self.config.stack.as_ref())?;
        let mut set = self.config.set.clone();
        set.extend(chosen.iter().flat_map(|value| value.set.iter().cloned()));
        set.extend(at(&self.settings, values));
        if let Some(variant) = variant {
            set.extend(self.config.variants[variant].set.iter().cloned());
            set.extend(at(&self.changed[variant], values));
        }
        Some((self.folder().join(stack), set))
    }

    /// The study itself, and every variant of it.
    pub fn variants(&self) -> impl Iterator<Item = Variant> {
        [None].into_iter().chain((0..self.config.variants.len()).map(Some))
    }

    /// The seeds of each point.
    pub fn seeds(&self) -> impl Iterator<Item = u64> + use<> {
        let first = self.config.seed;
        (0..u64::from(self.config.replications)).map(move |number| first.wrapping_add(number))
    }

    /// The folder of its file.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// The metrics that are no standard ones.
    pub fn paths(&self) -> Vec<String> {
        self.metrics[standard().len()..].to_vec()
    }

    fn compute_digest(&self) -> Result<String, StackError> {
        let stacks =
            self.matrix.axes.iter().flat_map(|axis| &axis.values).filter_map(|value| value.stack.as_ref());
        let stacks: BTreeSet<&PathBuf> = stacks.chain(&self.config.stack).collect();
        let mut hash = Sha256::new();
        for path in
            [self.file.clone()].into_iter().chain(stacks.iter().map(|stack| self.folder().join(stack)))
        {
            let text = std::fs::read(&path).map_err(|error| {
                StackError::whole(path.display().to_string(), format!("cannot be read: {error}"))
            })?;
            hash.update(text.len().to_le_bytes());
            hash.update(text);
        }
        Ok(hex(&hash.finalize()))
    }
}

/// What is set at a point.
fn at<'a>(settings: &'a Settings, point: &'a [usize]) -> impl Iterator<Item = String> + 'a {
    let here = settings.iter().filter(|(points, _)| points.matches(point));
    here.flat_map(|(_, set)| set.iter().cloned())
}

/// The first sixteen hexadecimal digits.
pub(crate) fn hex(hash: &[u8]) -> String {
    hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What the stack loader is told.
pub(crate) fn overrides(set: &[String], seed: Option<u64>) -> Overrides {
    Overrides { set: set.to_vec(), seed, ..Overrides::default() }
}

/// Results of points that were not run.
struct AsIf;

impl Data for AsIf {
    fn value(&self, _: usize, _: usize) -> Option<Estimate> {
        Some(Estimate::exact(1.0))
    }
}

/// The studies of a folder whose ids are chosen; all if none is. An id is
/// `<folder>/<file without ending>`; a beginning of it stands for all that begin so.
///
/// # Errors
/// A name that fits no study, or a study that cannot be used.
pub fn find(folder: &Path, chosen: &[String]) -> Result<Vec<Study>, StudyError> {
    let all = files(folder)?;
    let mut studies = Vec::new();
    for name in chosen {
        if !all.iter().any(|(id, _)| id.starts_with(name.as_str())) {
            let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
            return Err(StudyError::Unknown {
                name: name.clone(),
                folder: folder.to_owned(),
                nearest: nearest(name, &ids),
                known: if ids.is_empty() { "none".to_owned() } else { ids.join(", ") },
            });
        }
    }
    for (id, file) in &all {
        let exact = chosen.contains(id);
        // The whole id of one study may be the beginning of another's.
        let begins =
            |name: &String| !all.iter().any(|(other, _)| other == name) && id.starts_with(name.as_str());
        if exact || chosen.is_empty() || chosen.iter().any(begins) {
            studies.push(Study::load(id, file)?);
        }
    }
    Ok(studies)
}

/// The study files below `folder`, by id.
fn files(folder: &Path) -> Result<Vec<(String, PathBuf)>, StudyError> {
    let entries = |path: &Path| -> Result<Vec<PathBuf>, StudyError> {
        let failed = |error| StudyError::host("list the folder", path, error);
        std::fs::read_dir(path)
            .map_err(failed)?
            .map(|entry| entry.map(|entry| entry.path()).map_err(failed))
            .collect()
    };
    let mut files = Vec::new();
    for author in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        for file in entries(&author)? {
            if let (Some(stem), true) = (file.file_stem(), file.extension().is_some_and(|end| end == "toml"))
            {
                let author = author.file_name().unwrap_or_default().to_string_lossy();
                files.push((format!("{author}/{}", stem.to_string_lossy()), file.clone()));
            }
        }
    }
    files.sort();
    Ok(files)
}
