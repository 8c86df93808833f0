// Lifts and lowers values between JavaScript and the canonical ABI, for the world in a descriptor, and runs the event
// loop. The other half is the bindings module that toolchain/bindings.go generates.

/** Performs the operation in the first argument; see bindingsCore in toolchain/bindings.go. Numbers must be integers to the engine. */
declare const host: (operation: number, ...operands: any[]) => any;
/** The engine's own memory. Address 0 is at byte 8. */
declare const memory: ArrayBuffer;
/** The address of the words shared with the bindings module. */
declare const block: number;

const UTF8 = 0, TEXT = 1, MALLOC = 2, FREE = 3, FREE_UTF8 = 4, BYTES = 5, TAKE_BYTES = 6, EVALUATE = 7, UNPACK = 8, PACK = 9;
const SLOTS = 17, TIME = SLOTS * 8 + 16;

const i8 = new Int8Array(memory, 8), u8 = new Uint8Array(memory, 8);
const i16 = new Int16Array(memory, 8), u16 = new Uint16Array(memory, 8);
const i32 = new Int32Array(memory, 8), u32 = new Uint32Array(memory, 8);
const f32 = new Float32Array(memory, 8), f64 = new Float64Array(memory, 8);
const s64 = new BigInt64Array(memory, 8), u64 = new BigUint64Array(memory, 8);

// The original built-ins, because an extension's code could replace them.
const { fromCodePoint } = String;
const { create, defineProperty } = Object;
const { isInteger } = Number;
const resolve: (value: unknown) => Promise<any> = Promise.resolve.bind(Promise);
const { then } = Promise.prototype;
const { apply } = Reflect;

/** A case of a WIT variant. */
export interface Variant {
  tag: string;
  val?: any;
}

/** The error case of a WIT result, thrown. */
export class WitError extends Error {
  /** The value of the error case: any JavaScript value that its WIT type maps to. */
  readonly payload: any;
  constructor(payload?: any) {
    const tag = payload?.tag ?? payload;
    super(typeof tag === "string" ? tag : "error");
    this.payload = payload;
  }
}
defineProperty(WitError.prototype, "name", { value: "WitError", writable: true, configurable: true });

// The descriptor, as describe in toolchain/descriptor.go writes it. A type is an index into `types`.
interface World {
  types: TypeInfo[];
  resources: { class: string; interface: string; drop: number }[];
  imports: { name: string; functions: FunctionInfo[] }[];
  exports: { name: string; functions: FunctionInfo[] }[];
  /** Names that every call's env has, with their interfaces. */
  bindings: Record<string, string>;
  /** The binding whose files node:fs has. */
  files?: string;
  /** The size of the largest result in memory, in bytes. */
  results: number;
  /** The source map of the bundle, as JSON; absent if the code never reads a stack. */
  sourceMap?: string;
}
interface TypeInfo {
  kind: string;
  name?: string;
  size: number;
  align: number;
  /** The flat core types, one letter each: i (i32), l (i64), f (f32), d (f64). */
  flat: string;
  element?: number;
  fields?: { name: string; type: number; offset: number }[];
  cases?: { name: string; type: number | null }[];
  discriminant?: number;
  payload?: number;
  labels?: string[];
  resource?: number;
}
interface FunctionInfo {
  name: string;
  label: string;
  kind: "function" | "method" | "static" | "constructor";
  resource?: number;
  operation: number;
  params: { name: string; type: number }[];
  /** The tuple of the parameters, if there are too many to pass flat. */
  spilled: number | null;
  result: number | null;
  /** Whether the result is passed in memory. */
  indirect: boolean;
}

/** One type's conversions. Addresses are in bytes. A slot is the address of a flat value; slots are 8 bytes apart. */
interface Codec {
  load(address: number): any;
  store(address: number, value: any): void;
  lift(slot: number): any;
  lower(slot: number, value: any): void;
}

let world: World;
const codecs: (Codec | undefined)[] = [];
const classes: ResourceClass[] = [];
let results = 0;

const handle = Symbol("handle");
// Proves to a constructor that this module calls it.
const lifted = Symbol("lifted");

/** A handle that the host knows. */
export interface Raw {
  [handle]: number;
  [method: string]: any;
  /** Returns the handle to the host. It cannot be used afterwards. */
  drop(): void;
}

export type ResourceClass = new (...args: any[]) => Raw;

export interface RawInterface {
  functions: Record<string, (...args: any[]) => any>;
  resources: Record<string, ResourceClass>;
  /** The class of what `get` returns. */
  handle?: ResourceClass;
}

