/** The binding of a `stile:capability/workspace` interface: a durable directory of files. */
export interface Workspace
  extends Pick<
    wit.Workspace.Directory,
    "read" | "edit" | "diff" | "makeDirectory" | "makeLink" | "readLink" | "setMode" | "move" | "copy"
  > {
  /** Lines `from` to `to`, counted from 1, both included. They default to the first and the last line. */
  readLines(path: string, lines?: { from?: number; to?: number }): Promise<string>;
  /** `length` bytes from `offset`; the whole file when absent. */
  readBytes(path: string, range?: { offset?: number; length?: number }): Promise<Uint8Array<ArrayBuffer>>;
  /** The file as a Blob whose bytes stay on the host until you read them. */
  readBlob(path: string): Promise<Blob>;
  /**
   * The text of the file with its digest and its size in bytes, all of one moment. There is no text if the file has more than `max` bytes,
   * 16 MiB when absent, or is not UTF-8.
   */
  readWithDigest(path: string, options?: { max?: number }): Promise<{ text?: string; digest: string; size: number }>;
  /** "sha256:" and the digest of the file in hexadecimal, which `replace` takes. */
  digest(path: string): Promise<string>;
  /** Creates or replaces the file, and creates missing parent directories. Bytes beyond 256 KiB are written in several steps. */
  write(path: string, content: FileContent): Promise<void>;
  /**
   * Writes the text if the content of the file has this digest, as `digest(path)` returns it, or without one, if there is
   * no file. Otherwise it throws an error with the code `conflict`. It returns the digest of the text.
   */
  replace(path: string, text: string, digest?: string): Promise<string>;
  append(path: string, content: FileContent): Promise<void>;
  /**
   * Paths that match a glob, at most 1,000 when `limit` is absent. `*` and `?` match no slash, and `**` between slashes
   * matches any number of directories. `[a-z]` and `{a,b}` match alternatives. A glob without a slash matches the last name.
   * `cursor` is set if there may be more.
   */
  find(glob: string, options?: PageOptions): Promise<{ paths: string[]; cursor?: string }>;
  /**
   * Lines that match a regular expression in RE2 syntax, which has no look-around and no back-references. `partial` counts
   * files that were not searched completely.
   */
  grep(pattern: string | RegExp, options?: GrepOptions): Promise<{ matches: wit.Workspace.Match[]; partial: number; cursor?: string }>;
  /** What the path held before it was replaced, removed or moved away, newest first. */
  history(path: string): Promise<{ id: number; size: number; modified: Date }[]>;
  /** A unified diff of an earlier content and what the path holds now. */
  diffRevision(path: string, revision: number): Promise<string>;
  readRevision(path: string, revision: number): Promise<Blob>;
  /** Writes earlier content back to the path. */
  restore(path: string, revision: number): Promise<void>;
  /** Takes a snapshot of the whole directory and returns its id. */
  snapshot(): Promise<number>;
  snapshots(): Promise<{ id: number; taken: Date; files: number; bytes: number }[]>;
  /** Restores the directory to the snapshot. */
  restoreSnapshot(id: number): Promise<void>;
  removeSnapshot(id: number): Promise<void>;
  /** Entries of one directory, in byte order of names. `cursor` is set if more follow. */
  list(path?: string, options?: PageOptions): Promise<{ entries: (FileStatus & { name: string })[]; cursor?: string }>;
  stat(path: string): Promise<FileStatus>;
  /** Removes a file, link or directory. A directory that is not empty requires `recursive`. */
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  /** A binding for a directory below this one. */
  subdirectory(path: string): Workspace;
  /** The same directory without the right to change it. */
  readOnly(): Workspace;
}

/** What can be written to a file: text as UTF-8, bytes, or a body. The body of a response, as a Blob or a stream too, never enters the extension's memory. */
export type FileContent = string | Uint8Array | ArrayBuffer | Blob | Response | Request | ReadableStream<Uint8Array>;

/** The status of a file, directory or link. */
export interface FileStatus {
  kind: wit.Workspace.Kind;
  /** Bytes; 0 for directories and links. */
  size: number;
  modified: Date;
  /** Permission bits, at most 0o777. */
  mode: number;
}

/** Where to search, and what to return. */
export interface GrepOptions extends PageOptions {
  /** Globs: a file must match one of `include`, if there are any, and none of `exclude`. */
  include?: string | string[];
  exclude?: string | string[];
  /** Lines to return before and after each match, at most 20. */
  context?: number;
}
