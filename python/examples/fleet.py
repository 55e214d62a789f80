"""Compares arrays for a fleet of volumes with different loads, and counts the volumes that each serves best.

    python python/examples/fleet.py --volumes 1000 [--dask tcp://host:8786]

Each volume replays a window of a captured trace. --seed chooses the trace, the window, the speed, and
the part of the array. All arrays get the same volumes. The results are stored in --to, so that an
interrupted run can continue.
"""

import argparse
import random
from pathlib import Path

import fullstroke
import polars

ROOT = Path(__file__).parents[2]


def volume(number: int, seed: int, traces: list[Path], spans: list[float], window: float) -> list[str]:
    """Returns the keys of volume `number`. They do not depend on the other volumes."""
    draw = random.Random(f"{seed} {number}")
    which = draw.randrange(len(traces))
    begin = draw.uniform(0.0, max(spans[which] - window, 0.0))
    faster = 2.0 ** draw.uniform(-2.0, 1.0)
    return [
        f'workload.path="{traces[which]}"',
        f"workload.from={begin:.3f}s",
        f"workload.to={begin + window:.3f}s",
        f"workload.time_scale={1 / faster:.4f}",
        f"seed={draw.randrange(1 << 32)}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--volumes", type=int, default=1000)
    parser.add_argument("--window", type=float, default=20.0, metavar="SECONDS", help="of the trace, for each volume")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--by", default="response_ms.p99", help="a metric of which less is better")
    parser.add_argument("--trace", type=Path, action="append", help="beside or in place of the shipped ones")
    parser.add_argument("--to", type=Path, default=Path("fleet"), metavar="FOLDER")
    parser.add_argument("--dask", metavar="ADDRESS")
    parser.add_argument("stacks", type=Path, nargs="*", default=sorted((ROOT / "stacks/demo").glob("*.toml")))
    asked = parser.parse_args()

    traces = [path.resolve() for path in asked.trace or sorted((ROOT / "samples").glob("*.parquet"))]
    spans = [polars.DataFrame(fullstroke.read_trace(path))["arrival_ns"].max() / 1e9 for path in traces]
    volumes = [volume(number, asked.seed, traces, spans, asked.window) for number in range(asked.volumes)]
    candidates = [path.resolve() for path in asked.stacks]
    stacks = [fullstroke.Stack(path, *keys) for path in candidates for keys in volumes]

    client = None
    if asked.dask:
        import distributed

        client = distributed.Client(asked.dask)
    table = polars.from_arrow(fullstroke.sweep(stacks, asked.to, client=client))

    numbers = polars.Series("volume", list(range(asked.volumes)) * len(candidates))
    results = table.select(
        numbers,
        array=polars.col("stack").map_elements(lambda path: Path(path).stem, return_dtype=polars.String),
        value=polars.col(asked.by),
    )
    best = results.group_by("volume").agg(best=polars.col("value").min())
    shares = results.join(best, on="volume").with_columns(times=polars.col("value") / polars.col("best"))
    print(f"{asked.by} of {asked.volumes} volumes on {len(candidates)} arrays:")
    with polars.Config(tbl_hide_dataframe_shape=True, tbl_hide_column_data_types=True, float_precision=2):
        print(
            shares.group_by("array")
            .agg(
                polars.col("value").median().alias("median"),
                polars.col("value").quantile(0.9).alias("of the worst tenth, at least"),
                (100 * (polars.col("times") <= 1.0).mean()).alias("best for, %"),
                (100 * (polars.col("times") <= 1.1).mean()).alias("within 10 % of the best, %"),
                polars.col("times").max().alias("at most so many times the best"),
            )
            .sort("median")
        )


if __name__ == "__main__":
    main()
