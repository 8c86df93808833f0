// Compressors and decompressors on the host. Each is opened with its first step.
import { iface, packed } from "./bindings";
import { ask } from "./errors";
import { env, type Raw } from "./session";

type Bytes = Uint8Array<ArrayBuffer>;

/** The most bytes that a step takes, and that it returns. */
export const piece = 262_144;

export interface Step {
  bytes: Bytes;
  /** There is more output, for which the next input must be empty. */
  more: boolean;
  /** At the end of compressed data: how many bytes of the input come after it. */
  rest: number | undefined;
}

/** Opens a compressor or a decompressor. */
export type Open = () => Raw;

export const compress = (format: string, level: number): Open => () => iface("stile:capability/compression")!.functions.compress(env(), format, level) as Raw;
export const decompress = (format: string): Open => () => iface("stile:capability/compression")!.functions.decompress(env(), format) as Raw;

/** The error of a codec that is used at top level, where there is no host. It is made where the codec is, because steps come later. */
function tooEarly(name: string): Error | undefined {
  try {
    env();
    return undefined;
  } catch {
    return new Error(`${name} is not available at top level; use it inside a tool's run`);
  }
}

export class Codec {
  #open: Open;
  #name: string;
  #early: Error | undefined;
  #raw: Raw | undefined;

  /** `name` is what the author wrote. */
  constructor(open: Open, name: string) {
    this.#open = open;
    this.#name = name;
    this.#early = tooEarly(name);
  }
  /** Takes at most `piece` bytes. */
  step(input: Uint8Array, flush: "none" | "sync" | "finish" = "none"): Step {
    if (this.#early && tooEarly(this.#name)) throw this.#early;
    const raw = (this.#raw ??= ask(this.#open));
    return ask(() => packed(() => raw.step(input, flush)));
  }
  close(): void {
    this.#raw?.drop();
    this.#raw = undefined;
  }
}
