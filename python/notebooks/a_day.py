# %% [markdown]
# # A PhD student's day with fullstroke
#
# From a captured load to a measured idea. The notebook runs in a minute or two on a laptop.
# The stacks and traces come with fullstroke. Start Jupyter in the project's root
# (`pip install '.[cluster]' polars matplotlib`).

# %%
import fullstroke
import matplotlib.pyplot as plt
import polars

# %% [markdown]
# ## Morning: the load
# PostgreSQL under pgbench, recorded by the kernel's block tracer. Times are in ns, addresses in sectors of 512 bytes.

# %%
trace = polars.DataFrame(fullstroke.read_trace("samples/pgbench.parquet"))
trace.group_by("operation").agg(
    requests=polars.len(), kib=polars.col("sectors").mean() / 2, gib=polars.col("sectors").sum() / 2**21
)

# %%
fig, ax = plt.subplots(figsize=(8, 3))
for (operation,), part in trace.partition_by("operation", as_dict=True, maintain_order=True).items():
    some = part.gather_every(10)
    ax.plot(some["arrival_ns"] / 1e9, some["start"] / 2**21, ".", markersize=1, label=operation)
ax.set(xlabel="time (s)", ylabel="address (GiB)")
ax.legend(markerscale=8, loc="upper right");

# %% [markdown]
# ## Before noon: which array?
# Every candidate gets the same requests, so that differences are paired. Three seeds vary the only random property, the start
# angle of each drive's platters.

# %%
arrays = [
    fullstroke.Stack(f"stacks/demo/{layout}.toml", 'volume.spindles="apart"', "workload.to=60s")
    for layout in ("raid5", "raid6", "raid10")
]
ranking = fullstroke.compare(arrays, by="response_ms.p99", seeds=3)
print(ranking["verdict"])
polars.DataFrame(
    [{"array": one["name"], "p99, ms": one["value"], "±": one["ci95_half_width"]} for one in ranking["candidates"]]
)

# %% [markdown]
# The breakdown of the time in RAID 5: a write waits for old data and parity.

# %%
fullstroke.run(arrays[0])["time_ms"]

# %% [markdown]
# Which chunk and queue depth? A race tries combinations on parts of the load. A significantly worse combination drops out.

# %%
tuned = fullstroke.tune(
    arrays[2].set('host.elevator="mq-deadline"'),
    {"volume.chunk": ["16KiB", "64KiB", "256KiB", "1MiB"], "host.queue_depth": [4, 32, 128]},
    batches=12, first=4,
)
print(tuned["verdict"])

# %% [markdown]
# ## Afternoon: an idea
# Shortest seek first is fast on average and starves distant requests. The idea: a waiting request counts as nearer with time.
# `slope` is the number of sectors per millisecond of waiting; 0 is shortest seek first.
#
# `choose` is called whenever the array can take a request. `waiting` is in order of arrival. The class replaces the stack's
# elevator, which still decides the handling of flushes.

# %%
def aging(slope: float):
    class Aging:
        def __init__(self, site: fullstroke.Site):
            self.at = 0

        def choose(self, now: int, waiting: list[fullstroke.Request], device: fullstroke.Device):
            def cost(one: fullstroke.Request) -> float:
                return abs(one.start - self.at) - slope * (now - one.queued) / 1e6

            chosen = min(waiting, key=cost)
            self.at = chosen.end
            return chosen

    Aging.__name__ = f"aging {slope:g}"
    return Aging


place = fullstroke.Stack("stacks/demo/raid10.toml", 'host.elevator="sstf"', "host.queue_depth=4", "workload.to=60s")
loaded = place.set("workload.time_scale=0.4")
slopes = [0, 1e4, 1e5, 1e6, 1e7]
tried = [loaded.with_elevator(aging(slope)) for slope in slopes]
known = [loaded.set(f'host.elevator="{name}"') for name in ("fifo", "sstf", "scan", "mq-deadline")]
reports = [fullstroke.run(one) for one in tried + known]

# %%
fig, ax = plt.subplots(figsize=(8, 4))
shown = [("aging", reports[: len(slopes)], "o-")]
shown += [(stack.keys[-1].split('"')[1], [report], "s") for stack, report in zip(known, reports[len(slopes) :])]
for label, some, style in shown:
    times = [report["response_ms"] for report in some]
    ax.plot([one["mean"] for one in times], [one["max"] for one in times], style, label=label)
for slope, report in zip(slopes, reports):
    ax.annotate(f"{slope:g}", (report["response_ms"]["mean"], report["response_ms"]["max"]), xytext=(4, 4), textcoords="offset points")
ax.set(xlabel="mean response (ms)", ylabel="longest response (ms)", yscale="log")
ax.legend();

# %% [markdown]
# An elevator in Python serves to test an idea, because each choice calls the interpreter with the whole queue. A good elevator
# belongs into Rust, as a file and a line (`CONTRIBUTING.md`, `docs/examples/elevator.rs`). There it passes the conformance
# tests of all elevators, also works in a live server, and costs next to nothing.

# %%
for stack, report in [(tried[0], reports[0]), (known[1], reports[len(slopes) + 1])]:
    print(f"{stack.name}: {report['requests_per_wall_s']:,.0f} requests a second, mean {report['response_ms']['mean']:.2f} ms")

# %% [markdown]
# ## Evening: all seeds, all loads
# A sweep stores each batch of results at once as a Parquet file. It can be interrupted and continued tomorrow. With
# `client=distributed.Client("tcp://...")` it runs on the department's machines.

# %%
import tempfile

scales = [1.0, 0.7, 0.5, 0.4]
runs = [
    place.set(f'host.elevator="{name}"', f"workload.time_scale={scale}", f"seed={seed}", "volume.spindles=\"apart\"")
    for name in ("fifo", "mq-deadline", "sstf") for scale in scales for seed in range(3)
]
with tempfile.TemporaryDirectory() as folder:
    table = polars.DataFrame(fullstroke.sweep(runs, folder))
key = lambda name: polars.col("keys").list.eval(polars.element().filter(polars.element().str.starts_with(name + "="))).list.last().str.split("=").list.last()
means = (
    table.select(elevator=key("host.elevator").str.strip_chars('"'), scale=key("workload.time_scale").cast(float), p99="response_ms.p99")
    .group_by("elevator", "scale").agg(p99=polars.col("p99").mean(), sd=polars.col("p99").std()).sort("scale")
)
fig, ax = plt.subplots(figsize=(8, 3.5))
for (name,), part in means.partition_by("elevator", as_dict=True, maintain_order=True).items():
    ax.errorbar(1 / part["scale"], part["p99"], yerr=part["sd"], marker="o", capsize=3, label=name)
ax.set(xlabel="times the captured load", ylabel="99th percentile (ms)")
ax.legend();
