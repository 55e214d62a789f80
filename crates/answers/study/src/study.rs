//! A checked study file.

use crate::StudyError;
use crate::axes::{Matrix, label};
use crate::claims::{Claim, OBTAINED, RESTORED};
use crate::config::{FigureConfig, LINES_MAX, StudyConfig};
use crate::digests::hex;
use crate::expression::{
    Bindings, CONFIDENCE, Definition, Estimate, Evaluator, Expression, ExpressionError,
    ExpressionValue, Problem, ResultSource, check_names, parse, parse_signature,
};
use crate::metrics::standard;
use crate::text::Template;
use crate::variation::{Extent, Settings, StudyChoice, Variation, set_at, settings_of};
use fullstroke_contract::ConfigError;
use fullstroke_contract::registry::{nearest, read};
use fullstroke_stack::{Document, Overrides, StackError};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A parsed and checked study: every name is known, and every point that an expression names
/// belongs to the study.
#[derive(Clone, Debug)]
pub struct Study {
    /// `<folder>/<file without ending>`.
    pub id: String,
    /// The file.
    pub file: PathBuf,
    /// Contents of the file.
    pub config: StudyConfig,
    /// Axes and points.
    pub matrix: Matrix,
    /// Names for expressions: all metrics, and the paths of the file.
    pub metrics: Vec<String>,
    /// Index of the metric of `mean(...)`.
    pub first_metric: usize,
    /// Names for expressions.
    pub definitions: Vec<Definition>,
    /// The claims.
    pub claims: Vec<Claim>,
    /// Expression of each figure.
    pub figures: Vec<Expression>,
    /// Choices that the source leaves open.
    pub choices: Vec<StudyChoice>,
    /// Templates of the notes and of each figure's caption.
    pub(crate) notes: Option<Template>,
    pub(crate) captions: Vec<Option<Template>>,
    settings: StudySettings,
    /// Digest of the file and of the files that it names; sixteen hexadecimal digits.
    pub digest: String,
    /// Digest without the prose for readers.
    pub substance: String,
}

/// Keys for some points only.
#[derive(Clone, Debug, Default)]
struct StudySettings {
    /// Keys of the study.
    own: Settings,
    /// Keys of each variant.
    of_variants: Vec<Settings>,
}

/// Checks the number of seeds and the confidence of the intervals over seeds.
fn check_seeds(config: &StudyConfig) -> Result<(), ConfigError> {
    if config.replications == 0 {
        return Err(ConfigError::new(
            "replications",
            "found 0; expected at least 1",
        ));
    }
    // Below 0.5 an interval would leave out the value more often than not. 1 has an infinite
    // interval.
    if !(0.5..1.0).contains(&config.confidence) {
        let message = format!(
            "found {}; expected a part from 0.5 to below 1",
            config.confidence
        );
        return Err(ConfigError::new("confidence", message));
    }
    if config.replications == 1 && config.confidence != CONFIDENCE {
        let message = format!(
            "found {}; one seed has intervals within its run, of {CONFIDENCE}",
            config.confidence
        );
        return Err(ConfigError::new("confidence", message));
    }
    Ok(())
}

/// Reads a study file without a check of its expressions.
fn read_file(file: &Path) -> Result<(Document, StudyConfig, Matrix), StackError> {
    let document = Document::read(file)?;
    let at = |error: ConfigError| document.error(error);
    let config: StudyConfig = read(document.values()).map_err(at)?;
    check_seeds(&config).map_err(at)?;
    let matrix = Matrix::new(&config).map_err(at)?;
    Ok((document, config, matrix))
}

/// The summary of a study for a list.
#[derive(Debug, Serialize)]
pub struct Outline {
    /// Name of the study: its folder and file.
    pub id: String,
    /// Title.
    pub title: String,
    /// The source that the study reproduces.
    pub source: String,
    /// Number of points, over all variants.
    pub points: usize,
    /// Number of seeds for each point.
    pub replications: u32,
    /// Number of claims.
    pub claims: usize,
    /// True if the study takes seconds.
    pub short: bool,
}

impl Outline {
    fn read(id: &str, file: &Path) -> Result<Outline, StackError> {
        let (_, config, matrix) = read_file(file)?;
        Ok(Outline {
            id: id.to_owned(),
            points: matrix.points().len() * (1 + config.variants.len()),
            replications: config.replications,
            claims: config.claims.len(),
            short: config.short,
            title: config.title,
            source: config.source,
        })
    }
}

