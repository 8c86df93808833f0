// Runs one page of web-platform-tests in Node.js: the input comes on stdin, the result goes to stdout. What nothing catches ends the page, as in
// the runner of Node.js itself.
import { readFileSync, writeSync } from "node:fs";
import { page, stop } from "./page";

process.on("uncaughtException", stop);
const global = globalThis as any;
for (const name of Object.getOwnPropertyNames(global)) void global[name]; // some become what they are when they are first read
page(JSON.parse(readFileSync(0, "utf8"))).then((result) => {
  let text = Buffer.from(`\n${JSON.stringify(result)}`);
  while (text.length) text = text.subarray(writeSync(1, text));
  process.exit();
});
