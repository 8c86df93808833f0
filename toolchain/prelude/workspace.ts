// The sugar of stile:capability/workspace.
import { Blob, blobBytes, blobHandle, hostBlob, piece } from "./blob";
import { view } from "./encoding";
import { ask } from "./errors";
import { page, type PageOptions } from "./page";
import { derive, type Raw } from "./session";

type Content = string | Uint8Array | ArrayBuffer | Blob;

interface RawStatus {
  kind: "file" | "directory";
  size: bigint;
  modified: bigint;
}

function status({ kind, size, modified }: RawStatus) {
  return { kind, size: Number(size), modified: new Date(Number(modified)) };
}

function below(raw: Raw): object {
  return derive("stile:capability/workspace", raw, workspace(raw));
}

export function workspace(raw: Raw): object {
  return {
    read: async (path: string) => ask(() => raw.read(path)),
    readLines: async (path: string, { from = 1, to }: { from?: number; to?: number } = {}) =>
      ask(() => raw.readLines(path, from, to)),
    readBytes: async (path: string, { offset = 0, length = Infinity }: { offset?: number; length?: number } = {}) =>
      ask(() => readBytes(raw, path, offset, length)),
    readBlob: async (path: string) => ask(() => hostBlob(raw.readBlob(path))),
    write: async (path: string, content: Content) => ask(() => put(raw, path, content, "write")),
    append: async (path: string, content: Content) => ask(() => put(raw, path, content, "append")),
    edit: async (path: string, replacements: { old: string; new: string }[]) => ask(() => raw.edit(path, replacements)),
    list: async (path = "", options?: PageOptions) => {
      const { entries, cursor } = ask(() => raw.list(path, ...page(options)));
      return { entries: entries.map((entry: any) => ({ name: entry.name, ...status(entry.status) })), cursor };
    },
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

function put(raw: Raw, path: string, content: Content, how: "write" | "append"): void {
  if (typeof content === "string") return raw[how](path, content);
  if (content instanceof Blob) {
    const source = blobHandle(content);
    if (source && how === "write") return raw.writeBlob(path, source);
    content = blobBytes(content);
  }
  if (!(content instanceof ArrayBuffer || ArrayBuffer.isView(content)))
    throw new TypeError(`${how}: text, bytes or a Blob are wanted, not ${content === null ? "null" : typeof content}`);
  const bytes = view(content);
  raw[how === "write" ? "writeBytes" : "appendBytes"](path, bytes.subarray(0, piece));
  for (let at = piece; at < bytes.length; at += piece) raw.appendBytes(path, bytes.subarray(at, at + piece));
}
