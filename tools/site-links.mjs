// Checks each link and file of a site: what an attribute or the service worker names must exist, with its anchor, and no
// page loads anything from elsewhere.
//
//   node tools/site-links.mjs target/site

import { existsSync, readFileSync, readdirSync, statSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const site = resolve(process.argv[2]);
const pages = readdirSync(site, { recursive: true }).filter((name) => name.endsWith(".html")).map((name) => join(site, name));
const texts = new Map();
const textOf = (file) => texts.get(file) ?? texts.set(file, readFileSync(file, "utf8").replace(/<!--[\s\S]*?-->/g, "")).get(file);
const anchors = (file) => new Set(Array.from(textOf(file).matchAll(/\s(?:id|name)="([^"]*)"/g), ([, name]) => name));
const faults = [];
let checked = 0;

for (const page of pages) {
  const where = relative(site, page);
  const base = /<base\s+href="([^"]*)"/.exec(textOf(page))?.[1] ?? "";
  for (const [, element, attribute, target] of textOf(page).matchAll(/<(\w+)[^>]*?\s(href|src)="([^"]*)"/g)) {
    checked += 1;
    if (/^(https?:)?\/\//.test(target)) {
      if (element !== "a") faults.push(`${where}: ${element} loads ${target}`);
      continue;
    }
    if (/^(mailto|data):/.test(target) || element === "base") continue;
    const [path, anchor] = target.split("#");
    // mdBook's page for missing addresses counts from the root of the book.
    const root = base ? join(site, "book") : dirname(page);
    let file = path === "" ? page : resolve(root, decodeURIComponent(path.replace(/\?.*/, "")).replace(/^\//, ""));
    if (existsSync(file) && statSync(file).isDirectory()) file = join(file, "index.html");
    if (!existsSync(file)) faults.push(`${where}: ${attribute}="${target}" is missing`);
    else if (anchor && file.endsWith(".html") && !anchors(file).has(decodeURIComponent(anchor))) faults.push(`${where}: ${target} has no such anchor`);
  }
}

// The page's own policy: nothing but files of the site, and nothing inline.
const policy = /Content-Security-Policy" content="([^"]*)"/.exec(textOf(join(site, "index.html")))?.[1] ?? "";
for (const part of ["default-src 'none'", "script-src 'self' 'wasm-unsafe-eval'", "connect-src 'self'"]) if (!policy.includes(part)) faults.push(`index.html: its policy has no ${part}`);
if (/unsafe-inline|https?:|\*/.test(policy)) faults.push(`index.html: its policy allows more than the site: ${policy}`);

// The service worker keeps each file that the page loads.
const kept = JSON.parse(/const FILES = (\[.*\]);/.exec(readFileSync(join(site, "sw.js"), "utf8"))[1]);
for (const name of kept) if (!existsSync(join(site, name === "./" ? "index.html" : name))) faults.push(`sw.js: ${name} is missing`);
for (const name of readdirSync(site).filter((name) => /\.(js|css|svg|wasm)$/.test(name) && name !== "sw.js")) if (!kept.includes(name)) faults.push(`sw.js: does not keep ${name}`);

for (const fault of faults) console.error(fault);
console.log(`${pages.length} pages, ${checked} links, ${faults.length} faults`);
process.exit(faults.length > 0 ? 1 : 0);