function wrong(expected: string, value: any, at = ""): never {
  const type = value === null ? "null" : typeof value;
  throw new TypeError(`${at}expected ${expected}, got ${type === "number" || type === "bigint" ? value : type}`);
}

// Memory that lowering allocated and that must be freed: addresses of blocks, and negated addresses of text.
const held: number[] = [];
let holding = 0;

function allocate(size: number): number {
  return (held[holding++] = host(MALLOC, size));
}

function release(from: number): void {
  while (holding > from) {
    const address = held[--holding];
    if (address < 0) host(FREE_UTF8, -address);
    else host(FREE, address);
  }
}

function codec(type: number): Codec {
  return (codecs[type] ??= compile(world.types[type]));
}

const scalar = (store: (at: number, value: any) => void, load: (at: number) => any): Codec => ({
  load,
  store,
  lift: load,
  lower: store,
});

/** A number type that is not narrower in a slot than in memory. */
function integer(name: string, min: number, max: number, shift: number, view: { [index: number]: number }, flat: typeof view): Codec {
  const check = (value: any): number => (isInteger(value) && value >= min && value <= max ? value : wrong(name, value));
  return {
    load: (at) => view[at >> shift],
    store: (at, value) => void (view[at >> shift] = check(value)),
    lift: (at) => view[at >> shift],
    lower: (at, value) => void (flat[at >> 2] = check(value)),
  };
}

function long(name: string, min: bigint, max: bigint, view: { [index: number]: bigint }): Codec {
  return scalar(
    (at, value) => void (view[at >> 3] = typeof value === "bigint" && value >= min && value <= max ? value : wrong(name, value)),
    (at) => view[at >> 3],
  );
}

function float(name: string, shift: number, view: { [index: number]: number }): Codec {
  return scalar(
    (at, value) => void (view[at >> shift] = typeof value === "number" ? value : wrong(name, value)),
    (at) => view[at >> shift],
  );
}

const numbers: Record<string, () => Codec> = {
  s8: () => integer("s8", -128, 127, 0, i8, i32),
  u8: () => integer("u8", 0, 255, 0, u8, i32),
  s16: () => integer("s16", -32768, 32767, 1, i16, i32),
  u16: () => integer("u16", 0, 65535, 1, u16, i32),
  s32: () => integer("s32", -2147483648, 2147483647, 2, i32, i32),
  u32: () => integer("u32", 0, 4294967295, 2, u32, u32),
  s64: () => long("s64", -(1n << 63n), (1n << 63n) - 1n, s64),
  u64: () => long("u64", 0n, (1n << 64n) - 1n, u64),
  f32: () => float("f32", 2, f32),
  f64: () => float("f64", 3, f64),
};

/** A pair of address and length: 4 bytes apart in memory, 8 as flat values. */
function pair(store: (address: number, length: number, value: any) => void, load: (address: number, length: number) => any): Codec {
  return {
    load: (at) => load(i32[at >> 2], i32[(at + 4) >> 2]),
    store: (at, value) => store(at, at + 4, value),
    lift: (at) => load(i32[at >> 2], i32[(at + 8) >> 2]),
    lower: (at, value) => store(at, at + 8, value),
  };
}

// How texts are made of memory: UNPACK where they stand for bytes.
let reading = TEXT;

/** Runs an operation whose texts stand for bytes, as those of `packed` of stile:capability/blob do: they are Uint8Arrays here. */
export function packed<T>(operation: () => T): T {
  reading = UNPACK;
  try {
    return operation();
  } finally {
    reading = TEXT;
  }
}

function storeBytes(address: number, length: number, value: any): number {
  return reading === UNPACK && value instanceof Uint8Array ? host(PACK, value, address, length) : wrong("string", value);
}

const text: Codec = {
  load: (at) => host(reading, i32[at >> 2], i32[(at + 4) >> 2]),
  store: (at, value) => void (held[holding++] = typeof value === "string" ? -host(UTF8, value, at, at + 4) : storeBytes(at, at + 4, value)),
  lift: (at) => host(reading, i32[at >> 2], i32[(at + 8) >> 2]),
  lower: (at, value) => void (held[holding++] = typeof value === "string" ? -host(UTF8, value, at, at + 8) : storeBytes(at, at + 8, value)),
};

const bytes = pair(
  (address, length, value) => {
    if (!(value instanceof Uint8Array)) value = isArrayLike(value) ? Uint8Array.from(value as any) : wrong("Uint8Array", value);
    host(BYTES, value, address, length);
  },
  (address, length) => host(TAKE_BYTES, address, length),
);

