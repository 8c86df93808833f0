// The sugar of stile:capability/console.
import { format, levels, type Sink } from "../../toolchain/prelude/console";
import type { Raw } from "../../toolchain/prelude/session";

export default function logger(raw: Raw) {
  const sink: Sink = (level, message) => raw.log(level, message());
  const progress = (done: number, total?: number | null, message: unknown = "") => raw.progress(+done, total ?? undefined, `${message}`);
  return { ...levels(sink), progress, trace: (...data: unknown[]) => sink("trace", () => format(data)) };
}
