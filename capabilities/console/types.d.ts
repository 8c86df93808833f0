/** The binding of a `stile:capability/console` interface. The global `console` uses the first one. */
export type Log = Pick<Console, "trace" | "debug" | "log" | "info" | "warn" | "error">;
