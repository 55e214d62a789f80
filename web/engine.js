// Loads the module, and talks to the worker that holds it.

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

export class Engine {
  /** Loads the module. `onProgress` is called with the share of the current run that is done, or null. */
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
    await engine.start();
    return engine;
  }

  async start() {
    this.worker?.terminate();
    for (const { reject } of this.waiting?.values() ?? []) reject(new Stopped());
    this.waiting = new Map();
    this.next = 0;
    this.worker = new Worker(this.script);
    this.worker.onmessage = ({ data }) => this.take(data);
    this.worker.onerror = (event) => this.take({ ended: event.message || "the worker has ended" });
    const sent = [this.send({ module: this.module })];
    for (const [path, bytes] of this.files) sent.push(this.send({ path, bytes }));
    // A later start replaces this worker too.
    await Promise.all(sent).catch((error) => {
      if (!(error instanceof Stopped)) throw error;
    });
  }

  take(data) {
    if (data.progress) {
      const { finished, expected } = data.progress;
      this.onProgress(expected ? Math.min(1, finished / expected) : null);
      return;
    }
    if (data.ended !== undefined) {
      const failure = new Ended(`The simulator has ended: ${data.ended}. The page has started it again. Please report the question.`);
      for (const { reject } of this.waiting.values()) reject(failure);
      this.waiting = new Map();
      this.start();
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

  /** Sends a command, and returns its answer. */
  call(command) {
    return this.send({ command });
  }

  /** Puts a file into the module's memory. The file survives a new worker. */
  put(path, bytes) {
    this.files.set(path, bytes);
    return this.send({ path, bytes });
  }

  /** Stops the current run at once, with a new worker. */
  stop() {
    return this.start();
  }
}

/** The reader has stopped a run, or asked another question. */
export class Stopped extends Error {}
