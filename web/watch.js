// Draws a layout at work: the arm and the queue of each drive at a moment, and response times by cause over time.

import { PARTS, called, draw, make, three } from "./show.js";

const at = (id) => document.getElementById(id);
const WIDTH = 640;
const LEFT = 74;
/** Place of the queue on the right of an arm's track. */
const QUEUE = 440;
const ROW = 26;
/** Height of a row of the heat map. */
const CELL = 7;
/** Time between two moments of a drawing that plays, in ms. */
const BEAT_MS = 180;
/** Largest queue that is drawn as squares. */
const SQUARES = 12;
const CONDITIONS = { healthy: "all drives", degraded: "one failed", rebuilding: "rebuilding", slow: "one slow" };

/** Words for the causes of a response time. */
const CAUSES = {
  queue: "waiting behind other requests",
  parity: "waiting for parity",
  overhead: "commands and cables",
  cache: "answers of a cache",
  seek: "movement of the arm",
  switch: "change of the head",
  rotation: "rotation of the platter",
  transfer: "sectors under the head",
};

/** Drives of a layout at work, column by column. */
export class Watch {
  /** `ask(name, condition)` returns the answer of the module's command `watch`; `capacityOf()` returns bytes of a drive. */
  constructor(ask, capacityOf, told) {
    Object.assign(this, { ask, capacityOf, told, timeline: null, timer: null, number: 0 });
    at("watch-layout").addEventListener("change", () => this.run());
    at("watch-condition").addEventListener("change", () => this.run());
    at("moment").addEventListener("input", () => this.show());
    at("play").addEventListener("click", () => (this.timer ? this.pause() : this.play()));
  }

  /** Offers the layouts of an advice, and draws the first. */
  begin(advice) {
    const options = advice.finalists.map((one) => make("option", { value: one.name }, called(one.name)));
    at("watch-layout").replaceChildren(...options);
    this.conditions = new Map(advice.finalists.map((one) => [one.name, Object.keys(CONDITIONS).filter((key) => one[key])]));
    at("watch").hidden = false;
    return this.run();
  }

  end() {
    this.pause();
    this.number += 1;
    at("watch").hidden = true;
  }

  async run() {
    this.pause();
    const number = ++this.number;
    const name = at("watch-layout").value;
    const before = at("watch-condition").value;
    const possible = this.conditions.get(name);
    at("watch-condition").replaceChildren(...possible.map((key) => make("option", { value: key }, CONDITIONS[key])));
    at("watch-condition").value = possible.includes(before) ? before : "healthy";
    at("watch").setAttribute("aria-busy", "true");
    try {
      const { timeline } = await this.ask(name, at("watch-condition").value);
      if (number !== this.number) return;
      this.begun(timeline);
    } catch (error) {
      if (number === this.number) this.told(error);
    }
    at("watch").setAttribute("aria-busy", "false");
  }

  begun(timeline) {
    this.timeline = timeline;
    this.columns = Math.max(1, ...timeline.drives.map((drive) => drive.requests.length));
    // An arm without a request in a column stays where it is.
    this.heads = timeline.drives.map((drive) => {
      let place = drive.offset_gb_mean.find((value) => value !== null) ?? 0;
      return Array.from({ length: this.columns }, (_, column) => (place = drive.offset_gb_mean[column] ?? place));
    });
    at("moment").max = this.columns - 1;
    at("moment").value = Math.min(Number(at("moment").value), this.columns - 1);
    this.drawTracks();
    this.drawTimes();
    this.show();
  }

  play() {
    if (Number(at("moment").value) >= this.columns - 1) at("moment").value = 0;
    at("play").textContent = "Pause";
    this.timer = setInterval(() => {
      at("moment").value = Number(at("moment").value) + 1;
      this.show();
      if (Number(at("moment").value) >= this.columns - 1) this.pause();
    }, BEAT_MS);
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    at("play").textContent = "Play";
  }

  drawTracks() {
    const { drives } = this.timeline;
    const parts = [];
    this.arms = [];
    drives.forEach((drive, index) => {
      const y = index * ROW + 13;
      parts.push(draw("text", { x: LEFT - 10, y: y + 4, class: "end" }, `drive ${drive.name}`));
      parts.push(draw("rect", { x: LEFT, y: y - 4, width: QUEUE - LEFT - 24, height: 8, rx: 4, class: "platter" }));
      const arm = draw("rect", { width: 6, height: 18, y: y - 9, rx: 2, class: "arm" });
      const queue = draw("g", {});
      this.arms.push([arm, queue, y]);
      parts.push(arm, queue);
    });
    const below = drives.length * ROW + 14;
    parts.push(draw("text", { x: LEFT, y: below, class: "name" }, "outer edge"));
    parts.push(draw("text", { x: QUEUE - 24, y: below, class: "name end" }, "inner edge"));
    parts.push(draw("text", { x: QUEUE, y: below, class: "name" }, "requests in the drive"));
    at("tracks").setAttribute("viewBox", `0 0 ${WIDTH} ${below + 8}`);
    at("tracks").replaceChildren(...parts);
  }

