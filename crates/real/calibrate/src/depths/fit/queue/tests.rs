use crate::depths::closed::random;
use crate::depths::{DepthFit, DepthRow, Sheet, fit_by_depth};
use fullstroke_drive::presets::DriveClass;
use fullstroke_drive::{DriveConfig, DriveModel, QueueConfig};
use fullstroke_units::Duration;
use serde_json::json;

fn sheet() -> Sheet {
    Sheet {
        capacity: Some("2T".into()),
        rpm: Some(7200.0),
        outer: Some(210.0),
        ..Sheet::default()
    }
}

fn row(config: &DriveConfig, depth: u32) -> DepthRow {
    let model = DriveModel::new(config.clone()).unwrap();
    let found = random(&model, false, 4096, depth, 6000);
    DepthRow {
        source: format!("depth {depth}"),
        rw: "randread".to_owned(),
        covers: None,
        bytes: 4096,
        depth,
        jobs: 1,
        per_s: found.per_s,
        mean_ms: found.mean_ms,
        deviation_ms: Some(found.deviation_ms),
        middle_ms: Some(found.middle_ms),
        p99_ms: Some(found.p99_ms),
        longest_ms: Some(found.longest_ms),
    }
}

/// Returns a drive of the sheet with `queue`.
fn drive(queue: QueueConfig) -> DriveConfig {
    let rows = [];
    let mut config = fit_by_depth(&sheet(), None, &rows).unwrap().config;
    config.queue = queue;
    config
}

fn fitted(config: &DriveConfig, depths: &[u32]) -> DepthFit {
    let rows: Vec<DepthRow> = depths.iter().map(|&depth| row(config, depth)).collect();
    let fit = fit_by_depth(&sheet(), None, &rows).unwrap();
    for compared in &fit.compared {
        let mean = compared.mean_ms.1 / compared.mean_ms.0;
        let p99 = compared.p99_ms.1 / compared.p99_ms.0.unwrap();
        assert!(
            (mean - 1.0).abs() < 0.05 && (p99 - 1.0).abs() < 0.1,
            "{compared:?}"
        );
    }
    fit
}

#[test]
fn a_disk_that_serves_in_order_of_arrival_has_a_window_of_one_command() {
    let config = drive(QueueConfig {
        discipline: "fcfs".into(),
        ..QueueConfig::default()
    });
    let fit = fitted(&config, &[1, 4, 16, 32]);
    assert_eq!(fit.config.queue.keys["window"], json!(1));
    assert_eq!(fit.config.queue.answer_together, 0);
}

#[test]
fn a_disk_that_orders_few_commands_has_a_window() {
    let mut queue = DriveClass::Desktop.queue();
    queue.keys.insert("window".into(), json!(6));
    let fit = fitted(&drive(queue), &[1, 4, 16, 32]);
    assert_eq!(fit.config.queue.keys["window"], json!(6));
}

#[test]
fn an_age_limit_below_the_longest_wait_is_found() {
    let queue = QueueConfig {
        age_limit: Some(Duration::from_millis(300)),
        ..DriveClass::Desktop.queue()
    };
    let fit = fitted(&drive(queue), &[1, 4, 16, 32]);
    let found = fit.config.queue.age_limit.unwrap().as_millis_f64();
    assert!((200.0..400.0).contains(&found), "{found}");
    assert!(fit.config.sources["queue"].contains("age_limit: fitted"));
}

#[test]
fn the_longest_wait_of_a_shallow_queue_is_no_age_limit() {
    let config = drive(DriveClass::Desktop.queue());
    let fit = fitted(&config, &[1, 2, 4, 8]);
    assert_eq!(fit.config.queue.age_limit, Some(Duration::from_secs(2)));
    // The left-out depth is predicted.
    let (left_out, model) = (
        row(&config, 32),
        DriveModel::new(fit.config.clone()).unwrap(),
    );
    let found = random(&model, false, 4096, 32, 6000).mean_ms;
    assert!(
        (found / left_out.mean_ms - 1.0).abs() < 0.1,
        "{found} of {}",
        left_out.mean_ms
    );
}

#[test]
fn a_disk_that_sweeps_over_its_tracks_is_met_by_the_order_of_its_sweeps() {
    for discipline in ["look", "c-look"] {
        let config = drive(QueueConfig {
            discipline: discipline.into(),
            ..QueueConfig::default()
        });
        let fit = fitted(&config, &[1, 2, 4, 8, 16, 32]);
        assert_eq!(fit.config.queue.discipline, discipline);
        assert!(fit.config.sources["queue"].starts_with("fitted: discipline"));
    }
}