function isArrayLike(value: any): value is ArrayLike<any> {
  return typeof value === "object" && value !== null && isInteger(value.length);
}

function list(element: Codec, size: number): Codec {
  return pair(
    (address, length, value) => {
      if (!isArrayLike(value)) wrong("array", value);
      const given = value.length;
      if (given < 0 || given * size > 0x7fffffff) throw new RangeError("the array does not fit in memory");
      const n = given | 0;
      const at = n === 0 ? 8 : allocate((n * size) | 0);
      for (let i = 0; i < n; i++) element.store(at + i * size, value[i]);
      i32[address >> 2] = at;
      i32[length >> 2] = n;
    },
    (address, length) => {
      const value = [];
      for (let i = 0; i < length; i++) value[i] = element.load(address + i * size);
      if (length > 0) host(FREE, address);
      return value;
    },
  );
}

interface Field extends Codec {
  name: string;
  offset: number;
  slot: number;
}

function fieldsOf(info: TypeInfo): Field[] {
  let slot = 0;
  return info.fields!.map((field) => {
    const at = slot;
    slot += 8 * world.types[field.type].flat.length;
    return { ...codec(field.type), name: field.name, offset: field.offset, slot: at };
  });
}

function record(info: TypeInfo): Codec {
  const fields = fieldsOf(info);
  const check = (value: any) => (typeof value === "object" && value !== null ? value : wrong(`record ${info.name}`, value));
  return {
    load: (at) => {
      const value: any = {};
      for (const f of fields) value[f.name] = f.load(at + f.offset);
      return value;
    },
    store: (at, value) => {
      check(value);
      for (const f of fields) f.store(at + f.offset, value[f.name]);
    },
    lift: (at) => {
      const value: any = {};
      for (const f of fields) value[f.name] = f.lift(at + f.slot);
      return value;
    },
    lower: (at, value) => {
      check(value);
      for (const f of fields) f.lower(at + f.slot, value[f.name]);
    },
  };
}

function tuple(info: TypeInfo): Codec {
  const fields = fieldsOf(info);
  const check = (value: any) => (isArrayLike(value) ? value : wrong(`tuple of ${fields.length}`, value));
  return {
    load: (at) => fields.map((f) => f.load(at + f.offset)),
    store: (at, value) => fields.forEach((f, i) => f.store(at + f.offset, check(value)[i])),
    lift: (at) => fields.map((f) => f.lift(at + f.slot)),
    lower: (at, value) => fields.forEach((f, i) => f.lower(at + f.slot, check(value)[i])),
  };
}

/**
 * A type with cases. `split` returns a value's case and payload, `join` makes the value.
 * All cases share the flat payload slots, so a narrow value in a wide slot needs its high half cleared.
 */
function cases(
  info: TypeInfo,
  payloads: (number | null | undefined)[],
  split: (value: any) => number,
  payloadOf: (value: any) => any,
  join: (index: number, payload: any) => any,
): Codec {
  const discriminant = [, u8, u16, , i32][info.discriminant!]!;
  const shift = info.discriminant! >> 1;
  const offset = info.payload!;
  const inner = payloads.map((type) => (typeof type === "number" ? codec(type) : undefined));
  const narrow = payloads.map((type) => {
    const flat = typeof type === "number" ? world.types[type].flat : "";
    return [...flat].flatMap((core, i) => (info.flat[i + 1] === "l" && (core === "i" || core === "f") ? [12 + 8 * i] : []));
  });
  return {
    load: (at) => {
      const index = discriminant[at >> shift];
      return join(index, inner[index]?.load(at + offset));
    },
    store: (at, value) => {
      const index = split(value);
      discriminant[at >> shift] = index;
      inner[index]?.store(at + offset, payloadOf(value));
    },
    lift: (at) => {
      const index = i32[at >> 2];
      return join(index, inner[index]?.lift(at + 8));
    },
    lower: (at, value) => {
      const index = split(value);
      i32[at >> 2] = index;
      inner[index]?.lower(at + 8, payloadOf(value));
      const high = narrow[index];
      for (let i = 0; i < high.length; i++) i32[(at + high[i]) >> 2] = 0; // without an iterator, like all that each call runs
    },
  };
}

function caseIndex(info: TypeInfo): (name: string) => number {
  const indices: Record<string, number> = create(null);
  info.cases!.forEach((c, i) => (indices[c.name] = i));
  return (name) => (typeof name === "string" ? indices[name] : undefined) ?? wrong(`a case of ${info.name}`, name);
}

