import { extension, type Env } from "stile";

const DAY = 24 * 60 * 60 * 1000;

function day(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

function before(date: string): string {
  return day(Date.parse(date + "T00:00:00Z") - DAY);
}

function prefix(habit: string): string {
  const name = habit.trim().toLowerCase();
  if (name === "") throw new Error("the habit needs a name");
  return "habit/" + encodeURIComponent(name) + "/";
}

type CheckIn = { date: string; note: string };

// all check-ins of a habit, the oldest first
async function all(env: Env, habit: string): Promise<CheckIn[]> {
  const start = prefix(habit);
  const found: CheckIn[] = [];
  let cursor: string | undefined = undefined;
  do {
    const page: Awaited<ReturnType<typeof env.kv.list>> = await env.kv.list(start, { cursor });
    for (const { key, value } of page.entries) {
      const stored = JSON.parse(value) as { note?: string };
      found.push({ date: key.slice(start.length), note: stored.note ?? "" });
    }
    cursor = page.cursor;
  } while (cursor);
  return found;
}

export default extension({
  tools: {
    check_in: {
      description: "Notes that a habit was done today (UTC). A second check-in on the same day changes nothing.",
      input: {
        type: "object",
        properties: {
          habit: { type: "string", minLength: 1, maxLength: 80, description: "Name of the habit, such as \"running\"" },
          note: { type: "string", maxLength: 1000 },
        },
        required: ["habit"],
      },
      annotations: { idempotent: true },
      run: async ({ habit, note = "" }, env) => {
        const date = day(Date.now());
        const added = await env.kv.compareAndSet(prefix(habit) + date, undefined, JSON.stringify({ note }));
        return { habit: habit.trim().toLowerCase(), date, added };
      },
    },
    streak: {
      description: "How many days in a row a habit was done: the current streak (up to today, or to yesterday when today is still open) and the longest.",
      input: {
        type: "object",
        properties: { habit: { type: "string", minLength: 1, maxLength: 80 } },
        required: ["habit"],
      },
      annotations: { readOnly: true },
      run: async ({ habit }, env) => {
        const dates = (await all(env, habit)).map((c) => c.date);
        const done = new Set(dates);
        let longest = 0;
        let run = 0;
        for (const date of dates) {
          run = done.has(before(date)) ? run + 1 : 1;
          longest = Math.max(longest, run);
        }
        const today = day(Date.now());
        let current = 0;
        for (let date = done.has(today) ? today : before(today); done.has(date); date = before(date)) current++;
        return { habit: habit.trim().toLowerCase(), current, longest, done_today: done.has(today) };
      },
    },
    history: {
      description: "The check-ins of a habit, the newest first.",
      input: {
        type: "object",
        properties: {
          habit: { type: "string", minLength: 1, maxLength: 80 },
          limit: { type: "integer", minimum: 1, maximum: 1000, default: 30 },
        },
        required: ["habit"],
      },
      annotations: { readOnly: true },
      run: async ({ habit, limit = 30 }, env) => {
        const found = await all(env, habit);
        return { habit: habit.trim().toLowerCase(), total: found.length, check_ins: found.reverse().slice(0, limit) };
      },
    },
  },
});
