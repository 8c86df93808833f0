// Generated from wit; do not edit.

/** Words shared by all capabilities. */
export namespace Types {
  interface Denial {
    /** The binding the operation went through, e.g. "github". */
    binding: string;
    /** What was asked, e.g. "POST https://api.github.com/user/repos". */
    operation: string;
    /** Why no rule allows it. */
    reason: string;
    /** The manifest line that would allow it. */
    remedy: string;
  }
  type Error =
    | { tag: "denied"; val: Denial }
    /** Why, in words of whoever took it back. */
    | { tag: "revoked"; val: string }
    | { tag: "expired" }
    /** A budget or limit, named with its value. */
    | { tag: "exhausted"; val: string }
    | { tag: "timed-out" }
    | { tag: "too-large"; val: bigint }
    | { tag: "not-found"; val: string }
    | { tag: "already-exists"; val: string }
    /** It changed since it was read. */
    | { tag: "conflict"; val: string }
    | { tag: "invalid"; val: string }
    /** The other side failed: connection, TLS, protocol, disk. */
    | { tag: "unavailable"; val: string };
  interface Header {
    name: string;
    value: string;
  }
}

/** The bindings of one call. Authority enters an extension here and nowhere else. */
export namespace Env {
  interface Env {
    /** (name, interface) of each binding. */
    names(): Promise<Array<[string, string]>>;
    /** A new env with only these names, at most 10,000; a name that is missing is an error. */
    subset(names: Array<string>): Promise<Env>;
  }
}

/** Bytes that stay on the host. */
export namespace Blob {
  interface Blob {
    size(): Promise<bigint>;
    mediaType(): Promise<string>;
    /** "sha256:<hex>". */
    digest(): Promise<string>;
    /** UTF-8 text; `invalid` when it is not, `too-large` beyond `max` bytes. */
    text(max: bigint): Promise<string>;
    /** At most 262,144 bytes a call. */
    bytes(offset: bigint, len: number): Promise<Uint8Array>;
  }
  interface Writer {
    /** At most 262,144 bytes a call. */
    append(bytes: Uint8Array): Promise<void>;
    appendText(text: string): Promise<void>;
    appendBlob(source: Blob): Promise<void>;
  }
  /** Blobs cost host memory and disk, so making one needs a store to make it in. */
  interface Store {
    create(mediaType: string): Promise<Writer>;
    finish(writer: Writer): Promise<Blob>;
  }
}

/** Waiting. Needs no authority: it waits on handles it is given. An empty list traps. */
export namespace Poll {
  interface Pollable {
    ready(): Promise<boolean>;
    block(): Promise<void>;
  }
}

export namespace Clock {
  interface Clock {
    /** Milliseconds since 1970-01-01T00:00:00Z. */
    now(): Promise<bigint>;
    /** Nanoseconds from an arbitrary start. */
    monotonic(): Promise<bigint>;
    subscribe(nanoseconds: bigint): Promise<void>;
  }
}

export namespace Console {
  type Level = "trace" | "debug" | "info" | "warn" | "error";
  interface Console {
    /** Text beyond the call's log limit is dropped, and the log says so. */
    log(level: Level, message: string): Promise<void>;
  }
}

export namespace Http {
  type Content =
    | { tag: "none" }
    | { tag: "text"; val: string }
    | { tag: "bytes"; val: Uint8Array }
    | { tag: "blob"; val: Blob.Blob };
  type Redirect = "follow" | "manual" | "error";
  interface Request {
    method: string;
    url: string;
    headers: Array<Types.Header>;
    content: Content;
    redirect: Redirect;
    /** Milliseconds for the whole exchange; the grant's limit still holds. */
    timeout?: number | undefined;
  }
  interface Head {
    status: number;
    url: string;
    redirected: boolean;
    headers: Array<Types.Header>;
  }
  interface Rule {
    scheme: string;
    host: string;
    port?: number | undefined;
    methods: Array<string>;
    path: string;
    headers: Array<string>;
  }
  /** How far an exchange has come. */
  type Stage =
    | { tag: "head" }
    /** More of the body has arrived than this many bytes, or it has ended. */
    | { tag: "body"; val: bigint }
    /** The whole body has arrived. */
    | { tag: "whole" };
  interface Part {
    offset: bigint;
    len: number;
  }
  interface Client {
    /**
     * Starts a request and returns at once; a denial is already known here. At most 100 headers, and 262,144 bytes that are not
     * in a blob.
     */
    start(request: Request): Promise<Exchange>;
    /** A client that allows only what both this one and `rules` allow: at most 256, of 32 methods and 64 headers each. */
    narrow(rules: Array<Rule>): Promise<Client>;
    rules(): Promise<Array<Rule>>;
  }
  interface Exchange {
    /** Ready when the exchange has come so far, or has failed. */
    subscribe(stage: Stage): Promise<void>;
    head(): Promise<Head>;
    /** The whole body. */
    text(max: bigint): Promise<string>;
    /**
     * The whole body, once. With a part: what has arrived from its offset on, at most 262,144 bytes of it, and at least one
     * unless the body has ended.
     */
    blob(part?: Part | undefined): Promise<Blob.Blob>;
  }
}

