/** The binding of a `stile:capability/console` interface. The global `console` uses the first one. */
export type Log = Pick<Console, "trace" | "debug" | "log" | "info" | "warn" | "error"> & {
  /**
   * Says how much is done: `env.console.progress(3, 10, "reading page 3")`. A person at a terminal and an MCP client see it. At most ten updates
   * a second pass, and a message is one line.
   */
  progress(done: number, total?: number | null, message?: string): void;
};
