use super::spread::QuantityDistribution;
use super::*;
use crate::TraceOptions;

fn summary(text: &str) -> TraceSummary {
    let bytes = Box::new(std::io::Cursor::new(text.to_owned()));
    let mut reader =
        TraceReader::open_read("trace", bytes, &TraceOptions::for_format("msr")).unwrap();
    TraceSummary::of(&mut reader).unwrap()
}

#[test]
fn rates_shares_and_depths_follow_their_definitions() {
    // Requests are 1 ms apart (10,000 ticks). The first two overlap. The second continues the
    // first, the fourth continues the second.
    let summary = summary(
        "10000,h,0,Read,0,4096,15000\n20000,h,0,Read,4096,4096,5000\n\
         30000,h,0,Write,81920,8192,1000\n40000,h,0,Read,8192,4096,1000\n",
    );
    assert_eq!((summary.requests, summary.duration_s), (4, 0.003));
    assert!((summary.iops.unwrap() - 4.0 / 0.003).abs() < 1e-6);
    let addresses = summary.addresses.unwrap();
    assert_eq!(
        (addresses.sequential_share, addresses.stream_share),
        (0.25, 0.5)
    );
    assert_eq!((addresses.first_sector, addresses.end_sector), (0, 176));
    assert_eq!(addresses.footprint_gib * (1u64 << 30) as f64, 5.0 * 4096.0);
    let depth = summary.queue_depth.unwrap();
    assert_eq!(
        (depth.count, depth.min, depth.max, depth.mean),
        (4, 1.0, 2.0, 1.25)
    );
    let reads = &summary.operations[0];
    assert_eq!(
        (reads.operation, reads.requests, reads.share),
        ("read", 3, 0.75)
    );
    assert_eq!(summary.interarrival_ms.unwrap().mean, 1.0);
}

#[test]
fn percentiles_are_right_to_three_digits_over_the_whole_range() {
    let mut spread = QuantityDistribution::default();
    (1..=10_000u64).for_each(|value| spread.add(value * 1_000_000));
    let distribution = spread.distribution(1e-6).unwrap();
    for (found, expected) in [
        (distribution.p50, 5_000.0),
        (distribution.p90, 9_000.0),
        (distribution.p99, 9_900.0),
    ] {
        assert!((found / expected - 1.0).abs() < 1e-3, "{found} {expected}");
    }
    assert_eq!((distribution.min, distribution.max), (1.0, 10_000.0));
    spread.add(u64::MAX);
    assert!(spread.distribution(1.0).unwrap().max > 1e19);
}

#[test]
fn a_summary_serializes_with_units_and_renders_for_people() {
    let summary = summary("10000,h,0,Read,0,4096,15000\n");
    let json = serde_json::to_value(&summary).unwrap();
    assert_eq!(json["size_kib"]["p50"], 4.0);
    assert!(json["iops"].is_null());
    assert!(
        summary.to_string().contains("1 requests (msr)"),
        "{summary}"
    );
}
