// The page: a question in a form, and the answer as it becomes surer.

import { Engine, Refusal, Stopped, hindrance } from "./engine.js";
import { Watch } from "./watch.js";
import { arithmetic, called, capacity, finalists, make, report, sentences, three } from "./show.js";

const at = (id) => document.getElementById(id);
/** Largest file: the module's memory ends at 4 GiB, and holds a file twice for a moment. */
const FILE_BYTES_MAX = 1 << 30;
/** Largest file inside a link. */
const LINK_BYTES_MAX = 6000;
/** Settings of each layout: those of a new md array. */
const CHOICES = {
  layouts: ["raid10", "raid5", "raid6", "raid0"],
  chunks: ["512KiB"],
  elevators: ["mq-deadline"],
  write_caches: [true],
  stripe_caches: [256],
  controllers: ["none"],
};
/** Pools that are tried beside the reader's own. */
const POOLS = ["mirror:2", "raidz1", "raidz2"];
/** Number of reasons before the others fold. */
const SHOWN_REASONS = 7;
const LOAD = "load.toml";
const FIRST_DRIVE = "seagate-exos-x16-16tb";
const FIRST_USE = "films-and-backup";

let engine;
let drives = [];
let uses = [];
/** The reader's own load: { name, bytes, kind, text, path }; text is the stack file with the load. */
let own = null;
/** The reader's own drive: { name, bytes, path }. */
let ownDrive = null;
/** The shape of the reader's own pool, such as raidz2:6. Pools are tried beside arrays then. */
let pool = null;
/** Number of the question. A step of an older question is ignored. */
let asked = 0;
let latest = null;
/** The drawing of the drives at work. */
let watch;

function problem(text) {
  at("problem").textContent = text ?? "";
  at("problem").hidden = !text;
}

function told(error) {
  if (error instanceof Stopped) return;
  problem(error instanceof Refusal ? error.message : `The page has a fault: ${error.message ?? error}`);
}

function busy(is) {
  at("stop").hidden = !is;
  at("progress").hidden = !is;
  at("found").setAttribute("aria-busy", String(is));
}

// ---- The form.

function fillDrives() {
  const option = (drive) => make("option", { value: drive.name }, `${drive.title}`);
  const bySize = [...drives].sort((one, other) => other.capacity_bytes - one.capacity_bytes);
  const groups = [
    ["10 TB and more", (bytes) => bytes >= 10e12],
    ["1 TB to 10 TB", (bytes) => bytes >= 1e12 && bytes < 10e12],
    ["Below 1 TB", (bytes) => bytes < 1e12],
  ];
  const filled = groups.map(([label, fits]) => make("optgroup", { label }, ...bySize.filter((drive) => fits(drive.capacity_bytes)).map(option)));
  at("drive").replaceChildren(...filled);
  at("drive").value = FIRST_DRIVE;
}

/** Returns the bytes of the chosen drive. */
function chosenCapacity() {
  return drives.find((one) => one.name === at("drive").value)?.capacity_bytes ?? Infinity;
}

function tellDrive() {
  const drive = drives.find((one) => one.name === at("drive").value);
  at("drive-facts").textContent = drive
    ? `${capacity(drive.capacity_bytes)}, ${Math.round(drive.rpm).toLocaleString("en")} revolutions a minute, ${three(drive.inner_mb_per_s)} to ${three(drive.outer_mb_per_s)} MB/s`
    : "";
}

function fillUses() {
  const begun = (text) => text[0].toUpperCase() + text.slice(1);
  at("use").replaceChildren(...uses.map((use) => make("option", { value: use.name }, begun(use.what))));
  at("use").value = FIRST_USE;
}

function tellUse() {
  const use = uses.find((one) => one.name === at("use").value);
  at("use-about").textContent = own ? "" : (use?.about ?? "");
  at("use").disabled = own !== null;
  at("forget").hidden = own === null && pool === null;
}

/** Returns a TOML string. */
const quoted = (text) => JSON.stringify(text);

