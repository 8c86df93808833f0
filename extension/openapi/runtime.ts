// Calls the operations of an HTTP API. This file is the same for every API: the operations are the rows of operations.json.
import { extension } from "stile";
import table from "./operations.json";

interface Parameter {
  key: string; // the field of the input
  in: string; // path, query or header
  name?: string; // in the request, if it is not the key
  style?: string; // of lists and objects: comma, space, pipe, deep or json
}

interface Operation {
  name: string;
  method: string;
  path: string;
  parameters?: Parameter[];
  body?: string; // json, form, deep, text, or a media type that ends in json
  whole?: boolean; // the body is the field body; otherwise it is all that no parameter takes
  description: string;
  input: Record<string, unknown>;
}

const { server, operations } = table as { server: string; operations: Operation[] };

export default extension({
  tools: Object.fromEntries(
    operations.map((operation) => [
      operation.name,
      {
        description: operation.description,
        input: { type: "object", ...operation.input },
        annotations: {
          readOnly: ["GET", "HEAD", "OPTIONS"].includes(operation.method),
          destructive: operation.method === "DELETE",
          idempotent: operation.method !== "POST" && operation.method !== "PATCH",
          openWorld: true,
        },
        run: (input: Record<string, unknown>, env: any) => send(operation, input, env.api),
      },
    ]),
  ),
});

async function send({ method, path, parameters = [], body, whole }: Operation, input: Record<string, unknown>, api: any): Promise<unknown> {
  const rest = new Map(Object.entries(input));
  const take = (key: string) => {
    const value = rest.get(key);
    rest.delete(key);
    return value ?? undefined;
  };
  const segments = new Map<string, string>();
  const query: string[] = [];
  const headers: Record<string, string> = { accept: "application/json, */*;q=0.5" };
  for (const { key, in: place, name = key, style } of parameters) {
    const value = take(key);
    if (value === undefined) continue;
    if (place === "path") segments.set(name, listed(value, ","));
    else if (place === "header") headers[name] = style === "json" ? JSON.stringify(value) : plain(value);
    else query.push(...pairs(name, value, style));
  }
  const url = server + fill(path, segments) + (query.length ? `?${query.join("&")}` : "");
  const content = whole ? take("body") : rest.size ? Object.fromEntries(rest) : undefined;
  let text: string | undefined;
  if (body && content !== undefined) {
    if (body === "text") [text, headers["content-type"]] = [String(content), "text/plain; charset=utf-8"];
    else if (body === "form" || body === "deep") [text, headers["content-type"]] = [form(content, body), "application/x-www-form-urlencoded"];
    else [text, headers["content-type"]] = [JSON.stringify(content), body === "json" ? "application/json" : body];
  }
  const response = await api.fetch(url, { method, headers, body: text });
  const answer = await response.text();
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${answer.slice(0, 1000)}`);
  if (!answer) return null;
  return /[/+]json\b/i.test(response.headers.get("content-type") ?? "") ? JSON.parse(answer) : answer;
}

/** Puts values into the templates of a path. No value can add a segment or leave its own. */
function fill(path: string, values: Map<string, string>): string {
  return path
    .split("/")
    .map((segment) => {
      const filled = segment.replace(/\{([^{}]*)\}/g, (_, name) => {
        const value = values.get(name);
        if (!value) throw new Error(`${name} must not be empty`);
        return value;
      });
      if (filled !== segment && /^\.{1,2}$/.test(filled)) throw new Error(`${segment} must not be "${filled}", which means another path`);
      return filled;
    })
    .join("/");
}

/** The parts of a query for a parameter. */
function pairs(name: string, value: unknown, style = ""): string[] {
  const separator = { comma: ",", space: "%20", pipe: "%7C" }[style];
  if (style === "json") return [pair(name, JSON.stringify(value))];
  if (typeof value !== "object" || value === null) return [pair(name, value)];
  if (style === "deep") return deep(name, value);
  if (separator) return [`${encode(name)}=${listed(value, separator)}`];
  if (Array.isArray(value)) return value.map((item) => pair(name, item));
  return Object.entries(value).map(([key, item]) => pair(key, item));
}

/** a[b][c]=value for each value in an object or a list. */
function deep(name: string, value: unknown): string[] {
  if (value === undefined) return [];
  if (typeof value !== "object" || value === null) return [pair(name, value)];
  return Object.entries(value).flatMap(([key, item]) => deep(`${name}[${key}]`, item));
}

function form(content: any, style: string): string {
  return Object.entries(content as object)
    .flatMap(([name, value]) => (Array.isArray(value) && style === "form" ? value.flatMap((item) => deep(name, item)) : deep(name, value)))
    .join("&");
}

function listed(value: unknown, separator: string): string {
  if (typeof value !== "object" || value === null) return encode(value);
  return (Array.isArray(value) ? value : Object.entries(value).flat()).map(encode).join(separator);
}

function plain(value: unknown): string {
  return typeof value === "object" && value !== null ? (Array.isArray(value) ? value : Object.entries(value).flat()).map(String).join(",") : String(value);
}

function pair(name: string, value: unknown): string {
  return `${encode(name)}=${encode(value)}`;
}

/** Percent-encodes everything but letters, digits, "-", "_", "." and "~". */
function encode(value: unknown): string {
  const text = typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? "");
  return encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}
