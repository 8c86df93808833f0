/** The binding of a `stile:capability/runs` interface: what a durable call can say about itself, and runs of tools that a call starts. */
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
  /**
   * Starts a tool of another extension, which the manifest names in `start`, as a run of its own. The run goes on when this call has ended, also if the call was not durable. With a
   * `key`, starting again finds the same run: keys are those of this extension, this tool and whoever calls. With another input, a key that is taken throws a CapabilityError
   * with the code "invalid". At most 100 runs can be under way.
   */
  start(tool: string, input?: unknown, options?: { key?: string }): Promise<StartedRun>;
  /** A run that `start` started, in this call or in an earlier one, by its `id`. Its functions throw a CapabilityError with the code "not-found" if there is no such run. */
  started(id: string): StartedRun;
}

/** A run that `start` started. */
export interface StartedRun {
  /** What people and programs call the run. */
  readonly id: string;
  /** The result of the tool, or its error as of a call, once the run has ended. A durable call waits for it asleep. */
  result(): Promise<any>;
  /** Where the run is. */
  status(): Promise<RunStatus>;
  /**
   * Delivers a message to a mailbox of the run: JSON of at most 64 KiB. With a `key`, a mailbox takes a message once. Returns false if it has had one with the key. Throws a
   * CapabilityError with the code "exhausted" if the run has no room, and "unavailable" if it has ended.
   */
  signal(mailbox: string, data?: unknown, options?: { key?: string }): Promise<boolean>;
  /** Asks for the end of the run, as `stile runs cancel` does, and does not wait for it. If the run has ended, nothing happens. */
  cancel(): Promise<void>;
}

/** Where a run is. */
export interface RunStatus {
  /** "ready" and "running": it goes on. "asleep": it waits. "done", "failed" and "cancelled": it has ended. "parked": it goes on only when a person has it do so. */
  state: "ready" | "running" | "asleep" | "done" | "failed" | "cancelled" | "parked";
  /** When it came into the state. */
  since: Date;
  /** When it goes on, if it waits for a time. */
  wakes?: Date;
  /** The mailboxes from which it waits for messages. */
  mailboxes: string[];
  /** Why it failed or is parked. */
  reason?: string;
}
