// bindings:
// What is there without a single binding.
import { equal, ok, rejects, throws } from "./assert";

const early = [Math.random(), Math.random()];
const made = Date.now();

export default async function (_: unknown, env: any): Promise<void> {
  ok(early.every((value) => value >= 0 && value < 1) && early[0] !== early[1], "top level has a sequence");
  ok(Number.isFinite(made), "and a date");
  equal([Date.now(), new Date().toISOString(), performance.now()], [0, "1970-01-01T00:00:00.000Z", 0]);
  console.log("into the void", { a: 1 });
  for (const [name, use] of Object.entries({
    random: () => Math.random(),
    "random ": () => crypto.getRandomValues(new Uint8Array(1)),
    " random": () => crypto.randomUUID(),
    clock: () => setTimeout(() => {}, 1),
    "clock ": () => setInterval(() => {}, 1),
    " clock": () => AbortSignal.timeout(1),
  })) {
    const error = throws(use, { name: "DeniedError", code: "denied" });
    equal(error.denial.binding, name.trim());
    ok(error.denial.remedy.includes(`"${name.trim()}"`), `the remedy names it: ${error.denial.remedy}`);
  }
  await rejects(fetch("https://example.com/"), { name: "UnboundError", message: '"network"' });
  ok(throws(() => env.notes, { name: "UnboundError", message: "env.notes is not bound (bound: nothing)" }) instanceof TypeError, "it is a TypeError");
  equal(await env, env, "an env can be awaited");
  equal(["notes" in env, Object.keys(env), JSON.stringify(env), `${Object.getPrototypeOf(env)}`], [false, [], "{}", "null"]);
  throws(() => {
    "use strict";
    env.notes = 1;
  }, { name: "TypeError" });
  for (const name of ["require", "window", "document", "localStorage", "XMLHttpRequest", "WebSocket", "Worker", "Deno", "Bun", "location"]) ok(!(name in globalThis), `no ${name}`);
  equal(atob(btoa("hi")), "hi");
  for (const name of ["AbortController", "AbortSignal", "Blob", "Event", "EventTarget", "Headers", "Request", "Response", "TextDecoder", "TextEncoder", "URL", "URLSearchParams"])
    equal((globalThis as any)[name].name, name, "the name of a class");
  equal(Object.keys(globalThis), [], "globals are not enumerable");
}
