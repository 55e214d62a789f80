// Loads the module, and talks to the workers that hold it: the first worker holds the question, helpers run conditions of it.

/** A failure whose message is a sentence for the reader. */
export class Refusal extends Error {}

/** The module has ended by a panic. The engine has another worker already. */
export class Ended extends Refusal {}

/** Returns the reason why this browser cannot run the page; null if it can. */
export function hindrance() {
  if (location.protocol === "file:") {
    return "A browser does not let a page from a file read its module. Serve the folder, and open it from there: python3 -m http.server";
  }
  if (typeof WebAssembly !== "object" || typeof WebAssembly.compile !== "function") {
    return "This browser has no WebAssembly, and the simulator needs it. Use a newer browser, or the command line: fullstroke advise.";
  }
  if (typeof Worker !== "function") {
    return "This browser has no workers, and the simulator needs one. Use a newer browser, or the command line: fullstroke advise.";
  }
  return null;
}

async function fetched(name) {
  const response = await fetch(name).catch(() => null);
  if (!response?.ok) {
    throw new Refusal(`${name} cannot be loaded${response ? ` (status ${response.status})` : ""}. Load the page again when the network is back.`);
  }
  return response;
}

/** Forbids every connection of this page, and of the workers that it starts from now on. Policies only add up. */
function forbidConnections() {
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = "connect-src 'none'";
  document.head.append(policy);
}

/** Largest number of workers. A question of three layouts has nine runs in conditions. */
const WORKERS_MAX = 8;
/** Largest size of all files together with helpers: each worker has a copy of each file. */
const COPIED_BYTES_MAX = 64 << 20;

/** A worker with the module. */
class Lane {
  constructor(engine) {
    this.engine = engine;
    this.waiting = new Map();
    this.next = 0;
    this.worker = new Worker(engine.script);
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = (event) => this.take({ ended: event.message || "the worker has ended" });
  }

  /** Gives the worker its module and files. */
  async begin() {
    const sent = [this.send({ module: this.engine.module })];
    for (const [path, bytes] of this.engine.files) sent.push(this.send({ path, bytes }));
    await Promise.all(sent);
  }

  take(data) {
    if (data.progress) {
      const { finished, expected } = data.progress;
      if (this === this.engine.main) this.engine.onProgress(expected ? Math.min(1, finished / expected) : null);
      return;
    }
    if (data.ended !== undefined) {
      this.end(new Ended(`The simulator has ended: ${data.ended}. The page has started it again. Please report the question.`));
      if (this === this.engine.main) this.engine.start();
      return;
    }
    const one = this.waiting.get(data.id);
    this.waiting.delete(data.id);
    if (!one) return;
    if (data.error === undefined) one.resolve(data.answer);
    else one.reject(new Refusal(data.error));
  }

  send(message) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.worker.postMessage({ id, ...message });
    });
  }

  call(command) {
    return this.send({ command });
  }

  /** Ends the worker at once. Its commands fail with the reason. */
  end(reason) {
    this.worker.terminate();
    for (const { reject } of this.waiting.values()) reject(reason);
    this.waiting = new Map();
  }
}

export class Engine {
  /** Loads the module. `onProgress` is called with the share of the first worker's run that is done, or null. */
  static async load(onProgress) {
    const [script, bytes] = await Promise.all([
      fetched("worker.js").then((response) => response.text()),
      fetched("fullstroke.wasm").then((response) => response.arrayBuffer()),
    ]);
    const engine = new Engine();
    engine.onProgress = onProgress;
    // A worker from a blob has the policy of this page, and so no connections either.
    engine.script = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    forbidConnections();
    engine.module = await WebAssembly.compile(bytes);
    engine.files = new Map();
    engine.helpers = [];
    await engine.start();
    return engine;
  }

  /** Starts the first worker anew, and ends all others. */
  async start() {
    this.endHelpers();
    this.main?.end(new Stopped());
    this.main = new Lane(this);
    // A later start replaces this worker too.
    await this.main.begin().catch((error) => {
      if (!(error instanceof Stopped)) throw error;
    });
  }

  endHelpers() {
    for (const helper of this.helpers) helper.end(new Stopped());
    this.helpers = [];
  }

  /** Returns the number of helpers for a number of runs: one for each further core, none beside large files. */
  helpersFor(runs) {
    const copied = [...this.files.values()].reduce((sum, bytes) => sum + bytes.byteLength, 0);
    if (copied > COPIED_BYTES_MAX) return 0;
    const cores = navigator.hardwareConcurrency || 1;
    return Math.max(0, Math.min(cores, WORKERS_MAX, runs + 1) - 1);
  }

  /** Starts a helper that has the files of the first worker. */
  async helper() {
    const helper = new Lane(this);
    this.helpers.push(helper);
    await helper.begin();
    return helper;
  }

  /** Sends a command to the first worker, and returns its answer. */
  call(command) {
    return this.main.call(command);
  }

  /** Puts a file into the module's memory. The file survives a new worker. */
  put(path, bytes) {
    this.files.set(path, bytes);
    return this.main.send({ path, bytes });
  }

  /** Stops all runs at once. */
  stop() {
    return this.start();
  }
}

/** The reader has stopped a run, or asked another question. */
export class Stopped extends Error {}
