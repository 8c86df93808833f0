// The sugar of stile:capability/workspace.
import { Blob, blobBytes, blobHandle, hostBlob, piece, stored } from "../../toolchain/prelude/blob";
import { view } from "../../toolchain/prelude/encoding";
import { ask } from "../../toolchain/prelude/errors";
import { page, type PageOptions } from "../../toolchain/prelude/page";
import { derive, type Raw } from "../../toolchain/prelude/session";

type Content = string | Uint8Array | ArrayBuffer | Blob | Response | Request | ReadableStream<Uint8Array>;

interface RawStatus {
  kind: "file" | "directory" | "link";
  size: bigint;
  modified: bigint;
  mode: number;
}

function status({ kind, size, modified, mode }: RawStatus) {
  return { kind, size: Number(size), modified: new Date(Number(modified)), mode };
}

interface SearchOptions extends PageOptions {
  include?: string | string[];
  exclude?: string | string[];
  context?: number;
}

function globs(given: string | string[] = []): string[] {
  return typeof given === "string" ? [given] : [...given];
}

/** Requests pages until there are `limit` items or no more, because the host limits the work of each call. */
async function collect<Page extends { cursor?: string }>(
  { limit = 1000, cursor }: PageOptions,
  next: (limit: number, cursor: string | undefined) => Page,
  add: (page: Page) => number,
): Promise<string | undefined> {
  for (let count = 0; ; ) {
    const found = ask(() => next(limit - count, cursor));
    count += add(found);
    cursor = found.cursor;
    if (cursor === undefined || count >= limit) return cursor;
    await null;
  }
}

const textLimit = "a text has at most 16 MiB: readLines, readBytes and readBlob take parts of a file";

function below(raw: Raw): object {
  return derive("stile:capability/workspace", raw, workspace(raw));
}

export default function workspace(raw: Raw): object {
  return {
    read: async (path: string) => ask(() => raw.read(path), textLimit),
    readLines: async (path: string, { from = 1, to }: { from?: number; to?: number } = {}) =>
      ask(() => raw.readLines(path, from, to), textLimit),
    readBytes: async (path: string, { offset = 0, length = Infinity }: { offset?: number; length?: number } = {}) =>
      ask(() => readBytes(raw, path, offset, length)),
    readBlob: async (path: string) => ask(() => hostBlob(raw.readBlob(path))),
    readWithDigest: async (path: string, { max = 16 << 20 }: { max?: number } = {}) => {
      const { text, digest, size } = ask(() => raw.readWithDigest(path, BigInt(max)), textLimit);
      return { text, digest, size: Number(size) };
    },
    digest: async (path: string) => {
      const content: Raw = ask(() => raw.readBlob(path));
      try {
        return content.digest() as string;
      } finally {
        content.drop();
      }
    },
    write: async (path: string, content: Content) => store(raw, path, content, "write"),
    replace: async (path: string, text: string, digest?: string) => ask(() => raw.replace(path, text, digest)),
    append: async (path: string, content: Content) => store(raw, path, content, "append"),
    edit: async (path: string, replacements: { old: string; new: string }[]) => ask(() => raw.edit(path, replacements)),
    list: async (path = "", options?: PageOptions) => {
      const { entries, cursor } = ask(() => raw.list(path, ...page(options)));
      return { entries: entries.map((entry: any) => ({ name: entry.name, ...status(entry.status) })), cursor };
    },
    find: async (glob: string, options: PageOptions = {}) => {
      const paths: string[] = [];
      const cursor = await collect(
        options,
        (limit, cursor) => raw.find(glob, limit, cursor),
        (found: any) => {
          paths.push(...found.paths);
          return found.paths.length;
        },
      );
      return { paths, cursor };
    },
    grep: async (pattern: string | RegExp, { include, exclude, context = 0, ...options }: SearchOptions = {}) => {
      const matches: object[] = [];
      let partial = 0;
      const search = { include: globs(include), exclude: globs(exclude), context };
      const cursor = await collect(
        options,
        (limit, cursor) => raw.grep(expression(pattern), search, limit, cursor),
        (found: any) => {
          partial += found.partial;
          matches.push(...found.matches);
          return found.matches.length;
        },
      );
      return { matches, partial, cursor };
    },
    diff: async (before: string, after: string) => ask(() => raw.diff(before, after)),
    diffRevision: async (path: string, revision: number) => ask(() => raw.diffRevision(path, BigInt(revision))),
    setMode: async (path: string, mode: number) => ask(() => raw.setMode(path, mode)),
    makeLink: async (path: string, target: string) => ask(() => raw.makeLink(path, target)),
    readLink: async (path: string) => ask(() => raw.readLink(path)),
    history: async (path: string) =>
      ask(() => raw.history(path)).map(({ id, size, modified }: any) => ({
        id: Number(id),
        size: Number(size),
        modified: new Date(Number(modified)),
      })),
    readRevision: async (path: string, revision: number) => ask(() => hostBlob(raw.readRevision(path, BigInt(revision)))),
    restore: async (path: string, revision: number) => ask(() => raw.restore(path, BigInt(revision))),
    snapshot: async () => Number(ask(() => raw.snapshot())),
    snapshots: async () =>
      ask(() => raw.snapshots()).map(({ id, taken, files, bytes }: any) => ({
        id: Number(id),
        taken: new Date(Number(taken)),
        files: Number(files),
        bytes: Number(bytes),
      })),
    restoreSnapshot: async (id: number) => ask(() => raw.restoreSnapshot(BigInt(id))),
    removeSnapshot: async (id: number) => ask(() => raw.removeSnapshot(BigInt(id))),
    stat: async (path: string) => status(ask(() => raw.stat(path))),
    makeDirectory: async (path: string) => ask(() => raw.makeDirectory(path)),
    move: async (source: string, target: string) => ask(() => raw.move(source, target)),
    copy: async (source: string, target: string) => ask(() => raw.copy(source, target)),
    remove: async (path: string, { recursive = false }: { recursive?: boolean } = {}) =>
      ask(() => raw.remove(path, recursive)),
    subdirectory: (path: string) => below(ask(() => raw.subdirectory(path))),
    readOnly: () => below(ask(() => raw.readOnly())),
  };
}