/** Returns the stack file for a file of the reader's, and a sentence about the file. */
function loadOf(name, path, found) {
  const volume = `\n[volume]\nlayout = "raid0"\ndrive = "seagate-exos-x16-16tb"\ndrives = 2\n`;
  if (found.kind === "trace") {
    const { format, requests, duration_s } = found.trace;
    const about = `${name}: a trace (${format}), ${requests.toLocaleString("en")} requests in ${three(duration_s)} s`;
    return [`title = ${quoted(name)}\nseed = 1\n[workload]\nkind = "trace"\npath = ${quoted(path)}\nbeyond = "scale"\n${volume}`, about];
  }
  if (found.kind === "fio") {
    if (found.of_files) throw new Refusal(`${name}: the job works on files, and the page has no file system below it; expected a job with filename=/dev/..., or use the command line`);
    return [`title = ${quoted(name)}\nseed = 1\n[workload]\nkind = "fio"\npath = ${quoted(path)}\n${volume}`, `${name}: a job file of fio`];
  }
  if (found.kind === "array" || found.kind === "pool") {
    const [array] = found.arrays;
    at("count").value = array.drives;
    tellCount();
    if (array.drive) at("drive").value = array.drive;
    pool = found.kind === "pool" ? array.shape : null;
    tellDrive();
    const more = found.arrays.length > 1 ? ` The file has ${found.arrays.length}; this is the first.` : "";
    const tried = pool ? " Pools are tried beside arrays." : "";
    return [null, `${name}: ${array.name || "an array"}, ${array.layout} of ${array.drives} drives.${more} The form has ${array.drive ? "the nearest drives" : "their number"} now; the load stays.${tried}`];
  }
  if (found.kind === "load") {
    const { device, tool, reads_per_s, writes_per_s } = found.load;
    return [found.stack, `${name}: ${tool}, the disk ${device}: ${three(reads_per_s)} reads and ${three(writes_per_s)} writes a second. Times and places are random, because the file has none.`];
  }
  if (found.kind === "drive") {
    return [null, `${name}: a drive file, ${found.drive.title}. The form has this drive now.`];
  }
  if (found.kind === "stack") return ["", `${name}: a stack file. Its load is used, and its volume is not.`];
  throw new Refusal(`${name}: a wish file names further files that the page does not have; drop the stack file with the load, or use the command line: fullstroke advise`);
}

/** Adds the drive of a file to the form, and chooses the drive. */
function addDrive(name, bytes, facts) {
  ownDrive = { name, bytes, path: facts.name };
  drives = [...drives.filter((one) => one.name !== facts.name), facts];
  at("drive").querySelector("#own-drive")?.remove();
  at("drive").prepend(make("optgroup", { id: "own-drive", label: "Your own" }, make("option", { value: facts.name }, facts.title)));
  at("drive").value = facts.name;
  tellDrive();
}

async function takeFile(name, bytes) {
  const path = `own/${name}`;
  at("file-facts").textContent = `${name} is being read …`;
  try {
    await engine.put(path, bytes);
    const found = await engine.call({ command: "recognise", file: path });
    const [text, about] = loadOf(name, path, found);
    if (text !== null) own = { name, bytes, kind: found.kind, text, path };
    if (found.kind === "drive") addDrive(name, bytes, found.drive);
    at("file-facts").textContent = about;
    problem(null);
  } catch (error) {
    own = null;
    engine?.files.delete(path);
    at("file-facts").textContent = "";
    at("file").value = "";
    told(error);
  }
  tellUse();
}

async function fileChosen() {
  const file = at("file").files[0];
  if (!file) return;
  if (file.size > FILE_BYTES_MAX) {
    problem(`${file.name}: found ${three(file.size / 2 ** 30)} GiB; the page takes files up to 1 GiB. The command line has no such limit: fullstroke advise … --trace FILE`);
    at("file").value = "";
    return;
  }
  // An answer stays usable: only a run in progress ends.
  if (at("stop").hidden === false) await stop();
  await takeFile(file.name, await file.arrayBuffer());
}

async function forget() {
  if (own) {
    engine.files.delete(own.path);
    engine.call({ command: "remove", file: own.path }).catch(() => {});
  }
  own = null;
  pool = null;
  at("file").value = "";
  at("file-facts").textContent = "";
  tellUse();
}

// ---- The question.

/** Returns the factor of the load: each step of the slider is half of a doubling. */
function factor() {
  return Number((2 ** (Number(at("load").value) / 2)).toPrecision(3));
}

function tellLoad() {
  const said = factor() === 1 ? "as described" : `${factor()} times`;
  at("load-said").textContent = said;
  at("load").setAttribute("aria-valuetext", said);
}

/** Hours until a failed drive is replaced, by the place of the slider, each with its words. */
const REPLACED = [[1, "an hour"], [4, "4 hours"], [12, "12 hours"], [24, "a day"], [72, "3 days"], [168, "a week"], [672, "4 weeks"]];
/** Place of the slider for the assumption of the command line. */
const REPLACED_FIRST = 3;

const replaced = () => REPLACED[Number(at("replace").value)] ?? REPLACED[REPLACED_FIRST];

