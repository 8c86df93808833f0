// The encodings of TextDecoder that have one byte for each character.
import { createSinglebyteDecoder } from "@exodus/bytes/single-byte.js";
import labels from "@exodus/bytes/fallback/encoding.labels.js";
import encodings from "@exodus/bytes/fallback/single-byte.encodings.js";
import { addEncoding } from "../encoding";

for (const name of [...Object.keys(encodings), "iso-8859-8-i", "x-user-defined"])
  if (Object.hasOwn(labels, name) && name !== "windows-1252")
    addEncoding(name, labels[name], (fatal) => {
      const decode = createSinglebyteDecoder(name, !fatal);
      return (bytes) => decode(bytes);
    });
