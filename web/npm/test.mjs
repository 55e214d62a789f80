// Tests of the package: node test.mjs
import assert from "node:assert/strict";
import test from "node:test";
import { Fullstroke, FullstrokeError } from "fullstroke";

const STACK = `seed = 1
[workload]
kind = "synthetic"
requests = 2000
size = "8KiB"
arrivals = { process = "closed", outstanding = 4 }
[volume]
layout = "raid5"
drive = "seagate-exos-x16-16tb"
drives = 4
`;

test("a run has the numbers of a report", async () => {
  const seen = [];
  const simulator = await Fullstroke.load(undefined, (finished, expected) => seen.push([finished, expected]));
  simulator.put("a.toml", STACK);
  const report = simulator.run("a.toml");
  assert.equal(report.requests, 2000);
  assert.ok(report.response_ms.mean > 1 && report.response_ms.mean < 200, `${report.response_ms.mean}`);
  assert.equal(report.wall_s, null);
  assert.deepEqual(seen[0], [0, 2000]);
  assert.equal(simulator.run("a.toml", { requests: 500 }).requests, 500);
  const ranking = simulator.compare(["a.toml"], { vary: ["volume.chunk=64KiB,1MiB"] });
  assert.equal(ranking.candidates.length, 2);
});

test("a question is answered step by step", async () => {
  const simulator = await Fullstroke.load();
  simulator.put("a.toml", STACK);
  const question = { stack: "a.toml", drive: "seagate-exos-x16-16tb", counts: [4], wishes: { failures: 1 }, first: 500, most: 500 };
  const steps = [...simulator.ask(question)];
  // Three layouts, each with all drives, with a failed one, during a rebuild, and with a slow one.
  assert.equal(steps.length, 12);
  assert.equal(steps.at(-1).advice.finalists.length, 3);
  const timeline = simulator.watch("raid5 of 4", "degraded");
  assert.equal(timeline.drives.length, 3);
  assert.ok(timeline.drives[0].offset_gb_mean.some((place) => place > 0));
  assert.equal(simulator.watch("raid5 of 4").drives.length, 4);
  assert.ok(simulator.call({ command: "stack-file", name: "raid5 of 4" }).text.includes("raid5"));
});

test("a mistake is an error with a sentence, and the module goes on", async () => {
  const simulator = await Fullstroke.load();
  const refused = (command, word) => assert.throws(() => simulator.call(command), (error) => error instanceof FullstrokeError && error.message.includes(word));
  refused({ command: "run", stack: "none.toml" }, "none.toml: cannot be read");
  refused({ command: "dance" }, "dance");
  refused({ command: "step" }, "ask");
  simulator.put("a.toml", STACK.replace("raid5", "raid55"));
  refused({ command: "run", stack: "a.toml" }, "raid5");
  simulator.put("a.toml", STACK.replace('"synthetic"', '"trace"').replace("requests = 2000", 'path = "/dev/sda"').replace(/size.*\narr.*\n/, ""));
  refused({ command: "run", stack: "a.toml" }, "/dev/sda");
  simulator.put("a.toml", STACK.replace('"seagate-exos-x16-16tb"', '"old.parv#one"'));
  refused({ command: "run", stack: "a.toml" }, "fullstroke drive import old.parv");
  simulator.put("a.toml", STACK);
  assert.equal(simulator.run("a.toml", { requests: 10 }).requests, 10);
});
