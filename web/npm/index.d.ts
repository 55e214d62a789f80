/** Changes of a stack file, as options of the command line. */
export interface Changes {
  /** `key=value` pairs, in order. */
  set?: string[];
  /** Trace in place of the workload. */
  trace?: string;
  /** Job file of fio in place of the workload. */
  fio?: string;
  /** Further keys of the trace, such as `beyond`. */
  trace_keys?: Record<string, unknown>;
  /** Name of a drive of the library, or a drive file. */
  drive?: string;
  seed?: number;
  /** Number of requests after which the workload ends. */
  requests?: number;
}

/** A report of a run. docs/metrics.md describes all fields. */
export interface Report {
  name: string;
  requests: number;
  completed: number;
  response_ms: { mean: number; p50: number; p90: number; p95: number; p99: number; p999: number; max: number };
  time_ms: Record<string, number>;
  iops: number;
  mb_per_s: number;
  [field: string]: unknown;
}

export interface Volume {
  layout: string;
  drives: number;
  usable_bytes: number;
  raw_bytes: number;
  failures_survived: number;
}

export interface Ranked {
  rank: number;
  name: string;
  value: number;
  ci95_half_width: number | null;
  difference_to_best: { value: number; half_width: number | null; significance: "significant" | "consistent" | "not-significant" | "unknown" } | null;
  volume: Volume;
  report: Report;
  [field: string]: unknown;
}

export interface Ranking {
  by: string;
  verdict: string | null;
  candidates: Ranked[];
  [field: string]: unknown;
}

/** Outcome of an array in one condition. */
export interface Outcome {
  mean_ms: number;
  p99_ms: number;
  mb_per_s: number;
  mean_w: number | null;
  carried_share: number;
  complete: boolean;
  rebuild_hours: number | null;
}

/** Flash devices beside the disks: the cache, special vdevs, logs. */
export interface Flash {
  devices: number;
  price: number | null;
  written_gb_a_day: number | null;
  /** Share of the rated writes that a year uses. */
  wear_share_a_year: number | null;
  mean_w: number | null;
  /** Data that only the cache has at the end of a run. */
  dirty_mb: number | null;
}

export interface Finalist {
  place: number;
  name: string;
  layout: string;
  settings: string[];
  volume: Volume;
  /** Price of the drives, the controller and the flash devices; flash devices without a price are left out. */
  price: number | null;
  /** Cache in front of the array: "none", "bcache:4GiB". */
  cache: string;
  /** Flash devices beside the disks. */
  flash: Flash | null;
  healthy: Outcome;
  degraded: Outcome | null;
  rebuilding: Outcome | null;
  /** With a drive that takes longer without failing. */
  slow: Outcome | null;
  loss: { chance_a_year: number; [field: string]: unknown };
  [field: string]: unknown;
}

export interface Advice extends Ranking {
  recommended: string;
  recommendation: string[];
  would_change: string[];
  finalists: Finalist[];
  left_out: { layout: string; drives: number; why: string }[];
}

export interface Wishes {
  /** Capacity with its unit: "20TB". */
  usable?: string;
  /** Time with its unit: "50ms". */
  p99?: string;
  streams?: number;
  mb_per_s?: number;
  failures?: number;
  watts?: number;
  price?: number;
}

export interface Question {
  /** Stack file with the load. */
  stack: string;
  drive: string;
  /** Permitted numbers of drives, 1 to 64. */
  counts: number[];
  wishes?: Wishes;
  drive_price?: number;
  /** Price of a flash device beside the disks. */
  flash_price?: number;
  choices?: { layouts?: string[]; chunks?: string[]; elevators?: string[]; write_caches?: boolean[]; stripe_caches?: number[]; recordsizes?: string[]; controllers?: string[]; flash?: string; caches?: string[] };
  assumptions?: { mttf_hours?: number; unreadable_bits?: number; replace_hours?: number; slow_factor?: number };
  changes?: Changes;
  /** Requests of the first round. Default 2000. */
  first?: number;
  /** Largest number of requests of a round. Default 54000. */
  most?: number;
  /** Factor by which requests arrive faster. Default 1. */
  load?: number;
}

export interface Step {
  progress: { requests: number; settled: boolean; whole_load: boolean; over: boolean; renewed: boolean; steps: number; next: string };
  /** The advice, if the step has ended a round. */
  advice: Advice | null;
}

export type Condition = "healthy" | "degraded" | "rebuilding" | "slow";

/** Events over time, in columns of equal length. */
export interface Timeline {
  /** Seconds of a column. */
  column_s: number;
  /** Lower bounds of the rows of `cells`, in ms. */
  rows_ms: number[];
  cells: { column: number; row: number; requests: number; cause: string }[];
  /** A column without requests has null. */
  drives: { name: string; requests: number[]; ahead_max: (number | null)[]; offset_gb_mean: (number | null)[]; [field: string]: unknown }[];
  [field: string]: unknown;
}

export class FullstrokeError extends Error {}

export class Fullstroke {
  /** Loads the module: bytes, or a compiled module. In Node the default is the file of this package. */
  static load(source?: BufferSource | WebAssembly.Module, onProgress?: (finished: number, expected: number | null) => void): Promise<Fullstroke>;
  /** Puts a file into the memory of the module. */
  put(path: string, contents: string | Uint8Array): void;
  run(stack: string, changes?: Changes): Report;
  compare(stacks: string[], options?: { by?: string; vary?: string[]; changes?: Changes }): Ranking;
  advise(wishes: string, changes?: Changes): Advice;
  /** Returns the events of a layout of the question over time; null if the layout has no such condition. */
  watch(name: string, condition?: Condition): Timeline | null;
  /** Asks a question, and yields after each step until the answer is settled. */
  ask(question: Question): Generator<Step, void>;
  /** Carries out a command of docs/browser.md. */
  call(command: { command: string; [key: string]: unknown }): unknown;
}
