// URLs of Blobs: URL.createObjectURL. They are those of one call, and end with it.
import { Blob } from "../blob";
import { findBlobs } from "../data";
import { required } from "../dictionary";

const blobs = new Map<string, Blob>();
let made = 0;

// A number takes the place of what is random elsewhere: an address need not be hard to guess inside a call, and a replay has the same.
const statics = {
  createObjectURL(blob: Blob): string {
    required(arguments.length, 1, "createObjectURL");
    if (!(blob instanceof Blob)) throw new TypeError("createObjectURL: a Blob is wanted");
    const url = `blob:null/00000000-0000-4000-8000-${(++made).toString(16).padStart(12, "0")}`;
    blobs.set(url, blob);
    return url;
  },
  revokeObjectURL(url: string): void {
    required(arguments.length, 1, "revokeObjectURL");
    blobs.delete(`${url}`);
  },
};
for (const [name, value] of Object.entries(statics)) Object.defineProperty(URL, name, { value, writable: true, enumerable: true, configurable: true });
findBlobs((url) => blobs.get(url.split("#")[0]!));
