// A static server and a headless Chromium, for tests of the page. No package is needed.

import { spawn } from "node:child_process";
import { createReadStream, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { availableParallelism, tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".wasm": "application/wasm" };

/** Serves a folder. `asked` lists the paths of all requests. */
export async function serve(folder) {
  const asked = [];
  const server = createServer((request, response) => {
    const path = normalize(new URL(request.url, "http://x").pathname);
    asked.push(path);
    const file = join(folder, path.endsWith("/") ? `${path}index.html` : path);
    try {
      if (!statSync(file).isFile()) throw new Error("no file");
    } catch {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}/`, asked, close: () => (server.closeAllConnections(), server.close()) };
}

/** Number of cores. */
export const CORES = availableParallelism();
/** Seconds without work of the browser after which a wait has failed. */
const REST_S = 20;
/** Share of one core below which the browser rests. The questions of a wait need about 0.02. */
const REST_SHARE = 0.06;

/** A page of a headless browser, driven by the DevTools protocol over two pipes. */
export class Page {
  static async open(program, extra = []) {
    const page = new Page();
    page.profile = mkdtempSync(join(tmpdir(), "fullstroke-page-"));
    const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe"];
    page.process = spawn(program, [...flags, `--user-data-dir=${page.profile}`, ...extra, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    page.waiting = new Map();
    page.calls = 0;
    page.faults = [];
    page.workers = new Set();
    page.workersMade = 0;
    let rest = "";
    page.process.stdio[4].setEncoding("utf8").on("data", (data) => {
      const messages = (rest + data).split("\0");
      rest = messages.pop();
      for (const message of messages) page.take(JSON.parse(message));
    });
    const { targetInfos } = await page.send("Target.getTargets");
    const { targetId } = targetInfos.find((target) => target.type === "page");
    ({ sessionId: page.session } = await page.send("Target.attachToTarget", { targetId, flatten: true }));
    for (const domain of ["Page", "Runtime", "Log", "DOM", "Accessibility"]) await page.send(`${domain}.enable`);
    return page;
  }

  take(message) {
    if (message.id !== undefined) {
      const { resolve, reject } = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else resolve(message.result);
    } else if (message.method === "Target.attachedToTarget" && message.params.targetInfo.type === "worker") {
      this.workers.add(message.params.sessionId);
      this.workersMade += 1;
    } else if (message.method === "Target.detachedFromTarget") {
      this.workers.delete(message.params.sessionId);
    } else if (message.method === "Runtime.exceptionThrown") {
      const { exceptionDetails } = message.params;
      this.faults.push(exceptionDetails.exception?.description ?? exceptionDetails.text);
    } else if (message.method === "Log.entryAdded" && message.params.entry.level === "error") {
      this.faults.push(message.params.entry.text);
    }
  }

  send(method, params = {}, session = this.session) {
    const id = ++this.calls;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      // Without a session the browser itself answers.
      this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: session ?? undefined })}\0`);
    });
  }

  /** Returns the value of an expression in the page. */
  async value(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Returns the CPU seconds of all processes of the browser so far. */
  async cpuSeconds() {
    const { processInfo } = await this.send("SystemInfo.getProcessInfo", {}, null);
    return processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  }

  /**
   * Waits until an expression is true. Returns the seconds. `seconds` is CPU time of the browser for each core, so that other
   * work on the machine does not end the wait. A browser that rests will not make the expression true.
   */
  until(expression, seconds, what) {
    return this.wait(() => this.value(`Boolean(${expression})`), seconds, what);
  }

  /** Waits until a function returns true; see `until`. */
  async wait(holds, seconds, what) {
    const began = performance.now();
    let [looked, cpu, spent, rested] = [began, null, 0, 0];
    while (!(await holds())) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      const passed = (performance.now() - looked) / 1000;
      if (passed < 1) continue;
      const now = await this.cpuSeconds();
      const worked = cpu === null ? passed : Math.max(0, now - cpu);
      [looked, cpu, spent] = [performance.now(), now, spent + worked];
      rested = worked < REST_SHARE * passed ? rested + passed : 0;
      if (spent > seconds * CORES || rested > REST_S) {
        const why = rested > REST_S ? `the browser has rested for ${Math.round(rested)} s` : `not within ${seconds} s of work`;
        throw new Error(`${what}: ${why}. The page says: ${await this.value("document.querySelector('#answer, body')?.innerText.slice(0, 600)")}`);
      }
    }
    return (performance.now() - began) / 1000;
  }

  go(address) {
    return this.send("Page.navigate", { url: address });
  }

  /** Clicks the middle of an element with the mouse. */
  async click(selector) {
    const place = await this.value(`(() => { const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({ block: "center" }); const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()`);
    const [x, y] = place;
    for (const type of ["mousePressed", "mouseReleased"]) await this.send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1 });
  }

  async key(key, code = key, text) {
    for (const type of ["keyDown", "keyUp"]) await this.send("Input.dispatchKeyEvent", { type, key, code, windowsVirtualKeyCode: { Tab: 9, Enter: 13, ArrowRight: 39 }[key] ?? 0, text: type === "keyDown" ? text : undefined });
  }

  async type(text) {
    await this.send("Input.insertText", { text });
  }

  /** Gives files to a file input. */
  async files(selector, files) {
    const { root } = await this.send("DOM.getDocument");
    const { nodeId } = await this.send("DOM.querySelector", { nodeId: root.nodeId, selector });
    await this.send("DOM.setFileInputFiles", { nodeId, files });
  }

  async look(width, scheme) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  }

  async picture() {
    const { cssContentSize } = await this.send("Page.getLayoutMetrics");
    const clip = { x: 0, y: 0, width: cssContentSize.width, height: cssContentSize.height, scale: 1 };
    const { data } = await this.send("Page.captureScreenshot", { clip, captureBeyondViewport: true });
    return Buffer.from(data, "base64");
  }

  async close() {
    await this.send("Browser.close").catch(() => {});
    await new Promise((resolve) => (this.process.exitCode === null ? this.process.once("exit", resolve) : resolve()));
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
