// bindings: clock, network
import { equal } from "./assert";

type Note = (text: string) => void;
const spin = (milliseconds: number) => {
  const start = performance.now();
  while (performance.now() - start < milliseconds);
};
const job = (note: Note, text: string) => Promise.resolve().then(() => note(text));

// What each does, and in which order Node.js 20 notes it. Delays that decide are far apart, for machines that are busy.
const cases: [name: string, start: (note: Note) => void, order: string[]][] = [
  ["jobs of a timer before the next one", (note) => {
    setTimeout(() => { note("a"); job(note, "job of a").then(() => note("job of a job")); queueMicrotask(() => note("microtask")); }, 1);
    setTimeout(() => { note("b"); job(note, "job of b"); }, 1);
    setTimeout(() => note("c"), 1);
    spin(5);
  }, ["a", "job of a", "microtask", "job of a job", "b", "job of b", "c"]],
  ["by due time", (note) => {
    setTimeout(() => { note("late"); job(note, "job of late"); }, 125);
    setTimeout(() => { note("middle"); job(note, "job of middle"); }, 65);
    setTimeout(() => { note("early"); job(note, "job of early"); }, 5);
    spin(130);
  }, ["early", "job of early", "middle", "job of middle", "late", "job of late"]],
  ["a chain of jobs", (note) => {
    setTimeout(async () => { for (let i = 0; i < 5; i++) { note(`a${i}`); await null; } }, 1);
    setTimeout(() => note("b"), 1);
    spin(5);
  }, ["a0", "a1", "a2", "a3", "a4", "b"]],
  ["set within a timer", (note) => {
    setTimeout(() => { note("a"); setTimeout(() => note("inner"), 0); job(note, "job of a"); }, 1);
    setTimeout(() => { note("b"); job(note, "job of b"); }, 1);
    spin(5);
  }, ["a", "job of a", "b", "job of b", "inner"]],
  ["set within a job of a timer", (note) => {
    setTimeout(() => { job(note, "job of a").then(() => setTimeout(() => note("inner"), 0)); }, 1);
    setTimeout(() => note("b"), 1);
    spin(5);
  }, ["job of a", "b", "inner"]],
  ["cleared by one before it", (note) => {
    setTimeout(() => { note("a"); clearTimeout(second); }, 1);
    const second = setTimeout(() => note("b"), 1);
    setTimeout(() => note("c"), 1);
    spin(5);
  }, ["a", "c"]],
  ["cleared by a job of one before it", (note) => {
    setTimeout(() => job(note, "job of a").then(() => clearTimeout(second)), 1);
    const second = setTimeout(() => note("b"), 1);
    setTimeout(() => note("c"), 1);
    spin(5);
  }, ["job of a", "c"]],
  ["clears itself", (note) => {
    const id = setTimeout(() => { note("a"); clearTimeout(id); job(note, "job of a"); }, 1);
    setTimeout(() => note("b"), 1);
    spin(5);
  }, ["a", "job of a", "b"]],
  ["an interval makes up for nothing", (note) => {
    let n = 0;
    const id = setInterval(() => { note(`tick ${++n}`); job(note, `job of ${n}`); if (n === 2) clearInterval(id); }, 2);
    setTimeout(() => note("timeout"), 4);
    spin(20);
  }, ["tick 1", "job of 1", "timeout", "tick 2", "job of 2"]],
  ["an interval that is cleared in a job", (note) => {
    const id = setInterval(() => { note("tick"); Promise.resolve().then(() => clearInterval(id)); }, 1);
    setTimeout(() => note("timeout"), 2);
    spin(10);
  }, ["tick", "timeout"]],
  ["jobs before any timer", (note) => {
    setTimeout(() => note("timer"), 0);
    queueMicrotask(() => note("microtask"));
    job(note, "promise");
    note("now");
  }, ["now", "microtask", "promise", "timer"]],
  ["a rejection that a later job handles", (note) => {
    let failed: Promise<never>;
    setTimeout(() => { failed = Promise.reject(new Error("no")); failed.catch(() => note("handled")); note("a"); }, 1);
    setTimeout(() => note("b"), 1);
    spin(5);
  }, ["a", "handled", "b"]],
  ["a signal's time is a timer", (note) => {
    const signal = AbortSignal.timeout(65);
    signal.addEventListener("abort", () => { note("abort"); job(note, "job of abort"); });
    setTimeout(() => { note("a"); job(note, "job of a"); }, 5);
    setTimeout(() => note("c"), 125);
    spin(130);
  }, ["a", "job of a", "abort", "job of abort", "c"]],
  ["a promise of a timer", (note) => {
    const sleep = (n: number) => new Promise((resolve) => setTimeout(resolve, n));
    void sleep(1).then(() => note("a")).then(() => note("after a"));
    void sleep(1).then(() => note("b")).then(() => note("after b"));
    spin(5);
  }, ["a", "after a", "b", "after b"]],
];

export default async function ({ site }: { site: string }, env: any): Promise<void> {
  for (const [name, start, order] of cases) {
    const noted: string[] = [];
    start((text) => noted.push(text));
    // Until all is there, and whatever is too much.
    for (let i = 0; i < 100 && noted.length < order.length; i++) await new Promise((resolve) => setTimeout(resolve, 5));
    await new Promise((resolve) => setTimeout(resolve, 5));
    equal(noted, order, name);
  }

  // What becomes ready at once resolves one after the other, each with its jobs.
  const noted: string[] = [];
  const sleeps = [1, 1, 1].map(async (n, i) => {
    await env.clock.sleep(n);
    noted.push(`sleep ${i}`);
    await null;
    noted.push(`job of sleep ${i}`);
  });
  const answers = [0, 1].map(async (i) => {
    await fetch(`${site}/echo`);
    noted.push(`answer ${i}`);
    await null;
    noted.push(`job of answer ${i}`);
  });
  spin(50);
  await Promise.all([...sleeps, ...answers]);
  for (let at = 0; at < noted.length; at += 2) equal(noted[at + 1], `job of ${noted[at]}`, `${noted}`);
}
