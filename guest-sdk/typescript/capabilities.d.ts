// Generated from wit; do not edit.

/** Types that all capabilities share. */
export namespace Types {
  interface Denial {
    /** The binding the operation went through, e.g. "github". */
    binding: string;
    /** The operation that was denied, e.g. "POST https://api.github.com/user/repos". */
    operation: string;
    /** Why no rule allows it. */
    reason: string;
    /** The manifest line that would allow it. */
    remedy: string;
  }
  type Error =
    | { tag: "denied"; val: Denial }
    /** The reason that the revoker gave. */
    | { tag: "revoked"; val: string }
    | { tag: "expired" }
    /** A budget or limit was reached. The text names it and its value. */
    | { tag: "exhausted"; val: string }
    | { tag: "timed-out" }
    | { tag: "too-large"; val: bigint }
    | { tag: "not-found"; val: string }
    | { tag: "already-exists"; val: string }
    /** The content changed since it was read. */
    | { tag: "conflict"; val: string }
    | { tag: "invalid"; val: string }
    /** The other side failed: connection, TLS, protocol, disk. */
    | { tag: "unavailable"; val: string }
    /** The process ended during the operation. It may have happened. Only durable calls see this. */
    | { tag: "interrupted"; val: string };
  interface Header {
    name: string;
    value: string;
  }
}

/** The bindings of one call. An extension gets authority in no other way. */
export namespace Env {
  interface Env {
    /** (name, interface) of each binding. */
    names(): Promise<Array<[string, string]>>;
    /** A new env with only these names, at most 10,000. A missing name is an error. */
    subset(names: Array<string>): Promise<Env>;
    /** What a person configured for the component whose call this is: the JSON text of an object, "{}" if there is nothing. */
    vars(): Promise<string>;
  }
}

/** Bytes that stay on the host. */
export namespace Blob {
  interface Blob {
    size(): Promise<bigint>;
    mediaType(): Promise<string>;
    /** "sha256:<hex>". */
    digest(): Promise<string>;
    /** The content as text. Fails with `invalid` if it is not UTF-8, and with `too-large` beyond `max` bytes. */
    text(max: bigint): Promise<string>;
    /** At most 262,144 bytes a call. */
    bytes(offset: bigint, length: number): Promise<Uint8Array>;
    /**
     * The same as a text, which is passed much faster than a list. It stands for words of 8 bytes, as the texts of
     * `stile:extension/memory` do: first the number of bytes, then the bytes, and zeros up to a whole word.
     */
    packed(offset: bigint, length: number): Promise<string>;
  }
  interface Writer {
    /** At most 262,144 bytes a call. */
    append(bytes: Uint8Array): Promise<void>;
    appendText(text: string): Promise<void>;
    appendBlob(source: Blob): Promise<void>;
  }
  /** Blobs cost host memory and disk, so creating one requires a store. */
  interface Store {
    create(mediaType: string): Promise<Writer>;
    finish(writer: Writer): Promise<Blob>;
  }
}

/** Waits for handles to become ready. It needs no authority, because the caller already holds the handles. `poll` traps on an empty list. */
export namespace Poll {
  interface Pollable {
    ready(): Promise<boolean>;
    block(): Promise<void>;
  }
}

