// bindings: workspace
import { equal, ok, rejects } from "./assert";

export default async function (_: unknown, { workspace }: any): Promise<void> {
  await workspace.write("notes/a.txt", "one\ntwo\nthree\n");
  equal(await workspace.read("notes/a.txt"), "one\ntwo\nthree\n");
  equal(await workspace.readLines("notes/a.txt", { from: 2, to: 2 }), "two\n");
  await workspace.append("notes/a.txt", "four\n");
  await workspace.append("notes/a.txt", new TextEncoder().encode("é\n"));
  ok((await workspace.read("notes/a.txt")).endsWith("four\né\n"), "appended");
  const status = await workspace.stat("notes/a.txt");
  equal([status.kind, status.size], ["file", 22]);
  ok(status.modified instanceof Date, "a Date");
  equal((await workspace.stat("notes")).kind, "directory");

  // More than one piece of 256 KiB, and not a whole number of them.
  const big = Uint8Array.from({ length: 600_001 }, (_, i) => i * 7);
  await workspace.write("big", big);
  equal((await workspace.stat("big")).size, big.length);
  const back = await workspace.readBytes("big");
  ok(back.length === big.length && back.every((byte: number, at: number) => byte === big[at]), "600,001 bytes come back");
  equal([...(await workspace.readBytes("big", { offset: 600_000 }))], [big[600_000]]);
  equal([...(await workspace.readBytes("big", { offset: 1, length: 2 }))], [7, 14]);
  await workspace.write("big", big.buffer.slice(0, 3));
  equal([...(await workspace.readBytes("big"))], [0, 7, 14], "an ArrayBuffer replaces it");
  await workspace.write("blob", new Blob(["b", "lob"]));
  const blob = await workspace.readBlob("blob");
  equal([blob instanceof Blob, blob.size, await blob.text()], [true, 4, "blob"]);
  await workspace.write("copy", blob);
  equal(await workspace.read("copy"), "blob");

  await workspace.makeDirectory("d/e");
  const { entries, cursor } = await workspace.list();
  equal([entries.map((entry: any) => `${entry.name}:${entry.kind}`), cursor], [["big:file", "blob:file", "copy:file", "d:directory", "notes:directory"], undefined]);
  const page = await workspace.list("", { limit: 2 });
  equal(page.entries.map((entry: any) => entry.name), ["big", "blob"]);
  equal((await workspace.list("", { limit: 9, cursor: page.cursor })).entries[0].name, "copy");
  const below = workspace.subdirectory("notes");
  ok((await below.read("a.txt")).startsWith("one"), "a subdirectory");
  await rejects(below.readOnly().write("a.txt", ""), { name: "DeniedError", code: "denied" });
  await workspace.remove("copy");
  await rejects(workspace.read("copy"), { name: "CapabilityError", code: "not-found", message: "copy" });
  await workspace.remove("notes", { recursive: true });
  await rejects(workspace.write("x", 5), { name: "TypeError" });
  await rejects(workspace.read("../secret"), { name: "DeniedError" });
}
