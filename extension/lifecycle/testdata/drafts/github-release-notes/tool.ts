import { extension } from "stile";

const MOST_BODY = 8000;

export default extension({
  tools: {
    release_notes: {
      description: "The last 10 releases of a public GitHub repository, as markdown.",
      input: {
        type: "object",
        properties: {
          repo: { type: "string", pattern: "^[A-Za-z0-9-]+/[A-Za-z0-9._-]+$", description: "owner/name" },
        },
        required: ["repo"],
      },
      annotations: { readOnly: true, openWorld: true },
      run: async ({ repo }, env) => {
        if (/\/\.{1,2}$/.test(repo)) throw new Error(`not a repository: ${repo}`);
        const r = await env.github.fetch(`https://api.github.com/repos/${repo}/releases?per_page=10`, {
          headers: { accept: "application/vnd.github+json" },
        });
        if (r.status === 404) throw new Error(`GitHub has no public repository ${repo}`);
        const retryAfter = r.headers.get("retry-after");
        if (r.status === 429 || (r.status === 403 && (r.headers.get("x-ratelimit-remaining") === "0" || retryAfter !== null))) {
          const reset = Number(r.headers.get("x-ratelimit-reset"));
          const when = retryAfter !== null
            ? `try again in ${retryAfter} seconds`
            : reset > 0
              ? `try again after ${new Date(reset * 1000).toISOString()}`
              : "try again later";
          throw new Error(`the rate limit of GitHub is reached: ${when}`);
        }
        if (!r.ok) throw new Error(`GitHub answered ${r.status} for the releases of ${repo}`);

        const releases: {
          tag_name: string;
          name: string | null;
          body: string | null;
          published_at: string | null;
          html_url: string;
          prerelease: boolean;
        }[] = await r.json();
        if (releases.length === 0) return `# Releases of ${repo}\n\nThere are no releases.\n`;
        const parts = releases.slice(0, 10).map((release) => {
          const title = release.name && release.name !== release.tag_name ? `${release.name} (${release.tag_name})` : release.tag_name;
          let body = (release.body ?? "").replace(/\r\n/g, "\n").trim() || "No notes.";
          if (body.length > MOST_BODY) body = body.slice(0, MOST_BODY) + "\n\n(shortened)";
          const facts = [
            release.published_at ? release.published_at.slice(0, 10) : "not published",
            ...(release.prerelease ? ["prerelease"] : []),
            `[on GitHub](${release.html_url})`,
          ];
          return `## ${title}\n\n${facts.join(" · ")}\n\n${body}\n`;
        });
        return `# Releases of ${repo}\n\n${parts.join("\n")}`;
      },
    },
  },
});
