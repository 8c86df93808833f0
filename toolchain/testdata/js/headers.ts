// bindings:
import { equal, ok, throws } from "./assert";

export default function (): void {
  const headers = new Headers([["B", "2"], ["a", " 1 "], ["A", "3"], ["Set-Cookie", "x=1"], ["set-cookie", "y=2"]]);
  equal([...headers], [["a", "1, 3"], ["b", "2"], ["set-cookie", "x=1"], ["set-cookie", "y=2"]]);
  equal(headers.get("A"), "1, 3");
  equal(headers.get("none"), null);
  equal(headers.getSetCookie(), ["x=1", "y=2"]);
  headers.set("a", "4");
  headers.delete("B");
  ok(headers.has("A") && !headers.has("b"), "set and delete");
  equal([...new Headers(headers).keys()], ["a", "set-cookie", "set-cookie"]);
  equal(new Headers({ "X-One": "1" }).get("x-one"), "1");
  equal([...new Headers(new Map([["m", "1"]]))], [["m", "1"]]);
  const seen: string[] = [];
  headers.forEach((value, name) => seen.push(`${name}=${value}`));
  equal(seen, ["a=4", "set-cookie=x=1", "set-cookie=y=2"]);
  for (const name of ["", "a b", "a:b", "a\n", "é"]) throws(() => headers.set(name, "x"), { name: "TypeError" });
  for (const value of ["a\r\nb: c", "a\0", "\u20ac"]) throws(() => headers.set("x", value), { name: "TypeError" });
  throws(() => new Headers([["only"]] as any), { name: "TypeError" });
  throws(() => new Headers("text" as any), { name: "TypeError" });
  throws(() => new Headers({ [Symbol("s")]: "x" } as any), { name: "TypeError" });
  throws(() => (headers as any).append("x"), { name: "TypeError", message: "2 arguments" });
  equal(new Headers({ a: undefined } as any).get("a"), "undefined");

  // Iterators see what changes meanwhile.
  const changing = new Headers({ b: "1", d: "2" });
  const names: string[] = [];
  for (const [name] of changing) {
    names.push(name);
    if (name === "b") changing.append("c", "3");
    if (name === "c") changing.delete("d");
  }
  equal(names, ["b", "c"]);
  equal(`${changing.keys()}`, "[object Headers Iterator]");
  throws(() => Response.error().headers.set("a", "b"), { name: "TypeError", message: "received" });
  throws(() => new Response("", { statusText: "a\nb" }), { name: "TypeError" });
}
