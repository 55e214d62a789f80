// fullstroke in JavaScript: one module, no dependency, no network.

/** The module has refused a command, or has ended by a panic. */
export class FullstrokeError extends Error {}

export class Fullstroke {
  #exports;
  #said = "";

  /**
   * Loads the module. `source` is the bytes, or a compiled module; in Node the default is the file beside this one.
   * `onProgress(finished, expected)` is called during runs.
   */
  static async load(source, onProgress = () => {}) {
    const simulator = new Fullstroke();
    const imports = {
      fullstroke: {
        progress: (finished, expected) => onProgress(finished, expected < 0 ? null : expected),
        ended: (place, bytes) => (simulator.#said = simulator.#text(place, bytes)),
      },
    };
    const given = source ?? (await import("node:fs/promises").then(({ readFile }) => readFile(new URL("fullstroke.wasm", import.meta.url))));
    const made = await WebAssembly.instantiate(given, imports);
    simulator.#exports = (made.instance ?? made).exports;
    simulator.#exports.fullstroke_begin();
    return simulator;
  }

  #text(place, bytes) {
    return new TextDecoder().decode(new Uint8Array(this.#exports.memory.buffer, place, bytes));
  }

  #write(...parts) {
    let place = this.#exports.fullstroke_room(parts.reduce((sum, part) => sum + part.length, 0));
    for (const part of parts) {
      new Uint8Array(this.#exports.memory.buffer, place, part.length).set(part);
      place += part.length;
    }
  }

  /** Puts a file into the memory of the module: a text, or bytes. */
  put(path, contents) {
    const encoder = new TextEncoder();
    const name = encoder.encode(path);
    this.#write(name, typeof contents === "string" ? encoder.encode(contents) : contents);
    this.#exports.fullstroke_put(name.length);
  }

  /** Carries out a command, and returns its answer. */
  call(command) {
    this.#write(new TextEncoder().encode(JSON.stringify(command)));
    let bytes;
    try {
      bytes = this.#exports.fullstroke_call();
    } catch (failure) {
      throw new FullstrokeError(this.#said || String(failure), { cause: failure });
    }
    const { answer, error } = JSON.parse(this.#text(this.#exports.fullstroke_answer(), bytes));
    if (error !== undefined) throw new FullstrokeError(error);
    return answer;
  }

  /** Runs a stack: the numbers of `fullstroke run --json`. */
  run(stack, changes = {}) {
    return this.call({ command: "run", stack, changes });
  }

  /** Compares stacks: the numbers of `fullstroke compare --json`. */
  compare(stacks, { by, vary = [], changes = {} } = {}) {
    return this.call({ command: "compare", stacks, by, vary, changes });
  }

  /** Answers a wish file: the numbers of `fullstroke advise --json`. */
  advise(wishes, changes = {}) {
    return this.call({ command: "advise", wishes, changes });
  }

  /** Returns the events of a layout of the question over time: heads, queues and causes. */
  watch(name, condition = "healthy") {
    return this.call({ command: "watch", name, condition }).timeline;
  }

  /** Asks a question, and yields `{ progress, advice }` after each step, until the answer is settled. */
  *ask(question) {
    this.call({ command: "ask", ...question });
    for (let over = false; !over; ) {
      const step = this.call({ command: "step" });
      ({ over } = step.progress);
      yield step;
    }
  }
}