/** Small durable values under names. */
export namespace Kv {
  interface Entry {
    key: string;
    value: string;
  }
  /** `cursor` is there when more entries follow. */
  interface Page {
    entries: Array<Entry>;
    cursor?: string | undefined;
  }
  interface Bucket {
    get(key: string): Promise<string | undefined>;
    set(key: string, value: string): Promise<void>;
    /** Whether the key was there. */
    delete(key: string): Promise<boolean>;
    /** Entries whose key starts with `prefix`, in byte order; at most 1,000 a page. */
    list(prefix: string, limit: number, cursor?: string | undefined): Promise<Page>;
    /** Adds to a decimal integer, which is 0 when absent, and returns the sum. */
    increment(key: string, delta: bigint): Promise<bigint>;
    /** Sets `value` (none: deletes) if the current value is `expected` (none: absent); whether it did. */
    compareAndSet(key: string, expected?: string | undefined, value?: string | undefined): Promise<boolean>;
  }
}

export namespace Random {
  interface Random {
    u64(): Promise<bigint>;
    /** At most 65,536 bytes a call. */
    bytes(len: number): Promise<Uint8Array>;
  }
}

/** Other tools, as a capability. */
export namespace Tools {
  interface Description {
    name: string;
    description: string;
    inputSchema: string;
  }
  interface Toolbox {
    search(query: string, limit: number): Promise<Array<Description>>;
    start(tool: string, input: string, env: Env.Env): Promise<Pending>;
  }
  interface Pending {
    subscribe(): Promise<void>;
    take(): Promise<string>;
  }
}

/**
 * A durable directory of files. Paths are UTF-8 with "/" between segments, relative to the handle's directory; neither they nor
 * links leave it.
 */
