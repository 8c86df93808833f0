/** The binding of a `stile:capability/tools` interface: other tools. */
export interface Tools {
  /**
   * Calls a tool by its full name, `<extension>_<tool>`. The tool has its own bindings and those passed in `env`: bindings of this
   * call, under any name, and objects that `narrow`, `subdirectory` and `readOnly` returned. You cannot use the latter afterwards.
   */
  call(name: string, input?: unknown, options?: { env?: Record<string, object> }): Promise<any>;
  /** Tools whose name or description matches the query; at most 20 when `limit` is absent. */
  search(query: string, limit?: number): Promise<{ name: string; description: string; inputSchema: any }[]>;
  /** `tools.github.list_issues(input)` is `tools.call("github_list_issues", input)`, and `tools.sum(input)` is `tools.call("sum", input)`. */
  readonly [extension: string]: any;
}
