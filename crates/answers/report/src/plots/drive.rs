//! A drive: zone rates, seek curve, and order of LBNs on the first tracks.

use super::curves::{DrawResult, SvgArea, picture, plain};
use crate::plot::PlotError;
use fullstroke_contract::TrackExtent;
use fullstroke_drive::{DriveModel, SeekConfig};
use fullstroke_units::Lbn;
use plotters::prelude::*;
use serde::Serialize;

/// Drawn data of a drive.
#[derive(Clone, Debug, Serialize)]
pub struct DrivePicture {
    title: String,
    zones: Vec<ZoneRate>,
    /// Distance in cylinders, and ms; a selection if there are many distances.
    seek_ms: Vec<(u32, f64)>,
    /// Points of the description that define the seek curve, if there are any.
    seek_points_ms: Vec<(u32, f64)>,
    tracks: Vec<TrackPlace>,
}

/// Transfer rate of one zone.
#[derive(Clone, Debug, Serialize)]
struct ZoneRate {
    first_lbn: u64,
    end_lbn: u64,
    mb_per_s: f64,
}

/// Position of one track. Tracks are in the order of their LBNs.
#[derive(Clone, Debug, Serialize)]
struct TrackPlace {
    first_lbn: u64,
    sectors: u64,
    cylinder: u32,
    surface: u32,
}

const PAGE: (u32, u32) = (1200, 900);
const UPPER_HEIGHT: u32 = 430;
const INK: RGBColor = RGBColor(25, 70, 140);
const MARK: RGBColor = RGBColor(200, 30, 40);
/// Largest number of points of the seek curve.
const CURVE_POINTS_MAX: u32 = 600;

impl DrivePicture {
    /// Collects the data of the drive `model`, with the order of its first `tracks` tracks.
    pub fn new(model: &DriveModel, tracks: u32) -> DrivePicture {
        let geometry = model.mechanics().geometry();
        let zone = |view: fullstroke_drive::ZoneView| ZoneRate {
            first_lbn: view.first_lbn.0,
            end_lbn: view.first_lbn.0 + view.sectors.0,
            mb_per_s: view.rate_mb_per_s(model.config().rpm),
        };
        let seek_points_ms = match &model.config().seek {
            SeekConfig::Points { points, .. } => points.clone(),
            _ => Vec::new(),
        };
        DrivePicture {
            title: model.config().title.clone(),
            zones: geometry.zones().map(zone).collect(),
            seek_ms: seek_curve(model),
            seek_points_ms,
            tracks: first_tracks(model, tracks),
        }
    }

    /// Returns the picture as SVG.
    ///
    /// # Errors
    /// Errors of the plotting library.
    pub fn draw(&self) -> Result<String, PlotError> {
        picture("the plot", PAGE, |page| self.panels(page))
    }

    fn panels(&self, page: &SvgArea<'_>) -> DrawResult {
        let page = page
            .margin(8, 0, 0, 0)
            .titled(&self.title, ("sans-serif", 20))?;
        let (upper, lower) = page.split_vertically(UPPER_HEIGHT);
        let (left, right) = upper.split_horizontally(PAGE.0 / 2);
        self.zone_rates(&left)?;
        self.seek_curve(&right)?;
        self.track_map(&lower)
    }

    fn zone_rates(&self, area: &SvgArea<'_>) -> DrawResult {
        let end = self.zones.last().map_or(1, |zone| zone.end_lbn);
        let fastest = self
            .zones
            .iter()
            .map(|zone| zone.mb_per_s)
            .fold(1e-6, f64::max);
        let mut chart = chart(area, "Sequential rate of each zone")
            .build_cartesian_2d(0.0..millions(end), 0.0..fastest * 1.1)?;
        chart
            .configure_mesh()
            .x_desc("LBN (millions)")
            .x_label_formatter(&plain)
            .y_label_formatter(&plain)
            .y_desc("rate (MB/s)")
            .light_line_style(TRANSPARENT)
            .draw()?;
        let steps = self.zones.iter().flat_map(|zone| {
            [
                (millions(zone.first_lbn), zone.mb_per_s),
                (millions(zone.end_lbn), zone.mb_per_s),
            ]
        });
        chart.draw_series(LineSeries::new(steps, INK.stroke_width(2)))?;
        Ok(())
    }

    fn seek_curve(&self, area: &SvgArea<'_>) -> DrawResult {
        let farthest = self.seek_ms.last().map_or(1, |point| point.0);
        let longest_ms = self
            .seek_ms
            .iter()
            .map(|point| point.1)
            .fold(1e-6, f64::max);
        let mut chart = chart(area, "Seek time by distance")
            .build_cartesian_2d(0.0..f64::from(farthest), 0.0..longest_ms * 1.1)?;
        chart
            .configure_mesh()
            .x_desc("distance (cylinders)")
            .x_label_formatter(&plain)
            .y_label_formatter(&plain)
            .y_desc("seek time (ms)")
            .light_line_style(TRANSPARENT)
            .draw()?;
        let curve = self
            .seek_ms
            .iter()
            .map(|&(distance, ms)| (f64::from(distance), ms));
        chart
            .draw_series(LineSeries::new(curve, INK.stroke_width(2)))?
            .label("model")
            .legend(|(x, y)| PathElement::new([(x, y), (x + 20, y)], INK.stroke_width(2)));
        if !self.seek_points_ms.is_empty() {
            let within = self
                .seek_points_ms
                .iter()
                .filter(|point| point.0 <= farthest);
            let mark = |&(distance, ms): &(u32, f64)| {
                Circle::new((f64::from(distance), ms), 3, MARK.filled())
            };
            chart
                .draw_series(within.map(mark))?
                .label("points of the description")
                .legend(|(x, y)| Circle::new((x + 10, y), 3, MARK.filled()));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerRight)
            .background_style(WHITE)
            .border_style(BLACK)
            .draw()
    }

