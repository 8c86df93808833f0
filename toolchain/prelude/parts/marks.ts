// Performance as the web has it: marks, measures and their observers. It takes the place of the prelude's own object, which only tells the time.
import { dictionary, required } from "../dictionary";
import { now } from "../clock";
import { define, install } from "../global";

const key = Symbol("PerformanceEntry");
// Entries are kept until they are cleared, at most this many; a call that makes more loses the oldest.
const most = 10_000;
let entries: PerformanceEntry[] = [];
const observers = new Set<PerformanceObserver>();
const supported = Object.freeze(["mark", "measure"]);
let tell: (observer: PerformanceObserver, entry: PerformanceEntry) => void;

interface Values {
  name: string;
  entryType: string;
  startTime: number;
  duration: number;
  detail: unknown;
}
let detailOf: (entry: PerformanceEntry) => unknown;

class PerformanceEntry {
  #values: Values;
  constructor(...made: [symbol?, Values?]) {
    if (made[0] !== key) throw new TypeError("a PerformanceEntry is made by performance.mark or performance.measure");
    this.#values = made[1]!;
  }
  get name(): string {
    return this.#values.name;
  }
  get entryType(): string {
    return this.#values.entryType;
  }
  get startTime(): number {
    return this.#values.startTime;
  }
  get duration(): number {
    return this.#values.duration;
  }
  toJSON(): object {
    const { name, entryType, startTime, duration, detail } = this.#values;
    return { name, entryType, startTime, duration, ...(detail !== undefined && { detail }) };
  }
  static {
    detailOf = (entry) => entry.#values.detail;
  }
}
class PerformanceMark extends PerformanceEntry {
  constructor(name: any, options: any = undefined) {
    required(arguments.length, 1, "PerformanceMark");
    const { detail = null, startTime = now() } = dictionary(options, "PerformanceMark") as any;
    if (!(startTime >= 0)) throw new TypeError("mark: startTime is negative or no number");
    super(key, { name: `${name}`, entryType: "mark", startTime: Number(startTime), duration: 0, detail: structuredClone(detail) });
  }
  get detail(): unknown {
    return detailOf(this);
  }
}
class PerformanceMeasure extends PerformanceEntry {
  get detail(): unknown {
    return detailOf(this);
  }
}

