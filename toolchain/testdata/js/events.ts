// bindings: clock
import { equal, ok, rejects, throws } from "./assert";

export default async function (): Promise<void> {
  const target = new EventTarget();
  const seen: string[] = [];
  const listener = (event: Event) => void seen.push(`a${event.type}`);
  target.addEventListener("x", listener);
  target.addEventListener("x", listener);
  target.addEventListener("x", { handleEvent: () => seen.push("object") }, { once: true });
  equal(target.dispatchEvent(new Event("x")), true);
  target.dispatchEvent(new Event("x"));
  equal(seen.splice(0), ["ax", "object", "ax"]);
  target.removeEventListener("x", listener);
  target.addEventListener("x", (event: Event) => {
    event.preventDefault();
    event.stopImmediatePropagation();
  });
  target.addEventListener("x", listener);
  const event = new CustomEvent("x", { cancelable: true, detail: 5 });
  equal([target.dispatchEvent(event), event.defaultPrevented, event.detail, event.target === target], [false, true, 5, true]);
  equal(seen, []);

  const controller = new AbortController();
  const { signal } = controller;
  equal([signal.aborted, signal.reason], [false, undefined]);
  signal.throwIfAborted();
  const any = AbortSignal.any([new AbortController().signal, signal]);
  signal.onabort = () => seen.push("onabort");
  signal.addEventListener("abort", () => seen.push("listener"));
  controller.abort();
  controller.abort("again");
  equal(seen.splice(0), ["onabort", "listener"]);
  equal([signal.aborted, signal.reason.name, any.aborted, any.reason === signal.reason], [true, "AbortError", true, true]);
  throws(() => signal.throwIfAborted(), { name: "AbortError" });
  equal(AbortSignal.abort("why").reason, "why");
  equal(AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason, 1);
  throws(() => new (AbortSignal as any)(), { name: "TypeError" });
  const gone = new AbortController();
  target.addEventListener("y", () => seen.push("y"), { signal: gone.signal });
  gone.abort();
  target.dispatchEvent(new Event("y"));
  equal(seen, []);

  // A passive listener prevents nothing. An event that was stopped before it is dispatched reaches nobody.
  const passive = new Event("p", { cancelable: true });
  const during: unknown[] = [];
  target.addEventListener("p", (event) => {
    event.preventDefault();
    during.push(event.eventPhase === Event.AT_TARGET, event.composedPath()[0] === target, event.isTrusted);
  }, { passive: true });
  equal([target.dispatchEvent(passive), passive.defaultPrevented, passive.composedPath().length, ...during], [true, false, 0, true, true, false]);
  passive.stopPropagation();
  target.dispatchEvent(passive);
  equal(during.length, 3);

  // All signals that follow one are aborted before any listener runs, and listeners run in the order in which the signals were made.
  const source = new AbortController();
  const first = AbortSignal.any([source.signal]);
  const second = AbortSignal.any([first, source.signal]);
  const order: unknown[] = [];
  for (const [name, one] of Object.entries({ second, first, source: source.signal }))
    one.addEventListener("abort", (event) => order.push(name, second.aborted, event.isTrusted));
  source.abort("done");
  equal(order, ["source", true, true, "first", true, true, "second", true, true]);
  equal([first.reason, second.reason], ["done", "done"]);

  const late = AbortSignal.timeout(5);
  ok(!late.aborted, "not yet");
  await rejects(new Promise((_, reject) => late.addEventListener("abort", () => reject(late.reason))), { name: "TimeoutError" });
}