function variant(info: TypeInfo): Codec {
  const index = caseIndex(info);
  const split = (value: any) => index(value?.tag);
  const names = info.cases!.map((c) => c.name);
  const plain = info.cases!.map((c) => c.type === null);
  const join = (i: number, val: any): Variant => (plain[i] ? { tag: names[i] } : { tag: names[i], val });
  return cases(info, info.cases!.map((c) => c.type), split, (value) => value.val, join);
}

function enumeration(info: TypeInfo): Codec {
  const names = info.cases!.map((c) => c.name);
  return cases(info, names.map(() => null), caseIndex(info), () => undefined, (i) => names[i]);
}

/** `undefined` is none. An option of an option needs a tag to distinguish the two. */
function option(info: TypeInfo): Codec {
  const payloads = [null, info.element];
  if (world.types[info.element!].kind !== "option") {
    const { load, store, lift } = codec(info.element!);
    const { lower } = cases(info, payloads, (value) => (value === undefined || value === null ? 0 : 1), (value) => value, () => {});
    return {
      load: (at) => (u8[at] === 0 ? undefined : load(at + info.payload!)),
      store: (at, value) => {
        if (value === undefined || value === null) {
          u8[at] = 0;
          return;
        }
        u8[at] = 1;
        store(at + info.payload!, value);
      },
      lift: (at) => (u8[at] === 0 ? undefined : lift(at + 8)),
      lower,
    };
  }
  const split = (value: any) => (value?.tag === "none" ? 0 : value?.tag === "some" ? 1 : wrong("option", value));
  return cases(info, payloads, split, (value) => value.val, (i, val) => (i === 0 ? { tag: "none" } : { tag: "some", val }));
}

function result(info: TypeInfo): Codec {
  const split = (value: any) => (value?.tag === "ok" ? 0 : value?.tag === "err" ? 1 : wrong("result", value));
  const payloads = info.cases!.map((c) => c.type);
  return cases(info, payloads, split, (value) => value.val, (i, val) => ({ tag: i === 0 ? "ok" : "err", val }));
}

function flags(info: TypeInfo): Codec {
  const labels = info.labels!;
  const bits = [, u8, u16, , u32][info.size]!;
  const shift = info.size >> 1;
  const join = (word: number) => {
    const value: Record<string, boolean> = {};
    labels.forEach((label, i) => (value[label] = ((word >> i) & 1) === 1));
    return value;
  };
  const split = (value: any) => {
    if (typeof value !== "object" || value === null) wrong(`flags ${info.name}`, value);
    return labels.reduce((word, label, i) => (value[label] ? word | (1 << i) : word), 0);
  };
  return {
    load: (at) => join(bits[at >> shift]),
    store: (at, value) => void (bits[at >> shift] = split(value)),
    lift: (at) => join(i32[at >> 2]),
    lower: (at, value) => void (i32[at >> 2] = split(value)),
  };
}

function dropped(Class: ResourceClass, at = ""): never {
  throw new TypeError(`${at}this ${Class.name} was dropped or given away`);
}

function resource(info: TypeInfo): Codec {
  const Class = classes[info.resource!];
  const own = info.kind === "own";
  return scalar(
    (at, value) => {
      if (!(value instanceof Class)) wrong(Class.name, value);
      const index = value[handle];
      if (index === 0) dropped(Class);
      if (own) value[handle] = 0;
      i32[at >> 2] = index;
    },
    (at) => {
      const value = new Class(lifted, i32[at >> 2]);
      if (!own) borrowed.push(value);
      return value;
    },
  );
}

const compilers: Record<string, (info: TypeInfo) => Codec> = {
  record, tuple, variant, enum: enumeration, option, result, flags, own: resource, borrow: resource,
  string: () => text,
  list: (info) => (world.types[info.element!].kind === "u8" ? bytes : list(codec(info.element!), world.types[info.element!].size)),
  bool: () => {
    const check = (value: any) => (typeof value === "boolean" ? +value : wrong("boolean", value));
    const load = (at: number) => u8[at] !== 0;
    return { load, store: (at, v) => void (u8[at] = check(v)), lift: load, lower: (at, v) => void (i32[at >> 2] = check(v)) };
  },
  char: () =>
    scalar(
      (at, value) => {
        const point = typeof value === "string" ? value.codePointAt(0)! : -1;
        if (point < 0 || value.length !== (point > 0xffff ? 2 : 1) || (point & 0x1ff800) === 0xd800) wrong("one character", value);
        i32[at >> 2] = point;
      },
      (at) => fromCodePoint(i32[at >> 2]),
    ),
};

