// Date and performance. Without a clock, the time is always 0.
import { setClock, wait } from "./bindings";
import { define } from "./global";
import { ambient, type Raw } from "./session";

/** What is ready after a time, at most as long as a WIT u64 of nanoseconds allows. */
export function timer(raw: Raw, milliseconds: number): Raw {
  return raw.subscribe(BigInt.asUintN(64, BigInt(Math.round(Math.min(Math.max(milliseconds, 0) || 0, 9.2e12) * 1e6))));
}

/** Waits for a time. */
export function pause(raw: Raw, milliseconds: number): Promise<void> {
  return wait(timer(raw, milliseconds));
}

/** Milliseconds since an arbitrary start, which is that of the call on this host; 0 without a clock. */
export function now(): number {
  return Number(ambient("clock")?.monotonic() ?? 0) / 1e6;
}

export function installClock(): void {
  setClock(() => Number(ambient("clock")?.now() ?? 0));
  define("performance", { now, timeOrigin: 0 });
}
