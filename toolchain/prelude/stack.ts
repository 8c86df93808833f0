// Error.stack in the format of Node.js: a line that names the error, then its frames, with positions in the author's files. Frames of
// the prelude are left out. The text is made when it is first read.
import { sourceMap } from "./bindings";
import { explain } from "./missing";
import { limitMet } from "./resources";

interface CallSite {
  getFunctionName(): string | null;
  getFileName(): string | null;
  getLineNumber(): number;
  getColumnNumber(): number;
  isNative(): boolean;
}

/** The value that the engine stores with an error: its frames, with positions in the bundle. */
class Trace {
  text: string | undefined;
  constructor(readonly frames: string) {}
}

// Traces that are not in the engine's own slot, by the getter that returns them.
const traces = new WeakMap<Function, Trace>();
const { getOwnPropertyDescriptor, getPrototypeOf, defineProperty } = Object;
let stored: (error: object) => unknown = () => undefined;
let getter: Function;
let formatter: unknown;
// The trace that a running captureStackTrace requested.
let captured: Trace | undefined;
let capturing = false;

/** Defines Error.stack. The hook that formats stacks receives every error that the engine creates. */
export function installStacks(): void {
  const hook = getOwnPropertyDescriptor(Error, "prepareStackTrace")!;
  const native = getOwnPropertyDescriptor(Error.prototype, "stack")!;
  const capture: Function = (Error as any).captureStackTrace;
  const Dom = DOMException;
  stored = (error) => native.get!.call(error);

  hook.set!.call(Error, (error: object, sites: CallSite[]) => {
    const trace = new Trace(frames(sites));
    limitMet(error, trace.frames);
    explain(error, sites);
    if (typeof formatter === "function") return formatter.call(Error, error, sites);
    if (capturing) captured = trace;
    else if (error instanceof Dom) attach(error, trace); // it has no slot
    else return trace;
    return "";
  });
  defineProperty(Error, "prepareStackTrace", {
    get: () => formatter,
    set: (value) => {
      formatter = value;
    },
    configurable: true,
  });
  const property = {
    get stack(): unknown {
      const value = Object(this) === this ? stored(this) : undefined;
      return value instanceof Trace ? textOf(value, this) : value;
    },
    set stack(value: unknown) {
      replace(this, value);
    },
  };
  getter = getOwnPropertyDescriptor(property, "stack")!.get!;
  defineProperty(Error.prototype, "stack", { ...getOwnPropertyDescriptor(property, "stack"), enumerable: false });
  const methods = {
    captureStackTrace(target: object, from?: Function): void {
      if (Object(target) !== target) throw new TypeError("Error.captureStackTrace: an object is wanted");
      captured = undefined;
      capturing = true;
      try {
        capture.call(Error, target, from ?? methods.captureStackTrace);
      } finally {
        capturing = false;
      }
      if (captured) attach(target, captured);
    },
  };
  defineProperty(Error, "captureStackTrace", { value: methods.captureStackTrace, writable: true, configurable: true });
}

/** Gives an object a stack. */
function attach(object: object, trace: Trace): void {
  const get = () => textOf(trace, object);
  traces.set(get, trace);
  defineProperty(object, "stack", { get, set: (value) => replace(object, value), enumerable: false, configurable: true });
}

function replace(object: unknown, value: unknown): void {
  if (Object(object) !== object) throw new TypeError("Error.prototype.stack: this is not an object");
  defineProperty(object as object, "stack", { value, writable: true, enumerable: !Error.isError(object), configurable: true });
}

/** The trace behind an object's stack; undefined for a stack from elsewhere. Of the object's code, only proxy traps can run. */
function traceOf(object: object): Trace | undefined {
  for (let at = object; at; at = getPrototypeOf(at)) {
    const own = getOwnPropertyDescriptor(at, "stack");
    if (!own) continue;
    const value = own.get === getter ? stored(object) : own.get && traces.get(own.get);
    return value instanceof Trace ? value : undefined;
  }
  return undefined;
}

/** The frames of an error, for the host to map; undefined if its stack was replaced. */
export function rawFrames(error: object): string | undefined {
  return traceOf(error)?.frames;
}

/** The frames of an error with positions in the author's files; undefined without a source map, or if its stack was replaced. */
export function mappedFrames(error: object): string | undefined {
  const trace = traceOf(error);
  return trace && places() && mapped(trace.frames);
}

