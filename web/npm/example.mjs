// Which layout suits six disks of 16 TB under a database?   node example.mjs
import { Fullstroke } from "fullstroke";

const simulator = await Fullstroke.load();
const load = simulator.call({ command: "uses" }).find((use) => use.name === "database");
simulator.put("load.toml", load.text);
const question = { stack: "load.toml", drive: "seagate-exos-x16-16tb", counts: [6], wishes: { failures: 1 } };
for (const { progress, advice } of simulator.ask(question)) {
  if (advice) console.log(progress.requests, advice.recommended, advice.finalists[0].healthy.mean_ms.toFixed(2), "ms");
}