/** The text of a pattern. The flags of a RegExp are added in RE2's syntax. */
function expression(pattern: string | RegExp): string {
  if (typeof pattern === "string") return pattern;
  const flags = pattern.flags.replace(/[^ims]/g, "");
  return flags ? `(?${flags})${pattern.source}` : pattern.source;
}

function readBytes(raw: Raw, path: string, offset: number, length: number): Uint8Array {
  const pieces: Uint8Array[] = [];
  let size = 0;
  while (size < length) {
    const want = Math.min(piece, length - size);
    const bytes: Uint8Array = raw.readBytes(path, BigInt(offset + size), want);
    if (bytes.length) pieces.push(bytes);
    size += bytes.length;
    if (bytes.length < want) break;
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const bytes of pieces) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

/** Writes any content. Pieces of an author's stream are written as they come, so it never is in memory as a whole. */
async function store(raw: Raw, path: string, content: Content, how: "write" | "append"): Promise<void> {
  const body = stored(content);
  if (!body) return ask(() => put(raw, path, content, how));
  if ("blob" in body) {
    const blob = await body.blob;
    try {
      return ask(() => put(raw, path, blob, how));
    } finally {
      body.release();
    }
  }
  for await (const bytes of body) {
    if (!(bytes instanceof Uint8Array)) throw new TypeError(`${how}: the stream has chunks other than Uint8Array`);
    ask(() => put(raw, path, bytes, how));
    how = "append";
  }
  if (how === "write") ask(() => put(raw, path, "", how));
}

function put(raw: Raw, path: string, content: unknown, how: "write" | "append"): void {
  if (typeof content === "string") return raw[how](path, content);
  if (content instanceof Blob) {
    const source = blobHandle(content);
    if (source && how === "write") return raw.writeBlob(path, source);
    content = blobBytes(content);
  }
  if (!(content instanceof ArrayBuffer || ArrayBuffer.isView(content)))
    throw new TypeError(`${how}: text, bytes, a Blob or a body are wanted, not ${content === null ? "null" : typeof content}`);
  const bytes = view(content);
  raw[how === "write" ? "writeBytes" : "appendBytes"](path, bytes.subarray(0, piece));
  for (let at = piece; at < bytes.length; at += piece) raw.appendBytes(path, bytes.subarray(at, at + piece));
}
