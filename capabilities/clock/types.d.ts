/** The binding of a `stile:capability/clock` interface. `Date`, `performance.now` and timers use the first one. */
export interface Clock {
  /** Milliseconds since 1970-01-01T00:00:00Z. */
  now(): number;
  /** Nanoseconds from an arbitrary start. */
  monotonic(): bigint;
  /**
   * Waits for a time in milliseconds, or a text of one number and one unit (ms, s, min, h, d, w, or the whole word): "90 s", "3 days". Or waits until a Date, or
   * a text of ISO 8601 with its time zone, "2026-12-24T18:00:00+01:00". What is over ends at once. Throws a RangeError for any other text, and for more than 291
   * years. A durable call sleeps meanwhile, and wakes by the machine's clock. If `signal` aborts, throws the signal's reason.
   */
  sleep(until: number | string | Date, options?: { signal?: AbortSignal }): Promise<void>;
}
