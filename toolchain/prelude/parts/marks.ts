// Marks and measures of performance: User Timing.
import { dictionary, required } from "../dictionary";
import { install } from "../global";

const performance = (globalThis as any).performance;
const key = Symbol("PerformanceEntry");
// Entries are kept until they are cleared, at most this many; a call that makes more loses the oldest.
const most = 10_000;
let entries: PerformanceEntry[] = [];
const observers = new Set<PerformanceObserver>();

class PerformanceEntry {
  readonly name!: string;
  readonly entryType!: string;
  readonly startTime!: number;
  readonly duration!: number;
  readonly detail!: unknown;
  constructor(made?: symbol, values?: object) {
    if (made !== key) throw new TypeError("a PerformanceEntry is made by performance.mark or performance.measure");
    Object.assign(this, values);
  }
  toJSON(): object {
    const { name, entryType, startTime, duration, detail } = this;
    return { name, entryType, startTime, duration, ...(detail !== undefined && { detail }) };
  }
}
class PerformanceMark extends PerformanceEntry {
  constructor(name: any, options?: any) {
    required(arguments.length, 1, "PerformanceMark");
    const { detail = null, startTime = performance.now() } = dictionary(options, "PerformanceMark") as any;
    if (!(startTime >= 0)) throw new TypeError("mark: startTime is negative or no number");
    super(key, { name: `${name}`, entryType: "mark", startTime: Number(startTime), duration: 0, detail: structuredClone(detail) });
  }
}
class PerformanceMeasure extends PerformanceEntry {}

function add<T extends PerformanceEntry>(entry: T): T {
  entries.push(entry);
  if (entries.length > most) entries.shift();
  for (const observer of observers) PerformanceObserver.tell(observer, entry);
  return entry;
}
/** The time of a mark, or a number. */
function time(of: unknown): number {
  if (typeof of === "number") {
    if (!(of >= 0)) throw new TypeError("measure: a time is negative");
    return of;
  }
  const mark = entries.findLast((entry) => entry.entryType === "mark" && entry.name === `${of}`);
  if (!mark) throw new DOMException(`measure: there is no mark ${`${of}`.slice(0, 100)}`, "SyntaxError");
  return mark.startTime;
}
const clear = (type: string) => (name?: unknown) => void (entries = entries.filter((entry) => entry.entryType !== type || (name !== undefined && entry.name !== `${name}`)));
const sorted = (list: PerformanceEntry[]) => [...list].sort((a, b) => a.startTime - b.startTime);

const methods = {
  mark: (...args: [unknown, unknown?]) => add(new PerformanceMark(...(args as [unknown]))),
  measure(name: unknown, begin?: any, end?: unknown): PerformanceMeasure {
    required(arguments.length, 1, "measure");
    const given = typeof begin === "object" && begin !== null ? begin : { start: begin, end };
    if (given !== begin || given.start !== undefined || given.end !== undefined || given.duration !== undefined || given.detail !== undefined) {
      if (given === begin && end !== undefined) throw new TypeError("measure: an end is given twice");
      if (given === begin && given.start === undefined && given.end === undefined) throw new TypeError("measure: start or end is wanted");
      if (given.start !== undefined && given.end !== undefined && given.duration !== undefined) throw new TypeError("measure: start, end and duration are one too many");
    }
    const { start, duration, detail = null } = given;
    const until = given.end !== undefined ? time(given.end) : start !== undefined && duration !== undefined ? time(start) + Number(duration) : performance.now();
    const from = start !== undefined ? time(start) : duration !== undefined ? until - Number(duration) : 0;
    return add(new PerformanceMeasure(key, { name: `${name}`, entryType: "measure", startTime: from, duration: until - from, detail: structuredClone(detail) }));
  },
  clearMarks: clear("mark"),
  clearMeasures: clear("measure"),
  getEntries: () => sorted(entries),
  getEntriesByType: (type: unknown) => sorted(entries.filter((entry) => entry.entryType === `${type}`)),
  getEntriesByName: (name: unknown, type?: unknown) => sorted(entries.filter((entry) => entry.name === `${name}` && (type === undefined || entry.entryType === `${type}`))),
  toJSON: () => ({ timeOrigin: performance.timeOrigin }),
  timerify: (f: Function) => f,
};
for (const [name, value] of Object.entries(methods)) Object.defineProperty(performance, name, { value, writable: true, configurable: true, enumerable: true });

class PerformanceObserver {
  static readonly supportedEntryTypes = Object.freeze(["mark", "measure"]);
  #callback: (list: object, observer: PerformanceObserver) => void;
  #types = new Set<string>();
  #left: PerformanceEntry[] = [];
  constructor(callback: any) {
    if (typeof callback !== "function") throw new TypeError("PerformanceObserver: the callback is not a function");
    this.#callback = callback;
  }
  observe({ entryTypes, type, buffered = false }: { entryTypes?: string[]; type?: string; buffered?: boolean } = {}): void {
    if (!entryTypes && type === undefined) throw new TypeError("observe: entryTypes or type is wanted");
    this.#types = new Set(entryTypes ?? [...this.#types, type!]);
    observers.add(this);
    if (buffered) for (const entry of entries) PerformanceObserver.tell(this, entry);
  }
  disconnect(): void {
    observers.delete(this);
    this.#left = [];
  }
  takeRecords(): PerformanceEntry[] {
    return this.#left.splice(0);
  }
  static tell(observer: PerformanceObserver, entry: PerformanceEntry): void {
    if (!observer.#types.has(entry.entryType)) return;
    if (observer.#left.push(entry) > 1) return;
    queueMicrotask(() => {
      const list = observer.takeRecords();
      const by = (keep: (entry: PerformanceEntry) => boolean) => sorted(list.filter(keep));
      if (list.length)
        observer.#callback({
          getEntries: () => sorted(list),
          getEntriesByType: (type: string) => by((entry) => entry.entryType === type),
          getEntriesByName: (name: string, type?: string) => by((entry) => entry.name === name && (type === undefined || entry.entryType === type)),
        }, observer);
    });
  }
}
install({ PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver });
