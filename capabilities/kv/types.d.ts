/** The binding of a `stile:capability/kv` interface: small durable values under names. */
export interface Kv extends Pick<wit.Kv.Bucket, "get" | "set" | "delete" | "compareAndSet"> {
  /** Entries whose key starts with `prefix`, in byte order. `cursor` is set if more follow. */
  list(prefix?: string, options?: PageOptions): Promise<{ entries: wit.Kv.Entry[]; cursor?: string }>;
  /** Adds to an integer, which is 0 when absent, and returns the sum. `delta` is 1 when absent. */
  increment(key: string, delta?: number): Promise<number>;
}
