# %% [markdown]
# # A PhD student's day with fullstroke
#
# From a captured load to an idea of one's own, measured. Everything here runs in a minute or two on a laptop;
# the stacks and traces are those that come with fullstroke. Start Jupyter in the project's root
# (`pip install '.[cluster]' polars matplotlib`).

# %%
import fullstroke
import matplotlib.pyplot as plt
import polars

# %% [markdown]
# ## Morning: what does the load look like?
# PostgreSQL under pgbench, as the kernel's block tracer saw it. Times are ns, addresses sectors of 512 bytes.

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
# The same requests on every candidate, so that differences are paired, with three seeds for what is left to chance: the angle
# at which each drive's platters begin.

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
# Where the time goes in RAID 5: a mean write waits for old data and parity before it begins.

# %%
fullstroke.run(arrays[0])["time_ms"]

# %% [markdown]
# Which unit and depth? A race among combinations on parts of the load: whoever is worse beyond chance drops out.

# %%
tuned = fullstroke.tune(
    arrays[2].set('host.elevator="mq-deadline"'),
    {"volume.chunk": ["16KiB", "64KiB", "256KiB", "1MiB"], "host.queue_depth": [4, 32, 128]},
    batches=12, first=4,
)
print(tuned["verdict"])

# %% [markdown]
# ## Afternoon: an idea
# Shortest seek first is quick on average and starves whoever is far away. What if a request counts as nearer the longer it
# waits? `slope` says how many sectors a millisecond is worth; 0 is shortest seek first.
#
# `choose` is asked whenever the array can take a request: those that wait stand in order of arrival. It stands in the place of
# an elevator that the stack names, which says what a flush does.

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
# An elevator in Python is for finding out whether an idea is worth it: each choice calls the interpreter with the whole queue.
# One that is goes to Rust, where it is a file and a line (`CONTRIBUTING.md`, `docs/examples/elevator.rs`), is held to the
# conformance tests of all elevators, is served live by the same code, and costs next to nothing.

# %%
for stack, report in [(tried[0], reports[0]), (known[1], reports[len(slopes) + 1])]:
    print(f"{stack.name}: {report['requests_per_wall_s']:,.0f} requests a second, mean {report['response_ms']['mean']:.2f} ms")

# %% [markdown]
# ## Evening: all seeds, all loads
# A sweep keeps each batch of results as a Parquet file at once: interrupt it, go on tomorrow, or give it
# `client=distributed.Client("tcp://...")` and the department's machines.

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
