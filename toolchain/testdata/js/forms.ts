// bindings: network
// input.site is what fetch.ts says.
import { equal, ok, rejects, throws } from "./assert";

export default async function ({ site }: any): Promise<void> {
  const file = new File(["a", new Uint8Array([98])], "n.txt", { type: "Text/Plain", lastModified: 5 });
  equal([file.name, file.size, file.type, file.lastModified, await file.text()], ["n.txt", 2, "text/plain", 5, "ab"]);
  equal([file instanceof Blob, file instanceof File, `${file}`], [true, true, "[object File]"]);
  throws(() => new (File as any)(["a"]), { name: "TypeError" });

  const form = new FormData();
  form.append("a", "1\n2");
  form.append('q"\r\nX-Evil: 1', "é");
  form.append("f", new File([new Uint8Array([0, 255, 13, 10])], 'x"; filename="y\r\nContent-Type: text/html', { type: "image/png" }));
  form.append("b", new Blob(["c"]), "n");
  form.set("a", "3\n");
  form.append("a", "_stile_form_0_");
  equal([form.get("a"), form.getAll("a").length, form.has("z"), [...form.keys()].join()], ["3\n", 2, false, 'a,q"\r\nX-Evil: 1,f,b,a']);
  const sent = new Response(form);
  equal(sent.headers.get("content-type"), "multipart/form-data; boundary=_stile_form_1_", "no value has the boundary in it");
  const raw = await sent.clone().text();
  ok(!/^X-Evil|^Content-Type: text\/html/m.test(raw), "a name adds no header");
  const back = await sent.formData();
  equal([...back.keys()], [...form.keys()]);
  equal([back.get("a"), back.get('q"\r\nX-Evil: 1')], ["3\r\n", "é"]);
  const f = back.get("f") as File;
  equal([f.name, f.type, ...(await f.bytes())], ['x"; filename="y\r\nContent-Type: text/html', "image/png", 0, 255, 13, 10]);
  equal((back.get("b") as File).name, "n");
  const echoed = await (await fetch(`${site}/echo`, { method: "POST", body: form })).json();
  ok(echoed.headers["content-type"].startsWith("multipart/form-data; boundary=") && echoed.body.includes('name="b"; filename="n"'), "it is sent as a form");
  equal([...(await new Response(new URLSearchParams("a=1&b=%20")).formData())], [["a", "1"], ["b", " "]]);

  const multipart = (body: string, boundary = "b") => new Response(body, { headers: { "content-type": `multipart/form-data; boundary=${boundary}` } }).formData();
  equal([...(await multipart("--b--"))], []);
  equal([...(await multipart('--b\r\nContent-Disposition: form-data; name=x\r\n\r\n\r\n--b--\r\n'))], [["x", ""]]);
  const head = 'Content-Disposition: form-data; name="x"\r\n\r\n';
  for (const bad of ["", "x", "--b", "--b\r\n", `--b\r\n${head}`, `--b\r\n${head}v\r\n--c--`, `--b\r\n${head}v\r\n--bX`, "--b\r\n\r\n\r\n--b--", "--b\r\nContent-Disposition: attachment\r\n\r\n\r\n--b--",
    `--b\r\n${"A: b\r\n".repeat(10_000)}${head}v\r\n--b--`])
    await rejects(multipart(bad), { name: "TypeError", message: "formData" });
  await rejects(multipart("--b--", ""), { name: "TypeError" });
  await rejects(multipart("--b--", "x".repeat(71)), { name: "TypeError" });
  await rejects(new Response("x").formData(), { name: "TypeError" });
  const many = await multipart(`--b\r\n${head}v\r\n`.repeat(20_000) + "--b--");
  equal([...many].length, 20_000);
  equal((await multipart(`--b\r\n${head}${"\r\n--".repeat(100_000)}\r\n--b--`)).get("x")!.toString().length, 400_000);

  const copy = structuredClone(file);
  equal([copy !== file, copy instanceof File, copy.name, copy.lastModified, await copy.text()], [true, true, "n.txt", 5, "ab"]);
  equal(await new Blob(["a\r\nb\rc\n"], { endings: "native" }).text(), "a\nb\nc\n");
  throws(() => new Blob([], { endings: "x" as any }), { name: "TypeError" });

  const url = URL.createObjectURL(file);
  ok(url.startsWith("blob:null/") && url !== URL.createObjectURL(file), "each call makes another URL");
  const got = await fetch(`${url}#x`);
  equal([await got.text(), got.headers.get("content-type"), got.headers.get("content-length")], ["ab", "text/plain", "2"]);
  await rejects(fetch(url, { method: "POST", body: "x" }), { name: "TypeError" });
  URL.revokeObjectURL(url);
  await rejects(fetch(url), { name: "TypeError", message: "no Blob" });
  throws(() => URL.createObjectURL({} as Blob), { name: "TypeError" });

  const request = new Request(new Request(site, { credentials: "omit", cache: "no-store" }), { keepalive: true });
  equal([request.credentials, request.cache, request.mode, request.keepalive, request.redirect, request.duplex], ["omit", "no-store", "cors", true, "follow", "half"]);
  for (const bad of [{ mode: "navigate" }, { credentials: "x" }, { mode: "no-cors", method: "PUT" }, { cache: "only-if-cached" }, { integrity: "sha256-x" }, { duplex: "full" }])
    throws(() => new Request(site, bad as any), { name: "TypeError" });

  const { port1, port2 } = new MessageChannel();
  const inner = new MessageChannel();
  const arrived = new Promise<MessageEvent>((resolve) => (port2.onmessage = resolve));
  port1.postMessage({ port: inner.port2 }, [inner.port2]);
  const { data, ports } = (await arrived) as any;
  equal([ports.length, ports[0] === data.port], [1, true]);
  const answer = new Promise<MessageEvent>((resolve) => (inner.port1.onmessage = resolve));
  data.port.postMessage("through");
  equal((await answer).data, "through");
  throws(() => port1.postMessage(null, [inner.port2]), { name: "DataCloneError" });
  throws(() => port1.postMessage(inner.port1), { name: "DataCloneError" });
}
