// Measures the CPU time of the demo in the module against the native program, in pairs, so that other work on the machine
// falls on both.
//
//   node tools/web-speed.mjs PROGRAM MODULE [PAIRS]

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [program, module] = process.argv.slice(2, 4).map((path) => resolve(path));
const pairs = Number(process.argv[4] ?? 5);
const project = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "fullstroke-speed-"));

// The module has no Parquet, so both read the captured trace as CSV.
execFileSync(program, ["trace", "convert", join(project, "samples/pgbench.parquet"), join(folder, "pgbench.csv"), "--to-format", "msr"], { stdio: "ignore" });
mkdirSync(join(folder, "demo"));
const stacks = readdirSync(join(project, "stacks/demo")).sort();
for (const name of stacks) {
  writeFileSync(join(folder, "demo", name), readFileSync(join(project, "stacks/demo", name), "utf8").replace(/path = ".*"/, 'path = "../pgbench.csv"'));
}
writeFileSync(join(folder, "module.mjs"), `import { readFileSync } from "node:fs";
import { Fullstroke } from ${JSON.stringify(join(project, "web/npm/index.js"))};
const one = await Fullstroke.load(await WebAssembly.compile(readFileSync(${JSON.stringify(module)})));
const names = ${JSON.stringify(["pgbench.csv", ...stacks.map((name) => `demo/${name}`)])};
for (const name of names) one.put(name, readFileSync(name));
console.log(one.compare(names.slice(1)).candidates.length);
`);

/** Returns the CPU seconds of a command, user and system, of all its threads. */
function seconds(command) {
  const said = execFileSync("sh", ["-c", `${command} >/dev/null && times`], { cwd: folder, encoding: "utf8" });
  const [user, system] = said.trim().split("\n").at(-1).split(" ").map((time) => {
    const [minutes, rest] = time.split("m");
    return 60 * Number(minutes) + Number.parseFloat(rest);
  });
  return user + system;
}

const median = (values) => values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
const native = `'${program}' compare ${stacks.map((name) => `demo/${name}`).join(" ")} --json --jobs 1`;
const measured = Array.from({ length: pairs }, () => [seconds(native), seconds("node module.mjs")]);
for (const [one, other] of measured) console.log(`native ${one.toFixed(2)} s, module ${other.toFixed(2)} s: ${(other / one).toFixed(2)}`);
console.log(`the demo needs ${median(measured.map(([one, other]) => other / one)).toFixed(2)} times the CPU time of the native program (median of ${pairs} pairs; the goal is 1.6)`);
rmSync(folder, { recursive: true, force: true });
