// The sugar of stile:capability/blob: a store that creates Blobs whose bytes stay on the host.
import { Blob, blobHandle, hostBlob, type Part, partBytes, piece } from "../../toolchain/prelude/blob";
import { ask } from "../../toolchain/prelude/errors";
import type { Raw } from "../../toolchain/prelude/session";

export default function blobs(store: Raw) {
  return {
    createBlob: async (parts: Iterable<Part>, { type = "" }: { type?: string } = {}) =>
      ask(() => {
        const writer: Raw = store.create(type);
        for (const part of parts) append(writer, part);
        return hostBlob(store.finish(writer), type);
      }),
  };
}

function append(writer: Raw, part: Part): void {
  if (typeof part === "string") return writer.appendText(part);
  const source = part instanceof Blob ? blobHandle(part) : undefined;
  if (source) return writer.appendBlob(source);
  const bytes = partBytes(part);
  for (let at = 0; at < bytes.length; at += piece) writer.append(bytes.subarray(at, at + piece));
}
