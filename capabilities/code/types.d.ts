/** The binding of a `stile:capability/code` interface: code that comes at run time, such as a model's. */
export interface Code {
  /**
   * Runs code once, in an instance of its own: the body of an async function with the parameters `input`, `env` and `tools`. It has a
   * clock, random numbers and a console, and of this call only the bindings in `env`, under any name: those that the manifest names
   * for this binding, and objects that `narrow`, `subdirectory` and `readOnly` made of them. You cannot use the latter afterwards. It
   * rejects with a {@link CodeError} if the code fails, and with a {@link DeniedError} if the code does not handle a denial.
   */
  execute(code: string, options?: CodeOptions): Promise<CodeResult>;
}

/** How code of a {@link Code} runs. */
export interface CodeOptions {
  /** Any JSON. `null` when absent. */
  input?: unknown;
  env?: Record<string, object>;
  /** The name of the code in errors and stacks. Its ending says the language. "code.ts" when absent. */
  name?: string;
}

/** What code of a {@link Code} did. */
export interface CodeResult {
  /** What it returned: any JSON. */
  result: any;
  log: CodeLine[];
}

export interface CodeLine {
  level: "trace" | "debug" | "info" | "warn" | "error";
  text: string;
}

/** What `execute` of a {@link Code} rejects with if the code fails. A {@link DeniedError} then has the same properties. */
export interface CodeError extends CapabilityError {
  /** What the code logged before. */
  log: CodeLine[];
  /** What the code threw, with its stack. Absent if it ended otherwise: a limit, or text that is no code. */
  thrown?: { name: string; message: string; stack: string };
}