/** A headless browser with one page. All that it returns was written by the sites that it visits, and is not to be trusted. */
export namespace Browser {
  interface Page {
    url: string;
    title: string;
    status: number;
  }
  /** An element that can be seen, a text that can be seen, or a URL, in which `*` stands for any characters. */
  type Awaited =
    | { tag: "selector"; val: string }
    | { tag: "text"; val: string }
    | { tag: "url"; val: string };
  type Outcome =
    | { tag: "nothing" }
    | { tag: "page"; val: Page }
    | { tag: "text"; val: string }
    | { tag: "blob"; val: Blob.Blob };
  /**
   * Actions of one session run one after the other. Each takes at most 30 s. Selectors are CSS, and mean the first such element that can
   * be seen. Without a selector, a function means the whole page.
   */
  interface Session {
    /** Opens a page and waits until it has loaded. The outcome is a page, as that of `click`, `press` and `wait-for`. */
    open(url: string): Promise<Pending>;
    click(selector: string): Promise<Pending>;
    /** Sets a field, an option or, with "true" or "false", a checkbox. */
    fill(selector: string, text: string): Promise<Pending>;
    /** Presses a key or a combination such as "Enter" or "Control+A". */
    press(key: string): Promise<Pending>;
    waitFor(what: Awaited): Promise<Pending>;
    /** Text that can be seen, at most 1 MiB. */
    text(selector?: string | undefined): Promise<Pending>;
    /** At most 4 MiB. */
    html(selector?: string | undefined): Promise<Pending>;
    /** The page as Markdown, cut at 256 KiB. */
    markdown(): Promise<Pending>;
    /**
     * Runs JavaScript in the page: an expression, a function to call, or the body of one. `arguments` is a list, and the outcome a value,
     * as JSON of at most 1 MiB. An empty text is no value.
     */
    evaluate(code: string, arguments_: string): Promise<Pending>;
    /** A PNG. */
    screenshot(fullPage: boolean, selector?: string | undefined): Promise<Pending>;
    pdf(): Promise<Pending>;
    /** The newest file that the page has downloaded and that was not asked for yet, once it has arrived; nothing if there is none. */
    download(): Promise<Pending>;
    /** Drops the page, with its cookies and all else that it has kept. */
    leave(): Promise<Pending>;
  }
  interface Pending {
    /** Ready when the action has ended. */
    subscribe(): Promise<void>;
    /** Can be taken once. */
    take(): Promise<Outcome>;
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

/** Runs code that comes at run time, each time in a fresh instance, with some of the caller's bindings. */
export namespace Code {
  type Level = "trace" | "debug" | "info" | "warn" | "error";
  interface Line {
    level: Level;
    text: string;
  }
  /** What the code threw. The lines of the stack are those of the code. */
  interface Failure {
    name: string;
    message: string;
    stack: string;
  }
  interface Runner {
    /**
     * Starts code and returns at once. `code` is the body of an async function with the parameters input, env and tools, in the language
     * that the ending of `name` says. `input` is JSON. `env` is what the code has, besides a clock, random numbers and a console.
     */
    start(code: string, name: string, input: string, env: Env.Env): Promise<Pending>;
  }
  interface Pending {
    subscribe(): Promise<void>;
    /** What the code returned, as JSON. */
    take(): Promise<string>;
    /** What the code threw, if that is why `take` fails. */
    thrown(): Promise<Failure | undefined>;
    /** What the code has logged since the last call: at most 500 lines in all, of 16,384 bytes together. */
    log(): Promise<Array<Line>>;
  }
}

/** Compresses and decompresses bytes. It needs no authority: what a codec returns depends on what it was given. Any env opens one. */
export namespace Compression {
  /** RFC 1952, 1950 and 1951. */
  type Format = "gzip" | "deflate" | "deflate-raw";
  type Flush = "none" | "sync" | "finish";
  interface Output {
    /** At most 262,144 bytes, as a text like that of `packed` of blob. */
    bytes: string;
    /** There is more output to take: the next input must be empty. */
    more: boolean;
    /** At the end of compressed data: how many bytes of the input come after it. */
    rest?: number | undefined;
  }
  interface Codec {
    /**
     * Takes at most 262,144 bytes, as a text like that of `packed` of blob. To decompress, `flush` means nothing. Fails with `invalid` if the
     * data is not of the format. The codec is of no use afterwards.
     */
    step(input: string, flush: Flush): Promise<Output>;
  }
}

export namespace Console {
  type Level = "trace" | "debug" | "info" | "warn" | "error";
  interface Console {
    /** Text beyond the call's log limit is dropped, and the log says so. */
    log(level: Level, message: string): Promise<void>;
    /**
     * Says how much of the call's work is done, of a total if that is known. Updates beyond ten a second may be dropped, and a message is
     * one line of at most 200 bytes.
     */
    progress(done: number, total: number | undefined, message: string): Promise<void>;
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
    /** Milliseconds for the whole exchange. The grant's limit still applies. */
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
  /** How far an exchange has progressed. */
  type Stage =
    | { tag: "head" }
    /** More than this many bytes of the body have arrived, or the body has ended. */
    | { tag: "body"; val: bigint }
    /** The whole body has arrived. */
    | { tag: "whole" };
  interface Part {
    offset: bigint;
    len: number;
  }
  interface Client {
    /**
     * Starts a request and returns at once. A denial is returned here. A request has at most 100 headers, and at most 262,144
     * bytes outside a blob.
     */
    start(request: Request): Promise<Exchange>;
    /** A client that allows only what both this one and `rules` allow. At most 256 rules, with at most 32 methods and 64 headers each. */
    narrow(rules: Array<Rule>): Promise<Client>;
    rules(): Promise<Array<Rule>>;
  }
  interface Exchange {
    /** Ready when the exchange has reached this stage or has failed. */
    subscribe(stage: Stage): Promise<void>;
    head(): Promise<Head>;
    /** The whole body. */
    text(max: bigint): Promise<string>;
    /**
     * Without a part: the whole body, which can be taken once. With a part: the bytes that have arrived from its offset on, at
     * most 262,144. There is at least one unless the body has ended.
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
  /** `cursor` is set if more entries follow. */
  interface Page {
    entries: Array<Entry>;
    cursor?: string | undefined;
  }
  interface Bucket {
    get(key: string): Promise<string | undefined>;
    set(key: string, value: string): Promise<void>;
    /** Returns whether the key existed. */
    delete(key: string): Promise<boolean>;
    /** Entries whose key starts with `prefix`, in byte order, at most 1,000 a page. */
    list(prefix: string, limit: number, cursor?: string | undefined): Promise<Page>;
    /** Adds to a decimal integer, which is 0 when absent, and returns the sum. */
    increment(key: string, delta: bigint): Promise<bigint>;
    /** Sets `value` (none: deletes the key) if the current value is `expected` (none: no such key). Returns whether it did. */
    compareAndSet(key: string, expected?: string | undefined, value?: string | undefined): Promise<boolean>;
  }
}

export namespace Random {
  interface Random {
    u64(): Promise<bigint>;
    /** At most 65,536 bytes a call. */
    bytes(length: number): Promise<Uint8Array>;
  }
}

/** What a durable call can say about itself, and runs of tools that a call starts. */
export namespace Runs {
  /**
   * `ready` and `running`: the run goes on. `asleep`: it waits. `done`, `failed` and `cancelled`: it has ended. `parked`: it goes on only when a
   * person has it do so.
   */
  type State = "ready" | "running" | "asleep" | "done" | "failed" | "cancelled" | "parked";
  /**
   * `since` is when the run came into the state, and `wakes` when it goes on if it waits for a time: in milliseconds since
   * 1970-01-01T00:00:00Z. `mailboxes` are those from which it waits for messages. `reason` says why it failed or is parked.
   */
  interface Status {
    state: State;
    since: bigint;
    wakes?: bigint | undefined;
    mailboxes: Array<string>;
    reason?: string | undefined;
  }
  /** The run of this call. If the call is not durable, `cancelled`, `stash` and `recover` fail with `unavailable`. */
  interface Control {
    /**
     * Ready once somebody has asked for the end of the run. From this call on, the run is not ended at once then, but has some time for
     * its own end.
     */
    cancelled(): Promise<void>;
    /** Keeps the call from sleeping until the handle is dropped. */
    keepAwake(): Promise<Awake>;
    /** Keeps JSON of at most 64 KiB with the run, in place of what it kept before. Later attempts of the run have it too. */
    stash(value: string): Promise<void>;
    /** What the run keeps. None if it keeps nothing. */
    recover(): Promise<string | undefined>;
    /**
     * Starts a tool of another extension as a run of its own, which outlives this call, and returns its id. Among the runs of one tool that this
     * extension has started, a key finds the one that it started.
     */
    start(tool: string, input: string, key?: string | undefined): Promise<string>;
    /** Ready once a run has ended that `start` returned. */
    ended(run: string): Promise<void>;
    /** Waits for the result of a run that `start` returned. If the tool failed, its error. */
    outcome(run: string): Promise<string>;
    /** Where a run is that `start` returned. */
    status(run: string): Promise<Status>;
    /** Delivers JSON of at most 64 KiB to a mailbox of a run that `start` returned. False if the mailbox has had a message with this key. */
    signal(run: string, mailbox: string, data: string, key?: string | undefined): Promise<boolean>;
    /** Asks for the end of a run that `start` returned. Nothing happens if it has ended. */
    cancel(run: string): Promise<void>;
  }
  /** Keeps the call from sleeping. */
  interface Awake {
  }
}

/**
 * A durable directory of files. Paths are UTF-8 with "/" between segments, relative to the handle's directory. Neither paths
 * nor links lead out of it.
 */
export namespace Workspace {
  type Kind = "file" | "directory" | "link";
  interface Status {
    kind: Kind;
    /** Bytes; 0 for directories and links. */
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
  /** `cursor` is set if more entries follow. */
  interface Page {
    entries: Array<Entry>;
    cursor?: string | undefined;
  }
  /**
   * A file at one moment. There is no text above the size that was asked for, and for bytes that are not UTF-8. `digest` is as
   * `blob.digest` has it.
   */
  interface Whole {
    text?: string | undefined;
    digest: string;
    size: bigint;
  }
  interface Replacement {
    old: string;
    new: string;
  }
  /** `cursor` is set if there may be more paths, even after a page without any. */
  interface Found {
    paths: Array<string>;
    cursor?: string | undefined;
  }
  interface Search {
    /** Globs: a file must match one of `include`, if there are any, and none of `exclude`; at most 32 each. */
    include: Array<string>;
    exclude: Array<string>;
    /** Lines to return before and after each match, at most 20. */
    context: number;
  }
  interface Match {
    path: string;
    /** Both count from 1. `column` counts bytes. */
    line: number;
    column: number;
    /** The line without its end. For a line over 2,000 bytes, the part that contains the match. */
    text: string;
    before: Array<string>;
    after: Array<string>;
  }
  interface Matches {
    matches: Array<Match>;
    /** Files of this page that were not searched completely: binary files, and files with a line over 16 KiB. */
    partial: number;
    /** Set if there may be more matches, even after a page without any. */
    cursor?: string | undefined;
  }
  /** Earlier content of a path; `modified` is when it was written. */
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
    /** The file with its digest, and with its text if it has at most `max` bytes. */
    readWithDigest(path: string, max: bigint): Promise<Whole>;
    /** Lines `from` to `to`, counted from 1, both included. Without `to`: up to the end. */
    readLines(path: string, from: number, to?: number | undefined): Promise<string>;
    /** At most 262,144 bytes a call; fewer at the end of the file. */
    readBytes(path: string, offset: bigint, length: number): Promise<Uint8Array>;
    readBlob(path: string): Promise<Blob.Blob>;
    /** Creates or replaces the file, and creates missing parent directories. */
    write(path: string, text: string): Promise<void>;
    /** At most 262,144 bytes a call. */
    writeBytes(path: string, bytes: Uint8Array): Promise<void>;
    writeBlob(path: string, source: Blob.Blob): Promise<void>;
    /**
     * Writes the text if the content of the file has this digest, as `blob.digest` has it, or without one, if there is no file.
     * Otherwise fails with `conflict`. Returns the digest of the text.
     */
    replace(path: string, text: string, digest?: string | undefined): Promise<string>;
    append(path: string, text: string): Promise<void>;
    /** At most 262,144 bytes a call. */
    appendBytes(path: string, bytes: Uint8Array): Promise<void>;
    /**
     * Applies literal replacements, all or none. Each `old` must occur exactly once in the file as it is now. At most 1,000
     * replacements, with at most 512 KiB of `old` in total. Fails with `conflict` if others keep changing the file meanwhile.
     */
    edit(path: string, replacements: Array<Replacement>): Promise<void>;
    /** Entries of one directory in byte order of names, at most 1,000 a page. */
    list(path: string, limit: number, cursor?: string | undefined): Promise<Page>;
    /**
     * Paths below this directory that match a glob, at most 1,000 a page. `*` and `?` match no slash, and `**` between slashes
     * matches any number of directories. `[a-z]` and `{a,b}` match alternatives. A glob without a slash matches the last name.
     * Links are not followed. Each call searches for a limited time: repeat it with the cursor until there is none.
     */
    find(glob: string, limit: number, cursor?: string | undefined): Promise<Found>;
    /**
     * Lines that match a regular expression (RE2), at most 1,000 a page. Files come in the order of `find`. Repeat the call
     * with the cursor, the same pattern and the same search until there is no cursor.
     */
    grep(pattern: string, search: Search, limit: number, cursor?: string | undefined): Promise<Matches>;
    /** A unified diff of two text files of at most 1 MiB; empty when they are the same. */
    diff(before: string, after: string): Promise<string>;
    /** A diff of an earlier content of the path and what it holds now. */
    diffRevision(path: string, revision: bigint): Promise<string>;
    /** For a link: the status of the link itself, not of its target. */
    stat(path: string): Promise<Status>;
    setMode(path: string, mode: number): Promise<void>;
    /** `target` is relative to the link's directory. A target outside the handle's directory is denied, now and when it is followed. */
    makeLink(path: string, target: string): Promise<void>;
    readLink(path: string): Promise<string>;
    /** Creates the directory and missing parent directories. An existing directory is left unchanged. */
    makeDirectory(path: string): Promise<void>;
    move(source: string, target: string): Promise<void>;
    copy(source: string, target: string): Promise<void>;
    /** `recursive` removes a directory with its contents. */
    remove(path: string, recursive: boolean): Promise<void>;
    /**
     * What the path held before it was replaced, removed or moved away, newest first. On a directory on disk, this,
     * `diff-revision` and the functions below up to `remove-snapshot` fail with `unavailable`.
     */
    history(path: string): Promise<Array<Revision>>;
    readRevision(path: string, revision: bigint): Promise<Blob.Blob>;
    /** Writes earlier content back to the path. */
    restore(path: string, revision: bigint): Promise<void>;
    /** Takes a snapshot of this directory and returns its id. */
    snapshot(): Promise<bigint>;
    /** Newest first. */
    snapshots(): Promise<Array<Snapshot>>;
    /** Restores this directory to the snapshot. Later content is removed, but stays in the history. */
    restoreSnapshot(id: bigint): Promise<void>;
    removeSnapshot(id: bigint): Promise<void>;
    /** A handle for a directory below this one. */
    subdirectory(path: string): Promise<Directory>;
    /** The same directory without the right to change it. */
    readOnly(): Promise<Directory>;
  }
}

/**
 * A container with tools such as git, compilers and package managers. It starts when it is first used and ends with the call. Its
 * working tree is /work, empty at first. Directories are copied in with `push` and back with `pull`.
 */
export namespace Sandbox {
  type Input =
    | { tag: "none" }
    | { tag: "text"; val: string }
    | { tag: "blob"; val: Blob.Blob };
  interface Variable {
    name: string;
    value: string;
  }
  interface Command {
    /** The program and its arguments: at most 1,000, with at most 131,072 bytes together. */
    argv: Array<string>;
    /** A folder, relative to /work. "" is /work itself. */
    folder: string;
    /** Further variables, at most 100. */
    env: Array<Variable>;
    stdin: Input;
    /** Milliseconds. The grant's limit still applies. */
    timeout?: number | undefined;
  }
  type Stream = "stdout" | "stderr";
  interface Part {
    /** Where the part is in all that the process wrote. More than was asked for if what lies between was dropped. */
    offset: bigint;
    stream: Stream;
    bytes: Uint8Array;
  }
  /** Why a process ended: by itself, after its timeout, because the sandbox had no memory left, or because it was stopped. */
  type Ending = "exited" | "timeout" | "memory" | "stopped";
  interface Exit {
    /** 128 plus the number of the signal, if one ended it. */
    code: number;
    ending: Ending;
    /** Bytes of output that are no longer there. The last ones are kept. */
    dropped: bigint;
  }
  type Stage =
    /** More than this many bytes of output have been written, or the process has ended. */
    | { tag: "output"; val: bigint }
    | { tag: "ended" };
  interface Note {
    path: string;
    reason: string;
  }
  /** What was done to the target of a copy. Each list has at most 1,000 entries, and `omitted` counts those that are left out. */
  interface Changes {
    added: Array<string>;
    changed: Array<string>;
    removed: Array<string>;
    /**
     * Paths that changed on both sides since the last copy. The file of the directory stays, and that of the sandbox is kept
     * under the name with ".sandbox" at its end.
     */
    conflicts: Array<Note>;
    /** What was not copied, and why. */
    skipped: Array<Note>;
    omitted: number;
  }
  interface Container {
    /** Starts a process and returns at once. `take` of the process reports what went wrong later. At most 16 run at a time. */
    start(command: Command): Promise<Process>;
    /** Copies what changed in the directory since the last copy to a folder of the sandbox, relative to /work. */
    push(directory: Workspace.Directory, to: string): Promise<Transfer>;
    /** Copies what changed in a folder of the sandbox since the last copy to the directory. Processes stand still meanwhile. */
    pull(directory: Workspace.Directory, from: string): Promise<Transfer>;
    /** The limits that hold, and how that was found out. */
    limits(): Promise<Array<Note>>;
  }
  interface Process {
    subscribe(stage: Stage): Promise<void>;
    /** The output from an offset on, at most 262,144 bytes of one stream. None if there is no more for now. */
    read(offset: bigint): Promise<Part | undefined>;
    /** Waits until the process and all that it started have ended. */
    take(): Promise<Exit>;
    /** Ends the process and all that it started. */
    stop(): Promise<void>;
  }
  interface Transfer {
    subscribe(): Promise<void>;
    take(): Promise<Changes>;
  }
}

/** Mailboxes of a durable call, to which others deliver messages. */
export namespace Signals {
  /**
   * `data` is JSON. It comes from outside and is not to be trusted; `from` is where, as the host says. `received` is in milliseconds since
   * 1970-01-01T00:00:00Z.
   */
  interface Message {
    data: string;
    from: string;
    received: bigint;
  }
  interface Mailboxes {
    /** Waits for a message in a mailbox, for at most this long. Fails with `unavailable` if the call is not durable. */
    receive(mailbox: string, milliseconds?: bigint | undefined): Promise<Pending>;
    /** An address to which anybody who has it can post messages for a mailbox, until the call ends. The same mailbox has the same address. */
    url(mailbox: string): Promise<string>;
  }
  interface Pending {
    /** Ready once the mailbox has a message, or the time is over. */
    subscribe(): Promise<void>;
    /**
     * The oldest message of the mailbox, which nobody else gets then. None if there is none. Fails with `timed-out` if there is none
     * and the time is over.
     */
    take(): Promise<Message | undefined>;
  }
}

/** Finds and calls other tools. */
export namespace Tools {
  interface Description {
    name: string;
    description: string;
    inputSchema: string;
  }
  interface Toolbox {
    search(query: string, limit: number): Promise<Array<Description>>;
    describe(names: Array<string>): Promise<string>;
    start(tool: string, input: string, env: Env.Env): Promise<Pending>;
  }
  interface Pending {
    subscribe(): Promise<void>;
    take(): Promise<string>;
  }
}
