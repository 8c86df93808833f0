// setTimeout and setInterval over the clock binding.
import { pause } from "./clock";
import { ask } from "./errors";
import { report } from "./failure";
import { ambient, demand } from "./session";

interface Timer {
  /** Nanoseconds of the clock's monotonic time. */
  due: bigint;
  id: number;
  every: bigint | undefined;
  run: () => void;
}

// Ordered by due time, then by age.
let timers: Timer[] = [];
// The timer whose callback is running.
let running: Timer | undefined;
let lastId = 0;
// The end times of the pending waits, which all timers share. A new wait starts only for a timer that is due before all of them.
const waits = new Set<bigint>();

function insert(timer: Timer): void {
  let at = 0;
  for (let end = timers.length; at < end; ) {
    const middle = (at + end) >> 1;
    if (timers[middle].due > timer.due) end = middle;
    else at = middle + 1;
  }
  timers.splice(at, 0, timer);
}

let soon = false;

/** Watches once the code waits, so that timers that were started together take one wait in whatever order they are due. */
function watchSoon(): void {
  if (soon) return;
  soon = true;
  Promise.resolve().then(() => {
    soon = false;
    watch();
  });
}

function watch(): void {
  const clock = ambient("clock")!;
  const due = timers[0]?.due;
  if (due === undefined || [...waits].some((end) => end <= due)) return;
  waits.add(due);
  ask(() => pause(clock, Number(due - clock.monotonic()) / 1e6)).then(() => {
    waits.delete(due);
    // Fire one timer per turn, so that all jobs of its callback run before the next one.
    if (timers[0]?.due <= clock.monotonic()) fire(timers.shift()!);
    watch();
  }, report);
}

function fire(timer: Timer): void {
  running = timer;
  try {
    timer.run();
  } catch (error) {
    report(error);
  }
  running = undefined;
  // Count from now and not from the due time, so that missed intervals do not run later.
  if (timer.every !== undefined) insert({ ...timer, due: ambient("clock")!.monotonic() + timer.every });
}

function add(name: string, callback: unknown, milliseconds: unknown, args: unknown[]): number {
  if (typeof callback !== "function") throw new TypeError(`${name}: the callback is not a function`);
  const clock = demand("clock", name);
  const repeat = name === "setInterval";
  const delay = Math.max(Number(milliseconds) | 0, repeat ? 1 : 0); // 32 bits, as on the web
  const nanoseconds = BigInt(delay) * 1_000_000n;
  insert({
    due: clock.monotonic() + nanoseconds,
    id: ++lastId,
    every: repeat ? nanoseconds : undefined,
    run: () => callback(...args),
  });
  watchSoon();
  return lastId;
}

export function setTimeout(callback: unknown, milliseconds?: unknown, ...args: unknown[]): number {
  return add("setTimeout", callback, milliseconds, args);
}

export function setInterval(callback: unknown, milliseconds?: unknown, ...args: unknown[]): number {
  return add("setInterval", callback, milliseconds, args);
}

export function clearTimer(id: unknown): void {
  if (running && running.id === id) running.every = undefined;
  timers = timers.filter((timer) => timer.id !== id);
}

const { queueMicrotask: enqueue } = globalThis;

/** The engine's own, which forgets what a callback throws. */
export function queueMicrotask(callback: () => void): void {
  if (typeof callback !== "function") throw new TypeError("queueMicrotask: the callback is not a function");
  enqueue(() => {
    try {
      callback();
    } catch (error) {
      report(error);
    }
  });
}
