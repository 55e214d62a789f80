// Draws the answer. Each function returns elements, or fills an element of the page.

const SVG = "http://www.w3.org/2000/svg";
export const PARTS = ["queue", "parity", "overhead", "cache", "seek", "switch", "rotation", "transfer"];
/** Names of the parts for readers. */
const PART_NAMES = { queue: "queue", parity: "waiting for parity", overhead: "commands and cache", cache: "cache", seek: "arm", switch: "head change", rotation: "rotation", transfer: "transfer" };

/** Returns an element with attributes and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

/** Returns an element of a drawing. */
export function draw(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Returns a number with three digits, such as 12.4 or 1,230. */
export function three(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toLocaleString("en", { maximumFractionDigits: Math.min(digits, 6), minimumFractionDigits: Math.min(digits, 3) });
}

/** Returns bytes in TB or GB. */
export function capacity(bytes) {
  return bytes >= 1e12 ? `${three(bytes / 1e12)} TB` : `${three(bytes / 1e9)} GB`;
}

/** Returns the name of a layout for readers: "raid10 of 6" becomes "RAID 10 of 6 drives". */
export function called(name) {
  const pools = [[/^raidz(\d)(?::(\d+))?/, "RAIDZ$1"], [/^mirror(?::(\d+))?/, "mirrors"], [/^draid(\d)(?::[^ ]+)?/, "dRAID$1"]];
  const [pattern, title] = pools.find(([one]) => one.test(name)) ?? [/^raid(\d+)/, "RAID $1"];
  const width = /^(?:raidz\d|mirror):(\d+)/.exec(name)?.[1];
  return name.replace(/ of (\d+)/, " of $1 drives").replace(pattern, width ? `${title} (groups of ${width})` : title);
}

/** Returns a chance a year in words. Chances of one form can be compared. */
export function chance(share) {
  if (share === null || share === undefined) return "unknown";
  if (share === 0) return "0";
  return share >= 0.2 ? `${Math.round(100 * share)} %` : `1 in ${Number((1 / share).toPrecision(2)).toLocaleString("en")}`;
}

/** Returns a sentence of the simulator with the names of layouts for readers. */
export function readable(sentence) {
  const names = /\b(?:raid\d+|raidz\d(?::\d+)?|mirror(?::\d+)?|draid\d(?::[\w:]+)?) of \d+\b(?: drives)?/g;
  const plain = sentence.replaceAll("response_ms.mean", "mean response time").replaceAll(/response_ms\.p(\d+)/g, "time of $1 % of requests");
  return plain.replaceAll(names, (name) => called(name.replace(/ drives$/, "")));
}

function mayFail(count) {
  return count === 0 ? "no drive may fail" : count === 1 ? "any one drive may fail" : `any ${count} drives may fail`;
}

/** Returns the table of the layouts before any run. */
export function arithmetic(possible) {
  const facts = possible.map((one) =>
    make("li", {}, `${called(one.name)}: ${capacity(one.volume.usable_bytes)} usable, ${mayFail(one.volume.failures_survived)}.`),
  );
  return make("ul", {}, ...facts);
}

/** Returns a bar of a mean with its interval, and a paler bar up to the 99th percentile. */
function bar(mean, half, tail, most) {
  const x = (value) => (100 * Math.max(0, value)) / most;
  const children = [draw("rect", { class: "whole", width: 100, height: 10 })];
  children.push(draw("rect", { class: "tail", width: x(tail), height: 10 }), draw("rect", { class: "mean", y: 2, width: x(mean), height: 6 }));
  if (half !== null && half !== undefined) {
    children.push(draw("line", { class: "whisker", x1: x(mean - half), x2: x(mean + half), y1: 5, y2: 5, "vector-effect": "non-scaling-stroke" }));
  }
  return draw("svg", { class: "track", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, ...children);
}

function stacked(parts, whole) {
  let at = 0;
  const rects = [draw("rect", { class: "whole", width: 100, height: 10 })];
  PARTS.forEach((part, index) => {
    const width = (100 * (parts[part] ?? 0)) / whole;
    rects.push(draw("rect", { class: `p${index}`, x: at, width: Math.max(0, width), height: 10 }));
    at += width;
  });
  return draw("svg", { class: "track", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, ...rects);
}

function legend(parts, whole) {
  const shown = PARTS.map((part, index) => [part, index, (parts[part] ?? 0) / whole]).filter(([, , share]) => share >= 0.005);
  const items = shown.map(([part, index, share]) =>
    make("li", {}, draw("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, draw("rect", { class: `p${index}`, width: 10, height: 10 })), ` ${PART_NAMES[part]} ${Math.round(100 * share)} %`),
  );
  return make("ul", { class: "legend", "aria-label": "Parts of the mean response time" }, ...items);
}

function rows(finalist, ranked, most) {
  const conditions = [
    ["all drives", finalist.healthy, ranked.ci95_half_width_of_mean],
    ["one failed", finalist.degraded, null],
    ["rebuilding", finalist.rebuilding, null],
    ["one slow", finalist.slow, null],
  ];
  const cells = [];
  for (const [name, outcome, half] of conditions) {
    if (!outcome) continue;
    const more = half === null || half === undefined ? "" : ` ± ${Number(half.toPrecision(2))}`;
    cells.push(make("span", { class: "name" }, name), bar(outcome.mean_ms, half, outcome.p99_ms, most));
    cells.push(make("span", { class: "value" }, `${three(outcome.mean_ms)}${more} ms, 99 % in ${three(outcome.p99_ms)} ms`));
  }
  return cells;
}

function tag(ranked, index, settled) {
  if (index === 0) return settled ? "recommended" : "first so far";
  const difference = ranked.difference_to_best;
  if (!ranked.carries) return "cannot keep up with the load";
  if (ranked.equal_to_best) return "as fast";
  if (!difference || difference.half_width === null) return "";
  const sure = difference.significance === "significant";
  return sure ? "" : "speed not told apart from the fastest yet";
}

/** Returns the price and the wear of the flash devices beside the disks. */
function wear(flash) {
  const facts = [flash.devices === 1 ? "a flash device" : `${flash.devices} flash devices`];
  if (flash.price !== null) facts[0] += `, price ${three(flash.price)}`;
  if (flash.written_gb_a_day !== null) facts.push(`${three(flash.written_gb_a_day)} GB a day to flash`);
  if (flash.wear_share_a_year !== null) facts.push(`${three(100 * flash.wear_share_a_year)} % of the flash's rated writes in a year`);
  return facts;
}

function card(finalist, ranked, index, most, settled) {
  const { volume, loss, price } = finalist;
  const facts = [`${capacity(volume.usable_bytes)} usable`, mayFail(volume.failures_survived)];
  facts.push(`chance of loss in a year: ${chance(loss.chance_a_year)}`);
  if (finalist.rebuilding?.rebuild_hours) facts.push(`rebuild ${three(finalist.rebuilding.rebuild_hours)} h`);
  if (finalist.healthy.mean_w) facts.push(`${three(finalist.healthy.mean_w)} W`);
  const { flash } = finalist;
  const leftOut = flash && flash.price === null ? " without flash devices" : "";
  if (price !== null) facts.push(`price ${three(price)}${leftOut}`);
  if (flash) facts.push(...wear(flash));
  const parts = ranked.report.time_ms;
  const whole = ranked.report.response_ms.mean;
  const misses = [...finalist.misses, ...finalist.misses_without_a_drive].map((miss) => miss.why);
  const item = make(
    "li",
    index === 0 ? { class: "first" } : {},
    make("div", { class: "head" }, make("h3", {}, `${index + 1}. ${called(finalist.name)}`), make("span", { class: "tag" }, tag(ranked, index, settled))),
    make("ul", { class: "facts" }, ...facts.map((fact) => make("li", {}, fact))),
    make("div", { class: "bars" }, ...rows(finalist, ranked, most), make("span", { class: "name" }, "where the mean goes"), stacked(parts, whole), make("span", { class: "value" }, "")),
    legend(parts, whole),
  );
  if (misses.length > 0) item.append(make("p", { class: "misses" }, `Missed: ${misses.join("; ")}.`));
  return item;
}

/** Fills the list of finalists from an advice. */
export function finalists(list, advice, settled) {
  const of = (name) => advice.candidates.find((ranked) => ranked.name === name);
  const outcomes = advice.finalists.flatMap((one) => [one.healthy, one.degraded, one.rebuilding, one.slow]).filter(Boolean);
  const most = Math.max(...outcomes.map((one) => one.p99_ms ?? 0), Number.MIN_VALUE);
  const by = advice.by;
  const cards = advice.finalists.map((one, index) => {
    const ranked = of(one.name);
    // The interval belongs to the metric of the ranking; the bar shows the mean.
    const half = by === "response_ms.mean" ? ranked.ci95_half_width : null;
    return card(one, { ...ranked, ci95_half_width_of_mean: half }, index, most, settled);
  });
  list.replaceChildren(...cards);
}

/** Fills a part of the page with sentences, and hides the part without any. Sentences after the first `shown` fold. */
export function sentences(part, texts, shown = Infinity) {
  const items = (some) => some.map((text) => make("li", {}, readable(text)));
  part.hidden = texts.length === 0;
  part.querySelector("details")?.remove();
  part.querySelector("ul").replaceChildren(...items(texts.slice(0, shown)));
  const more = items(texts.slice(shown));
  if (more.length > 0) part.append(make("details", {}, make("summary", {}, `${more.length} more`), make("ul", {}, ...more)));
}

const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** Returns the answer as a page that needs nothing else: the question, the drawings, the stack file and all numbers. */
export function report(found, question, command, stack, advice) {
  const body = found.cloneNode(true);
  for (const id of ["#take", "#progress", "#arithmetic", "#watch"]) body.querySelector(id)?.remove();
  for (const hidden of body.querySelectorAll("[hidden]")) hidden.remove();
  for (const folded of body.querySelectorAll("details")) folded.open = true;
  body.removeAttribute("id");
  const rules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).map((rule) => rule.cssText);
  const asked = question.map(([label, value]) => `<dt>${escaped(label)}</dt><dd>${escaped(value)}</dd>`);
  const title = escaped(body.querySelector("#verdict").textContent);
  // "<" in a text of the data must not end the element.
  const data = JSON.stringify(advice).replaceAll("<", "\\u003c");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${rules.join("\n")}</style>
</head>
<body>
<main class="report">
<section><h1>Which array for these drives?</h1><dl>${asked.join("")}</dl></section>
<section>${body.innerHTML}</section>
<section><h2>The stack file</h2><pre>${escaped(stack)}</pre><p>The same question on the command line: <code>${escaped(command)}</code></p></section>
</main>
<script type="application/json" id="answer">${data}</script>
</body>
</html>
`;
}
