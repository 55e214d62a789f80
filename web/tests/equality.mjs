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
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { Fullstroke } from "../npm/index.js";

// The program runs in another folder.
const [program, module] = process.argv.slice(2).map((path) => resolve(path));
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
const READY = "crates/input/stack/src/ready";
for (const name of readdirSync(join(project, READY))) {
  copy(`uses/${name}`, readFileSync(join(project, READY, name), "utf8").replace(/^requests = ([\d_]+)/gm, (_, count) => `requests = ${Math.round(Number(count.replaceAll("_", "")) / 20)}`));
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

// Questions of the bank, as people ask them: questions/*.toml.
const OPTIONS = { "--set": "set", "--vary": "vary", "--by": "by", "--requests": "requests", "--fio": "fio", "--drive": "drive" };

/** Returns the words of a command line. */
const wordsOf = (line) => Array.from(line.matchAll(/'([^']*)'|(\S+)/g), ([, quoted, plain]) => quoted ?? plain);

/** Returns a question of the bank as a question of this test; null if the module has no such command or file. */
function ofBank(text) {
  const value = (key) => JSON.parse(new RegExp(`^${key} = (".*")$`, "m").exec(text)?.[1] ?? '""');
  const [, command, ...words] = wordsOf(`${value("command")} ${value("short")}`);
  if (!["run", "compare"].includes(command) || value("short") === "") return null;
  const asked = { set: [], vary: [] };
  const files = [];
  const native = [command];
  while (words.length > 0) {
    const word = words.shift();
    if (word.startsWith("--")) {
      const key = OPTIONS[word];
      if (!key) return null;
      const given = key === "fio" ? words.shift().replace("samples/", "") : words.shift();
      native.push(word, given);
      if (Array.isArray(asked[key])) asked[key].push(given);
      else asked[key] = key === "requests" ? Number(given) : given;
    } else {
      const path = word.replace("stacks/demo/", "demo/");
      if (!files.includes(path)) files.push(path);
      native.push(path);
    }
  }
  for (const path of files.filter((path) => path.startsWith("stacks/"))) copy(path, readFileSync(join(project, path), "utf8"));
  if (files.some((path) => /parquet|"\.\./.test(stackOf(path)))) return null;
  const { vary, by, ...changes } = asked;
  const ask = command === "run" ? (one) => one.run(files[0], changes) : (one) => one.compare(files, { vary, by, changes });
  return [native, ask];
}

const stackOf = (path) => (path.startsWith("demo/") ? "" : files[path]);
let ofTheBank = 0;
for (const name of readdirSync(join(project, "questions")).sort()) {
  const asked = ofBank(readFileSync(join(project, "questions", name), "utf8"));
  if (asked) {
    ofTheBank += 1;
    questions.push([`question ${name}`, ...asked]);
  }
}
assert.ok(ofTheBank >= 20, `${ofTheBank} questions of the bank`);

// An unknown key is refused with the known keys: the module has their names without the schemas of the program.
const kinds = {};
(function walk(value) {
  if (value === null || typeof value !== "object") return;
  for (const [key, inner] of Object.entries(value.properties ?? {})) if (inner?.const) (kinds[key] ??= new Set()).add(inner.const);
  Object.values(value).forEach(walk);
})(JSON.parse(readFileSync(join(project, "schemas/stack.json"), "utf8")));
const mistakes = [["volume.nokey=1"], ["chunk=1"], ["measurement.nokey=1"], ["controller.nokey=1"], ["controller.destage={ nokey = 1 }"], ["host.memory={ size = \"1GiB\", nokey = 1 }"], ["volume.slow={ member = 0, nokey = 1 }"], ["volume.drive_settings.queue.nokey=1"]];
for (const name of kinds.layout) mistakes.push([`volume.layout=${name}`, "volume.nokey=1"]);
for (const name of kinds.elevator) mistakes.push([`host.elevator=${name}`, "host.nokey=1"]);
for (const name of kinds.process) mistakes.push([`workload={ kind = "synthetic", requests = 1, arrivals = { process = "${name}", nokey = 1 } }`]);
for (const name of kinds.pattern) mistakes.push([`workload={ kind = "synthetic", requests = 1, arrivals = { process = "closed" }, addresses = { pattern = "${name}", nokey = 1 } }`]);
for (const name of kinds.kind) for (const table of ["workload", "cache", "link"]) mistakes.push([`${table}={ kind = "${name}", nokey = 1 }`]);
const refused = mistakes.map((set) => [set, native("run", "demo/raid5.toml", ...set.flatMap((one) => ["--set", one])).error]);
const named = refused.filter(([, error]) => error?.includes("known here"));
assert.ok(named.length >= 30, `${named.length} refusals name the known keys`);
for (const [set] of named) {
  questions.push([`the mistake ${set.join(", ")}`, ["run", "demo/raid5.toml", ...set.flatMap((one) => ["--set", one])], (one) => one.run("demo/raid5.toml", { set })]);
}

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
