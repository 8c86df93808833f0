// Date and performance. Without a clock, the time is always 0.
import { setClock, wait } from "./bindings";
import { define } from "./global";
import { ambient, type Raw } from "./session";

/** Waits, at most as long as a WIT u64 of nanoseconds allows. */
export function pause(raw: Raw, milliseconds: number): Promise<void> {
  const nanoseconds = BigInt.asUintN(64, BigInt(Math.round(Math.min(Math.max(milliseconds, 0) || 0, 2 ** 31) * 1e6)));
  return wait(raw.subscribe(nanoseconds));
}

let origin: bigint | undefined;

/** Milliseconds since the first call; 0 without a clock. */
export function now(): number {
  const raw = ambient("clock");
  if (!raw) return 0;
  const time: bigint = raw.monotonic();
  origin ??= time;
  return Number(time - origin) / 1e6;
}

export function installClock(): void {
  setClock(() => Number(ambient("clock")?.now() ?? 0));
  define("performance", { now, timeOrigin: 0 });
}
