// Prints the sizes of the page's files, plain and with brotli, and holds them to their limits.
//
//   node tools/web-sizes.mjs target/site

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";

const folder = process.argv[2];
const FIRST = ["index.html", "looks.css", "style.css", "app.js", "engine.js", "show.js", "watch.js", "worker.js", "icon.svg"];
/** Limits in bytes with brotli: files before the module, and the module. The goal of the module is 1,200,000. */
const LIMITS = { first: 300_000, module: 1_450_000 };

const size = (name) => {
  const bytes = readFileSync(join(folder, name));
  const options = { params: { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_LGWIN]: 24, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
  return [bytes.length, brotliCompressSync(bytes, options).length];
};
const sum = (sizes) => sizes.reduce(([plain, packed], [one, other]) => [plain + one, packed + other], [0, 0]);
const row = (name, [plain, packed], limit) =>
  console.log(`${name.padEnd(18)}${plain.toLocaleString("en").padStart(12)}${packed.toLocaleString("en").padStart(12)}${(limit?.toLocaleString("en") ?? "").padStart(12)}`);

console.log(`${"".padEnd(18)}${"bytes".padStart(12)}${"brotli".padStart(12)}${"limit".padStart(12)}`);
const first = FIRST.map((name) => [name, size(name)]);
for (const [name, sizes] of first) row(name, sizes);
const view = sum(first.map(([, sizes]) => sizes));
row("first view", view, LIMITS.first);
const module = size("fullstroke.wasm");
row("module", module, LIMITS.module);
if (view[1] > LIMITS.first || module[1] > LIMITS.module) {
  console.error("a size is above its limit");
  process.exit(1);
}