function compile(info: TypeInfo): Codec {
  return compilers[info.kind]?.(info) ?? numbers[info.kind]();
}

const noCapability = "capabilities are not available at top level: use them inside a tool's run";
let isBuilding = true;
// The number of import calls in progress: lowering may run the extension's code (a getter, Date.now), which may call other imports.
let nesting = 0;

/** A function that calls an import. A method takes its object as `this`. */
function caller(info: FunctionInfo): (this: any, ...args: any[]) => any {
  const { operation, params, label, indirect, spilled } = info;
  const self = info.kind === "method" ? classes[info.resource!] : undefined;
  const selfAt = `${label}: ${params[0]?.name}: `;
  const rest = self ? params.slice(1) : params;
  const count = rest.length;
  const put = rest.map((p) => (spilled === null ? codec(p.type).lower : codec(p.type).store));
  const all = spilled === null ? flatOffsets(params) : world.types[spilled].fields!.map((f) => f.offset);
  const offsets = self ? all.slice(1) : all;
  const size = spilled === null ? 0 : world.types[spilled].size;
  const place = block + (spilled === null ? all[params.length] : 8);
  const take = resultOf(info);

  return function (...args) {
    if (isBuilding) throw new Error(noCapability);
    // A lazy handle is got here, while the slots are free.
    let object = 0;
    if (self) {
      if (!(this instanceof self)) wrong(self.name, this, selfAt);
      object = this[handle];
      if (object === 0) dropped(self, selfAt);
    }
    const outer = nesting++ > 0 ? saveSlots() : undefined;
    const mark = holding;
    let at = 0;
    try {
      const base = spilled === null ? block : allocate(size);
      if (self) i32[base >> 2] = object;
      for (; at < count; at++) put[at](base + offsets[at], args[at]);
      if (spilled !== null) i32[block >> 2] = base;
      if (indirect) i32[place >> 2] = results;
      host(operation);
      return take();
    } catch (error) {
      if (at < count && error instanceof TypeError) error.message = `${label}: ${rest[at].name}: ${error.message}`;
      throw error;
    } finally {
      if (holding > mark) release(mark);
      nesting--;
      if (outer) restoreSlots(outer);
    }
  };
}

/** The offset of each value's first slot, and the end of the last value's slots. */
function flatOffsets(values: { type: number }[]): number[] {
  const offsets = [0];
  values.forEach((v, i) => (offsets[i + 1] = offsets[i] + 8 * world.types[v.type].flat.length));
  return offsets;
}

/** Lifts the return value of an import. For a result, that is its value, or a thrown error. */
function resultOf({ result, indirect }: FunctionInfo): () => any {
  if (result === null) return () => undefined;
  const read = (type: number) => (indirect ? codec(type).load : codec(type).lift);
  const place = indirect ? results : block;
  const { kind, cases, payload } = world.types[result];
  if (kind !== "result") {
    const value = read(result);
    return () => value(place);
  }
  const inner = place + (indirect ? payload! : 8);
  const [ok, err] = cases!.map((c) => (c.type === null ? () => undefined : read(c.type)));
  return () => {
    if (u8[place] === 0) return ok(inner);
    throw new WitError(err(inner));
  };
}

function saveSlots(): bigint[] {
  const saved = [];
  for (let i = 0; i < SLOTS; i++) saved[i] = s64[(block >> 3) + i];
  return saved;
}

function restoreSlots(saved: bigint[]): void {
  for (let i = 0; i < SLOTS; i++) s64[(block >> 3) + i] = saved[i];
}

function resourceClass(info: World["resources"][number], construct?: (...args: any[]) => any) {
  const Class = class {
    declare [handle]: number;
    constructor(proof: any, index: any) {
      if (proof !== lifted) {
        if (!construct) throw new TypeError(`a ${info.class} is got from the host, not made`);
        return construct(...arguments);
      }
      this[handle] = index;
    }
    drop() {
      const index = this[handle];
      if (index === 0) return;
      this[handle] = 0;
      const outer = nesting > 0 ? saveSlots() : undefined;
      i32[block >> 2] = index;
      host(info.drop);
      if (outer) restoreSlots(outer);
    }
    [Symbol.dispose]() {
      this.drop();
    }
  };
  return defineProperty(Class, "name", { value: info.class }) as unknown as ResourceClass;
}