    fn track_map(&self, area: &SvgArea<'_>) -> DrawResult {
        let cylinders = self.tracks.iter().map(|track| track.cylinder);
        let (first, last) = cylinders.fold((u32::MAX, 0), |(low, high), cylinder| {
            (low.min(cylinder), high.max(cylinder))
        });
        let surfaces = self
            .tracks
            .iter()
            .map(|track| track.surface)
            .max()
            .unwrap_or(0);
        let caption = format!(
            "LBN order of the first {} tracks, numbered from 0",
            self.tracks.len()
        );
        // The ordinate runs downwards: surface 0 is on top, as in a drawing of the platters.
        let mut chart = chart(area, &caption).build_cartesian_2d(
            f64::from(first.min(last)) - 0.7..f64::from(last) + 0.7,
            f64::from(surfaces) + 0.6..-0.6,
        )?;
        chart
            .configure_mesh()
            .disable_mesh()
            .x_desc("cylinder")
            .y_desc("surface")
            .y_labels(surfaces as usize + 2)
            .x_label_formatter(&whole)
            .y_label_formatter(&whole)
            .draw()?;
        for (number, pair) in self.tracks.windows(2).enumerate() {
            let color = self.color(number);
            chart.draw_series(LineSeries::new(
                pair.iter().map(place),
                color.stroke_width(2),
            ))?;
        }
        let mark = |(number, track)| Circle::new(place(track), 3, self.color(number).filled());
        chart.draw_series(self.tracks.iter().enumerate().map(mark))?;
        let style = ("sans-serif", 12).into_font().color(&BLACK);
        let numbered = self
            .tracks
            .iter()
            .enumerate()
            .step_by(self.numbering_step());
        let label = |(number, track): (usize, &TrackPlace)| {
            EmptyElement::at(place(track)) + Text::new(number.to_string(), (4, -14), style.clone())
        };
        chart.draw_series(numbered.map(label))?;
        Ok(())
    }

    /// Returns a colour from blue for the first track to red for the last.
    fn color(&self, number: usize) -> HSLColor {
        let share = number as f64 / self.tracks.len().max(2) as f64;
        HSLColor(0.62 * (1.0 - share), 0.85, 0.42)
    }

    /// Returns the distance between numbered tracks.
    fn numbering_step(&self) -> usize {
        (self.tracks.len() / 24).max(1)
    }
}

fn chart<'a, 'b>(area: &'a SvgArea<'b>, caption: &str) -> ChartBuilder<'a, 'b, SVGBackend<'b>> {
    let mut chart = ChartBuilder::on(area);
    chart
        .caption(caption, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(55);
    chart
}

fn millions(lbn: u64) -> f64 {
    lbn as f64 / 1e6
}

fn place(track: &TrackPlace) -> (f64, f64) {
    (f64::from(track.cylinder), f64::from(track.surface))
}

/// Returns a label for whole numbers, and an empty label between them.
fn whole(value: &f64) -> String {
    if value.fract().abs() < 1e-9 {
        format!("{value:.0}")
    } else {
        String::new()
    }
}

/// Returns the seek curve from 1 cylinder to all. Points are closer where the curve bends most.
fn seek_curve(model: &DriveModel) -> Vec<(u32, f64)> {
    let seeks = model.mechanics().seek_table();
    let longest = model.mechanics().geometry().cylinders().saturating_sub(1);
    let points = longest.min(CURVE_POINTS_MAX);
    let distance = |point: u32| {
        let share = f64::from(point) / f64::from(points.max(1));
        // Short distances are denser, because the curve bends there (Ruemmler & Wilkes 1994).
        (share * share * f64::from(longest)).ceil() as u32
    };
    let mut distances: Vec<u32> = (1..=points).map(distance).collect();
    distances.dedup();
    distances
        .into_iter()
        .map(|distance| (distance, seeks.time(distance).as_millis_f64()))
        .collect()
}

/// Returns the tracks in the order of their LBNs, from the first.
fn first_tracks(model: &DriveModel, count: u32) -> Vec<TrackPlace> {
    let table = model.tracks();
    let mut places = Vec::new();
    let mut lbn = Lbn(0);
    while places.len() < count as usize && lbn.0 < table.capacity().0 {
        let TrackExtent {
            first,
            sectors,
            cylinder,
            surface,
        } = table.track_at(lbn);
        places.push(TrackPlace {
            first_lbn: first.0,
            sectors: sectors.0,
            cylinder: cylinder.0,
            surface,
        });
        // The address always grows, so that an empty track cannot make the loop endless.
        lbn = Lbn((first + sectors).0.max(lbn.0 + 1));
    }
    places
}
