// The encodings of TextDecoder that have several bytes for a character: Chinese, Japanese and Korean. Their tables are large.
import { createMultibyteDecoder } from "@exodus/bytes/multi-byte.js";
import labels from "@exodus/bytes/fallback/encoding.labels.js";
import { addEncoding } from "../encoding";

for (const name of ["big5", "euc-kr", "euc-jp", "iso-2022-jp", "shift_jis", "gbk", "gb18030"])
  addEncoding(name, labels[name], (fatal) => {
    const decode = createMultibyteDecoder(name, !fatal);
    return (bytes, last) => decode(bytes, !last);
  });
