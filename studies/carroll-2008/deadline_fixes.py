"""C-1 and C-2: the two faults of deadline, before and after."""

from claims import Row, interval, is_near, number, percent
from fullstroke import Run, over_seeds

SEEDS = range(1, 21)

# Table 3.2.
RATIO_BEFORE, RATIO_AFTER = 0.806, 2.000

# Section 3.4.2 says "an order of magnitude".
ORDER_OF_MAGNITUDE = 10

# The same: "differ by less than 200 B/s".
EQUAL_B_PER_S = 200


def batch_count(laboratory):
    """C-1: the ratio of bytes read to bytes written."""
    runs = [Run("batch-count", (f"host.batch_count_fix={fix}",), "read_write_ratio") for fix in ("false", "true")]
    results = laboratory.run(runs)
    effect = RATIO_AFTER - RATIO_BEFORE
    rows = []
    for run, published, what in zip(runs, (RATIO_BEFORE, RATIO_AFTER), ("before", "after")):
        ratio = results[run].value
        holds = is_near(ratio.mean, published, effect)
        subject = f"bytes read / written, {what} the batch-count fix"
        rows.append(Row("C-1", subject, f"{published:.3f}", interval(ratio), holds))
    return rows


def start_sector(laboratory):
    """C-2: how ten readers share the disk."""
    runs = {
        fix: [Run("start-sector", (f"host.start_sector_fix={fix}", f"seed={seed}")) for seed in SEEDS]
        for fix in ("false", "true")
    }
    results = laboratory.run([run for both in runs.values() for run in both])
    before, after = ([results[run] for run in runs[fix]] for fix in ("false", "true"))
    favour = over_seeds([low_over_high(result) for result in before])
    widest = max(widest_b_per_s(result) for result in after)
    total = over_seeds([new.value.mean - old.value.mean for new, old in zip(after, before)])
    change = total.mean / over_seeds(before).mean
    return [
        Row("C-2", "lowest reader's bandwidth over the highest's, before", "an order of magnitude",
            interval(favour), favour.mean >= ORDER_OF_MAGNITUDE),
        Row("C-2", "largest difference between two readers, after", "less than 200 B/s",
            f"{number(widest)} B/s", widest < EQUAL_B_PER_S),
        Row("C-2", "total bandwidth, after less before, MB/s", "falls",
            f"{interval(total)} ({percent(change)})", total.high < 0),
    ]


def readers(result):
    """The readers' bandwidths, from the lowest address to the highest."""
    return [process["mb_per_s"] for process in result.report["processes"] if process["name"] == "reader"]


def low_over_high(result):
    """How much more the reader at the lowest address gets than the one at the highest."""
    bandwidths = readers(result)
    return bandwidths[0] / max(bandwidths[-1], 1e-9)


def widest_b_per_s(result):
    """The largest difference between two readers."""
    bandwidths = readers(result)
    return 1e6 * (max(bandwidths) - min(bandwidths))


def rows(laboratory):
    """Both claims."""
    return batch_count(laboratory) + start_sector(laboratory)
