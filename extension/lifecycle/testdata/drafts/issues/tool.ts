import { extension } from "stile";

const site = "https://tracker.example.com";

export default extension({
  tools: {
    create_issue: {
      description: "Open an issue",
      input: {
        type: "object",
        properties: { title: { type: "string", minLength: 1 }, body: { type: "string" }, labels: { type: "array", items: { type: "string" } } },
        required: ["title"],
      },
      annotations: { openWorld: true },
      run: async ({ title, body = "", labels = [] }, env) => {
        const response = await env.tracker.fetch(`${site}/api/issues`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-request-id": crypto.randomUUID() },
          body: JSON.stringify({ title, body, labels }),
        });
        const answer = await response.json();
        if (!response.ok) throw new Error(`the tracker answered ${response.status}: ${answer.message}`);
        return { number: answer.number, url: `${site}/issues/${answer.number}` };
      },
    },
    list_issues: {
      description: "List all issues",
      annotations: { readOnly: true, openWorld: true },
      run: async (_, env) => {
        const issues: { number: number; title: string }[] = [];
        for (let page = 1; ; page++) {
          const response = await env.tracker.fetch(`${site}/api/issues?page=${page}`);
          if (!response.ok) throw new Error(`the tracker answered ${response.status}`);
          for (const { number, title } of await response.json()) issues.push({ number, title });
          if (response.headers.get("x-more") !== "yes") return issues;
        }
      },
    },
  },
});
