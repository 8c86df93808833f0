import { extension } from "stile";

const HOST = "example.com";
const AT_ONCE = 5;

type Link = { text: string; url: string; status: number | null; note: string };

function decode(html: string): string {
  const named: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: " " };
  return html.replace(/&(#x[0-9a-f]+|#[0-9]+|[a-z]+);/gi, (all: string, name: string) => {
    if (name[0] === "#") {
      const code = name[1] === "x" || name[1] === "X" ? parseInt(name.slice(2), 16) : parseInt(name.slice(1), 10);
      return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
    }
    return named[name.toLowerCase()] ?? all;
  });
}

export default extension({
  tools: {
    check_links: {
      description: "Fetches a page of example.com, lists its links with their text, and says which of them answer other than 200 to HEAD. Links to other hosts are listed, not checked.",
      input: {
        type: "object",
        properties: {
          url: { type: "string", description: "An https URL on example.com" },
          limit: { type: "integer", minimum: 1, maximum: 200, default: 100, description: "How many different links to check at most" },
        },
        required: ["url"],
      },
      annotations: { readOnly: true, openWorld: true },
      run: async ({ url, limit = 100 }) => {
        let page: URL;
        try {
          page = new URL(url);
        } catch {
          throw new Error(`not a URL: ${url}`);
        }
        if (page.protocol !== "https:" || page.host !== HOST) throw new Error(`only https://${HOST}/ can be checked, not ${url}`);
        page.hash = "";
        const r = await fetch(page.href);
        if (!r.ok) throw new Error(`${page.href} answered ${r.status}`);
        const html = (await r.text()).replace(/<!--[\s\S]*?-->/g, "").replace(/<(script|style)\b[\s\S]*?<\/\1\s*>/gi, "");

        const links: Link[] = [];
        const toCheck = new Map<string, Link[]>();
        for (const m of html.matchAll(/<a\b([^>]*)>([\s\S]*?)<\/a\s*>/gi)) {
          const href = /(?:^|\s)href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/i.exec(m[1] ?? "");
          if (!href) continue;
          const target = decode(href[1] ?? href[2] ?? href[3] ?? "").trim();
          const text = decode((m[2] ?? "").replace(/<[^>]*>/g, " ")).replace(/\s+/g, " ").trim();
          let to: URL;
          try {
            to = new URL(target, page.href);
          } catch {
            links.push({ text, url: target, status: null, note: "not a valid URL" });
            continue;
          }
          const link: Link = { text, url: to.href, status: null, note: "" };
          links.push(link);
          if (to.protocol !== "https:" || to.host !== HOST) {
            link.note = "not checked: not on https://" + HOST;
            continue;
          }
          to.hash = "";
          const same = toCheck.get(to.href);
          if (same) same.push(link);
          else if (toCheck.size < limit) toCheck.set(to.href, [link]);
          else link.note = "not checked: over the limit";
        }

        const queue = [...toCheck.entries()];
        const worker = async () => {
          for (let next = queue.shift(); next; next = queue.shift()) {
            const [target, same] = next;
            let status: number | null = null;
            let note = "";
            try {
              const head = await fetch(target, { method: "HEAD" });
              status = head.status;
              if (status !== 200) note = "answered " + status;
            } catch (e) {
              note = "failed: " + (e instanceof Error ? e.message : String(e));
            }
            for (const link of same) {
              link.status = status;
              link.note = note;
            }
          }
        };
        await Promise.all(Array.from({ length: AT_ONCE }, worker));

        const broken = queue.length === 0 ? [...toCheck.values()].flat().filter((l) => l.status !== 200) : [];
        return { page: page.href, links, broken };
      },
    },
  },
});