const interfaces = new Map<string, RawInterface>();
const implementations = new Map<string, Record<string, Handler>>();
const exported: Export[] = [];

interface Export extends FunctionInfo {
  interface: string;
  /** Whether it continues the current call. */
  resumes: boolean;
  handler: Handler | undefined; // set when the image is made: a call changes nothing of the image that it need not
  lift(): any[];
  /** Passes a result. A function whose type is no `result` cannot fail. */
  lower(failed: boolean, value: any): void;
}

/** What implements an exported function. */
export interface Handler {
  /** A parameter that is a handle is a number, of which `own` makes an object. May return a promise. */
  run(...args: any[]): any;
  /** Makes the result of what `run` returned. Null if that is the result, and no promise. */
  returned?: ((value: any) => any) | null;
  /** Makes the error case of what either of them threw. Only a WitError becomes one. */
  thrown?: ((error: unknown) => unknown) | undefined;
}

/** The imported interface of this name, without version: "stile:capability/kv". */
export function iface(name: string): RawInterface | undefined {
  return interfaces.get(name);
}

/** The object of a handle that an export was called with, of the first resource of an interface. */
export function own(resource: string, index: number): Raw {
  return new classes[world.resources.findIndex((r) => r.interface === resource)](lifted, index);
}

/** Sets the handlers of an exported interface. */
export function implement(name: string, handlers: Record<string, Handler>): void {
  implementations.set(name, handlers);
  for (const e of exported) if (e.interface === name) e.handler = handlers[e.name];
}

/** The interface whose export gets the text of code as the host passes it: its address and length. */
export const evaluator = "stile:extension/evaluator";

/** Evaluates a module, which stacks call `name`, and returns a promise of its exports. Frees the text. */
export function evaluate(address: number, length: number, name: string): Promise<Record<string, unknown>> {
  const mark = holding;
  if (length > 0) held[holding++] = address;
  try {
    text.store(block, name);
    return host(EVALUATE, address, length, i32[block >> 2]);
  } finally {
    release(mark);
  }
}

/** A text that the host passes, which stays where it is, if it ends with a character. */
export function textEndingWith(end: number, address: number, length: number): string | undefined {
  if (length === 0 || u8[address + length - 1] !== end) return undefined;
  const copy = host(MALLOC, length);
  u8.copyWithin(copy, address, address + length);
  return host(TEXT, copy, length);
}

/** Whether the image is being built. No capability can be used then. */
export function building(): boolean {
  return isBuilding;
}

/** Sets up the world, before the extension's code runs. */
export function define(descriptor: string): void {
  // JSON.parse gives floats, and `host` takes integers.
  world = JSON.parse(descriptor, (_, value) => (typeof value === "number" ? value | 0 : value));
  world.bindings = Object.assign(create(null), world.bindings);
  used = 0;
  results = world.results > 0 ? host(MALLOC, world.results) : 0;
  const constructors: FunctionInfo[] = [];
  for (const i of world.imports) for (const f of i.functions) if (f.kind === "constructor") constructors[f.resource!] = f;
  world.resources.forEach((r, i) => {
    let construct: ReturnType<typeof caller> | undefined;
    classes[i] = resourceClass(r, constructors[i] && ((...args) => construct!(...args)));
    rawInterface(r.interface).resources[r.class] = classes[i];
    if (constructors[i]) construct = caller(constructors[i]);
  });
  for (const i of world.imports) i.functions.forEach((f) => defineFunction(rawInterface(i.name), f));
  for (const e of world.exports) for (const f of e.functions) exported[exported.length] = exportOf(e.name, f);
}

/** A lazy handle of an imported interface: its first use calls `ask`. */
export function later(name: string, ask: () => Raw): Raw {
  return create(interfaces.get(name)!.handle!.prototype, {
    [handle]: {
      get: () => ask()[handle],
      set: (index: number) => {
        ask()[handle] = index;
      },
    },
  });
}

/** The names that every call's env has, with their interfaces. */
export function known(): Record<string, string> {
  return world.bindings;
}

/** The name of the binding whose files node:fs has, if there is one. */
export function filesBinding(): string | undefined {
  return world?.files;
}

/** The source map of the extension's code, as JSON, if the image has it. */
export function sourceMap(): string | undefined {
  return world?.sourceMap;
}

function rawInterface(name: string): RawInterface {
  let found = interfaces.get(name);
  if (!found) interfaces.set(name, (found = { functions: {}, resources: {} }));
  return found;
}

