// bindings:
import { equal, ok } from "./assert";

function named(): string {
  return new Error("x").stack!;
}

export default function (): void {
  const stack = named();
  ok(/^ {4}at named \(.+:\d+:\d+\)\n/.test(stack), stack);
  ok([1].map(() => new Error().stack)[0]!.includes("at map (native)"), "native functions");
  const target: { stack?: string } = {};
  (Error as any).captureStackTrace(target);
  ok(target.stack!.includes(":"), "captureStackTrace");
  equal((Error as any).prepareStackTrace, undefined);
  (Error as any).prepareStackTrace = (error: Error, sites: any[]) => `${error.message}/${sites[0].getFunctionName()}`;
  equal(named(), "x/named");
  (Error as any).prepareStackTrace = undefined;
  equal(named().slice(0, 12), "    at named");
  try {
    (null as any).x;
  } catch (error: any) {
    ok(error instanceof TypeError && /at .*:\d+:\d+/.test(error.stack), "the engine's own errors");
  }
}
