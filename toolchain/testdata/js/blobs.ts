// bindings: blobs, workspace
import { equal, ok } from "./assert";

export default async function (_: unknown, { blobs, workspace }: any): Promise<void> {
  const large = new Uint8Array(300_000).fill(7);
  const blob = await blobs.createBlob(["é", large, new Blob(["b"])], { type: "text/plain" });
  ok(blob instanceof Blob, "a Blob");
  equal([blob.size, blob.type], [300_003, "text/plain"]);
  const again = await blobs.createBlob([blob, "!"]);
  equal(again.size, 300_004);
  await workspace.write("large", again);
  equal((await workspace.stat("large")).size, 300_004);
  const back = await again.bytes();
  equal([back[0], back[2], back[300_001], back[300_002], back[300_003]], [0xc3, 7, 7, 0x62, 0x21]);
  equal(await again.slice(-2).text(), "b!");
}
