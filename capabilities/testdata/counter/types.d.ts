/** The binding of a `stile:capability/counter` interface: a number that only grows, for the length of a call. */
export interface Counter {
  /** Adds to the number, 1 when `step` is absent, and returns it. */
  count(step?: number): Promise<number>;
  seen(): Promise<number[]>;
}
