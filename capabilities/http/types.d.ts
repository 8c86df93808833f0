/** The binding of a `stile:capability/http` interface. */
export interface Http {
  /**
   * Sends a request that the grant's rules allow, and waits for the response's headers. Rejects with a {@link DeniedError}
   * if the rules do not allow it, also for a redirect. `init.signal` aborts the request.
   */
  fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;
  /** A binding that allows only what both this one and `rules` allow. A string is a host that may be reached by https with GET and HEAD. */
  narrow(rules: readonly (string | HttpRule)[]): Http;
  rules(): wit.Http.Rule[];
}

/** A rule of {@link Http.narrow}. */
export interface HttpRule {
  /** A host name; "*.example.com" matches the names below example.com. */
  host: string;
  /** "https" when absent. */
  scheme?: string;
  /** The scheme's default port when absent. */
  port?: number;
  /** GET and HEAD when absent. */
  methods?: readonly string[];
  /** A glob; every path when absent. */
  path?: string;
  /** Names of the request headers that may be set; none when absent. */
  headers?: readonly string[];
}
