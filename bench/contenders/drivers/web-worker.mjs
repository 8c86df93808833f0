// For Deno and Bun. Bun has no permissions and ignores the option.
import { serve } from "./driver.mjs";

const shell = "\nself.onmessage = ({ data }) => self.postMessage(JSON.stringify(tool(JSON.parse(data))));";

serve((source, input) => new Promise((resolve, reject) => {
  const url = URL.createObjectURL(new Blob([source, shell], { type: "text/javascript" }));
  const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
  worker.onerror = (event) => reject(event.message);
  worker.onmessage = ({ data }) => {
    URL.revokeObjectURL(url);
    resolve({ output: data, end: () => worker.terminate() });
  };
  worker.postMessage(input);
}));
