// Runs one page of web-platform-tests in the global environment of an extension.
import { extension } from "stile";
import { type Input, page } from "./page";

const global = globalThis as any;

export default extension({
  tools: {
    run: {
      description: "run a test file",
      run: (input: Input, env: any) => {
        // What the scripts use: bindings, and words that lead to the parts of the prelude.
        void [env.clock, env.random, env.console, setTimeout, setInterval, Math.random, Date.now, performance.now, performance.mark];
        void [global.self, global.ErrorEvent, global.ReadableStream, global.CompressionStream, global.FormData, global.MessageChannel, global.URLPattern, TextDecoder, (URL as any).createObjectURL];
        void ["encoding", "charset"];
        global.WebAssembly = { Memory: class { buffer = new SharedArrayBuffer(0); } }; // only way in which the tests make one
        // As in a page, what nothing catches does not end the script. The harness has a listener too.
        global.addEventListener("error", (event: Event) => event.preventDefault());
        return page(input);
      },
    },
  },
});
