// Holds the JSON of the module to the JSON of the native program: all numbers but wall-clock times and memory.
//
// Half-widths of intervals may differ from the fourteenth digit on. They contain a quantile of Student's distribution, and
// the module's logarithm and exponential are not those of the C library.
//
//   node web/tests/equality.mjs PROGRAM MODULE

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Fullstroke } from "../npm/index.js";

const [program, module] = process.argv.slice(2);
for (const [name, file] of [["the native program", program], ["the module", module]]) {
  if (!file || !existsSync(file)) {
    console.log(`skipped: ${name} is missing (${file}); make web-check builds it`);
    process.exit(0);
  }
}

const project = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "fullstroke-equality-"));
const CLOCKS = ["wall_s", "requests_per_wall_s", "peak_rss_mb"];

/** Returns a value without clocks. */
function withoutClocks(value) {
  if (Array.isArray(value)) return value.map(withoutClocks);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([key]) => !CLOCKS.includes(key));
  return Object.fromEntries(kept.map(([key, inner]) => [key, withoutClocks(inner)]));
}

/** Largest relative difference of a half-width. */
const HALF_WIDTH_SHARE = 1e-13;

/** Returns `found` with the expected half-widths where both agree to the thirteenth digit. */
function withHalfWidths(found, expected, key = "") {
  if (typeof found === "number" && typeof expected === "number" && key.endsWith("half_width")) {
    return Math.abs(found - expected) <= HALF_WIDTH_SHARE * Math.abs(expected) ? expected : found;
  }
  if (Array.isArray(found) && Array.isArray(expected)) return found.map((one, index) => withHalfWidths(one, expected[index], key));
  if (found === null || expected === null || typeof found !== "object" || typeof expected !== "object") return found;
  return Object.fromEntries(Object.entries(found).map(([name, one]) => [name, withHalfWidths(one, expected[name], name)]));
}

/** Returns the number of numbers in a value. */
function numbers(value) {
  if (typeof value === "number") return 1;
  if (value === null || typeof value !== "object") return 0;
  return Object.values(value).reduce((sum, inner) => sum + numbers(inner), 0);
}

function native(...words) {
  const { status, stdout, stderr } = spawnSync(program, [...words, "--json"], { cwd: folder, encoding: "utf8", maxBuffer: 1 << 28 });
  return status === 0 ? JSON.parse(stdout) : { error: stderr.trim().replace(/^fullstroke: /, "").replace(/\s+/g, " ") };
}

const bytes = await WebAssembly.compile(readFileSync(module));

/** Returns a simulator with the files of the folder. */
async function simulator(files) {
  const one = await Fullstroke.load(bytes);
  for (const [path, text] of Object.entries(files)) one.put(path, text);
  return one;
}

function attempt(run) {
  try {
    return run();
  } catch (error) {
    return { error: error.message.replace(/\s+/g, " ") };
  }
}

// The first seconds of the captured database load, without Parquet: the module has no zstd.
execFileSync(program, ["trace", "convert", join(project, "samples/pgbench.parquet"), join(folder, "pgbench.csv"), "--to-format", "msr", "--to", "20s"], { stdio: "ignore" });
const files = { "pgbench.csv": readFileSync(join(folder, "pgbench.csv"), "utf8") };
const copy = (path, text) => {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
  files[path] = text;
};
const demo = readdirSync(join(project, "stacks/demo")).sort();
for (const name of demo) {
  copy(`demo/${name}`, readFileSync(join(project, "stacks/demo", name), "utf8").replace(/path = ".*"/, 'path = "../pgbench.csv"'));
}
for (const name of readdirSync(join(project, "samples/jobs")).filter((name) => name.endsWith(".fio"))) {
  copy(`jobs/${name}`, readFileSync(join(project, "samples/jobs", name), "utf8"));
}
for (const name of readdirSync(join(project, "crates/web/uses"))) {
  copy(`uses/${name}`, readFileSync(join(project, "crates/web/uses", name), "utf8").replace(/^requests = ([\d_]+)/gm, (_, count) => `requests = ${Math.round(Number(count.replaceAll("_", "")) / 80)}`));
}
for (const name of ["bench/raid6-24tb.toml", "bench/raid5-open.toml", "bench/cfq-256.toml", "bench/closed-random-8k-satf.toml", "streaming/raid0-4k.toml", "hosts/raid10.toml", "signals/idle-scrub.toml", "background/mirror.toml"]) {
  copy(`stacks/${name}`, readFileSync(join(project, "stacks", name), "utf8"));
}
copy("broken.toml", "seed = 1\n[volume]\nlayout = \"raid7\"\n");
copy("wishes.toml", `title = "a question"\nstack = "uses/database.toml"\n[drives]\nmodel = "seagate-ironwolf-8tb"\ncount = 4\n[wishes]\nfailures = 1\n[choices]\nlayouts = ["raid10", "raid5"]\nchunks = ["64KiB", "256KiB"]\nelevators = ["mq-deadline"]\nwrite_caches = [true]\nstripe_caches = [256]\n`);