function textOf(trace: Trace, error: object): string {
  return (trace.text ??= `${title(error)}\n${mapped(trace.frames)}`.trimEnd());
}

/** "Name: message", like Error.prototype.toString. */
function title(error: any): string {
  try {
    const { name = "Error", message = "" } = error;
    return name === "" || message === "" ? `${name}${message}` : `${name}: ${message}`;
  } catch {
    return "Error";
  }
}

function frames(sites: CallSite[]): string {
  let text = "";
  for (const site of sites) {
    const name = site.getFunctionName() || "<anonymous>";
    if (site.isNative()) text += `    at ${name} (native)\n`;
    else if (site.getFileName()) text += `    at ${name} (${site.getFileName()}:${site.getLineNumber()}:${site.getColumnNumber()})\n`;
  }
  return text;
}

// The name that the host uses.
export const bundle = "extension.js";

/** The source map of code sent with the call, as JSON. */
let given: string | undefined;

/** A map, with the mappings of each row of the bundle: column, source, line and column of each, all from 0. */
interface Places {
  sources: string[];
  /** Absent if the bundle is as its author wrote it. */
  rows: number[][] | undefined;
  /** The number of first lines of the source that are not the author's. */
  above: number;
}

let read: Places | null | undefined;

/** Sets the source map of code sent with the call. */
export function mapStacks(text: string | undefined): void {
  given = text;
  read = undefined;
}

function places(): Places | undefined {
  if (read === undefined) {
    read = null;
    try {
      const text = given ?? sourceMap();
      if (text) {
        const { sources, mappings, above = 0 } = JSON.parse(text);
        read = { sources, rows: mappings === undefined ? undefined : decode(mappings), above };
      }
    } catch {
      // Keep the positions in the bundle.
    }
  }
  return read ?? undefined;
}

function mapped(frames: string): string {
  const known = places();
  if (!known) return frames;
  const lines: string[] = [];
  for (const line of frames.split("\n")) {
    const place = /^(.* )\(extension\.js:(\d+):(\d+)\)$/.exec(line);
    if (!place) lines.push(line);
    else {
      const found = find(known, Number(place[2]) - 1, Math.max(Number(place[3]) - 1, 0));
      if (found) lines.push(`${place[1]}(${found})`);
    }
  }
  return lines.join("\n");
}

/** The nearest mapping at or before a position in its row. */
function find({ sources, rows, above }: Places, row: number, column: number): string | undefined {
  if (!rows) return row < above ? undefined : `${sources[0]}:${row - above + 1}:${column + 1}`;
  const mappings = rows[row] ?? [];
  let low = 0;
  let high = mappings.length / 4;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (mappings[4 * middle] <= column) low = middle + 1;
    else high = middle;
  }
  const at = 4 * (low - 1);
  if (at < 0 || mappings[at + 2] < above) return undefined;
  const source = sources[mappings[at + 1]];
  // Where a stack is copied into another error, the bare name of the bundle would be mapped again.
  return `${source === bundle ? `./${source}` : source}:${mappings[at + 2] - above + 1}:${mappings[at + 3] + 1}`;
}

const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** The mappings of a source map, version 3. */
function decode(text: string): number[][] {
  const values: Record<string, number> = {};
  for (let i = 0; i < digits.length; i++) values[digits.charCodeAt(i)] = i;
  const rows: number[][] = [];
  let source = 0, line = 0, original = 0;
  for (const row of text.split(";")) {
    const mappings: number[] = [];
    let column = 0;
    for (const segment of row.split(",")) {
      const deltas: number[] = [];
      for (let i = 0, value = 0, shift = 0; i < segment.length; i++) {
        const digit = values[segment.charCodeAt(i)];
        value += (digit & 31) << shift;
        if (digit & 32) shift += 5;
        else {
          deltas.push(value & 1 ? -(value >> 1) : value >> 1);
          value = shift = 0;
        }
      }
      if (!deltas.length) continue;
      column += deltas[0];
      if (deltas.length < 4) continue; // text without a source file
      mappings.push(column, (source += deltas[1]), (line += deltas[2]), (original += deltas[3]));
    }
    rows.push(mappings);
  }
  return rows;
}