/// Returns the outlines of the chosen studies. Unlike [`find`], the function does not check
/// expressions, because the check takes most of the time.
///
/// # Errors
/// As [`find`], except for wrong expressions.
pub fn outlines(folder: &Path, chosen: &[String]) -> Result<Vec<Outline>, StudyError> {
    chosen_files(folder, chosen)?
        .iter()
        .map(|(id, file)| Ok(Outline::read(id, file)?))
        .collect()
}

impl Study {
    /// Reads and checks the study file of the study `id`.
    ///
    /// # Errors
    /// Names file, line, key and column of the mistake.
    pub fn load(id: &str, file: &Path) -> Result<Study, StackError> {
        let (document, config, matrix) = read_file(file)?;
        let at = |error: ConfigError| document.error(error);
        let mut metrics = standard();
        metrics.extend(
            config
                .metrics
                .iter()
                .filter(|path| !metrics.contains(path))
                .cloned()
                .collect::<Vec<_>>(),
        );
        let first = config
            .metrics
            .first()
            .map_or("response_ms.mean", String::as_str);
        // Always found: the metrics of the file were added above.
        let first_metric = metrics
            .iter()
            .position(|metric| metric == first)
            .unwrap_or(0);
        let mut study = Study {
            id: id.to_owned(),
            file: file.to_owned(),
            digest: String::new(),
            substance: String::new(),
            choices: Vec::new(),
            notes: None,
            captions: Vec::new(),
            definitions: Vec::new(),
            claims: Vec::new(),
            figures: Vec::new(),
            settings: StudySettings::default(),
            config,
            matrix,
            metrics,
            first_metric,
        };
        // The definitions come first, because claims and figures use them.
        study.define().map_err(at)?;
        study.read_claims().map_err(at)?;
        study.settings.own = settings_of(&study.config.settings, &study.matrix).map_err(at)?;
        // After the claims, because an explanation must name a variant.
        study.read_variants().map_err(at)?;
        let shared = study
            .config
            .choices
            .as_ref()
            .map(|file| study.folder().join(file));
        study.choices =
            StudyChoice::read(&study.config.free, shared.as_deref(), &study.matrix)?.map_err(at)?;
        study.check_figures().map_err(at)?;
        study.read_texts().map_err(at)?;
        // Last, because the digest covers the choices.
        (study.digest, study.substance) = study.compute_digests()?;
        Ok(study)
    }

    fn define(&mut self) -> Result<(), ConfigError> {
        for (signature, text) in &self.config.define {
            let fail = |error: ExpressionError| {
                ConfigError::new(format!("define.{signature}"), error.to_string())
            };
            let (name, parameters) = parse_signature(signature).map_err(fail)?;
            let body = parse(text).map_err(fail)?;
            self.definitions.push(Definition {
                name,
                parameters,
                body,
            });
        }
        for (index, definition) in self.definitions.iter().enumerate() {
            if self.definitions[..index]
                .iter()
                .any(|other| other.name == definition.name)
            {
                let message = format!("`{}` is defined twice", definition.name);
                return Err(ConfigError::new("define", message));
            }
            // A definition sees only its own parameters, not the variables at the place of its use.
            check_names(
                &definition.body,
                &definition.parameters,
                &self.matrix,
                &self.metrics,
                &self.definitions,
            )
            .map_err(|error| {
                ConfigError::new("define", format!("`{}`: {error}", definition.name))
            })?;
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
            let mut claim = Claim::new(config).map_err(below)?;
            for (key, expression) in claim.expressions() {
                let variables: &[&str] = match key {
                    "obtained" => &[],
                    "explained" => &[OBTAINED, RESTORED],
                    _ => &[OBTAINED],
                };
                self.check(expression, variables)
                    .map_err(|error| below(ConfigError::new(key, error.to_string())))?;
            }
            claim.touched = self.touched_by(&claim);
            self.claims.push(claim);
        }
        self.check_quotes()
    }