function defineFunction(target: RawInterface, info: FunctionInfo): void {
  if (info.kind === "constructor") return;
  const value = caller(info);
  if (info.kind === "function") {
    target.functions[info.name] = value;
    const ok = info.name === "get" && info.result !== null ? world.types[info.result].cases?.[0].type : null;
    if (typeof ok === "number") target.handle = classes[world.types[ok].resource!];
  } else {
    const Class = classes[info.resource!];
    const object = info.kind === "method" ? Class.prototype : Class;
    defineProperty(object, info.name, { value, writable: true, configurable: true });
  }
}

function exportOf(name: string, info: FunctionInfo): Export {
  const { params, spilled } = info;
  const take = params.map(({ type }) => {
    if (world.types[type].kind === "own") return (at: number) => i32[at >> 2];
    return spilled === null ? codec(type).lift : codec(type).load;
  });
  const offsets = spilled === null ? flatOffsets(params) : world.types[spilled].fields!.map((f) => f.offset);
  const [a, b, c] = take;
  const [at, bt, ct] = offsets.map((offset) => block + offset);
  const three = () => [a(at), b(bt), c(ct)]; // of a call: as few steps as possible
  const any = () => {
    const base = spilled === null ? block : i32[block >> 2];
    const args = [];
    for (let i = 0; i < take.length; i++) args[i] = take[i](base + offsets[i]);
    if (spilled !== null) host(FREE, base);
    return args;
  };
  const raw = () => [i32[block >> 2], i32[(block + 8) >> 2]];
  const lift = name === evaluator ? raw : spilled === null && take.length === 3 ? three : any;
  const handler = implementations.get(name)?.[info.name];
  return { ...info, interface: name, resumes: name === stepwise && info.name === "resume", handler, lift, lower: returning(info) };
}

/** How a function returns a value, or throws. */
function returning({ result, indirect }: FunctionInfo): Export["lower"] {
  const plain = (pass: (value: any) => void) => (failed: boolean, value: any) => {
    if (failed) throw value;
    pass(value);
  };
  if (result === null) return plain(() => {});
  const { store, lower } = codec(result);
  const { size, kind, cases, payload } = world.types[result];
  const pass = (value: any) => {
    if (!indirect) return lower(block, value);
    const base = allocate(size);
    store(base, value);
    i32[block >> 2] = base;
  };
  if (kind !== "result") return plain(pass);
  const check = (failed: boolean, value: any) => {
    if (failed && !(value instanceof WitError)) throw value;
    return failed ? value.payload : value;
  };
  if (!indirect) return (failed, value) => pass({ tag: failed ? "err" : "ok", val: check(failed, value) });
  // The result of a call: as few steps as possible.
  const [ok, err] = cases!.map((c) => (c.type === null ? () => {} : codec(c.type).store));
  return (failed, value) => {
    const given = failed ? check(true, value) : value;
    const base = allocate(size);
    u8[base] = failed ? 1 : 0;
    (failed ? err : ok)(base + payload!, given);
    i32[block >> 2] = base;
  };
}

/** The interface of calls in steps. Its `resume` is part of the event loop. */
export const stepwise = "stile:extension/stepwise";

// The event loop of one call of an export, or of all steps of a call.
let current: Export;
let calls = 0; // what an earlier call left behind settles nothing
let settled = false;
let failed = false;
let outcome: any;
let waiting: { pollable: Raw; resolve: () => void }[] = [];
// Resolvers of pollables that are ready. Each turn resolves one, so that all its jobs run before the next.
let ready: (() => void)[] = [];
let borrowed: Raw[] = [];

/** Resolves when the pollable is ready, and drops it. */
export function wait(pollable: Raw): Promise<void> {
  return new Promise((resolve) => (waiting[waiting.length] = { pollable, resolve }));
}

/** Ends a wait, unless the pollable was ready already. Its promise stays pending. */
export function abandon(pollable: Raw): void {
  if (!waiting.some((other) => other.pollable === pollable)) return;
  waiting = waiting.filter((other) => other.pollable !== pollable);
  pollable.drop();
}

/** Runs a function when no job is left, after others that wait for that. */
export function task(run: () => void): void {
  ready[ready.length] = run;
}

let idle: (() => boolean) | undefined;

/** Sets a function that runs whenever no job is left, and says whether it may have made some. It must not throw. */
export function onIdle(act: () => boolean): void {
  idle = act;
}

