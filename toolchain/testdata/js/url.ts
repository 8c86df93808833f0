// bindings:
import { equal, ok, throws } from "./assert";

export default function (): void {
  const url = new URL("https://user:pa%20ss@EXAMPLE.com:8443/a/../b c?q=1&q=é#frag");
  equal(url.href, "https://user:pa%20ss@example.com:8443/b%20c?q=1&q=%C3%A9#frag");
  equal([url.protocol, url.username, url.host, url.hostname, url.port], ["https:", "user", "example.com:8443", "example.com", "8443"]);
  equal([url.pathname, url.search, url.hash, url.origin], ["/b%20c", "?q=1&q=%C3%A9", "#frag", "https://example.com:8443"]);
  equal(url.searchParams.getAll("q"), ["1", "é"]);
  url.searchParams.append("x", "a b&c");
  equal(url.search, "?q=1&q=%C3%A9&x=a+b%26c");
  url.port = "443";
  equal(url.host, "example.com", "a default port goes away");
  url.pathname = "/x y";
  equal(url.pathname, "/x%20y");
  equal(JSON.stringify({ url: new URL("http://a") }), '{"url":"http://a/"}');

  equal(new URL("../x?y", "https://h/a/b/c").href, "https://h/a/x?y");
  equal(new URL("//other/p", "https://h/").href, "https://other/p");
  equal(new URL("http://[::1]:80/").host, "[::1]");
  equal(new URL("http://0x7f.1/").hostname, "127.0.0.1", "numbers are addresses");
  equal(new URL("http://faß.de/").hostname.startsWith("xn--"), true, "internationalised");
  equal(new URL("data:text/plain,hi").pathname, "text/plain,hi");
  for (const bad of ["", "nope", "http://", "http://a b/", "http://[::1", "http://h:99999/"]) {
    throws(() => new URL(bad), { name: "TypeError" });
    equal(URL.canParse(bad), false, bad);
    equal(URL.parse(bad), null);
  }

  const params = new URLSearchParams("?a=1&b=%20+&a=2&c");
  equal(params.size, 4);
  equal([params.get("a"), params.get("b"), params.get("c"), params.get("d")], ["1", "  ", "", null]);
  params.set("a", "3");
  params.delete("c");
  params.sort();
  equal(params.toString(), "a=3&b=++");
  equal([...params], [["a", "3"], ["b", "  "]]);
  ok(params.has("a", "3") && !params.has("a", "1"), "has with a value");
  equal(new URLSearchParams({ k: "v/ü" }).toString(), "k=v%2F%C3%BC");
  equal(new URLSearchParams([["x", "1"], ["x", "2"]]).getAll("x"), ["1", "2"]);

  // What the standard says of names, files and blobs.
  for (const name of ["b\u00fccher.de", "Bu\u0308cher.de", "B\u00dcCHER.de", "b%C3%BCcher\u3002de", "xn--bcher-kva.de"]) {
    equal(new URL(`http://${name}/`).hostname, "xn--bcher-kva.de", name);
  }
  equal(new URL("http://fa\u00df.de/").hostname, "xn--fa-hia.de");
  throws(() => new URL("http://\u0378.de/"), { name: "TypeError" });
  throws(() => new URL("http://xn--a/"), { name: "TypeError" });
  equal(new URL("file:////one//two").href, "file:////one//two");
  equal(new URL("file://host/C:/x").href, "file://host/C:/x");
  equal(new URL("C|/x", "file://host/").href, "file://host/C:/x");
  equal(new URL("blob:https://a.example/id").origin, "https://a.example");
  equal(new URL("blob:file:///x").origin, "null");
  for (const name of Reflect.ownKeys(globalThis)) {
    ok(typeof name === "string" ? !/webidl|whatwg|tr46/i.test(name) : !/webidl/i.test(String(name)), `no trace of a package: ${String(name)}`);
  }
}
