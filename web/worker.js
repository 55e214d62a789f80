// The worker that holds the module. The page sends { id, command } or { id, path, bytes }, and gets { id, answer },
// { id, error } or { progress }. A panic ends the module; the page then starts another worker.

let exports;
let said = "";
let told = 0;

const imports = {
  fullstroke: {
    progress(finished, expected) {
      // Ten messages a second are enough for a progress bar.
      const now = performance.now();
      if (now - told > 100) {
        told = now;
        postMessage({ progress: { finished, expected: expected < 0 ? null : expected } });
      }
    },
    ended(message, bytes) {
      said = text(message, bytes);
    },
  },
};

function text(place, bytes) {
  return new TextDecoder().decode(new Uint8Array(exports.memory.buffer, place, bytes));
}

function write(...parts) {
  const bytes = parts.reduce((sum, part) => sum + part.length, 0);
  let place = exports.fullstroke_room(bytes);
  // The memory may have grown, so the view is new.
  for (const part of parts) {
    new Uint8Array(exports.memory.buffer, place, part.length).set(part);
    place += part.length;
  }
}

function call(command) {
  write(new TextEncoder().encode(JSON.stringify(command)));
  const bytes = exports.fullstroke_call();
  return JSON.parse(text(exports.fullstroke_answer(), bytes));
}

async function take(data) {
  const { id } = data;
  try {
    if (data.module) {
      exports = (await WebAssembly.instantiate(data.module, imports)).exports;
      exports.fullstroke_begin();
      postMessage({ id, answer: null });
    } else if (data.path !== undefined) {
      const path = new TextEncoder().encode(data.path);
      write(path, new Uint8Array(data.bytes));
      exports.fullstroke_put(path.length);
      postMessage({ id, answer: null });
    } else {
      const { answer, error } = call(data.command);
      postMessage(error === undefined ? { id, answer } : { id, error });
    }
  } catch (failure) {
    postMessage({ id, ended: said || String(failure) });
  }
}

// One after the other: a command must wait until the module is there.
let before = Promise.resolve();
onmessage = ({ data }) => {
  before = before.then(() => take(data));
};
