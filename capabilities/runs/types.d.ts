/** The binding of a `stile:capability/runs` interface: what a durable call can say about itself. */
export interface Runs {
  /**
   * Aborts when somebody cancels the run. Without reading it, a run that is cancelled ends at once. Once you have read it, the run goes on for up to 30
   * seconds then, to clean up. However it ends, it has been cancelled. In a call that is not durable, it never aborts.
   */
  readonly cancelled: AbortSignal;
  /** Keeps the run from sleeping until the promise is settled, for what another side would not wait for. Settles like the promise. */
  keepAwake<T>(promise: Promise<T> | T): Promise<T>;
  /**
   * Keeps a value with the run, in place of the last one: JSON of at most 64 KiB. Later attempts of the run have it too. Throws a CapabilityError with the code
   * "unavailable" if the call is not durable.
   */
  stash(value: unknown): Promise<void>;
  /** What the run keeps, also from an earlier attempt; undefined if it keeps nothing. Throws as `stash` does if the call is not durable. */
  recover<T = unknown>(): Promise<T | undefined>;
}
