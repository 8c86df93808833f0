// bindings:
import { equal, throws } from "./assert";

export default async function (): Promise<void> {
  const file = new File(["a", new Uint8Array([98])], "n.txt", { type: "Text/Plain", lastModified: 5 });
  equal([file.name, file.size, file.type, file.lastModified, await file.text()], ["n.txt", 2, "text/plain", 5, "ab"]);
  equal([file instanceof Blob, file instanceof File, `${file}`], [true, true, "[object File]"]);
  throws(() => new (File as any)(["a"]), { name: "TypeError" });
}
