// Holds the types of the npm package to their use: tsc --noEmit --strict. Nothing here runs.
import { Fullstroke, FullstrokeError, type Advice, type Report } from "../npm/index.js";

export async function used(): Promise<string> {
  const simulator = await Fullstroke.load(undefined, (finished, expected) => finished / (expected ?? 1));
  simulator.put("stack.toml", "seed = 1");
  const report: Report = simulator.run("stack.toml", { requests: 10, set: ["volume.chunk=64KiB"] });
  const ranking = simulator.compare(["stack.toml"], { vary: ["volume.chunk=64KiB,1MiB"], by: "response_ms.p99" });
  let advice: Advice | null = null;
  for (const step of simulator.ask({ stack: "stack.toml", drive: "x", counts: [4], wishes: { failures: 1, usable: "20TB" } })) advice = step.advice;
  const busy = simulator.watch("raid5 of 4", "degraded")?.drives[0]?.ahead_max[0] ?? 0;
  try {
    // @ts-expect-error a question needs a drive
    simulator.ask({ stack: "stack.toml", counts: [4] });
    // @ts-expect-error no such condition
    simulator.watch("raid5 of 4", "tired");
  } catch (error) {
    if (error instanceof FullstrokeError) return error.message;
  }
  return `${report.response_ms.p99} ${ranking.candidates[0]?.rank} ${advice?.recommended} ${busy}`;
}
