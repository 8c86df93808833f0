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
  await workspace.write("src/one.ts", "let a = 1;\nlet b = 2;\n");
  await workspace.write("src/deep/two.ts", "const A = 3;\n");
  equal(await workspace.find("*.ts"), { paths: ["src/deep/two.ts", "src/one.ts"], cursor: undefined });
  const found = await workspace.find("src/**", { limit: 2 });
  equal(found.paths, ["src/deep", "src/deep/two.ts"]);
  equal((await workspace.find("src/**", { limit: 2, cursor: found.cursor })).paths, ["src/one.ts"]);
  const { matches, partial } = await workspace.grep(/\ba =/i, { include: "**/*.ts", exclude: ["x*"], context: 1 });
  equal(partial, 0);
  equal(matches, [
    { path: "src/deep/two.ts", line: 1, column: 7, text: "const A = 3;", before: [], after: [] },
    { path: "src/one.ts", line: 1, column: 5, text: "let a = 1;", before: [], after: ["let b = 2;"] },
  ]);
  await rejects(workspace.grep("(?=a)"), { name: "CapabilityError", code: "invalid" });
  await workspace.write("src/other.ts", "let a = 1;\nlet b = 3;\n");
  equal(
    await workspace.diff("src/one.ts", "src/other.ts"),
    "--- a/src/one.ts\n+++ b/src/other.ts\n@@ -1,2 +1,2 @@\n let a = 1;\n-let b = 2;\n+let b = 3;\n",
  );
  await workspace.makeLink("src/link", "../blob");
  equal([await workspace.read("src/link"), await workspace.readLink("src/link")], ["blob", "../blob"]);
  await workspace.setMode("blob", 0o600);
  equal([(await workspace.stat("blob")).mode, (await workspace.stat("src/link")).kind], [0o600, "link"]);
  const taken = await workspace.snapshot();
  await workspace.write("src/one.ts", "lost");
  const [revision] = await workspace.history("src/one.ts");
  equal([revision.size, revision.modified instanceof Date], [22, true]);
  equal(await (await workspace.readRevision("src/one.ts", revision.id)).text(), "let a = 1;\nlet b = 2;\n");
  await workspace.restore("src/one.ts", revision.id);
  ok((await workspace.read("src/one.ts")).startsWith("let a"), "restored");
  await workspace.remove("src", { recursive: true });
  equal((await workspace.snapshots()).map((s: any) => [s.id, s.taken instanceof Date]), [[taken, true]]);
  await workspace.restoreSnapshot(taken);
  equal((await workspace.find("src/*")).paths.length, 4);
  await workspace.removeSnapshot(taken);
  await workspace.remove("copy");
  await rejects(workspace.read("copy"), { name: "CapabilityError", code: "not-found", message: "copy" });
  await workspace.remove("notes", { recursive: true });
  await rejects(workspace.write("x", 5), { name: "TypeError" });
  await rejects(workspace.read("../secret"), { name: "DeniedError" });
}
