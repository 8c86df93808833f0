/** The binding of a `stile:capability/tools` interface: other tools. */
export interface Tools {
  /**
   * Calls a tool by its whole name, `<extension>_<tool>`. It has its own bindings, and those passed in `env`: bindings of
   * this call under their names or others, and what `narrow`, `subdirectory` and `readOnly` made of them, which is given away.
   */
  call(name: string, input?: unknown, options?: { env?: Record<string, object> }): Promise<any>;
  /** Tools whose name or description fits the query; at most 20 when `limit` is absent. */
  search(query: string, limit?: number): Promise<{ name: string; description: string; inputSchema: any }[]>;
  /** `tools.github.list_issues(input)` is `tools.call("github_list_issues", input)`, and `tools.sum(input)` is `tools.call("sum", input)`. */
  readonly [extension: string]: any;
}