  drawTimes() {
    const { cells, rows_ms } = this.timeline;
    const rows = cells.map((cell) => cell.row);
    const [low, high] = [Math.min(...rows), Math.max(...rows)];
    const most = Math.max(...cells.map((cell) => cell.requests));
    const width = (WIDTH - LEFT) / this.columns;
    const y = (row) => (high - row) * CELL;
    const bottom = y(low) + CELL;
    const parts = cells.map((cell) =>
      draw("rect", {
        class: `p${PARTS.indexOf(cell.cause)}`,
        x: LEFT + cell.column * width,
        y: y(cell.row),
        width: width + 0.3,
        height: CELL,
        opacity: (0.45 + (0.55 * Math.log1p(cell.requests)) / Math.log1p(most)).toFixed(2),
      }),
    );
    // A name at each power of ten: row 1 begins at 0.01 ms, and six rows are a decade.
    for (let row = low; row <= high; row += 1) {
      const decade = Math.round(Math.log10(rows_ms[row]));
      if (rows_ms[row] > 0 && Math.abs(Math.log10(rows_ms[row]) - decade) < 0.01) {
        parts.push(draw("text", { x: LEFT - 10, y: y(row) + CELL + 3, class: "end" }, `${Number((10 ** decade).toPrecision(1))} ms`));
        parts.push(draw("path", { d: `M${LEFT} ${y(row) + CELL}H${WIDTH}`, class: "rule" }));
      }
    }
    this.cursor = draw("rect", { class: "cursor", y: 0, width: Math.max(2, width), height: bottom });
    parts.push(this.cursor);
    const end = three(this.columns * this.timeline.column_s);
    parts.push(draw("text", { x: LEFT, y: bottom + 16, class: "name" }, "0 s"), draw("text", { x: WIDTH, y: bottom + 16, class: "name end" }, `${end} s`));
    at("times").setAttribute("viewBox", `0 0 ${WIDTH} ${bottom + 22}`);
    at("times").replaceChildren(...parts);
    const causes = new Map();
    for (const cell of cells) causes.set(cell.cause, (causes.get(cell.cause) ?? 0) + cell.requests);
    const items = PARTS.filter((part) => causes.has(part)).map((part) =>
      make("li", {}, draw("svg", { viewBox: "0 0 10 10", "aria-hidden": "true" }, draw("rect", { class: `p${PARTS.indexOf(part)}`, width: 10, height: 10 })), ` ${part}: ${CAUSES[part]}`),
    );
    at("causes").replaceChildren(...items);
  }

  /** Draws the moment of the slider. */
  show() {
    const column = Number(at("moment").value);
    const { drives, cells, column_s } = this.timeline;
    const gigabytes = this.capacityOf() / 1e9;
    let waiting = 0;
    this.arms.forEach(([arm, queue, y], index) => {
      const share = Math.min(1, this.heads[index][column] / gigabytes);
      arm.setAttribute("x", LEFT + share * (QUEUE - LEFT - 30));
      const held = drives[index].ahead_max[column] ?? 0;
      waiting = Math.max(waiting, held);
      const squares = Array.from({ length: Math.min(held, SQUARES) }, (_, place) => draw("rect", { x: QUEUE + place * 11, y: y - 5, width: 9, height: 10, class: "held" }));
      if (held > SQUARES) squares.push(draw("text", { x: QUEUE + SQUARES * 11 + 4, y: y + 4 }, String(held)));
      queue.replaceChildren(...squares);
    });
    this.cursor.setAttribute("x", LEFT + (column * (WIDTH - LEFT)) / this.columns);
    const now = cells.filter((cell) => cell.column === column);
    const requests = now.reduce((sum, cell) => sum + cell.requests, 0);
    const slowest = now.reduce((worst, cell) => (worst && worst.row >= cell.row ? worst : cell), null);
    const time = `At ${three(column * column_s)} s`;
    const facts = slowest
      ? `${requests} requests arrive; most of the slowest one's time is ${CAUSES[slowest.cause]}. At most ${waiting} wait at one drive.`
      : "no request arrives.";
    at("moment-said").textContent = `${time}: ${facts}`;
    at("moment").setAttribute("aria-valuetext", at("moment-said").textContent);
  }
}
