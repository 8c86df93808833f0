/** A tool's result as JSON; undefined is null. What has no JSON is an error that says where it is. */
export function toJson(result: unknown): string {
  if (result === undefined) return "null";
  let text: string | undefined;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    const fault = error instanceof TypeError ? find(result, "", "", []) : undefined;
    throw fault ? new TypeError(`the result has no JSON: ${fault}`, { cause: error }) : error;
  }
  if (text === undefined) throw new TypeError(`the result has no JSON: it is a ${typeof result}`);
  return text;
}

// Walks as JSON.stringify does, to the first value that stops it.
function find(value: any, key: string, path: string, above: unknown[]): string | undefined {
  const where = path || "the top";
  if ((typeof value === "object" && value !== null) || typeof value === "bigint")
    if (typeof value.toJSON === "function") value = value.toJSON(key);
  if (typeof value === "bigint") return `a BigInt at ${where}`;
  if (typeof value !== "object" || value === null) return undefined;
  if (above.includes(value)) return `a circle at ${where}`;
  if (above.length > 500) return undefined;
  for (const [name, item] of Object.entries(value)) {
    const fault = find(item, name, `${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, [...above, value]);
    if (fault) return fault;
  }
  return undefined;
}
