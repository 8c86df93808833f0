/** What a binding to other tools has besides the tools. In a manifest's binding, each tool is a method of its full name. */
export interface ToolCalls {
  /**
   * Calls a tool by its full name, `<extension>_<tool>`. The tool has its own bindings and those passed in `env`, which tools of a
   * manifest's binding refuse: bindings of this call, under any name, and objects that `narrow`, `subdirectory` and `readOnly` returned. You cannot use the latter afterwards.
   */
  call(name: string, input?: unknown, options?: { env?: Record<string, object> }): Promise<any>;
  /** Tools that fit the words of the query, the best first; at most 20 when `limit` is absent. An empty query finds all tools. */
  search(query: string, limit?: number): Promise<{ name: string; description: string; inputSchema: any }[]>;
  /**
   * What some tools take, in TypeScript, with comments. The text is short: it says what it leaves out. A name can go on with the field whose
   * type is wanted, such as `github_create_pr/labels`.
   */
  describe(...names: string[]): Promise<string>;
}

/** The binding of a `stile:capability/tools` interface: other tools. */
export interface Tools extends ToolCalls {
  /** `tools.github.list_issues(input)` is `tools.call("github_list_issues", input)`, and `tools.sum(input)` is `tools.call("sum", input)`. */
  readonly [extension: string]: any;
}
