// The sugar of stile:capability/console.
import { format, levels, type Sink } from "../../toolchain/prelude/console";
import type { Raw } from "../../toolchain/prelude/session";

export default function logger(raw: Raw) {
  const sink: Sink = (level, message) => raw.log(level, message());
  return { ...levels(sink), trace: (...data: unknown[]) => sink("trace", () => format(data)) };
}