    /// Checks that a claim quotes its source, unless the claim is this project's own.
    fn check_quotes(&self) -> Result<(), ConfigError> {
        let claims = &self.config.claims;
        for (index, claim) in claims.iter().enumerate() {
            let fail = |key: &str, message: &str| {
                Err(ConfigError::new(format!("claims[{index}].{key}"), message))
            };
            match (&claim.quote, &claim.at) {
                (Some(_), _) if claim.ours => {
                    return fail("ours", "a claim with a quote is the source's");
                }
                (Some(_), None) => {
                    return fail("at", "expected where the quote stands: \"section 4.2\"");
                }
                (None, Some(_)) => {
                    return fail("at", "there is no quote that it could be the place of");
                }
                (None, None) if !claim.ours => {
                    return fail(
                        "quote",
                        "expected the sentence that is tested, or ours = true",
                    );
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks names, and values as if all points had results.
    fn check(&self, expression: &Expression, variables: &[&str]) -> Result<(), ExpressionError> {
        let names: Vec<String> = variables.iter().map(|&name| name.to_owned()).collect();
        check_names(
            expression,
            &names,
            &self.matrix,
            &self.metrics,
            &self.definitions,
        )?;
        let any = ExpressionValue::Number(Estimate::exact(1.0));
        self.try_out(
            expression,
            &names.into_iter().map(|name| (name, any.clone())).collect(),
        )
    }

    /// Reads the notes and captions, which may contain expressions.
    fn read_texts(&mut self) -> Result<(), ConfigError> {
        let read = |text: &Option<String>, key: String| -> Result<Option<Template>, ConfigError> {
            let Some(text) = text else { return Ok(None) };
            let fail = |error: ExpressionError| ConfigError::new(key.clone(), error.to_string());
            let template = Template::parse(text).map_err(fail)?;
            template
                .expressions()
                .try_for_each(|expression| self.check(expression, &[]))
                .map_err(fail)?;
            Ok(Some(template))
        };
        let notes = read(&self.config.notes, "notes".to_owned())?;
        let figures = self.config.figures.iter().enumerate();
        let captions: Result<Vec<_>, _> = figures
            .map(|(index, figure)| read(&figure.caption, format!("figures[{index}].caption")))
            .collect();
        (self.notes, self.captions) = (notes, captions?);
        Ok(())
    }

    fn read_variants(&mut self) -> Result<(), ConfigError> {
        for (index, variant) in self.config.variants.iter().enumerate() {
            let below = |error: ConfigError| error.below(&format!("variants[{index}]"));
            if self.config.variants[..index]
                .iter()
                .any(|other| other.title == variant.title)
            {
                let message = format!("there are two variants `{}`", variant.title);
                return Err(below(ConfigError::new("title", message)));
            }
            self.settings
                .of_variants
                .push(settings_of(&variant.settings, &self.matrix).map_err(below)?);
        }
        let titles: Vec<&str> = self
            .config
            .variants
            .iter()
            .map(|variant| variant.title.as_str())
            .collect();
        for (index, claim) in self.claims.iter().enumerate() {
            if let Some(title) = claim.explained_by()
                && !titles.contains(&title)
            {
                let near = nearest(title, &titles);
                let message = format!(
                    "there is no variant `{title}`{near}; known: {}",
                    titles.join(", ")
                );
                return Err(ConfigError::new(
                    format!("claims[{index}].explained.variant"),
                    message,
                ));
            }
        }
        Ok(())
    }

    fn check_figures(&mut self) -> Result<(), ConfigError> {
        let mut seen = BTreeSet::new();
        for (index, figure) in self.config.figures.iter().enumerate() {
            let fail = |key: &str, message: String| {
                ConfigError::new(format!("figures[{index}].{key}"), message)
            };
            let plain = figure
                .id
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
            if figure.id.is_empty() || !plain || !seen.insert(&figure.id) {
                let message = format!(
                    "found `{}`; expected letters, digits and `-`, once in the study",
                    figure.id
                );
                return Err(fail("id", message));
            }
            let x = self
                .matrix
                .axis(&figure.x)
                .map_err(|unknown| fail("x", unknown.into()))?;
            let mut series = None;
            if let Some(name) = &figure.series {
                let domain = self
                    .matrix
                    .domain(name)
                    .map_err(|unknown| fail("series", unknown.into()))?;
                if domain.1.len() > LINES_MAX {
                    let message = format!(
                        "found {} lines; {LINES_MAX} are told apart at most",
                        domain.1.len()
                    );
                    return Err(fail("series", message));
                }
                series = Some(domain);
            }
            for published in &figure.published {
                for (value, _) in &published.points {
                    self.matrix.axes[x]
                        .index(&label(value))
                        .map_err(|unknown| fail("published", unknown.into()))?;
                }
                if let (Some(value), Some((axis, _))) = (&published.series, &series) {
                    self.matrix.axes[*axis]
                        .index(&label(value))
                        .map_err(|unknown| fail("published", unknown.into()))?;
                }
            }
            let expression = parse(&figure.y).map_err(|error| fail("y", error.to_string()))?;
            let bindings =
                self.figure_bindings(figure, 0, series.map(|(axis, values)| (axis, values[0])));
            let variables: Vec<String> = bindings.iter().map(|(name, _)| name.clone()).collect();
            check_names(
                &expression,
                &variables,
                &self.matrix,
                &self.metrics,
                &self.definitions,
            )
            .and_then(|()| self.try_out(&expression, &bindings))
            .map_err(|error| fail("y", error.to_string()))?;
            self.figures.push(expression);
        }
        Ok(())
    }

    /// Returns the variables of a figure's expression at one of its points.
    pub(crate) fn figure_bindings(
        &self,
        figure: &FigureConfig,
        x: usize,
        series: Option<(usize, usize)>,
    ) -> Bindings {
        // `check_figures` has found the axis.
        let along = self.matrix.axis(&figure.x).unwrap_or(0);
        let mut bindings = vec![(figure.x.clone(), ExpressionValue::Label(along, x))];
        if let Some((axis, value)) = series {
            bindings.push((
                self.matrix.axes[axis].name.clone(),
                ExpressionValue::Label(axis, value),
            ));
        }
        bindings
    }

    /// Evaluates every branch of `expression` as if all points had results, to find invalid points
    /// before anything is run.
    fn try_out(&self, expression: &Expression, bindings: &Bindings) -> Result<(), ExpressionError> {
        let evaluator = Evaluator {
            thorough: true,
            ..self.evaluator(&AsIf)
        };
        match evaluator.evaluate(expression, bindings) {
            Err(Problem::Wrong(error)) => Err(error),
            Ok(_) | Err(Problem::Missing) => Ok(()),
        }
    }

    /// Returns an evaluator of expressions over `data`.
    pub fn evaluator<'a>(&'a self, data: &'a dyn ResultSource) -> Evaluator<'a> {
        Evaluator {
            matrix: &self.matrix,
            definitions: &self.definitions,
            metrics: &self.metrics,
            first_metric: self.first_metric,
            data,
            thorough: false,
        }
    }

    /// Returns the points of a claim's expressions.
    fn touched_by(&self, claim: &Claim) -> BTreeSet<usize> {
        let touched = EvaluatedPoints::default();
        let evaluator = Evaluator {
            thorough: true,
            ..self.evaluator(&touched)
        };
        let any = |name: &str| {
            (
                name.to_owned(),
                ExpressionValue::Number(Estimate::exact(1.0)),
            )
        };
        let bindings = vec![any(OBTAINED), any(RESTORED)];
        for (_, expression) in claim.expressions() {
            // The result is ignored, because mistakes were reported before.
            let _ = evaluator.evaluate(expression, &bindings);
        }
        touched.0.into_inner()
    }

    /// Replaces the trace of the points with `value` on the axis `trace` by `file`, for users who
    /// have the source's own trace. Returns true if there are such points. The store keeps the
    /// results separate, because its keys contain the digest of the trace.
    pub fn replace_trace(&mut self, value: &str, file: &Path) -> bool {
        let axes = self
            .matrix
            .axes
            .iter_mut()
            .filter(|axis| axis.name == TRACE);
        let values = axes
            .flat_map(|axis| &mut axis.values)
            .filter(|found| found.name == value);
        let path = format!("workload.path={}", serde_json::json!(file));
        values.map(|found| found.set.push(path.clone())).count() > 0
    }

    /// Returns the values of the axis `trace`.
    pub fn traces(&self) -> impl Iterator<Item = &str> {
        let axes = self.matrix.axes.iter().filter(|axis| axis.name == TRACE);
        axes.flat_map(|axis| axis.values.iter().map(|value| value.name.as_str()))
    }

    /// Returns the stack file of a point and the keys set in the file.
    pub(crate) fn stack(
        &self,
        point: usize,
        variation: Variation,
    ) -> Option<(PathBuf, Vec<String>)> {
        let values = &self.matrix.points()[point];
        let chosen: Vec<_> = self
            .matrix
            .axes
            .iter()
            .zip(values)
            .map(|(axis, &value)| &axis.values[value])
            .collect();
        let stack = chosen
            .iter()
            .rev()
            .find_map(|value| value.stack.as_ref())
            .or(self.config.stack.as_ref())?;
        // Later assignments replace earlier ones, so those of the variation come last.
        let mut set = self.config.set.clone();
        set.extend(chosen.iter().flat_map(|value| value.set.iter().cloned()));
        set.extend(set_at(&self.settings.own, values));
        match variation {
            Variation::Base | Variation::Seeds(_) => {}
            Variation::Variant(variant) => {
                set.extend(self.config.variants[variant].set.iter().cloned());
                set.extend(set_at(&self.settings.of_variants[variant], values));
            }
            Variation::Free(choice, value) => {
                let value = &self.choices[choice].values[value];
                set.extend(value.set.iter().cloned());
                set.extend(set_at(&value.settings, values));
            }
        }
        Some((self.folder().join(stack), set))
    }

    /// Returns the study itself and all its variants.
    pub fn variations(&self) -> Vec<Variation> {
        let variants = (0..self.config.variants.len()).map(Variation::Variant);
        [Variation::Base].into_iter().chain(variants).collect()
    }

    /// Returns the other seeds and free choices with which claims are tested.
    pub fn held_out(&self, extent: &Extent) -> Vec<Variation> {
        if self.matrix.points().is_empty() {
            return Vec::new();
        }
        let choices = self.choices.iter().enumerate().filter(|_| extent.vary_free);
        let free = choices.flat_map(|(choice, of)| {
            (0..of.values.len()).map(move |value| Variation::Free(choice, value))
        });
        (1..=extent.seeds)
            .map(Variation::Seeds)
            .chain(free)
            .collect()
    }

    /// Returns a variation as text.
    pub fn describe(&self, variation: Variation, replications: Option<u32>) -> String {
        match variation {
            Variation::Base => "as assumed".to_owned(),
            Variation::Variant(variant) => self.config.variants[variant].title.clone(),
            Variation::Free(choice, value) => {
                let choice = &self.choices[choice];
                format!("{}: {}", choice.config.name, choice.values[value].name)
            }
            Variation::Seeds(_) => match self.seeds(variation, replications).as_slice() {
                [first, .., last] => format!("seeds {first} to {last}"),
                [one] => format!("seed {one}"),
                [] => "no seed".to_owned(),
            },
        }
    }

    /// Returns the points that are run: all points of the study itself, otherwise only points that
    /// claims read.
    pub(crate) fn points_of(&self, variation: Variation) -> BTreeSet<usize> {
        match variation {
            Variation::Base => (0..self.matrix.points().len()).collect(),
            _ => self
                .claims
                .iter()
                .flat_map(|claim| claim.touched.iter().copied())
                .collect(),
        }
    }

    /// Returns the seeds of each point.
    pub fn seeds(&self, variation: Variation, replications: Option<u32>) -> Vec<u64> {
        let count = u64::from(replications.unwrap_or(self.config.replications));
        let first = match variation {
            // The further sets begin after the study's own seeds.
            // The product of two numbers of 32 bits fits.
            Variation::Seeds(set) => u64::from(self.config.replications)
                .saturating_add(u64::from(set.saturating_sub(1)) * count),
            _ => 0,
        };
        (first..first.saturating_add(count))
            // A seed near the end of the range continues at 0; each number is as good a seed.
            .map(|number| self.config.seed.wrapping_add(number))
            .collect()
    }

    /// Returns the folder of the study file.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Returns the metrics with a path.
    pub fn paths(&self) -> Vec<String> {
        self.metrics[standard().len()..].to_vec()
    }

    /// Returns the digest of the file with all files that it names, and the digest without prose.
    fn compute_digests(&self) -> Result<(String, String), StackError> {
        let stacks = self
            .matrix
            .axes
            .iter()
            .flat_map(|axis| &axis.values)
            .filter_map(|value| value.stack.as_ref());
        let named: BTreeSet<&PathBuf> = stacks.chain(&self.config.stack).collect();
        let (mut whole, mut substance) = (Sha256::new(), Sha256::new());
        let mut add = |path: PathBuf, counts: bool| -> Result<(), StackError> {
            let text = std::fs::read(&path).map_err(|error| {
                StackError::whole(
                    path.display().to_string(),
                    format!("cannot be read: {error}"),
                )
            })?;
            for hash in [Some(&mut whole), counts.then_some(&mut substance)]
                .into_iter()
                .flatten()
            {
                // The length keeps texts apart that together have the same bytes.
                hash.update(text.len().to_le_bytes());
                hash.update(&text);
            }
            Ok(())
        };
        // Not for `substance`, to which the file without its prose is added below.
        add(self.file.clone(), false)?;
        named
            .iter()
            .try_for_each(|stack| add(self.folder().join(stack), true))?;
        if let Some(choices) = &self.config.choices {
            add(self.folder().join(choices), false)?;
        }
        substance.update(self.config.substance());
        for choice in &self.choices {
            substance.update(format!("{:?}", choice.values));
        }
        Ok((hex(&whole.finalize()), hex(&substance.finalize())))
    }
}

/// Name of the axis of the traces that a study replays.
const TRACE: &str = "trace";

pub(crate) fn overrides(set: &[String], seed: Option<u64>) -> Overrides {
    Overrides {
        set: set.to_vec(),
        seed,
        ideal_arrays: true,
        ideal_hosts: true,
        ..Overrides::default()
    }
}

/// Results as if every point had been run.
struct AsIf;

impl ResultSource for AsIf {
    fn value(&self, _: usize, _: usize) -> Option<Estimate> {
        // Any number will do: only the kind of the result is checked.
        Some(Estimate::exact(1.0))
    }
}

/// Records the points of an evaluation.
#[derive(Default)]
struct EvaluatedPoints(RefCell<BTreeSet<usize>>);

impl ResultSource for EvaluatedPoints {
    fn value(&self, point: usize, _: usize) -> Option<Estimate> {
        self.0.borrow_mut().insert(point);
        Some(Estimate::exact(1.0))
    }
}

/// Finds the studies of a folder by their ids; all studies if `chosen` is empty. An id is
/// `<folder>/<file without ending>`. A prefix selects all ids that begin with it.
///
/// # Errors
/// A name that fits no study, or a study that cannot be used.
pub fn find(folder: &Path, chosen: &[String]) -> Result<Vec<Study>, StudyError> {
    chosen_files(folder, chosen)?
        .iter()
        .map(|(id, file)| Ok(Study::load(id, file)?))
        .collect()
}

/// Largest number of studies that an error lists.
const NAMES_MOST: usize = 12;

/// Returns the ids and files of the chosen studies below `folder`.
fn chosen_files(folder: &Path, chosen: &[String]) -> Result<Vec<(String, PathBuf)>, StudyError> {
    let all = files(folder)?;
    let mut found = Vec::new();
    for name in chosen {
        if !all.iter().any(|(id, _)| id.starts_with(name.as_str())) {
            let ids: Vec<&str> = all.iter().map(|(id, _)| id.as_str()).collect();
            return Err(StudyError::Unknown {
                name: name.clone(),
                folder: folder.to_owned(),
                nearest: nearest(name, &ids),
                known: match ids.len() {
                    0 => "the folder has no study".to_owned(),
                    // A longer list would push the suggestion off the screen.
                    1..=NAMES_MOST => format!("known: {}", ids.join(", ")),
                    _ => "`fullstroke study list` shows all studies".to_owned(),
                },
            });
        }
    }
    for (id, file) in &all {
        let exact = chosen.contains(id);
        // A complete id takes precedence, because it may also be a prefix of another id.
        let begins = |name: &String| {
            !all.iter().any(|(other, _)| other == name) && id.starts_with(name.as_str())
        };
        if exact || chosen.is_empty() || chosen.iter().any(begins) {
            found.push((id.clone(), file.clone()));
        }
    }
    Ok(found)
}

/// Returns the study files below `folder`, by id.
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
            if let (Some(stem), true) = (
                file.file_stem(),
                file.extension().is_some_and(|end| end == "toml"),
            ) {
                let author = author.file_name().unwrap_or_default().to_string_lossy();
                files.push((format!("{author}/{}", stem.to_string_lossy()), file.clone()));
            }
        }
    }
    files.sort();
    Ok(files)
}
