// The streams of node:fs.
import { Readable, Writable } from "@jspm/core/nodelibs/browser/stream.js";
import * as files from "./files";

interface Options {
  encoding?: string;
  flags?: string;
  start?: number;
  end?: number;
  highWaterMark?: number;
}
const given = (options: string | Options | undefined): Options => (typeof options === "string" ? { encoding: options } : (options ?? {}));

export class ReadStream extends Readable {
  bytesRead = 0;
  constructor(readonly path: files.PathLike, options?: string | Options) {
    const { encoding, flags = "r", start = 0, end = Infinity, highWaterMark = 65_536 } = given(options);
    let fd: number | undefined;
    let at = start;
    super({
      encoding, highWaterMark,
      read(this: any, size: number) {
        try {
          if (fd === undefined) {
            fd = files.open(path, flags);
            this.emit("open", fd);
          }
          const buffer = (globalThis as any).Buffer.alloc(Math.max(0, Math.min(size, end - at + 1)));
          const count = buffer.length ? files.read(fd, buffer, 0, buffer.length, at) : 0;
          at += count;
          this.bytesRead += count;
          this.push(count ? buffer.subarray(0, count) : null);
        } catch (error) {
          this.destroy(error);
        }
      },
      destroy(error: unknown, callback: (error: unknown) => void) {
        if (fd !== undefined) files.close(fd);
        callback(error);
      },
    });
  }
}

export class WriteStream extends Writable {
  bytesWritten = 0;
  constructor(readonly path: files.PathLike, options?: string | Options) {
    const { encoding = "utf8", flags = "w", start } = given(options);
    let fd: number | undefined;
    let at = start;
    super({
      defaultEncoding: encoding,
      construct(this: any, callback: (error?: unknown) => void) {
        try {
          fd = files.open(path, flags);
          this.emit("open", fd);
          callback();
        } catch (error) {
          callback(error);
        }
      },
      write(this: any, chunk: Uint8Array, _: string, callback: (error?: unknown) => void) {
        try {
          const count = files.write(fd!, chunk, 0, chunk.length, at);
          if (at !== undefined) at += count;
          this.bytesWritten += count;
          callback();
        } catch (error) {
          callback(error);
        }
      },
      destroy(error: unknown, callback: (error: unknown) => void) {
        if (fd !== undefined) files.close(fd);
        callback(error);
      },
    });
  }
}

export const createReadStream = (path: files.PathLike, options?: string | Options) => new ReadStream(path, options);
export const createWriteStream = (path: files.PathLike, options?: string | Options) => new WriteStream(path, options);