function add<T extends PerformanceEntry>(entry: T): T {
  entries.push(entry);
  if (entries.length > most) entries.shift();
  for (const observer of observers) tell(observer, entry);
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
function clear(type: string, name?: unknown): void {
  entries = entries.filter((entry) => entry.entryType !== type || (name !== undefined && entry.name !== `${name}`));
}

/** The entries of a list, by time, that have a name and a type if these are given. */
function select(list: PerformanceEntry[], name?: unknown, type?: unknown): PerformanceEntry[] {
  return list
    .filter((entry) => (name === undefined || entry.name === `${name}`) && (type === undefined || entry.entryType === `${type}`))
    .sort((a, b) => a.startTime - b.startTime);
}

class PerformanceObserverEntryList {
  #list: PerformanceEntry[];
  constructor(...made: [symbol?, PerformanceEntry[]?]) {
    if (made[0] !== key) throw new TypeError("a PerformanceObserverEntryList is made for a PerformanceObserver");
    this.#list = made[1]!;
  }
  getEntries(): PerformanceEntry[] {
    return select(this.#list);
  }
  getEntriesByType(type: unknown): PerformanceEntry[] {
    required(arguments.length, 1, "getEntriesByType");
    return select(this.#list, undefined, `${type}`);
  }
  getEntriesByName(name: unknown, type: unknown = undefined): PerformanceEntry[] {
    required(arguments.length, 1, "getEntriesByName");
    return select(this.#list, `${name}`, type);
  }
}

class Performance extends EventTarget {
  #origin: number | undefined;
  constructor(...made: [symbol?]) {
    super();
    if (made[0] !== key) throw new TypeError("there is one Performance: performance");
  }
  now(): number {
    void this.#origin; // for anything else, it fails
    return now();
  }
  /** The time of day at which now() was 0. */
  get timeOrigin(): number {
    return (this.#origin ??= Date.now() - now());
  }
  mark(name: unknown, options: unknown = undefined): PerformanceMark {
    void this.#origin;
    required(arguments.length, 1, "mark");
    return add(new PerformanceMark(name, options));
  }
  measure(name: unknown, begin: any = {}, end: unknown = undefined): PerformanceMeasure {
    void this.#origin;
    required(arguments.length, 1, "measure");
    const options = (typeof begin === "object" || typeof begin === "function") && begin !== null;
    const given = options ? begin : { start: begin ?? undefined, end };
    if (options && (given.start !== undefined || given.end !== undefined || given.duration !== undefined || given.detail !== undefined)) {
      if (end !== undefined) throw new TypeError("measure: an end is given twice");
      if (given.start === undefined && given.end === undefined) throw new TypeError("measure: start or end is wanted");
      if (given.start !== undefined && given.end !== undefined && given.duration !== undefined) throw new TypeError("measure: start, end and duration are one too many");
    }
    const { start, duration, detail = null } = given;
    const last = options && end !== undefined ? end : given.end;
    const until = last !== undefined ? time(last) : start !== undefined && duration !== undefined ? time(start) + Number(duration) : now();
    const from = start !== undefined ? time(start) : duration !== undefined ? until - Number(duration) : 0;
    return add(new PerformanceMeasure(key, { name: `${name}`, entryType: "measure", startTime: from, duration: until - from, detail: structuredClone(detail) }));
  }
  clearMarks(name: unknown = undefined): void {
    void this.#origin;
    clear("mark", name);
  }
  clearMeasures(name: unknown = undefined): void {
    void this.#origin;
    clear("measure", name);
  }
  getEntries(): PerformanceEntry[] {
    void this.#origin;
    return select(entries);
  }
  getEntriesByType(type: unknown): PerformanceEntry[] {
    void this.#origin;
    required(arguments.length, 1, "getEntriesByType");
    return select(entries, undefined, `${type}`);
  }
  getEntriesByName(name: unknown, type: unknown = undefined): PerformanceEntry[] {
    void this.#origin;
    required(arguments.length, 1, "getEntriesByName");
    return select(entries, `${name}`, type);
  }
  toJSON(): object {
    void this.#origin;
    return { timeOrigin: this.timeOrigin };
  }
  // Of Node.js, where it measures the function.
  timerify(f: Function): Function {
    return f;
  }
}

class PerformanceObserver {
  static get supportedEntryTypes(): readonly string[] {
    return supported;
  }
  #callback: (this: PerformanceObserver, list: object, observer: PerformanceObserver) => void;
  // An observer has types that it got one by one, or a list of them.
  #single: boolean | undefined;
  #types = new Set<string>();
  #left: PerformanceEntry[] = [];
  constructor(callback: any) {
    if (typeof callback !== "function") throw new TypeError("PerformanceObserver: the callback is not a function");
    this.#callback = callback;
  }
  observe(options: { entryTypes?: string[]; type?: string; buffered?: boolean } | undefined = undefined): void {
    const { entryTypes, type, buffered = false } = dictionary(options, "observe");
    if (entryTypes === undefined && type === undefined) throw new TypeError("observe: entryTypes or type is wanted");
    if (entryTypes !== undefined && (type !== undefined || buffered)) throw new TypeError("observe: entryTypes goes with no other option");
    if (entryTypes !== undefined && (typeof entryTypes !== "object" || entryTypes === null)) throw new TypeError("observe: entryTypes is a list");
    const single = entryTypes === undefined;
    if (this.#single !== undefined && this.#single !== single) throw new DOMException("the observer got types otherwise before", "InvalidModificationError");
    this.#single = single;
    const wanted = [...(entryTypes ?? [type!])].map((each) => `${each}`).filter((each) => supported.includes(each));
    if (!wanted.length) return;
    this.#types = new Set(single ? [...this.#types, ...wanted] : wanted);
    observers.add(this);
    if (buffered) for (const entry of entries) if (wanted.includes(entry.entryType)) tell(this, entry);
  }
  disconnect(): void {
    observers.delete(this);
    this.#left = [];
    this.#types = new Set();
    this.#single = undefined;
  }
  takeRecords(): PerformanceEntry[] {
    return this.#left.splice(0);
  }
  static {
    tell = (observer, entry) => {
      if (!observer.#types.has(entry.entryType)) return;
      if (observer.#left.push(entry) > 1) return;
      queueMicrotask(() => {
        const list = observer.takeRecords();
        if (list.length) observer.#callback(new PerformanceObserverEntryList(key, list), observer);
      });
    };
  }
}
install({ Performance, PerformanceEntry, PerformanceMark, PerformanceMeasure, PerformanceObserver, PerformanceObserverEntryList });
define("performance", new Performance(key));
