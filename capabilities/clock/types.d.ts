/** The binding of a `stile:capability/clock` interface. `Date`, `performance.now` and timers use the first one. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Nanoseconds from an arbitrary start. */
  monotonic(): bigint;
  /** Waits. */
  sleep(milliseconds: number): Promise<void>;
}
