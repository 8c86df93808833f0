/**
 * The web APIs of an extension's engine, beyond ECMAScript 2025. Use this file instead of lib.dom.d.ts:
 *
 *     { "compilerOptions": { "lib": ["ES2024"], "types": ["stile/globals"] } }
 *
 * There is no Intl: `localeCompare`, `toLocaleString` and similar methods throw if a locale or an option is given, because they would ignore
 * it. Without one, dates are in UTC, numbers have no separators, and strings are compared by code points. `timeZone: "UTC"` is accepted.
 *
 * Only the declarations below exist. Of the modules of Node.js, those that docs/writing-tools.md lists can be imported; for their types,
 * install @types/node and leave this file out.
 */
export {};

declare global {
  type BodyInit = string | URLSearchParams | Blob | ArrayBuffer | ArrayBufferView | ReadableStream<Uint8Array<ArrayBuffer>> | FormData;
  type HeadersInit = Headers | Iterable<readonly [string, string]> | Record<string, string>;

  class URL {
    constructor(url: string | URL, base?: string | URL);
    static canParse(url: string | URL, base?: string | URL): boolean;
    static parse(url: string | URL, base?: string | URL): URL | null;
    /** A URL that fetch of this call knows until it is revoked. */
    static createObjectURL(blob: Blob): string;
    static revokeObjectURL(url: string): void;
    href: string;
    readonly origin: string;
    protocol: string;
    username: string;
    password: string;
    host: string;
    hostname: string;
    port: string;
    pathname: string;
    search: string;
    readonly searchParams: URLSearchParams;
    hash: string;
    toString(): string;
    toJSON(): string;
  }

  class URLSearchParams {
    constructor(init?: string | URLSearchParams | Iterable<readonly [string, string]> | Record<string, string>);
    readonly size: number;
    append(name: string, value: string): void;
    delete(name: string, value?: string): void;
    get(name: string): string | null;
    getAll(name: string): string[];
    has(name: string, value?: string): boolean;
    set(name: string, value: string): void;
    sort(): void;
    forEach(callback: (value: string, name: string, parent: URLSearchParams) => void, thisArg?: unknown): void;
    keys(): IterableIterator<string>;
    values(): IterableIterator<string>;
    entries(): IterableIterator<[string, string]>;
    [Symbol.iterator](): IterableIterator<[string, string]>;
    toString(): string;
  }

  /** Encodes to UTF-8. */
  class TextEncoder {
    readonly encoding: "utf-8";
    encode(text?: string): Uint8Array<ArrayBuffer>;
    encodeInto(text: string, target: Uint8Array): { read: number; written: number };
  }

  /** Decodes the encodings of the Encoding Standard, with all their labels. */
  class TextDecoder {
    constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
    readonly encoding: string;
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    decode(bytes?: ArrayBuffer | ArrayBufferView, options?: { stream?: boolean }): string;
  }

  /** Bytes that cannot change. Bytes of a response stay on the host until you read them. */
  class Blob {
    constructor(parts?: Iterable<BlobPart>, options?: { type?: string; endings?: "transparent" | "native" });
    readonly size: number;
    readonly type: string;
    text(): Promise<string>;
    bytes(): Promise<Uint8Array<ArrayBuffer>>;
    arrayBuffer(): Promise<ArrayBuffer>;
    slice(start?: number, end?: number, type?: string): Blob;
    stream(): ReadableStream<Uint8Array<ArrayBuffer>>;
  }
  class File extends Blob {
    constructor(parts: Iterable<BlobPart>, name: string, options?: { type?: string; endings?: "transparent" | "native"; lastModified?: number });
    readonly name: string;
    readonly lastModified: number;
  }
  type FormDataEntryValue = File | string;
  class FormData {
    append(name: string, value: string | Blob, filename?: string): void;
    delete(name: string): void;
    get(name: string): FormDataEntryValue | null;
    getAll(name: string): FormDataEntryValue[];
    has(name: string): boolean;
    set(name: string, value: string | Blob, filename?: string): void;
    forEach(callback: (value: FormDataEntryValue, name: string, parent: FormData) => void, thisArg?: unknown): void;
    keys(): IterableIterator<string>;
    values(): IterableIterator<FormDataEntryValue>;
    entries(): IterableIterator<[string, FormDataEntryValue]>;
    [Symbol.iterator](): IterableIterator<[string, FormDataEntryValue]>;
  }
  type BlobPart = string | Blob | ArrayBuffer | ArrayBufferView;

  class Headers {
    constructor(init?: HeadersInit);
    append(name: string, value: string): void;
    delete(name: string): void;
    get(name: string): string | null;
    getSetCookie(): string[];
    has(name: string): boolean;
    set(name: string, value: string): void;
    forEach(callback: (value: string, name: string, parent: Headers) => void, thisArg?: unknown): void;
    keys(): IterableIterator<string>;
    values(): IterableIterator<string>;
    entries(): IterableIterator<[string, string]>;
    [Symbol.iterator](): IterableIterator<[string, string]>;
  }

  type ReadableStreamReadResult<T> = { done: false; value: T } | { done: true; value: T | undefined };
  interface QueuingStrategy<T = any> {
    highWaterMark?: number;
    size?(chunk: T): number;
  }
  class ByteLengthQueuingStrategy implements QueuingStrategy<ArrayBufferView> {
    constructor(init: { highWaterMark: number });
    readonly highWaterMark: number;
    readonly size: (chunk: ArrayBufferView) => number;
  }
  class CountQueuingStrategy implements QueuingStrategy {
    constructor(init: { highWaterMark: number });
    readonly highWaterMark: number;
    readonly size: () => 1;
  }

  interface UnderlyingSource<R> {
    type?: undefined;
    start?(controller: ReadableStreamDefaultController<R>): unknown;
    pull?(controller: ReadableStreamDefaultController<R>): unknown;
    cancel?(reason?: any): unknown;
  }
  interface UnderlyingByteSource {
    type: "bytes";
    autoAllocateChunkSize?: number;
    start?(controller: ReadableByteStreamController): unknown;
    pull?(controller: ReadableByteStreamController): unknown;
    cancel?(reason?: any): unknown;
  }
  class ReadableStreamDefaultController<R = any> {
    private constructor();
    readonly desiredSize: number | null;
    enqueue(chunk?: R): void;
    close(): void;
    error(reason?: any): void;
  }
  class ReadableByteStreamController {
    private constructor();
    readonly byobRequest: ReadableStreamBYOBRequest | null;
    readonly desiredSize: number | null;
    enqueue(chunk: ArrayBufferView): void;
    close(): void;
    error(reason?: any): void;
  }
  class ReadableStreamBYOBRequest {
    private constructor();
    readonly view: ArrayBufferView | null;
    respond(bytesWritten: number): void;
    respondWithNewView(view: ArrayBufferView): void;
  }
  class ReadableStreamDefaultReader<R = any> {
    constructor(stream: ReadableStream<R>);
    readonly closed: Promise<void>;
    /** The next chunk, as soon as there is one. */
    read(): Promise<ReadableStreamReadResult<R>>;
    cancel(reason?: any): Promise<void>;
    releaseLock(): void;
  }
  class ReadableStreamBYOBReader {
    constructor(stream: ReadableStream);
    readonly closed: Promise<void>;
    read<T extends ArrayBufferView>(view: T, options?: { min?: number }): Promise<ReadableStreamReadResult<T>>;
    cancel(reason?: any): Promise<void>;
    releaseLock(): void;
  }
  interface StreamPipeOptions {
    preventAbort?: boolean;
    preventCancel?: boolean;
    preventClose?: boolean;
    signal?: AbortSignal;
  }

  /**
   * Chunks that are read one after the other. The body of a response comes from the host piece by piece. If you pass it on as it is, to another request or to
   * a workspace, it does not enter the extension.
   */
  class ReadableStream<R = any> {
    constructor(source: UnderlyingByteSource, strategy?: { highWaterMark?: number });
    constructor(source?: UnderlyingSource<R>, strategy?: QueuingStrategy<R>);
    static from<R>(chunks: Iterable<R> | AsyncIterable<R>): ReadableStream<R>;
    readonly locked: boolean;
    cancel(reason?: any): Promise<void>;
    getReader(options: { mode: "byob" }): ReadableStreamBYOBReader;
    getReader(options?: { mode?: undefined }): ReadableStreamDefaultReader<R>;
    pipeThrough<T>(transform: { readable: ReadableStream<T>; writable: WritableStream<R> }, options?: StreamPipeOptions): ReadableStream<T>;
    pipeTo(destination: WritableStream<R>, options?: StreamPipeOptions): Promise<void>;
    tee(): [ReadableStream<R>, ReadableStream<R>];
    values(options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
    [Symbol.asyncIterator](options?: { preventCancel?: boolean }): AsyncIterableIterator<R>;
  }

  interface UnderlyingSink<W> {
    start?(controller: WritableStreamDefaultController): unknown;
    write?(chunk: W, controller: WritableStreamDefaultController): unknown;
    close?(): unknown;
    abort?(reason?: any): unknown;
  }
  class WritableStreamDefaultController {
    private constructor();
    readonly signal: AbortSignal;
    error(reason?: any): void;
  }
  class WritableStreamDefaultWriter<W = any> {
    constructor(stream: WritableStream<W>);
    readonly closed: Promise<void>;
    readonly desiredSize: number | null;
    readonly ready: Promise<void>;
    write(chunk?: W): Promise<void>;
    close(): Promise<void>;
    abort(reason?: any): Promise<void>;
    releaseLock(): void;
  }
  class WritableStream<W = any> {
    constructor(sink?: UnderlyingSink<W>, strategy?: QueuingStrategy<W>);
    readonly locked: boolean;
    abort(reason?: any): Promise<void>;
    close(): Promise<void>;
    getWriter(): WritableStreamDefaultWriter<W>;
  }

  interface Transformer<I, O> {
    start?(controller: TransformStreamDefaultController<O>): unknown;
    transform?(chunk: I, controller: TransformStreamDefaultController<O>): unknown;
    flush?(controller: TransformStreamDefaultController<O>): unknown;
    cancel?(reason?: any): unknown;
  }
  class TransformStreamDefaultController<O = any> {
    private constructor();
    readonly desiredSize: number | null;
    enqueue(chunk?: O): void;
    error(reason?: any): void;
    terminate(): void;
  }
  class TransformStream<I = any, O = any> {
    constructor(transformer?: Transformer<I, O>, writableStrategy?: QueuingStrategy<I>, readableStrategy?: QueuingStrategy<O>);
    readonly readable: ReadableStream<O>;
    readonly writable: WritableStream<I>;
  }
  class TextDecoderStream {
    constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
    readonly encoding: string;
    readonly fatal: boolean;
    readonly ignoreBOM: boolean;
    readonly readable: ReadableStream<string>;
    readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
  }
  class TextEncoderStream {
    readonly encoding: "utf-8";
    readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
    readonly writable: WritableStream<string>;
  }

  type CompressionFormat = "deflate" | "deflate-raw" | "gzip";
  /** Compresses on the host, which counts as processor time of the call: about 0.02 s for 1 MB of text. A call has about 25 compressors open at once, and there is none at top level. */
  class CompressionStream {
    constructor(format: CompressionFormat);
    readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
    readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
  }
  class DecompressionStream {
    constructor(format: CompressionFormat);
    readonly readable: ReadableStream<Uint8Array<ArrayBuffer>>;
    readonly writable: WritableStream<ArrayBuffer | ArrayBufferView>;
  }

  interface Body {
    readonly body: ReadableStream<Uint8Array<ArrayBuffer>> | null;
    readonly bodyUsed: boolean;
    text(): Promise<string>;
    json(): Promise<any>;
    bytes(): Promise<Uint8Array<ArrayBuffer>>;
    arrayBuffer(): Promise<ArrayBuffer>;
    blob(): Promise<Blob>;
    /** The fields of multipart/form-data or application/x-www-form-urlencoded. */
    formData(): Promise<FormData>;
  }

  interface RequestInit {
    method?: string;
    headers?: HeadersInit;
    body?: BodyInit | null;
    /** "follow" when absent; each redirect is authorised again. */
    redirect?: "follow" | "manual" | "error";
    /** Aborts the request and the body of its response. */
    signal?: AbortSignal | null;
    duplex?: "half";
    // A tool is no page: these are checked, and have no effect.
    cache?: "default" | "no-store" | "reload" | "no-cache" | "force-cache" | "only-if-cached";
    credentials?: "omit" | "same-origin" | "include";
    keepalive?: boolean;
    mode?: "cors" | "no-cors" | "same-origin";
    priority?: "auto" | "high" | "low";
    referrer?: string;
    referrerPolicy?: string;
  }

  interface Request extends Body {}
  class Request {
    constructor(input: string | URL | Request, init?: RequestInit);
    readonly method: string;
    readonly url: string;
    readonly headers: Headers;
    readonly redirect: "follow" | "manual" | "error";
    readonly signal: AbortSignal;
    readonly cache: string;
    readonly credentials: string;
    readonly destination: string;
    readonly duplex: "half";
    readonly keepalive: boolean;
    readonly mode: string;
    readonly referrer: string;
    readonly referrerPolicy: string;
    clone(): Request;
  }

  interface ResponseInit {
    status?: number;
    statusText?: string;
    headers?: HeadersInit;
  }

  interface Response extends Body {}
  class Response {
    constructor(body?: BodyInit | null, init?: ResponseInit);
    static json(data: unknown, init?: ResponseInit): Response;
    static error(): Response;
    static redirect(url: string | URL, status?: number): Response;
    readonly status: number;
    readonly statusText: string;
    readonly ok: boolean;
    readonly headers: Headers;
    readonly url: string;
    readonly redirected: boolean;
    readonly type: "default" | "basic" | "error";
    clone(): Response;
  }

  /** Sends a request through the http binding named `network`. Without that binding it rejects with an error that says so. */
  function fetch(input: string | URL | Request, init?: RequestInit): Promise<Response>;

  interface EventInit {
    bubbles?: boolean;
    cancelable?: boolean;
    composed?: boolean;
  }
  class Event {
    constructor(type: string, init?: EventInit);
    readonly type: string;
    readonly target: EventTarget | null;
    readonly currentTarget: EventTarget | null;
    readonly bubbles: boolean;
    readonly cancelable: boolean;
    readonly composed: boolean;
    readonly defaultPrevented: boolean;
    readonly isTrusted: boolean;
    readonly timeStamp: number;
    readonly eventPhase: number;
    static readonly NONE: 0;
    static readonly CAPTURING_PHASE: 1;
    static readonly AT_TARGET: 2;
    static readonly BUBBLING_PHASE: 3;
    composedPath(): EventTarget[];
    preventDefault(): void;
    stopPropagation(): void;
    stopImmediatePropagation(): void;
  }
  class CustomEvent<Detail = any> extends Event {
    constructor(type: string, init?: EventInit & { detail?: Detail });
    readonly detail: Detail;
  }
  type EventListener = ((event: any) => void) | { handleEvent(event: any): void };
  interface AddEventListenerOptions {
    once?: boolean;
    signal?: AbortSignal;
    capture?: boolean;
    passive?: boolean;
  }
  class EventTarget {
    addEventListener(type: string, listener: EventListener | null, options?: boolean | AddEventListenerOptions): void;
    removeEventListener(type: string, listener: EventListener | null, options?: boolean | { capture?: boolean }): void;
    dispatchEvent(event: Event): boolean;
  }

  class AbortController {
    readonly signal: AbortSignal;
    abort(reason?: unknown): void;
  }
  class AbortSignal extends EventTarget {
    private constructor();
    static abort(reason?: unknown): AbortSignal;
    static timeout(milliseconds: number): AbortSignal;
    static any(signals: Iterable<AbortSignal>): AbortSignal;
    readonly aborted: boolean;
    readonly reason: any;
    onabort: ((event: Event) => void) | null;
    throwIfAborted(): void;
  }

  class DOMException extends Error {
    constructor(message?: string, name?: string);
    readonly name: string;
    readonly message: string;
    readonly code: number;
  }

  /** Timers need a clock binding; without one they throw a DeniedError. */
  function setTimeout(callback: (...args: any[]) => void, milliseconds?: number): number;
  function setInterval(callback: (...args: any[]) => void, milliseconds?: number): number;
  function setTimeout<Args extends any[]>(callback: (...args: Args) => void, milliseconds?: number, ...args: Args): number;
  function setInterval<Args extends any[]>(callback: (...args: Args) => void, milliseconds?: number, ...args: Args): number;
  function clearTimeout(id?: number): void;
  function clearInterval(id?: number): void;
  function queueMicrotask(callback: () => void): void;
  function structuredClone<T>(value: T, options?: { transfer?: (ArrayBuffer | MessagePort)[] }): T;
  function atob(base64: string): string;
  function btoa(binary: string): string;

  /** Writes to the console binding; without one it is silent. */
  interface Console {
    log(...data: unknown[]): void;
    info(...data: unknown[]): void;
    warn(...data: unknown[]): void;
    error(...data: unknown[]): void;
    debug(...data: unknown[]): void;
    trace(...data: unknown[]): void;
    dir(value: unknown): void;
    table(rows: unknown, columns?: readonly string[]): void;
    assert(condition?: unknown, ...data: unknown[]): void;
    count(label?: string): void;
    countReset(label?: string): void;
    group(...data: unknown[]): void;
    groupEnd(): void;
    time(label?: string): void;
    timeLog(label?: string, ...data: unknown[]): void;
    timeEnd(label?: string): void;
  }
  var console: Console;

  interface Performance {
    /** Milliseconds since the call began; 0 without a clock binding. */
    now(): number;
    /** The time of day, in milliseconds, at which now() was 0. */
    readonly timeOrigin: number;
    mark(name: string, options?: { detail?: unknown; startTime?: number }): PerformanceMark;
    measure(name: string, options?: string | { start?: string | number; end?: string | number; duration?: number; detail?: unknown }, end?: string): PerformanceMeasure;
    clearMarks(name?: string): void;
    clearMeasures(name?: string): void;
    getEntries(): PerformanceEntry[];
    getEntriesByName(name: string, type?: string): PerformanceEntry[];
    getEntriesByType(type: string): PerformanceEntry[];
  }
  class PerformanceEntry {
    protected constructor();
    readonly name: string;
    readonly entryType: string;
    readonly startTime: number;
    readonly duration: number;
    readonly detail: unknown;
    toJSON(): object;
  }
  class PerformanceMark extends PerformanceEntry {}
  class PerformanceMeasure extends PerformanceEntry {}
  var performance: Performance;

  type HashName = "SHA-1" | "SHA-256" | "SHA-384" | "SHA-512";
  interface SubtleCrypto {
    digest(algorithm: HashName | { name: HashName }, data: ArrayBuffer | ArrayBufferView): Promise<ArrayBuffer>;
  }
  /** Random values need a random binding; without one they throw a DeniedError. */
  interface Crypto {
    getRandomValues<T extends ArrayBufferView>(array: T): T;
    randomUUID(): `${string}-${string}-${string}-${string}-${string}`;
    readonly subtle: SubtleCrypto;
  }
  var crypto: Crypto;

  /** Matches URLs by patterns such as "/books/:id". */
  class URLPattern {
    constructor(input?: string | Record<string, string>, base?: string | { ignoreCase?: boolean }, options?: { ignoreCase?: boolean });
    test(input?: string | URL | Record<string, string>, base?: string): boolean;
    exec(input?: string | URL | Record<string, string>, base?: string): Record<string, { input: string; groups: Record<string, string | undefined> }> | null;
    readonly protocol: string;
    readonly username: string;
    readonly password: string;
    readonly hostname: string;
    readonly port: string;
    readonly pathname: string;
    readonly search: string;
    readonly hash: string;
  }

  class MessageEvent<T = any> extends Event {
    constructor(type: string, options?: EventInit & { data?: T });
    readonly data: T;
  }
  /** Ports of one call: messages are cloned, and arrive when no other code runs. */
  class MessageChannel {
    readonly port1: MessagePort;
    readonly port2: MessagePort;
  }
  class MessagePort extends EventTarget {
    private constructor();
    onmessage: ((event: MessageEvent) => void) | null;
    postMessage(message: unknown, transfer?: (ArrayBuffer | MessagePort)[] | { transfer?: (ArrayBuffer | MessagePort)[] }): void;
    start(): void;
    close(): void;
  }

  class ErrorEvent extends Event {
    constructor(type: string, options?: EventInit & { message?: string; filename?: string; lineno?: number; colno?: number; error?: unknown });
    readonly message: string;
    readonly filename: string;
    readonly lineno: number;
    readonly colno: number;
    readonly error: unknown;
  }
  class PromiseRejectionEvent extends Event {
    constructor(type: string, options: EventInit & { promise: Promise<unknown>; reason?: unknown });
    readonly promise: Promise<unknown>;
    readonly reason: unknown;
  }
  /** Fails the call, unless a listener of self for "error" prevents that. */
  function reportError(error: unknown): void;
  /** The events "error", "unhandledrejection" and "rejectionhandled" occur on the global object. */
  function addEventListener(type: string, listener: ((event: any) => void) | null, options?: boolean | AddEventListenerOptions): void;
  function removeEventListener(type: string, listener: ((event: any) => void) | null, options?: boolean | { capture?: boolean }): void;
  function dispatchEvent(event: Event): boolean;

  var self: typeof globalThis;
  /** Says nothing of the machine. */
  var navigator: {
    readonly userAgent: string;
    readonly language: string;
    readonly languages: readonly string[];
    readonly hardwareConcurrency: number;
    readonly onLine: boolean;
    readonly platform: string;
  };
  interface ImportMeta {
    /** "file:///index.js", whatever the name of the file. */
    readonly url: string;
    readonly dirname: string;
    readonly filename: string;
  }

  // Of Node.js.
  var global: typeof globalThis;
  function setImmediate<Args extends any[]>(callback: (...args: Args) => void, ...args: Args): object;
  function clearImmediate(immediate: unknown): void;
  /** The same everywhere: an empty env, no arguments, and no versions.node. */
  var process: {
    readonly argv: string[];
    readonly env: Record<string, string | undefined>;
    readonly platform: string;
    readonly version: string;
    readonly versions: Record<string, string>;
    readonly stdout: { write(text: string | Uint8Array): boolean };
    readonly stderr: { write(text: string | Uint8Array): boolean };
    cwd(): string;
    exit(code?: number): never;
    hrtime: { (before?: [number, number]): [number, number]; bigint(): bigint };
    nextTick<Args extends any[]>(callback: (...args: Args) => void, ...args: Args): void;
    uptime(): number;
    [name: string]: any;
  };
  type BufferEncoding = "utf8" | "utf-8" | "hex" | "base64" | "base64url" | "latin1" | "binary" | "ascii" | "utf16le" | "ucs2";
  interface Buffer extends Uint8Array<ArrayBuffer> {
    compare(other: Uint8Array): -1 | 0 | 1;
    copy(target: Uint8Array, at?: number, start?: number, end?: number): number;
    equals(other: Uint8Array): boolean;
    subarray(start?: number, end?: number): Buffer;
    toJSON(): { type: "Buffer"; data: number[] };
    toString(encoding?: BufferEncoding, start?: number, end?: number): string;
    write(text: string, at?: number, length?: number, encoding?: BufferEncoding): number;
    /** readUInt8, writeInt32LE and the like. */
    [method: `${"read" | "write"}${string}`]: any;
  }
  var Buffer: {
    readonly prototype: Buffer;
    from(text: string, encoding?: BufferEncoding): Buffer;
    from(bytes: ArrayBuffer | Uint8Array | readonly number[], offset?: number, length?: number): Buffer;
    alloc(size: number, fill?: string | number | Uint8Array, encoding?: BufferEncoding): Buffer;
    allocUnsafe(size: number): Buffer;
    byteLength(value: string | ArrayBuffer | ArrayBufferView, encoding?: BufferEncoding): number;
    compare(a: Uint8Array, b: Uint8Array): -1 | 0 | 1;
    concat(list: readonly Uint8Array[], length?: number): Buffer;
    isBuffer(value: unknown): value is Buffer;
    isEncoding(name: string): name is BufferEncoding;
  };
}
