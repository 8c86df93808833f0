// Runs one test file of web-platform-tests: its harness and scripts as global code, in the global environment of an extension.
import { extension } from "stile";

interface Script {
  name: string;
  text: string;
}
interface Input {
  url: string;
  scripts: Script[];
  /** What the server of the tests would serve, by path. */
  files: Record<string, string>;
}
interface Result {
  status: number;
  message: string | null;
  tests: { name: string; status: number; message: string | null }[];
}

const global = globalThis as any;

export default extension({
  tools: {
    run: {
      description: "run a test file",
      run: ({ url, scripts, files }: Input, env: any) => {
        void [env.clock, env.random, env.console, setTimeout, setInterval, Math.random, Date.now, performance.now]; // the scripts use them
        global.self = global;
        const events = new EventTarget();
        for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"] as const) global[name] = (events[name] as any).bind(events);
        global.WebAssembly = { Memory: class { buffer = new SharedArrayBuffer(0); } }; // only way in which the tests make one
        global.GLOBAL = { isWindow: () => false, isWorker: () => true, isShadowRealm: () => false };
        global.location = { href: url, search: new URL(url).search };
        // The tests name addresses beside their own.
        const { Request } = global;
        global.Request = class extends Request {
          constructor(input: unknown, init?: unknown) {
            super(input instanceof Request ? input : new URL(`${input}`, url).href, init);
          }
        };
        Object.defineProperty(global.Request, "name", { value: "Request" });
        // A server would serve these files.
        global.fetch = async (path: string) => {
          const wanted = new URL(path, url).pathname;
          if (!(wanted in files)) throw new TypeError(`there is no server, so no ${wanted}`);
          return new Response(files[wanted]);
        };
        const evaluate = global.eval;
        return new Promise<Result>((resolve) => {
          const [harness, ...others] = scripts;
          evaluate(harness.text);
          global.add_completion_callback((tests: any[], status: any) =>
            resolve({
              status: status.status,
              message: status.message,
              tests: tests.map(({ name, status, message }) => ({ name: name.toWellFormed(), status, message: message && `${message}`.toWellFormed() })),
            }),
          );
          // One text, because declarations with let, const and class end with the text that eval gets.
          evaluate(others.map(({ text }) => text).join("\n;\n"));
        });
      },
    },
  },
});
