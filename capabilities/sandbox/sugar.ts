// The sugar of stile:capability/sandbox.
import { wait } from "../../toolchain/prelude/bindings";
import { Blob, takeHandle } from "../../toolchain/prelude/blob";
import { decode } from "../../toolchain/prelude/encoding";
import { lent } from "../../toolchain/prelude/env";
import { ask, CapabilityError } from "../../toolchain/prelude/errors";
import { telling } from "../../toolchain/prelude/missing";
import type { Raw } from "../../toolchain/prelude/session";

const handleOf = (directory: object) => lent(directory, "stile:capability/workspace");

type Text = string | readonly string[];
type Output = { stream: "stdout" | "stderr"; text: string };

interface CommandOptions {
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string | Blob;
  timeout?: number;
  onOutput?(part: Output): void;
}

export default function sandbox(raw: Raw) {
  const begin = (command: Text, options: CommandOptions = {}): Raw => ask(() => raw.start(describe(command, options)));
  const copy = async (transfer: Raw) => {
    await wait(transfer.subscribe());
    try {
      return ask(() => transfer.take());
    } finally {
      transfer.drop();
    }
  };
  return {
    run: async (command: Text, options: CommandOptions = {}) => {
      const process = begin(command, options);
      const onOutput = options.onOutput;
      return collect(process, onOutput && ((part) => onOutput(part)));
    },
    start: (command: Text, options: CommandOptions = {}) => running(begin(command, options)),
    push: async (directory: object, { to = "" }: { to?: string } = {}) => copy(ask(() => raw.push(handleOf(directory), to))),
    pull: async (directory: object, { from = "" }: { from?: string } = {}) => copy(ask(() => raw.pull(handleOf(directory), from))),
    limits: async () => ask(() => raw.limits()),
  };
}

function describe(command: Text, { cwd = "", env = {}, stdin, timeout }: CommandOptions) {
  return {
    argv: typeof command === "string" ? ["/bin/sh", "-c", command] : [...command],
    folder: cwd,
    env: Object.entries(env).map(([name, value]) => ({ name, value: `${value}` })),
    stdin: input(stdin),
    timeout,
  };
}

function input(given: CommandOptions["stdin"]): { tag: string; val?: unknown } {
  if (given === undefined) return { tag: "none" };
  if (typeof given === "string") return { tag: "text", val: given };
  const handle = given instanceof Blob ? takeHandle(given) : undefined;
  if (handle) return { tag: "blob", val: handle };
  throw new CapabilityError("invalid", "stdin is text, or a Blob of the host's, which a blob binding makes");
}

/** The output that has arrived from an offset on. */
function* arrived(process: Raw, from: { offset: bigint }) {
  for (;;) {
    const part = ask(() => process.read(from.offset));
    if (!part) return;
    from.offset = part.offset + BigInt(part.bytes.length);
    yield part as { stream: "stdout" | "stderr"; bytes: Uint8Array };
  }
}

async function collect(process: Raw, onOutput?: (part: Output) => void) {
  const from = { offset: 0n };
  const pieces = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  const take = () => {
    for (const { stream, bytes } of arrived(process, from)) {
      pieces[stream].push(bytes);
      onOutput?.({ stream, text: decode(bytes) });
    }
  };
  try {
    if (onOutput) {
      for (let before = -1n; before < from.offset; ) {
        before = from.offset;
        await wait(process.subscribe({ tag: "output", val: before }));
        take();
      }
    }
    await wait(process.subscribe({ tag: "ended" }));
    const exit = ask(() => process.take());
    take();
    return telling({
      exitCode: exit.code,
      stdout: text(pieces.stdout),
      stderr: text(pieces.stderr),
      truncated: exit.dropped > 0n && !onOutput,
      ending: exit.ending,
    }, "a result");
  } finally {
    process.drop();
  }
}

function text(pieces: Uint8Array[]): string {
  const all = new Uint8Array(pieces.reduce((sum, bytes) => sum + bytes.length, 0));
  let at = 0;
  for (const bytes of pieces) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return decode(all);
}

function running(process: Raw) {
  const parts: Output[] = [];
  let wake: () => void = () => {};
  let ended = false;
  const result = collect(process, (part) => {
    parts.push(part);
    wake();
  }).finally(() => {
    ended = true;
    wake();
  });
  result.catch(() => {}); // whoever wants to know awaits it
  return telling({
    result,
    stop: () => {
      if (!ended) ask(() => process.stop());
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const part = parts.shift();
        if (part) yield part;
        else if (ended) return;
        else await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  }, "a process");
}