const stacks = demo.map((name) => `demo/${name}`);
const questions = [["compare of the demo", ["compare", ...stacks], (one) => one.compare(stacks)]];
questions.push(["compare of chunks", ["compare", "demo/raid5.toml", "--vary", "volume.chunk=16KiB,256KiB", "--by", "response_ms.p99"], (one) => one.compare(["demo/raid5.toml"], { vary: ["volume.chunk=16KiB,256KiB"], by: "response_ms.p99" })]);
for (const job of Object.keys(files).filter((path) => path.startsWith("jobs/"))) {
  const changes = { fio: job, requests: 3000 };
  questions.push([`run of ${job}`, ["run", "demo/raid6.toml", "--fio", job, "--requests", "3000"], (one) => one.run("demo/raid6.toml", changes)]);
}
for (const use of Object.keys(files).filter((path) => path.startsWith("uses/"))) {
  questions.push([`run of ${use}`, ["run", use, "--set", "volume.layout=raid5", "--set", "volume.drives=5"], (one) => one.run(use, { set: ["volume.layout=raid5", "volume.drives=5"] })]);
}
for (const stack of Object.keys(files).filter((path) => path.startsWith("stacks/"))) {
  questions.push([`run of ${stack}`, ["run", stack, "--requests", "3000"], (one) => one.run(stack, { requests: 3000 })]);
}
questions.push(["a failed drive", ["run", "demo/raid6.toml", "--set", "volume.failed=[0]"], (one) => one.run("demo/raid6.toml", { set: ["volume.failed=[0]"] })]);
questions.push(["a rebuild", ["run", "demo/raid5.toml", "--set", "volume.rebuild=0"], (one) => one.run("demo/raid5.toml", { set: ["volume.rebuild=0"] })]);
questions.push(["a mistake", ["run", "broken.toml"], (one) => one.run("broken.toml")]);
questions.push(["advise", ["advise", "wishes.toml"], (one) => one.advise("wishes.toml")]);

let failed = 0;
let compared = 0;
const seconds = { native: 0, module: 0 };
for (const [name, words, ask] of questions) {
  let began = performance.now();
  const expected = withoutClocks(native(...words));
  seconds.native += (performance.now() - began) / 1000;
  began = performance.now();
  const found = withoutClocks(JSON.parse(JSON.stringify(attempt(await simulator(files).then((one) => () => ask(one))))));
  seconds.module += (performance.now() - began) / 1000;
  try {
    assert.deepEqual(withHalfWidths(found, expected), expected);
    compared += numbers(expected);
    console.log(`ok   ${name}: ${expected.error ? "the same refusal" : `${numbers(expected)} numbers`}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message.split("\n").slice(0, 30).join("\n     ")}`);
  }
}
rmSync(folder, { recursive: true, force: true });
console.log(`${questions.length - failed} of ${questions.length} equal, ${compared} numbers; native ${seconds.native.toFixed(1)} s, module ${seconds.module.toFixed(1)} s`);
process.exit(failed ? 1 : 0);
