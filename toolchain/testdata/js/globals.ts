// bindings: clock, console
// Globals that are parts of the prelude.
import { equal, ok, rejects, throws } from "./assert";

declare const self: any, global: any, URLPattern: any, MessageChannel: any, MessageEvent: any, MessagePort: any, reportError: any, ErrorEvent: any, PromiseRejectionEvent: any;
declare const PerformanceObserver: any;
const globalish = () => self;

export default async function (): Promise<unknown> {
  equal([self === globalThis, global === globalThis, globalish() === self], [true, true, true]);
  equal([navigator.userAgent.startsWith("Stile/"), typeof (globalThis as any).window, typeof (globalThis as any).document], [true, "undefined", "undefined"]);
  throws(() => ((navigator as any).userAgent = "x"));

  const pattern = new URLPattern({ pathname: "/books/:id" });
  equal([pattern.test("https://example.com/books/12"), pattern.exec("https://example.com/books/12").pathname.groups.id, pattern.test("https://example.com/x")], [true, "12", false]);

  const { port1, port2 } = new MessageChannel();
  const seen: unknown[] = [];
  const got = new Promise<void>((resolve) => (port2.onmessage = ({ data }: any) => (seen.push(data), resolve())));
  const sent = { a: [1], when: new Date(0) };
  port1.postMessage(sent);
  sent.a.push(2);
  equal(seen, []);
  await got;
  equal(seen, [{ a: [1], when: new Date(0) }]);
  throws(() => port1.postMessage(() => {}), { name: "DataCloneError" });
  throws(() => new MessagePort(), { name: "TypeError" });
  port1.close();
  port2.postMessage("lost");
  equal(new MessageEvent("m", { data: 1 }).data, 1);

  performance.mark("a");
  performance.mark("b", { startTime: 5, detail: { x: 1 } });
  const measure = performance.measure("m", { start: 2, end: "b" });
  equal([measure.duration, measure.startTime, performance.getEntriesByName("b")[0].detail, performance.getEntriesByType("mark").length], [3, 2, { x: 1 }, 2]);
  throws(() => performance.measure("m", "none"), { name: "SyntaxError" });
  performance.clearMarks("a");
  equal(performance.getEntries().map(({ name }: any) => name).sort(), ["b", "m"]);
  const observed: string[] = [];
  new PerformanceObserver((list: any) => observed.push(...list.getEntries().map((entry: any) => entry.name))).observe({ entryTypes: ["mark"] });
  performance.mark("c");
  await null;
  equal(observed, ["c"]);

  const errors: unknown[] = [];
  const listener = (event: any) => {
    event.preventDefault();
    errors.push(event.error ?? event.reason);
  };
  self.addEventListener("error", listener);
  reportError("told");
  setTimeout(() => {
    throw new Error("in a timer");
  }, 1);
  await new Promise((resolve) => setTimeout(resolve, 5));
  equal([errors[0], (errors[1] as Error).message], ["told", "in a timer"]);
  self.addEventListener("unhandledrejection", listener);
  const later: unknown[] = [];
  self.onrejectionhandled = (event: any) => later.push(event.reason);
  const rejected = Promise.reject("nobody");
  Promise.reject("soon").catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 1));
  equal(errors.slice(2), ["nobody"]);
  rejected.catch(() => {});
  await null;
  equal(later, ["nobody"]);
  self.onunhandledrejection = () => false;
  self.removeEventListener("unhandledrejection", listener);
  Promise.reject("silenced");
  await new Promise((resolve) => setTimeout(resolve, 1));
  equal([new ErrorEvent("e", { message: "m", lineno: 3 }).lineno, new PromiseRejectionEvent("e", { promise: rejected, reason: 1 }).reason], [3, 1]);
  throws(() => new PromiseRejectionEvent("e"), { name: "TypeError" });

  const bytes = (...all: number[]) => new Uint8Array(all);
  equal(new TextDecoder("koi8-r").decode(bytes(0xf0, 0xd2, 0xc9)), "При");
  equal(new TextDecoder("windows-1251").decode(bytes(0xcf)), "П");
  equal([new TextDecoder("ISO-8859-2").encoding, new TextDecoder("macintosh").decode(bytes(0x80)), new TextDecoder("utf-16be").decode(bytes(0xfe, 0xff, 0, 0x61))], ["iso-8859-2", "Ä", "a"]);
  equal([new TextDecoder("shift_jis").decode(bytes(0x82, 0xa0)), new TextDecoder("euc-kr").decode(bytes(0xb0, 0xa1)), new TextDecoder("gb18030").decode(bytes(0xc4, 0xe3))], ["あ", "가", "你"]);
  const stream = new TextDecoder("big5");
  equal([stream.decode(bytes(0xa7), { stream: true }), stream.decode(bytes(0x41))], ["", "你"]);
  throws(() => new TextDecoder("gbk", { fatal: true }).decode(bytes(0xff)), { name: "TypeError" });
  throws(() => new TextDecoder("no such encoding"), { name: "RangeError" });
  await rejects(Promise.reject(new Error("x")), { message: "x" });
  ok(!(globalThis as any).XMLHttpRequest, "there is no XMLHttpRequest");
  return null;
}
