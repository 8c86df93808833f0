// bindings:
import { equal } from "./assert";

// Plain URLs are read without the parser. A space before a URL changes nothing but takes that shortcut away, so both must agree.
export default function (): void {
  const schemes = ["http", "https", "http", "https", "HTTP", "ftp", "file", "x"];
  const slashes = ["://", "://", "://", "://", ":/", ":", "///", ":///", ":\\/"];
  const hosts = [
    "h", "a.b", "example.com", "a-1.b-2.c3", "1.2.3.4", "127.0.0.1", "255.255.255.255", "1.2.3", "256.1.1.1", "01.2.3.4", "0x1.2.3.4", "1.2.3.4.", "1.2.3.4.5",
    "a.", ".a", "a..b", "-a", "a-", "xn--a", "XN--A", "b.xn--a.c", "a_b", "a1", "1a", "a.1", "a.1a", "a.0x1", "a.0xg", "4.a", "%41", "[::1]", "u@h", "u:p@h", "A.b", "é", "",
  ];
  const ports = ["", "", "", ":", ":80", ":443", ":8080", ":0080", ":00080", ":65535", ":65536", ":99999", ":999999", ":8a"];
  const paths = ["/", "/", "/", "a", "b.c", ".", "..", "%2e", "%2E.", "%20", "%", "\\", "^", "'", "|", "é", " ", "\t", "//", "~", "@", ":", ";", "*", "(", "{", "[", '"'];
  const queries = ["", "", "?", "?a=b&c", "?'", "?a?b/c:@", "?é", "?^`{|}", "?[1]", "?%", '?"', "?<"];
  const fragments = ["", "", "#", "#a/b?c", "#`", "#a#b", "#é", "#<", "#'"];
  let seed = 1;
  const pick = (from: string[]) => from[(seed = (seed * 48271) % 0x7fffffff) % from.length]!;
  const all = (text: string, base?: string) => {
    const url = URL.parse(text, base);
    if (!url) return null;
    const before = [url.href, url.protocol, url.username, url.password, url.host, url.hostname, url.port, url.pathname, url.search, url.hash, url.origin, [...url.searchParams]];
    url.port = "81";
    url.pathname = "x/../y";
    url.searchParams.append("q", "1");
    url.hash = "";
    return [before, url.href];
  };
  for (let i = 0; i < 1000; i++) {
    let text = pick(schemes) + pick(slashes) + pick(hosts) + pick(ports);
    for (let n = i % 5; n > 0; n--) text += pick(paths);
    text += pick(queries) + pick(fragments);
    const base = i % 7 === 0 ? "https://u:p@base:1/x/y?z#w" : undefined;
    const plain = all(text, base);
    equal(plain, all(" " + text, base), text);
    if (plain && !base && !new URL(text).username && !new URL(text).password) equal(new Request(text).url, plain[0][0], text);
  }
}
