// A page of web-platform-tests: its harness and scripts as global code. It is the same for an extension and for Node.js.

interface Script {
  name: string;
  text: string;
}
export interface Input {
  url: string;
  scripts: Script[];
  /** What the server of the tests would serve, by path. */
  files: Record<string, string>;
}
export interface Result {
  status: number;
  message: string | null;
  tests: { name: string; status: number; message: string | null }[];
}

const global = globalThis as any;
let finish: (status: number, message: string | null) => void;

/** Ends the page as one that has failed, with the tests that have ended. */
export function stop(error: unknown): void {
  finish(1, `${error}`);
}
const { setTimeout } = global;
/** A page whose tests do not end is ended after this many milliseconds. */
const patience = 15_000;

export function page({ url, scripts, files }: Input): Promise<Result> {
  global.self = global;
  global.Window = Object.getPrototypeOf(global).constructor; // the tests of interfaces look for it
  global.GLOBAL = { isWindow: () => false, isWorker: () => false, isShadowRealm: () => false };
  const { href, origin, protocol, host, hostname, port, pathname, search, hash } = new URL(url);
  global.location = { href, origin, protocol, host, hostname, port, pathname, search, hash, toString: () => href };
  const title = /^\/\/ META: title=(.*)$/m.exec(scripts.at(-1)!.text);
  if (title) global.META_TITLE = title[1]!.trim();
  // The tests name addresses beside their own.
  const { Request } = global;
  global.Request = class extends Request {
    constructor(input: unknown, init?: unknown) {
      super(input instanceof Request ? input : new URL(`${input}`, url).href, init);
    }
  };
  Object.defineProperty(global.Request, "name", { value: "Request" });
  // A server would serve these files.
  const { fetch } = global;
  global.fetch = async (path: unknown, init?: unknown) => {
    if (/^(data|blob):/.test(`${path}`)) return fetch(path, init);
    const wanted = new URL(path instanceof Request ? (path as any).url : `${path}`, url).pathname;
    if (!(wanted in files)) throw new TypeError(`there is no server, so no ${wanted}`);
    return new Response(files[wanted]);
  };
  const evaluate = global.eval;
  return new Promise<Result>((resolve) => {
    const [harness, ...others] = scripts;
    evaluate(harness!.text);
    const tests: Result["tests"] = [];
    finish = (status, message) => resolve({ status, message, tests });
    global.add_result_callback(({ name, status, message }: any) => tests.push({ name: name.toWellFormed(), status, message: message && `${message}`.toWellFormed() }));
    global.add_completion_callback((_: unknown, { status, message }: any) => finish(status, message));
    setTimeout(global.timeout, patience);
    try {
      // One text, because declarations with let, const and class end with the text that eval gets.
      evaluate(others.map(({ text }) => text).join("\n;\n"));
    } catch (error) {
      stop(error);
    }
  });
}
