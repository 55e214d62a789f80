"use strict";
// A status several times a second, drawn: heads, queues, response times, watts.
const COLUMNS = 120, WIDTH = 760, LEFT = 80, RIGHT = WIDTH - 12;
const BOUNDS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 7.5, 10, 15, 25, 50, 100, 250, 500, 1000, 2500];
const views = new Map();

const element = (name, attributes = {}, text) => {
  const svg = ["svg", "rect", "path", "text", "title", "desc", "circle"].includes(name);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
};
const number = (value) => (!Number.isFinite(value) ? "–" : Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2));
const set = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const percent = (share) => `${(Math.floor(1000 * share) / 10).toFixed(1)} %`;
const span = (seconds) => seconds < 100 ? `${seconds.toFixed(0)} s` : seconds < 6000 ? `${(seconds / 60).toFixed(0)} min` : `${(seconds / 3600).toFixed(1)} h`;
const rebuildWords = ({ member, share, mb_per_s: speed, left_s: left }) =>
  `Rebuilding ${member}: ${percent(share)}${speed == null ? "" : `, ${speed.toFixed(1)} MB/s`}${left == null ? "" : `, ${span(left)} left`}.`;

class View {
  constructor(parent, first) {
    this.root = element("section");
    this.title = this.root.appendChild(element("h2"));
    const list = this.root.appendChild(element("dl"));
    this.fields = new Map();
    for (const name of ["IOPS", "MB/s", "mean response (ms)", "errors/s", "in flight", "late, p99 (µs)", "state", "watts"]) {
      list.appendChild(element("dt", {}, name));
      this.fields.set(name, list.appendChild(element("dd", {}, "–")));
      const pair = element("div");
      pair.append(list.lastChild.previousSibling, list.lastChild);
      list.appendChild(pair);
    }
    this.rebuilds = this.root.appendChild(element("p", { class: "note" }));
    this.chart("heads", "Heads and queues", "Where each head is, from the outer edge on the left to the inner one, and the requests in each drive.");
    this.chart("heat", "Response times over the last seconds", "Each column is a moment, the latest on the right, each row a range of response times in milliseconds; the stronger, the more requests.");
    this.chart("power", "Power of all drives", "Mean power in watts between two events, the latest on the right.");
    parent.appendChild(this.root);
    this.begin(first);
  }
  begin(first) {
    this.heat = [];
    this.watts = [];
    this.times = [];
    this.before = first;
  }
  chart(key, title, description) {
    this.root.appendChild(element("h3", {}, title));
    const svg = element("svg", { role: "img", "aria-label": `${title}. ${description}` });
    const plot = element("div", { class: "plot", role: "group", tabindex: "0", "aria-label": title });
    plot.appendChild(svg);
    this.root.appendChild(plot);
    this[`${key}Chart`] = svg;
  }
  // Another server, or another array, has taken this one's place.
  isOther(now) {
    const before = this.before;
    return now.world_ns < before.world_ns || now.requests < before.requests || now.layout !== before.layout;
  }
  update(now) {
    if (this.isOther(now)) this.begin(now);
    const before = this.before;
    const seconds = (now.world_ns - before.world_ns) / 1e9;
    set(this.title, `${now.name}: ${now.layout}`);
    const sum = (status, key) => status.operations.read[key] + status.operations.write[key];
    const since = (key) => sum(now, key) - sum(before, key);
    const served = since("requests") - since("errors");
    const failed = (status) => Object.values(status.operations).reduce((sum, kind) => sum + kind.errors, 0);
    const errors = failed(now) - failed(before);
    const rate = (amount) => (seconds > 0 ? amount / seconds : NaN);
    const field = (name, value) => set(this.fields.get(name), value);
    field("IOPS", number(rate(served)));
    field("MB/s", number(rate(since("bytes") / 1e6)));
    field("mean response (ms)", number((1000 * since("response_s")) / served));
    field("errors/s", number(rate(errors)));
    this.fields.get("errors/s").classList.toggle("warning", errors > 0);
    field("in flight", String(now.in_flight));
    field("late, p99 (µs)", number(now.lateness.p99_us));
    field("state", now.health.state + (now.health.data_lost ? ", data lost" : ""));
    set(this.rebuilds, now.health.rebuilds.map(rebuildWords).join(" "));
    const joules = (status) => status.drives.reduce((sum, drive) => sum + (drive.energy_j ?? 0), 0);
    const known = now.drives.some((drive) => drive.energy_j !== undefined);
    const watts = known ? rate(joules(now) - joules(before)) : NaN;
    field("watts", number(watts));
    this.push(this.times, now.world_ns / 1e9);
    this.push(this.watts, watts);
    const buckets = BOUNDS_MS.concat([Infinity]).map((_, at) =>
      ["read", "write"].reduce((sum, kind) => sum + (now.operations[kind].buckets[at] ?? 0) - (before.operations[kind].buckets[at] ?? 0), 0));
    this.push(this.heat, buckets);
    this.before = now;
    this.drawHeads(now.drives);
    this.drawHeat();
    this.drawPower(known);
  }
  push(list, value) {
    list.push(value);
    if (list.length > COLUMNS) list.shift();
  }
  drawHeads(drives) {
    const row = 26, span = WIDTH - LEFT - 280;
    const parts = [];
    const most = Math.max(8, ...drives.map((drive) => drive.queue_length));
    drives.forEach((drive, at) => {
      const top = at * row;
      parts.push(element("text", { x: LEFT - 8, y: top + 16, class: "end" }, `drive ${drive.name}`));
      parts.push(element("rect", { x: LEFT, y: top + 9, width: span, height: 6, class: "track" }));
      parts.push(element("circle", { cx: LEFT + span * drive.head_share, cy: top + 12, r: 6, class: "head" }));
      parts.push(element("rect", { x: LEFT + span + 20, y: top + 5, width: (110 * drive.queue_length) / most, height: 14, class: "queue" }));
      const done = drive.rebuilt_share == null ? "" : ` ${percent(drive.rebuilt_share)}`;
      const state = drive.state === "alive" ? "" : ` ${drive.state}${done}`;
      parts.push(element("text", { x: LEFT + span + 135, y: top + 16 }, `${drive.queue_length}${state}`));
    });
    const below = drives.length * row + 14;
    for (const [x, name, align] of [[LEFT, "outer edge", ""], [LEFT + span, "inner edge", " end"], [LEFT + span + 20, "requests in the drive", ""]])
      parts.push(element("text", { x, y: below, class: `soft${align}` }, name));
    this.draw(this.headsChart, parts, below + 6);
  }
  x(at) {
    return LEFT + (at * (RIGHT - LEFT)) / COLUMNS;
  }
  // Ticks at round times before the latest event, by the array's own clock, and the names of both axes.
  axes(parts, top, bottom, name) {
    const latest = this.times[this.times.length - 1];
    const mean = this.times.length > 1 ? (latest - this.times[0]) / (this.times.length - 1) : 0;
    const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];
    const step = steps.find((step) => step * 6 >= mean * COLUMNS) ?? steps[steps.length - 1];
    let back = 0;
    for (let at = this.times.length - 1; at >= 0; at -= 1) {
      if (latest - this.times[at] < back) continue;
      const x = this.x(at + 0.5);
      parts.push(element("path", { d: `M${x} ${top}V${bottom + 4}`, class: "rule" }));
      parts.push(element("text", { x, y: bottom + 17, class: "middle" }, back === 0 ? "0" : `−${Number(back.toFixed(1))}`));
      back += step;
    }
    parts.push(element("text", { x: (LEFT + RIGHT) / 2, y: bottom + 33, class: "soft middle name" }, "time before the latest event (s)"));
    const middle = (top + bottom) / 2;
    parts.push(element("text", { x: 14, y: middle, class: "soft middle name", transform: `rotate(-90 14 ${middle})` }, name));
    return bottom + 38;
  }
  drawHeat() {
    const row = 9, width = (RIGHT - LEFT) / COLUMNS, rows = BOUNDS_MS.length + 1;
    const most = Math.max(1, ...this.heat.flat());
    const parts = [];
    const height = this.axes(parts, 0, rows * row, "response (ms)");
    BOUNDS_MS.forEach((bound, at) => {
      if ([0.1, 1, 10, 100, 1000].includes(bound))
        parts.push(element("text", { x: LEFT - 8, y: (rows - at - 1) * row + 4, class: "end" }, String(bound)));
    });
    this.heat.forEach((buckets, column) => buckets.forEach((count, at) => {
      if (count <= 0) return;
      const opacity = (0.25 + 0.75 * (Math.log1p(count) / Math.log1p(most))).toFixed(2);
      parts.push(element("rect", { x: this.x(column), y: (rows - at - 1) * row, width, height: row, class: "cell", opacity }));
    }));
    this.draw(this.heatChart, parts, height);
  }
  drawPower(known) {
    let height = 70;
    const most = Math.max(1, ...this.watts.filter(Number.isFinite));
    const parts = [];
    if (known) {
      const bottom = height;
      height = this.axes(parts, 10, bottom, "power (W)");
      const x = (at) => this.x(at + 0.5), y = (watts) => bottom - (watts / most) * (bottom - 12);
      const way = this.watts.map((watts, at) => (Number.isFinite(watts) ? `${at === 0 ? "M" : "L"}${x(at)} ${y(watts)}` : "")).join("");
      parts.push(element("text", { x: LEFT - 8, y: 14, class: "end" }, number(most)));
      parts.push(element("text", { x: LEFT - 8, y: bottom, class: "end" }, "0"));
      parts.push(element("path", { d: way.replace(/^L/, "M"), class: "line" }));
    } else {
      parts.push(element("text", { x: LEFT, y: 20, class: "soft" }, "The drives' files do not say what they draw."));
    }
    this.draw(this.powerChart, parts, height + 4);
  }
  draw(svg, parts, height) {
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
    svg.replaceChildren(...parts);
  }
}

const state = document.getElementById("state");
const exports = document.getElementById("exports");
// Since when no server answers.
let silent = null;
const source = new EventSource("/events");
source.onmessage = (event) => {
  const status = JSON.parse(event.data);
  silent = null;
  exports.classList.remove("old");
  set(document.getElementById("version"), status.version);
  set(state, `Up for ${status.uptime_s.toFixed(0)} s, ${status.clients} ${status.clients === 1 ? "client" : "clients"}.`);
  const served = new Set(status.exports.map((one) => one.name));
  for (const [name, view] of views) {
    if (served.has(name)) continue;
    view.root.remove();
    views.delete(name);
  }
  for (const one of status.exports) {
    if (!views.has(one.name)) views.set(one.name, new View(exports, one));
    else views.get(one.name).update(one);
  }
};
source.onerror = () => {
  silent ??= new Date();
  exports.classList.add("old");
  set(state, `The server has not answered since ${silent.toLocaleTimeString()}; trying again.`);
};
