import { extension } from "stile";
import { z } from "zod";

const Event = z.object({ title: z.string().min(1), day: z.iso.date(), people: z.array(z.string()).default([]) });

export default extension({
  tools: {
    plan_event: {
      description: "Plan an event on a day",
      input: Event,
      run: async (event, env) => {
        await env.kv.set(`${event.day}/${event.title}`, JSON.stringify(event));
        return event;
      },
    },
    next_event: {
      description: "The next event, and in how many days it is; null if there is none",
      annotations: { readOnly: true },
      run: async (_, env) => {
        const today = new Date().toISOString().slice(0, 10);
        for (let cursor: string | undefined; ; ) {
          const page = await env.kv.list("", { cursor });
          for (const { key, value } of page.entries) {
            if (key < today) continue;
            const event = Event.parse(JSON.parse(value));
            return { ...event, in: Math.round((Date.parse(event.day) - Date.parse(today)) / 86_400_000) };
          }
          if (!page.cursor) return null;
          cursor = page.cursor;
        }
      },
    },
  },
});
