import { Worker } from "node:worker_threads";

import { serve } from "./driver.mjs";

const shell = `
const { parentPort } = require("node:worker_threads");
parentPort.on("message", (input) => parentPort.postMessage(JSON.stringify(tool(JSON.parse(input)))));`;

serve((source, input) => new Promise((resolve, reject) => {
  const worker = new Worker(source + shell, { eval: true });
  worker.once("error", reject);
  worker.once("message", (output) => resolve({ output, end: () => worker.terminate() }));
  worker.postMessage(input);
}));
