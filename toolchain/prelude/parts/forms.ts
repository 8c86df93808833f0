// File.
import { Blob, type Part } from "../blob";
import { dictionary } from "../dictionary";
import { install } from "../global";

export class File extends Blob {
  #name: string;
  #lastModified: number;

  constructor(parts: Iterable<Part>, name: string, options?: { type?: string; lastModified?: number } | null) {
    if (arguments.length < 2) throw new TypeError("File: parts and a name are wanted");
    super(parts, options);
    const { lastModified } = dictionary(options, "File");
    this.#name = `${name}`.toWellFormed();
    this.#lastModified = lastModified === undefined ? Date.now() : Math.trunc(Number(lastModified)) || 0;
  }
  get name(): string {
    return this.#name;
  }
  get lastModified(): number {
    return this.#lastModified;
  }
  get webkitRelativePath(): string {
    return "";
  }
  get [Symbol.toStringTag](): string {
    return "File";
  }
}

install({ File });