export namespace Workspace {
  type Kind = "file" | "directory" | "link";
  interface Status {
    kind: Kind;
    /** Bytes; 0 for all but files. */
    size: bigint;
    /** Milliseconds since 1970-01-01T00:00:00Z. */
    modified: bigint;
    /** Permission bits, at most 0o777. */
    mode: number;
  }
  interface Entry {
    name: string;
    status: Status;
  }
  /** `cursor` is there when more entries follow. */
  interface Page {
    entries: Array<Entry>;
    cursor?: string | undefined;
  }
  interface Replacement {
    old: string;
    new: string;
  }
  /** `cursor` is there when there may be more, even after a page without paths. */
  interface Found {
    paths: Array<string>;
    cursor?: string | undefined;
  }
  interface Search {
    /** Globs: a file must match one of `include`, if there are any, and none of `exclude`; at most 32 each. */
    include: Array<string>;
    exclude: Array<string>;
    /** How many lines before and after a match are shown, at most 20. */
    context: number;
  }
  interface Match {
    path: string;
    /** From 1; `column` counts bytes. */
    line: number;
    column: number;
    /** Without the end of the line; a part with the match, if there are more than 2,000 bytes. */
    text: string;
    before: Array<string>;
    after: Array<string>;
  }
  interface Matches {
    matches: Array<Match>;
    /** Files of this page that were not searched whole: binary ones, and of lines over 16 KiB the rest. */
    partial: number;
    /** There when there may be more, even after a page without matches. */
    cursor?: string | undefined;
  }
  /** An earlier content of a path; `modified` is when it was written. */
  interface Revision {
    id: bigint;
    size: bigint;
    modified: bigint;
  }
  /** `taken` is in milliseconds since 1970-01-01T00:00:00Z; `files` counts directories and links too. */
  interface Snapshot {
    id: bigint;
    taken: bigint;
    files: bigint;
    bytes: bigint;
  }
  interface Directory {
    /** The whole file as UTF-8 text. */
    read(path: string): Promise<string>;
    /** Lines `from` to `to`, both counted from 1 and included; without `to`, to the end. */
    readLines(path: string, from: number, to?: number | undefined): Promise<string>;
    /** At most 262,144 bytes a call; fewer at the end of the file. */
    readBytes(path: string, offset: bigint, len: number): Promise<Uint8Array>;
    readBlob(path: string): Promise<Blob.Blob>;
    /** Replaces the file, and makes the directories above it. */
    write(path: string, text: string): Promise<void>;
    /** At most 262,144 bytes a call. */
    writeBytes(path: string, bytes: Uint8Array): Promise<void>;
    writeBlob(path: string, source: Blob.Blob): Promise<void>;
    append(path: string, text: string): Promise<void>;
    /** At most 262,144 bytes a call. */
    appendBytes(path: string, bytes: Uint8Array): Promise<void>;
    /**
     * Literal replacements, each of text that stands exactly once in the file as it is now; all or none. They are at most 1,000, with
     * 512 KiB of `old` together. The error is `conflict` when others keep changing the file meanwhile.
     */
    edit(path: string, replacements: Array<Replacement>): Promise<void>;
    /** Entries of one directory in byte order of names; at most 1,000 a page. */
    list(path: string, limit: number, cursor?: string | undefined): Promise<Page>;
    /**
     * Paths below this directory that match a glob, at most 1,000 a page. `*` and `?` stop at a slash, `**` between slashes
     * does not, `[a-z]` and `{a,b}` choose; a glob without a slash matches the last name. Links are not followed. A call
     * works for a while only: ask again with the cursor until there is none.
     */
    find(glob: string, limit: number, cursor?: string | undefined): Promise<Found>;
    /**
     * Lines that match a regular expression (RE2), at most 1,000 a page, by files in the order of `find`. Ask again likewise,
     * with the same pattern and search.
     */
    grep(pattern: string, search: Search, limit: number, cursor?: string | undefined): Promise<Matches>;
    /** A unified diff of two text files of at most 1 MiB; empty when they are the same. */
    diff(before: string, after: string): Promise<string>;
    /** Of a link: itself, and not what it leads to. */
    stat(path: string): Promise<Status>;
    setMode(path: string, mode: number): Promise<void>;
    /** `target` is relative to the link's directory; one outside the handle's is denied, now and when it is followed. */
    makeLink(path: string, target: string): Promise<void>;
    readLink(path: string): Promise<string>;
    /** With the directories above it; one that exists already is left as it is. */
    makeDirectory(path: string): Promise<void>;
    move(source: string, target: string): Promise<void>;
    copy(source: string, target: string): Promise<void>;
    /** `recursive` removes a directory with what is in it. */
    remove(path: string, recursive: boolean): Promise<void>;
    /**
     * What the path held before it was replaced, removed or moved away, the newest first. This, and all below, is
     * `unavailable` for a directory on disk.
     */
    history(path: string): Promise<Array<Revision>>;
    readRevision(path: string, revision: bigint): Promise<Blob.Blob>;
    /** Writes an earlier content again. */
    restore(path: string, revision: bigint): Promise<void>;
    /** Keeps this directory as it is now; returns the snapshot's id. */
    snapshot(): Promise<bigint>;
    /** The newest first. */
    snapshots(): Promise<Array<Snapshot>>;
    /** Makes this directory what it was; what came later is removed, and kept in the history. */
    restoreSnapshot(id: bigint): Promise<void>;
    removeSnapshot(id: bigint): Promise<void>;
    /** A handle on a directory below this one. */
    subdirectory(path: string): Promise<Directory>;
    /** The same directory without the right to change it. */
    readOnly(): Promise<Directory>;
  }
}
