import { extension } from "stile";
import { dump } from "js-yaml";

export default extension({
  tools: {
    post: {
      description: "A Markdown post with YAML front matter and a slug made from the title",
      input: {
        type: "object",
        properties: {
          title: { type: "string" },
          tags: { type: "array", items: { type: "string" } },
          body: { type: "string" },
        },
        required: ["title", "body"],
      },
      run: async ({ title, tags, body }) => {
        const slug = title
          .normalize("NFKD")
          .replace(/[\u0300-\u036f]/g, "")
          .toLowerCase()
          .replace(/[^a-z0-9]+/g, "-")
          .replace(/^-|-$/g, "");
        if (!slug) throw new Error("the title has no letters or digits for a slug");
        return `---\n${dump({ title, slug, ...(tags ? { tags } : {}) })}---\n${body}`;
      },
    },
  },
});
