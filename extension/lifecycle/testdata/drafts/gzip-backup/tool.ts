import { CapabilityError, extension, type Env } from "stile";
import { gunzipSync, gzipSync, strFromU8, strToU8 } from "fflate";

const MOST_BYTES = 10 * 1024 * 1024;

type Packed = { path: string; text: string } | { path: string; base64: string };
type Backup = { format: "gzip-backup"; version: 1; created: string; files: Packed[] };

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  for (let i = 0; i < bytes.length; i += 8192) binary += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(binary);
}

function fromBase64(base64: string): Uint8Array {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function clean(path: string): string {
  const parts = path.split("/").filter((p) => p !== "" && p !== ".");
  if (parts.includes("..")) throw new Error(`a path must not contain "..": ${path}`);
  return parts.join("/");
}

function join(folder: string, name: string): string {
  return folder === "" ? name : folder + "/" + name;
}

// the paths of all files below a folder
async function filesOf(env: Env, folder: string): Promise<string[]> {
  const files: string[] = [];
  const open = [folder];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    let cursor: string | undefined = undefined;
    do {
      const page: Awaited<ReturnType<typeof env.workspace.list>> = await env.workspace.list(next, { cursor });
      for (const entry of page.entries) {
        if (entry.kind === "directory") open.push(join(next, entry.name));
        else if (entry.kind === "file") files.push(join(next, entry.name));
      }
      cursor = page.cursor;
    } while (cursor);
  }
  return files.sort();
}

export default extension({
  tools: {
    backup: {
      description: "Packs all files of a folder of the workspace into one gzip-compressed JSON file of the workspace. Links are left out.",
      input: {
        type: "object",
        properties: {
          folder: { type: "string", default: "", description: "The folder to pack; without it, the whole workspace" },
          archive: { type: "string", minLength: 1, description: "Path of the file to write, such as backups/notes.json.gz; it is replaced" },
        },
        required: ["archive"],
      },
      annotations: { destructive: true },
      run: async ({ folder = "", archive }, env) => {
        const from = clean(folder);
        const to = clean(archive);
        if (to === "") throw new Error("the archive needs a path");
        let paths: string[];
        try {
          paths = (await filesOf(env, from)).filter((p) => p !== to);
        } catch (e) {
          if (e instanceof CapabilityError && e.code === "not-found") throw new Error(`there is no folder ${folder}`);
          throw e;
        }
        if (paths.length === 0) throw new Error("there are no files to pack");

        const files: Packed[] = [];
        let bytes = 0;
        for (const path of paths) {
          const content = await env.workspace.readBytes(path);
          bytes += content.length;
          if (bytes > MOST_BYTES) throw new Error(`the files are more than ${MOST_BYTES} bytes; pack smaller folders`);
          const inside = from === "" ? path : path.slice(from.length + 1);
          try {
            files.push({ path: inside, text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content) });
          } catch {
            files.push({ path: inside, base64: toBase64(content) });
          }
          console.log(`packed ${files.length} of ${paths.length}: ${path}`);
        }
        const backup: Backup = { format: "gzip-backup", version: 1, created: new Date().toISOString(), files };
        const packed = gzipSync(strToU8(JSON.stringify(backup)));
        await env.workspace.write(to, packed);
        console.log(`wrote ${to}, ${packed.length} bytes`);
        return { archive: to, files: files.length, bytes };
      },
    },
    restore: {
      description: "Unpacks a file that backup wrote into a folder of the workspace.",
      input: {
        type: "object",
        properties: {
          archive: { type: "string", minLength: 1, description: "Path of the file that backup wrote" },
          folder: { type: "string", default: "", description: "Where to unpack it; without it, the top of the workspace" },
          overwrite: { type: "boolean", default: false, description: "Whether files that are there are replaced; else they are left as they are" },
        },
        required: ["archive"],
      },
      annotations: { destructive: true },
      run: async ({ archive, folder = "", overwrite = false }, env) => {
        const into = clean(folder);
        let content: Uint8Array;
        try {
          content = await env.workspace.readBytes(clean(archive));
        } catch (e) {
          if (e instanceof CapabilityError && e.code === "not-found") throw new Error(`there is no archive ${archive}`);
          throw e;
        }
        let backup: Backup;
        try {
          backup = JSON.parse(strFromU8(gunzipSync(content))) as Backup;
        } catch {
          throw new Error(`${archive} is not a backup: it is no gzip-compressed JSON`);
        }
        if (backup.format !== "gzip-backup" || backup.version !== 1) throw new Error(`${archive} is not a backup of this tool`);

        const restored: string[] = [];
        const kept: string[] = [];
        for (const [i, file] of backup.files.entries()) {
          const path = join(into, clean(file.path));
          let there = false;
          if (!overwrite) {
            try {
              await env.workspace.stat(path);
              there = true;
            } catch (e) {
              if (!(e instanceof CapabilityError && e.code === "not-found")) throw e;
            }
          }
          if (there) kept.push(path);
          else {
            await env.workspace.write(path, "text" in file ? file.text : fromBase64(file.base64));
            restored.push(path);
          }
          console.log(`${there ? "kept" : "restored"} ${i + 1} of ${backup.files.length}: ${path}`);
        }
        return { created: backup.created, restored, kept };
      },
    },
  },
});