function tellReplaced() {
  const [, said] = replaced();
  at("replace-said").textContent = said;
  at("replace").setAttribute("aria-valuetext", said);
}

/** Puts the number of drives of the form at the slider. */
function tellCount() {
  at("drives-slider").value = at("count").value;
  at("drives-said").textContent = at("count").value;
}

/** Returns the question of the form. */
function question() {
  const number = (id) => (at(id).value === "" ? null : Number(at(id).value));
  const wishes = { failures: Number(at("failures").value) };
  if (number("usable") !== null) wishes.usable = `${Math.round(number("usable") * 1e6)}MB`;
  if (number("p99") !== null) wishes.p99 = `${number("p99")}ms`;
  if (number("mb-per-s") !== null) wishes.mb_per_s = number("mb-per-s");
  if (number("watts") !== null) wishes.watts = number("watts");
  if (number("price") !== null) wishes.price = number("price");
  const choices = pool ? { ...CHOICES, layouts: [...new Set([pool, ...POOLS, ...CHOICES.layouts])], recordsizes: ["128KiB"] } : CHOICES;
  const chosen = { drive: at("drive").value, counts: [Number(at("count").value)], wishes, choices, assumptions: { replace_hours: replaced()[0] }, load: factor() };
  if (number("drive-price") !== null) chosen.drive_price = number("drive-price");
  return chosen;
}

const FIELDS = ["drive", "count", "use", "failures", "usable", "p99", "mb-per-s", "watts", "drive-price", "price", "load", "replace"];

/** Returns the question as it stands in a link. */
function fields() {
  const filled = FIELDS.map((id) => [id, at(id).value]).filter(([, value]) => value !== "");
  const state = Object.fromEntries(filled);
  const text = (bytes) => btoa(Array.from(new Uint8Array(bytes), (byte) => String.fromCharCode(byte)).join(""));
  const fits = (one) => one && one.bytes.byteLength <= LINK_BYTES_MAX;
  const files = [own, at("drive").value === ownDrive?.path ? ownDrive : null].filter(fits);
  if (files.length > 0) state.files = files.map(({ name, bytes }) => [name, text(bytes)]);
  if (pool) state.pool = pool;
  return state;
}

/** Returns the names of the files that are too large for a link. */
function leftBehind() {
  const used = [own, at("drive").value === ownDrive?.path ? ownDrive : null];
  return used.filter((one) => one && one.bytes.byteLength > LINK_BYTES_MAX).map((one) => one.name);
}

