// The part of a driver that all have: a line of requests on stdin, answers on stdout. driver.go has the frames.
import { Buffer } from "node:buffer";
import process from "node:process";

const kept = [];

function write(id, text) {
  const body = Buffer.from(text);
  const frame = Buffer.alloc(8 + body.length);
  frame.writeUInt32LE(id, 0);
  frame.writeUInt32LE(body.length, 4);
  body.copy(frame, 8);
  process.stdout.write(frame);
}

async function trial(start, id, keep, source, input) {
  let isolate;
  try {
    isolate = await start(source, input);
    write(id, isolate.output);
  } catch (error) {
    write(id, JSON.stringify({ error: String(error?.stack ?? error) }));
  }
  if (keep) kept.push(isolate);
  else await isolate?.end?.();
  write(id, ""); // it is gone
}

// serve starts an isolate for each request: start(source, input) resolves to { output, end }, both texts JSON.
export function serve(start) {
  let pending = Buffer.alloc(0);
  process.stdin.on("data", (chunk) => {
    pending = pending.length > 0 ? Buffer.concat([pending, chunk]) : chunk;
    while (pending.length >= 16) {
      const [id, keep, source, input] = [0, 4, 8, 12].map((at) => pending.readUInt32LE(at));
      const end = 16 + source + input;
      if (pending.length < end) return;
      trial(start, id, keep, pending.toString("utf8", 16, 16 + source), pending.toString("utf8", 16 + source, end));
      pending = pending.subarray(end);
    }
  });
  process.stdin.on("end", () => process.exit(0));
}
