/** The binding of a `stile:capability/workspace` interface: a durable directory of files. */
export interface Workspace
  extends Pick<
    wit.Workspace.Directory,
    "read" | "edit" | "diff" | "makeDirectory" | "makeLink" | "readLink" | "setMode" | "move" | "copy"
  > {
  /** Lines `from` to `to`, both counted from 1 and included: the first and the last when absent. */
  readLines(path: string, lines?: { from?: number; to?: number }): Promise<string>;
  /** `length` bytes from `offset`; the whole file when absent. */
  readBytes(path: string, range?: { offset?: number; length?: number }): Promise<Uint8Array<ArrayBuffer>>;
  /** The file as a Blob that stays on the host until it is looked at. */
  readBlob(path: string): Promise<Blob>;
  /** Replaces the file, and makes the directories above it. Bytes beyond 256 KiB are written in several steps. */
  write(path: string, content: FileContent): Promise<void>;
  append(path: string, content: FileContent): Promise<void>;
  /**
   * Paths that match a glob, 1,000 unless `limit` says otherwise: `*` and `?` stop at a slash, `**` between slashes does not,
   * `[a-z]` and `{a,b}` choose, and a glob without a slash matches the last name. `cursor` is there when there may be more.
   */
  find(glob: string, options?: PageOptions): Promise<{ paths: string[]; cursor?: string }>;
  /**
   * Lines that match a regular expression as RE2 has it, which is without look-around and back-references. `partial` counts
   * files that were not searched whole.
   */
  grep(pattern: string | RegExp, options?: GrepOptions): Promise<{ matches: wit.Workspace.Match[]; partial: number; cursor?: string }>;
  /** What the path held before it was replaced, removed or moved away, the newest first. */
  history(path: string): Promise<{ id: number; size: number; modified: Date }[]>;
  readRevision(path: string, revision: number): Promise<Blob>;
  /** Writes an earlier content again. */
  restore(path: string, revision: number): Promise<void>;
  /** Keeps the whole directory as it is now. */
  snapshot(): Promise<number>;
  snapshots(): Promise<{ id: number; taken: Date; files: number; bytes: number }[]>;
  /** Makes the directory what it was. */
  restoreSnapshot(id: number): Promise<void>;
  removeSnapshot(id: number): Promise<void>;
  /** Entries of one directory, in byte order of names; `cursor` is there when more follow. */
  list(path?: string, options?: PageOptions): Promise<{ entries: (FileStatus & { name: string })[]; cursor?: string }>;
  stat(path: string): Promise<FileStatus>;
  /** A directory that is not empty is removed only with `recursive`. */
  remove(path: string, options?: { recursive?: boolean }): Promise<void>;
  /** A binding of a directory below this one. */
  subdirectory(path: string): Workspace;
  /** The same directory without the right to change it. */
  readOnly(): Workspace;
}

/** What may be written to a file: text as UTF-8, or bytes. A Blob of a response never enters the extension's memory. */
export type FileContent = string | Uint8Array | ArrayBuffer | Blob;

/** What is known about a file or directory. */
export interface FileStatus {
  kind: wit.Workspace.Kind;
  /** Bytes; 0 for all but files. */
  size: number;
  modified: Date;
  /** Permission bits, at most 0o777. */
  mode: number;
}

/** Where to search, and what to show. */
export interface GrepOptions extends PageOptions {
  /** Globs: a file must match one of `include`, if there are any, and none of `exclude`. */
  include?: string | string[];
  exclude?: string | string[];
  /** Lines before and after a match, at most 20. */
  context?: number;
}