/** Returns the command that asks the same on the command line. */
function command() {
  const word = (text) => (/^[\w.:/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
  const load = own === null ? `load:${at("use").value}` : own.kind === "stack" ? word(own.name) : own.kind === "load" ? "-" : "load:office";
  // The text of iostat becomes a stack file on the way.
  const words = [own?.kind === "load" ? `fullstroke like ${word(own.name)} | fullstroke advise` : "fullstroke advise", load];
  if (own?.kind === "trace") words.push("--trace", word(own.name), "--beyond", "scale");
  if (own?.kind === "fio") words.push("--fio", word(own.name));
  const drive = at("drive").value;
  words.push("--drive", word(drive === ownDrive?.path ? ownDrive.name : drive), "--drives", at("count").value);
  const options = [["failures", ""], ["usable", "TB"], ["p99", "ms"], ["mb-per-s", ""], ["watts", ""], ["drive-price", ""], ["price", ""]];
  for (const [id, unit] of options) if (at(id).value !== "") words.push(`--${id}`, `${at(id).value}${unit}`);
  if (Number(at("replace").value) !== REPLACED_FIRST) words.push("--replace-hours", String(replaced()[0]));
  return words.join(" ");
}

const packed = (state) => btoa(unescape(encodeURIComponent(JSON.stringify(state)))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
const unpacked = (text) => JSON.parse(decodeURIComponent(escape(atob(text.replaceAll("-", "+").replaceAll("_", "/")))));

/** Fills the form from the fragment of the address. Returns true if there was a question. */
async function fromLink() {
  const text = new URLSearchParams(location.hash.slice(1)).get("q");
  if (!text) return false;
  try {
    const { files = [], pool: shape, ...values } = unpacked(text);
    for (const [name, bytes] of files) await takeFile(String(name), Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0)).buffer);
    for (const id of FIELDS) if (values[id] !== undefined) at(id).value = String(values[id]);
    if (typeof shape === "string") pool = shape;
    return at("drive").value !== "";
  } catch {
    problem("The link is damaged: its question cannot be read. Fill in the form.");
    return false;
  }
}

async function stop() {
  asked += 1;
  busy(false);
  watch.end();
  await engine.stop();
}

/** Asks the question, and takes step after step until the answer is settled. */
async function ask() {
  if (at("stop").hidden === false) await stop();
  const number = ++asked;
  problem(null);
  latest = null;
  at("found").hidden = false;
  at("take").hidden = true;
  watch.end();
  for (const id of ["reasons", "changes", "left-out", "arithmetic", "key"]) at(id).hidden = true;
  at("finalists").replaceChildren();
  at("verdict").textContent = "The layouts are being tried …";
  at("state").textContent = "";
  at("state").dataset.over = "false";
  busy(true);
  history.replaceState(null, "", `#q=${packed(fields())}`);
  const text = own ? (own.kind === "stack" ? null : own.text) : uses.find((use) => use.name === at("use").value).text;
  const stack = text === null ? own.path : LOAD;
  try {
    if (text !== null) await engine.put(LOAD, new TextEncoder().encode(text).buffer);
    const asks = { command: "ask", stack, ...question() };
    const { possible, left_out, conditions } = await engine.call(asks);
    if (number !== asked) return;
    at("arithmetic").replaceChildren(arithmetic(possible));
    at("arithmetic").hidden = false;
    sentences(at("left-out"), left_out.map((one) => `${called(`${one.layout} of ${one.drives}`)}: ${one.why}.`));
    await answer(asks, conditions, (step) => {
      if (number !== asked) throw new Stopped();
      show(step.progress, step.advice);
      return step.progress;
    });
    engine.endHelpers();
    busy(false);
    await watch.begin(latest);
  } catch (error) {
    if (number !== asked) return;
    asked += 1;
    engine.endHelpers();
    busy(false);
    if (!latest) at("found").hidden = true;
    told(error);
  }
}

/** Runs the rounds in the first worker, and the conditions of each layout in all workers. */
async function answer(asks, conditions, seen) {
  const open = [...conditions];
  const drain = async (lane) => {
    while (open.length > 0) {
      const outcome = await lane.call({ command: "outcome", ...open.shift() });
      seen(await engine.call({ command: "take-outcome", ...outcome }));
    }
  };
  const help = async () => {
    const lane = await engine.helper();
    await lane.call(asks);
    await drain(lane);
  };
  const step = async () => seen(await engine.call({ command: "step" }));
  // The first ranking comes before all else: on few cores helpers would delay it.
  let last;
  do last = await step();
  while (!last.renewed);
  const lead = async () => {
    while (!last.rounds_over) last = await step();
    await drain(engine.main);
  };
  await Promise.all([lead(), ...Array.from({ length: engine.helpersFor(open.length) }, help)]);
}

function show(progress, advice) {
  at("progress").value = 0;
  if (advice) {
    latest = advice;
    at("arithmetic").hidden = true;
    const first = advice.finalists[0];
    const settled = progress.settled || progress.whole_load;
    const meets = first.misses.length === 0;
    at("verdict").textContent = meets ? `Take ${called(first.name)}` : `No layout meets each wish; nearest is ${called(first.name)}`;
    finalists(at("finalists"), advice, settled);
    at("key").hidden = false;
    sentences(at("reasons"), progress.over ? advice.recommendation : [advice.verdict].filter(Boolean), SHOWN_REASONS);
    // The layouts left out have a list of their own.
    sentences(at("changes"), progress.over ? advice.would_change.filter((text) => !text.includes(" was left out: ")) : []);
  }
  const requests = progress.requests.toLocaleString("en");
  const narrowing = progress.settled && progress.next.includes("with all drives");
  const open = progress.whole_load ? "The whole load has run" : "The longest run is over";
  const sure = narrowing
    ? `The order is settled after ${requests} requests each; the intervals narrow.`
    : progress.settled
    ? `Settled: longer runs would not change the order. ${requests} requests each.`
    : progress.whole_load || progress.over
      ? `${open}, ${requests} requests each. Differences below their intervals stay open.`
      : progress.requests === 0
        ? ""
        : `${requests} requests each so far; the intervals narrow.`;
  at("state").textContent = progress.over ? sure : `${sure} Next: ${called(progress.next)}.`;
  at("state").dataset.over = String(progress.over);
  if (progress.over) {
    at("take").hidden = false;
    const large = leftBehind();
    at("taken").textContent = large.length > 0 ? `A link does not hold ${large.join(", ")}: above ${LINK_BYTES_MAX.toLocaleString("en")} bytes a file stays here.` : "";
    at("command").textContent = command();
  }
}

function save(name, text, type) {
  const link = make("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function saveStack() {
  const name = latest.recommended;
  try {
    const { text } = await engine.call({ command: "stack-file", name });
    save(`${name.replaceAll(/[ :]/g, "-")}.toml`, text, "application/toml");
  } catch (error) {
    told(error);
  }
}

/** Saves the answer as one file that needs nothing else. */
async function saveReport() {
  try {
    const { text } = await engine.call({ command: "stack-file", name: latest.recommended });
    save(`${latest.recommended.replaceAll(/[ :]/g, "-")}.html`, report(at("found"), questionInWords(), command(), text, latest), "text/html");
  } catch (error) {
    told(error);
  }
}

/** Returns the question as pairs of a label and a value. */
function questionInWords() {
  const chosen = (id) => at(id).selectedOptions[0]?.text ?? at(id).value;
  const pairs = [["Drives", `${at("count").value} of ${chosen("drive")}`], ["Load", own ? at("file-facts").textContent : `${chosen("use")}. ${at("use-about").textContent}`]];
  pairs.push(["A failed drive is replaced after", replaced()[1]]);
  pairs.push(["Load, times", at("load-said").textContent], ["Failed drives without loss", chosen("failures")]);
  const wishes = [["usable", "Usable, TB"], ["p99", "99 % within, ms"], ["mb-per-s", "MB/s"], ["watts", "Watts"], ["drive-price", "Price of a drive"], ["price", "Price of all drives"]];
  for (const [id, label] of wishes) if (at(id).value !== "") pairs.push([label, at(id).value]);
  return pairs;
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    at("taken").textContent = "The link is copied.";
  } catch {
    at("taken").textContent = `The browser does not copy here. The link is the address of this page: ${location.href}`;
  }
}

function listen() {
  at("question").addEventListener("submit", (event) => {
    event.preventDefault();
    ask();
    if (matchMedia("(max-width: 56rem)").matches) at("answer").scrollIntoView();
    at("answer").focus({ preventScroll: true });
  });
  at("load").addEventListener("input", tellLoad);
  at("replace").addEventListener("input", tellReplaced);
  at("count").addEventListener("input", tellCount);
  at("drives-slider").addEventListener("input", () => {
    at("count").value = at("drives-slider").value;
    tellCount();
  });
  // A reader who has an answer sees the next one without a further click.
  for (const id of ["load", "drives-slider", "replace", "count", "failures", "drive", "use"]) {
    at(id).addEventListener("change", () => latest && at("question").reportValidity() && ask());
  }
  at("drive").addEventListener("change", tellDrive);
  at("use").addEventListener("change", tellUse);
  at("file").addEventListener("change", fileChosen);
  at("forget").addEventListener("click", forget);
  at("stop").addEventListener("click", () => {
    stop();
    at("state").textContent += " Stopped.";
  });
  at("link").addEventListener("click", copyLink);
  at("stack").addEventListener("click", saveStack);
  at("report").addEventListener("click", saveReport);
  at("json").addEventListener("click", () => save("answer.json", JSON.stringify(latest, null, 2), "application/json"));
  const form = at("question");
  for (const kind of ["dragenter", "dragover"]) addEventListener(kind, (event) => (event.preventDefault(), form.classList.add("over")));
  for (const kind of ["dragleave", "drop"]) addEventListener(kind, (event) => (event.preventDefault(), form.classList.remove("over")));
  addEventListener("drop", (event) => {
    if (event.dataTransfer.files.length > 1) return problem(`Found ${event.dataTransfer.files.length} files; the page takes one at a time.`);
    at("file").files = event.dataTransfer.files;
    fileChosen();
  });
}

async function begin() {
  const why = hindrance();
  if (why) return problem(why);
  try {
    engine = await Engine.load((share) => {
      if (share === null) at("progress").removeAttribute("value");
      else at("progress").value = share;
    });
    [drives, uses] = await Promise.all([engine.call({ command: "drives" }), engine.call({ command: "uses" })]);
    const { version } = await engine.call({ command: "version" });
    at("version").textContent = `Version ${version}.`;
  } catch (error) {
    return told(error);
  }
  fillDrives();
  fillUses();
  watch = new Watch((name, condition) => engine.call({ command: "watch", name, condition }), chosenCapacity, told);
  listen();
  const linked = await fromLink();
  tellDrive();
  tellUse();
  tellLoad();
  tellCount();
  tellReplaced();
  at("private").textContent = "Files never leave this browser: the page has forbidden itself every connection.";
  at("go").disabled = false;
  if (linked) ask();
}

if ("serviceWorker" in navigator && location.protocol !== "file:") {
  // Without the service worker the page only needs a network at its next load.
  navigator.serviceWorker.register("sw.js").catch(() => {});
}
begin();
