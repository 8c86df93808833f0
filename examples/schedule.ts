// The same kinds of tools with schemas of zod 4 in place of JSON Schema. It needs a kv binding and, for time, a clock.
import { extension } from "stile";
import * as z from "zod";

const Event = z.object({
  title: z.string().min(1),
  day: z.iso.date(),
  people: z.array(z.string()).default([]),
});

export default extension({
  tools: {
    plan: {
      description: "Plan an event on a day",
      input: Event,
      run: async (event, { events }) => {
        // `people` is there: the value is what zod made of the input.
        await events.set(`${event.day}/${event.title}`, JSON.stringify({ ...event, invited: event.people.length }));
        return event;
      },
    },
    upcoming: {
      description: "List the events from today on",
      input: z.toJSONSchema(z.object({ limit: z.int().positive().max(100).optional() })),
      annotations: { readOnly: true },
      run: async ({ limit }, { events }) => {
        const today = new Date().toISOString().slice(0, 10);
        const { entries } = await events.list("", { limit: 1000 });
        return entries.filter(({ key }) => key >= today).slice(0, limit ?? 10).map(({ value }) => Event.parse(JSON.parse(value)));
      },
    },
  },
});