/** Starts a call of an export, by its index, with the arguments in the slots. */
export function enter(index: number): void {
  if (holding > 0) release(0);
  current = exported[index];
  if (current.resumes) {
    poll();
    return;
  }
  settled = false;
  const call = ++calls;
  const handler = current.handler!;
  const threw = (error: unknown) => {
    try {
      settle(call, true, handler.thrown ? handler.thrown(error) : error);
    } catch (another) {
      settle(call, true, another);
    }
  };
  const returned = (value: unknown) => {
    try {
      settle(call, false, handler.returned ? handler.returned(value) : value);
    } catch (error) {
      threw(error);
    }
  };
  try {
    const value = apply(handler.run, handler, current.lift());
    const follows = handler.returned !== null && ((typeof value === "object" && value !== null) || typeof value === "function");
    // One reaction is all that a call adds to the promises of the extension's code. Jobs that run before it may still change the value.
    if (follows) apply(then, resolve(value), [returned, threw]);
    else returned(value);
  } catch (error) {
    threw(error);
  }
}

/** Ends the current call as if its handler had thrown, unless it has ended. */
export function fail(error: unknown): void {
  settle(calls, true, error);
}

function settle(call: number, hasFailed: boolean, value: unknown): void {
  if (settled || call !== calls) return;
  settled = true;
  failed = hasFailed;
  outcome = value;
}

let ended = () => {};

/** Sets a function that runs when a call has ended, before its result is returned. It must not throw. */
export function atEnd(act: () => void): void {
  ended = act;
}

/** Called when no job is left. Returns 1 if the call or step has ended and its result is in slot 0, and 0 to continue. */
export function turn(): number {
  if (keeping) letGo();
  if (idle?.()) return 0;
  if (!settled) {
    if (ready.length === 0 && waiting.length > 0) {
      if (park()) return 1;
      poll();
    }
    if (ready.length > 0) {
      ready.shift()!();
      return 0;
    }
    fail(stuck(current));
  }
  ended();
  current.lower(failed, outcome);
  if (borrowed.length > 0) {
    for (const handle of borrowed) handle.drop();
    borrowed = [];
  }
  return 1;
}

/** Ends a step while the call waits, if the host agrees. The stack is empty then. */
function park(): boolean {
  if (current.interface !== stepwise || !iface("stile:capability/poll")!.functions.park(waiting.map((w) => w.pollable))) return false;
  current.lower(false, undefined);
  return true;
}

function poll(): void {
  const pending = waiting;
  const found: number[] = iface("stile:capability/poll")!.functions.poll(pending.map((w) => w.pollable));
  const set = pending.length > 1 ? new Set(found) : undefined;
  waiting = set ? pending.filter((_, i) => !set.has(i)) : [];
  for (const i of set ?? found) {
    pending[i].pollable.drop();
    ready[ready.length] = pending[i].resolve;
  }
}

// Values that a WeakRef was created with or returned, kept until no job is left: the standard's KeepDuringJob.
const kept = new Set<WeakKey>();
let keeping = false;

/** Keeps a value alive until the pending jobs have run. */
export function keep(value: WeakKey): void {
  kept.add(value);
  keeping = true;
}

function letGo(): void {
  kept.clear();
  keeping = false;
}

/** The error for a promise that nothing can settle any more: the error case `exhausted`, if the export has it. */
function stuck(info: Export): unknown {
  const message = "promise: the code awaits a promise that nothing can settle any more (no timer, request or other operation is pending); check that the code that made it calls resolve or reject";
  const type = info.result === null ? undefined : world.types[info.result];
  const error = type?.kind === "result" ? type.cases![1].type : null;
  const known = error !== null && world.types[error].cases?.some((c) => c.name === "exhausted");
  return known ? new WitError({ tag: "exhausted", val: message }) : new Error(message);
}

// The time that Date returns. During the build of the image it is 2000-01-01T00:00:00Z.
const buildTime = 946_684_800_000;
let clock = () => 0;

/** Sets the source of Date's milliseconds. */
export function setClock(milliseconds: () => number): void {
  clock = milliseconds;
}

export function now(): void {
  if (isBuilding) note("clock");
  f64[(block + TIME) >> 3] = isBuilding ? buildTime : clock();
}

let used = 0;

/** Records that code at top level used a source whose results are fixed there. */
export function note(what: "clock" | "random"): void {
  used |= what === "clock" ? 1 : 2;
}

/** Ends the build of the image, and returns what `note` recorded. */
export function finish(): number {
  if (keeping) letGo();
  isBuilding = false;
  return used;
}
