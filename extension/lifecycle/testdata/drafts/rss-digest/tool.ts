import { extension } from "stile";
import { XMLParser } from "fast-xml-parser";

const HOST = "hnrss.org";
const MOST = 5;
const REMEMBERED = 1000;

function text(value: unknown): string {
  if (typeof value === "string") return value.trim();
  if (typeof value === "number") return String(value);
  if (value && typeof value === "object" && "#text" in value) return text(value["#text"]);
  return "";
}

export default extension({
  tools: {
    digest: {
      description: "The 5 newest items of an RSS feed of hnrss.org; each says whether it was in a digest before.",
      input: {
        type: "object",
        properties: {
          path: { type: "string", pattern: "^/", default: "/frontpage", description: "Path of the feed, such as /frontpage or /newest" },
        },
      },
      annotations: { openWorld: true },
      run: async ({ path = "/frontpage" }, env) => {
        const url = new URL(path, `https://${HOST}/`);
        if (url.host !== HOST) throw new Error(`only feeds of ${HOST} can be read`);
        const r = await env.feed.fetch(url.href, { headers: { accept: "application/rss+xml, application/xml, text/xml" } });
        if (!r.ok) throw new Error(`the feed ${url.href} answered ${r.status}`);
        const parser = new XMLParser({ ignoreAttributes: false, parseTagValue: false, processEntities: true });
        const channel = parser.parse(await r.text())?.rss?.channel;
        if (!channel) throw new Error(`${url.href} is not an RSS feed`);
        const raw: any[] = Array.isArray(channel.item) ? channel.item : channel.item ? [channel.item] : [];

        const items = raw.map((item) => {
          const time = Date.parse(text(item.pubDate));
          const link = text(item.link);
          return {
            id: text(item.guid) || link || text(item.title),
            title: text(item.title),
            link,
            published: Number.isNaN(time) ? null : new Date(time).toISOString(),
            time: Number.isNaN(time) ? 0 : time,
          };
        });
        items.sort((a, b) => b.time - a.time);
        const newest = items.slice(0, MOST);

        const key = "seen:" + url.pathname;
        const stored = await env.kv.get(key);
        const seen: string[] = stored === undefined ? [] : JSON.parse(stored);
        const known = new Set(seen);
        const result = newest.map(({ id, title, link, published }) => ({ title, link, published, seen: known.has(id) }));
        const fresh = newest.map((item) => item.id).filter((id) => !known.has(id));
        if (fresh.length > 0) await env.kv.set(key, JSON.stringify([...fresh, ...seen].slice(0, REMEMBERED)));
        return { feed: text(channel.title), items: result };
      },
    },
  },
});
