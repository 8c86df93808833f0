// The console, over a handle of stile:capability/console.
import { now } from "./clock";
import { define } from "./global";
import { cut, inspect } from "./inspect";
import { ambient } from "./session";

type Level = "trace" | "debug" | "info" | "warn" | "error";
/** Takes messages. */
export type Sink = (level: Level, message: () => string) => void;

// The limit of one message. The host limits the sum of all messages.
const most = 16_384;

/** The text of the arguments of console.log: %s, %d, %i, %f, %j, %o, %O and %c in a first string, the rest inspected. */
export function format(data: unknown[]): string {
  let rest = data;
  let text = "";
  if (typeof data[0] === "string" && data.length > 1) {
    rest = data.slice(1);
    text = data[0].replace(/%[sdifjoOc%]/g, (mark) => {
      if (mark === "%%") return "%";
      if (!rest.length) return mark;
      const value = rest.shift();
      switch (mark) {
        case "%s":
          return typeof value === "object" ? inspect(value) : plain(value);
        case "%d":
          return typeof value === "bigint" ? `${value}n` : `${number(value)}`;
        case "%i":
          return typeof value === "bigint" ? `${value}n` : `${Math.trunc(number(value))}`;
        case "%f":
          return `${number(value)}`;
        case "%j":
          return json(value);
        case "%c":
          return "";
        default:
          return inspect(value);
      }
    });
    if (rest.length) text += " ";
  }
  return cut(text + rest.map((value) => (typeof value === "string" ? value : inspect(value))).join(" "), most);
}

function plain(value: unknown): string {
  return typeof value === "bigint" ? `${value}n` : typeof value === "function" ? inspect(value) : String(value);
}

function number(value: unknown): number {
  return typeof value === "string" ? parseFloat(value) : typeof value === "number" ? value : NaN;
}

function json(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "undefined";
  } catch {
    return "[no JSON]";
  }
}

/** The five levels and `log`, which is `info`. */
export function levels(sink: Sink) {
  const at =
    (level: Level) =>
    (...data: unknown[]): void =>
      sink(level, () => format(data));
  return { debug: at("debug"), log: at("info"), info: at("info"), warn: at("warn"), error: at("error") };
}

function stack(): string {
  return new Error().stack?.split("\n").slice(1).join("\n") ?? "";
}

export function installConsole(): void {
  const counts = new Map<string, number>();
  const times = new Map<string, number>();
  let indent = "";
  // Nothing is formatted when nobody listens.
  const sink: Sink = (level, message) =>
    ambient("console")?.log(level, indent ? indent + message().replaceAll("\n", `\n${indent}`) : message());
  const elapsed = (label: string): string => `${label}: ${(now() - times.get(label)!).toFixed(3)}ms`;
  const { debug, log, info, warn, error } = levels(sink);
  define("console", {
    debug,
    log,
    info,
    warn,
    error,
    dir: (value: unknown) => log(value),
    trace: (...data: unknown[]) => {
      const text = stack();
      sink("trace", () => `Trace${data.length ? `: ${format(data)}` : ""}\n${text}`);
    },
    assert: (condition?: unknown, ...data: unknown[]) => {
      if (!condition) error(...(data.length ? ["Assertion failed:", ...data] : ["Assertion failed"]));
    },
    count: (label = "default") => {
      counts.set(label, (counts.get(label) ?? 0) + 1);
      info(`${label}: ${counts.get(label)}`);
    },
    countReset: (label = "default") => void counts.delete(label),
    group: (...data: unknown[]) => {
      if (data.length) log(...data);
      if (indent.length < 40) indent += "  ";
    },
    groupEnd: () => {
      indent = indent.slice(2);
    },
    time: (label = "default") => void times.set(label, now()),
    timeLog: (label = "default", ...data: unknown[]) => {
      if (times.has(label)) info(elapsed(label), ...data);
    },
    timeEnd: (label = "default") => {
      if (times.has(label)) info(elapsed(label));
      times.delete(label);
    },
    table: (rows: unknown, columns?: string[]) => sink("info", () => table(rows, columns) ?? format([rows])),
  });
}

/** Rows as lines with columns of equal width; undefined if the data is not a table. */
function table(rows: unknown, wanted?: string[]): string | undefined {
  if (typeof rows !== "object" || rows === null) return undefined;
  const entries = Object.entries(rows).slice(0, 1000);
  const isRow = (row: unknown): row is object => typeof row === "object" && row !== null;
  const columns = wanted ?? [...new Set(entries.flatMap(([, row]) => (isRow(row) ? Object.keys(row) : [])))].slice(0, 20);
  const values = entries.some(([, row]) => !isRow(row));
  const cells = entries.map(([index, row]) => [
    index,
    ...columns.map((column) => (isRow(row) && Object.hasOwn(row, column) ? inspect((row as any)[column]) : "")),
    ...(values ? [isRow(row) ? "" : inspect(row)] : []),
  ]);
  const lines = [["(index)", ...columns, ...(values ? ["Values"] : [])], ...cells];
  const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => line[at].length)));
  return lines.map((line) => line.map((cell, at) => cell.padEnd(widths[at])).join("  ").trimEnd()).join("\n");
}
