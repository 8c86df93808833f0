// The tools of rung 0: a workspace for a model. Every answer is text.
import { CapabilityError, extension, type FileStatus, type wit, type Workspace } from "stile";
import { Answer, budget, bytes, counted, defaultTokens, fitting, line, paged, within } from "../text";

declare module "stile" {
  interface Env {
    workspace: Workspace;
  }
}

const path = { type: "string", maxLength: 4096, description: "A path from the top of the workspace, such as src/main.ts." } as const;
const version = {
  type: "string",
  pattern: "^([0-9a-f]{12}|none)$",
  description:
    "The version that workspace_read showed. If the file has changed since, nothing is written, and the error says so. \"none\" means that there must be no file yet.",
} as const;
const cursor = { type: "string", maxLength: 8192, description: "Continues an earlier answer that was cut; repeat the other inputs." } as const;
const globs = (what: string) =>
  ({ type: "array", items: { type: "string", maxLength: 1024 }, maxItems: 32, description: `${what}, such as ["*.ts", "src/**"].` }) as const;

/** How much of a file is read to number its lines, and how many lines an answer has at most. */
const wholeFile = 4 << 20;
const mostLines = 2_000;

const object = <const P extends Record<string, unknown>, const R extends readonly string[]>(properties: P, required: R) =>
  ({ type: "object", properties, required, additionalProperties: false }) as const;

export default extension({
  tools: {
    read: {
      description: `Reads a text file, with line numbers. The first line of the answer names the version, which workspace_edit and workspace_write take.
e.g. {"path": "src/main.ts"} or {"path": "big.log", "from": 500, "lines": 100}`,
      input: object(
        {
          path,
          from: { type: "integer", minimum: 1, description: "The first line. Default 1." },
          column: { type: "integer", minimum: 1, description: "Shows only line from, beginning with this character: for lines that an answer has cut." },
          lines: { type: "integer", minimum: 1, maximum: mostLines, description: `How many lines. Default: what the budget allows, at most ${mostLines}.` },
          ...budget,
        },
        ["path"],
      ),
      annotations: { readOnly: true },
      run: async ({ path, from = 1, column, lines = mostLines, max_tokens }, { workspace }) => {
        const file = await opened(workspace, path);
        const isText = `${path}, version ${short(file.digest)}`;
        const notText = `${path} is not text: ${bytes(file.size)}, version ${short(file.digest)}`;
        let { text } = file;
        if (text === undefined && file.size <= wholeFile) return notText;
        const whole = text !== undefined;
        try {
          text ??= await workspace.readLines(path, { from, to: column === undefined ? from + lines : from + 1 });
        } catch (error) {
          if (error instanceof CapabilityError && error.code === "invalid") return notText;
          throw error;
        }
        const all = split(text);
        const total = whole ? `${all.length}` : `more (${bytes(file.size)})`;
        const some = whole ? all.slice(from - 1) : all;
        if (some.length === 0 && (from > 1 || column !== undefined)) throw new Error(`${path} has ${whole ? counted(all.length, "line") : "no such line"}; from is ${from}`);
        if (column !== undefined) return partOfLine(isText, some, from, column, max_tokens);
        const answer = new Answer(max_tokens);
        answer.add("");
        let next = from;
        const wanted = some.length > lines ? some.slice(0, lines) : some;
        if (answer.addAtOnce(wanted, (text, at) => numbered(from + at, text))) next += wanted.length;
        else {
          for (const text of wanted) {
            if (!answer.add(numbered(next, line(text, (shown) => `"from": ${next}, "column": ${shown + 1}`)))) break;
            next++;
          }
        }
        const last = next - 1;
        answer.lines[0] = `${isText}, ` + (some.length === 0 ? "empty" : `lines ${from} to ${last} of ${total}`);
        return answer.end(some.length > last - from + 1 ? `continue with "from": ${next}` : undefined);
      },
    },
    write: {
      description: `Creates a file, or replaces all of it, and creates missing directories. To change a part of a file, use workspace_edit.
e.g. {"path": "notes/today.md", "text": "# Today\\n"}`,
      input: object({ path, text: { type: "string", description: "The whole new content." }, version }, ["path", "text"]),
      annotations: { destructive: true, idempotent: true },
      run: async ({ path, text, version }, { workspace }) => {
        let now: string;
        if (version !== undefined) now = await workspace.replace(path, text, await same(workspace, path, version));
        else {
          await workspace.write(path, text);
          now = await workspace.digest(path);
        }
        return `wrote ${path}: ${counted(split(text).length, "line")}, ${bytes(size(text))}, version ${short(now)}`;
      },
    },
    edit: {
      description: `Replaces exact pieces of text in a file, all of them or none. Each old text must occur exactly once, unless "all" is set. Write it as workspace_read shows it, without the line numbers.
e.g. {"path": "src/main.ts", "edits": [{"old": "let x = 1;", "new": "const x = 2;"}]}`,
      input: object(
        {
          path,
          edits: {
            type: "array",
            minItems: 1,
            maxItems: 1000,
            items: object(
              {
                old: { type: "string", minLength: 1, description: "The text as it is in the file, with its line breaks and spaces." },
                new: { type: "string", description: "What replaces it." },
                all: { type: "boolean", description: "Replaces every occurrence. Default false." },
              },
              ["old", "new"],
            ),
          },
          version,
        },
        ["path", "edits"],
      ),
      annotations: { destructive: true },
      run: async ({ path, edits, version }, { workspace }) => {
        for (let tries = 1; ; tries++) {
          const file = await opened(workspace, path, 16 << 20);
          if (version !== undefined) isSame(path, version, file.digest);
          if (file.text === undefined) throw new Error(`${path} is ${file.size > 16 << 20 ? "too large" : "not text"}: ${bytes(file.size)}`);
          const { text, places } = applied(path, file.text, edits);
          let now: string;
          try {
            now = await workspace.replace(path, text, file.digest);
          } catch (error) {
            if (error instanceof CapabilityError && error.code === "conflict" && version === undefined && tries < 4) continue;
            throw error;
          }
          const answer = new Answer(1_000);
          answer.add(`edited ${path}: ${counted(places.length, "replacement")}, version ${short(now)}`);
          return around(answer, split(text), places);
        }
      },
    },
    list: {
      description: `Lists a directory: names of directories end with "/", files have their size.
e.g. {} or {"path": "src", "depth": 3}`,
      input: object(
        {
          path: { ...path, description: "A directory. Default: the top of the workspace." },
          depth: { type: "integer", minimum: 1, maximum: 32, description: "How many levels of directories. Default 1." },
          ...budget,
        },
        [],
      ),
      annotations: { readOnly: true },
      run: async ({ path = "", depth = 1, max_tokens }, { workspace }) => {
        if (path !== "" && path !== "/" && (await found(workspace, path)).kind !== "directory") throw new Error(`${path} is not a directory: workspace_read reads it`);
        const answer = new Answer(max_tokens);
        answer.add(`${path || "/"}:`);
        let left = 0;
        const visit = async (directory: string, level: number): Promise<boolean> => {
          for (let cursor: string | undefined; ; ) {
            const page = await workspace.list(directory, cursor === undefined ? {} : { cursor });
            for (const [at, entry] of page.entries.entries()) {
              const below = directory ? `${directory.replace(/\/$/, "")}/${entry.name}` : entry.name;
              if (!answer.add("  ".repeat(level) + (await entryLine(workspace, below, entry)))) {
                left = page.entries.length - at + (page.cursor === undefined ? 0 : Infinity);
                return false;
              }
              if (entry.kind === "directory" && level < depth && !(await visit(below, level + 1))) return false;
            }
            if ((cursor = page.cursor) === undefined) return true;
          }
        };
        await visit(path, 1);
        if (answer.lines.length === 1) return `${path || "/"} is empty`;
        return answer.end(left === 0 ? undefined : `at least ${Number.isFinite(left) ? left : "1,000"} more entries are left out: list a directory below, or set a larger max_tokens`);
      },
    },
    find: {
      description: `Finds files by a glob. "*" matches no slash, "**" any number of directories; a glob without a slash matches names at any depth.
e.g. {"glob": "*.test.ts"} or {"glob": "src/**/*.{ts,js}"}`,
      input: object({ glob: { type: "string", minLength: 1, maxLength: 1024 }, cursor, ...budget }, ["glob"]),
      annotations: { readOnly: true },
      run: ({ glob, cursor, max_tokens }, { workspace }) =>
        paged(
          max_tokens,
          cursor,
          async (limit, cursor) => {
            const page = await workspace.find(glob, cursor === undefined ? { limit } : { limit, cursor });
            return { lines: page.paths, cursor: page.cursor };
          },
          `no path matches ${glob}`,
        ),
    },
    grep: {
      description: `Searches files for a regular expression (RE2: no look-around, no back-references). The answer has path:line: text, and path-line- text around a match.
e.g. {"pattern": "TODO|FIXME", "include": ["*.ts"], "context": 2}`,
      input: object(
        {
          pattern: { type: "string", minLength: 1, maxLength: 4096, description: "Begin it with (?i) to ignore case." },
          include: globs("Only files that match one of these globs"),
          exclude: globs("No files that match one of these globs"),
          context: { type: "integer", minimum: 0, maximum: 20, description: "Lines to show before and after each match. Default 0." },
          cursor,
          ...budget,
        },
        ["pattern"],
      ),
      annotations: { readOnly: true },
      run: async ({ pattern, include = [], exclude = [], context = 0, cursor, max_tokens }, { workspace }) => {
        const partial = new Map<string, number>(); // by the cursor of a page, which may be read more than once
        const text = await paged(
          max_tokens,
          cursor,
          async (limit, cursor) => {
            const page = await workspace.grep(pattern, { include: [...include], exclude: [...exclude], context, limit, ...(cursor === undefined ? {} : { cursor }) });
            partial.set(cursor ?? "", page.partial);
            return { lines: page.matches.flatMap(matchLines), cursor: page.cursor };
          },
          `no line matches ${pattern}`,
        );
        const unsearched = [...partial.values()].reduce((a, b) => a + b, 0);
        return unsearched === 0 ? text : `${text}\n[${counted(unsearched, "file")} not searched completely: binary, or with very long lines]`;
      },
    },
    diff: {
      description: `Compares two files, or a file with what it held before its last change or at a revision of workspace_history. The answer is a unified diff.
e.g. {"path": "src/main.ts"} or {"path": "a.ts", "revision": 12} or {"path": "a.ts", "with": "b.ts"}`,
      input: object(
        { path, with: { ...path, description: "Another file, to compare it with." }, revision: { type: "integer", minimum: 1, description: "A revision of the file." }, ...budget },
        ["path"],
      ),
      annotations: { readOnly: true },
      run: async ({ path, with: other, revision, max_tokens }, { workspace }) => {
        if (other !== undefined && revision !== undefined) throw new Error('give "with" or "revision", not both');
        await found(workspace, path);
        if (other !== undefined) await found(workspace, other);
        else if (revision === undefined && (revision = (await workspace.history(path))[0]?.id) === undefined) return `${path} has no earlier content`;
        const diff = other === undefined ? await workspace.diffRevision(path, revision!) : await workspace.diff(path, other);
        return diff === "" ? "no difference" : within(diff, max_tokens, (n) => `${counted(n, "more line")} of the diff; set a larger max_tokens`);
      },
    },
    move: {
      description: `Moves or renames a file or a directory. There must be nothing at the new path.
e.g. {"from": "a.ts", "to": "src/b.ts"}`,
      input: object({ from: path, to: path }, ["from", "to"]),
      annotations: { destructive: true },
      run: async ({ from, to }, { workspace }) => {
        await found(workspace, from);
        await workspace.move(from, to);
        return `moved ${from} to ${to}`;
      },
    },
    copy: {
      description: `Copies a file, or a directory with everything below it. There must be nothing at the new path.
e.g. {"from": "src", "to": "backup/src"}`,
      input: object({ from: path, to: path }, ["from", "to"]),
      run: async ({ from, to }, { workspace }) => {
        await found(workspace, from);
        await workspace.copy(from, to);
        return `copied ${from} to ${to}`;
      },
    },
    delete: {
      description: `Deletes a file, or a directory if "recursive" is set. workspace_restore brings files back.
e.g. {"path": "old", "recursive": true}`,
      input: object({ path, recursive: { type: "boolean", description: "Deletes a directory with everything below it. Default false." } }, ["path"]),
      annotations: { destructive: true, idempotent: true },
      run: async ({ path, recursive = false }, { workspace }) => {
        const { kind } = await found(workspace, path);
        if (kind === "directory" && !recursive && (await workspace.list(path, { limit: 1 })).entries.length > 0)
          throw new Error(`${path} is a directory that is not empty: set "recursive" to delete it with everything below it`);
        await workspace.remove(path, { recursive });
        return `deleted ${path}`;
      },
    },
    history: {
      description: `Lists what a file held before: revisions with their sizes and times, the newest first. It works for a deleted file too.
e.g. {"path": "src/main.ts"}`,
      input: object({ path, ...budget }, ["path"]),
      annotations: { readOnly: true },
      run: async ({ path, max_tokens }, { workspace }) => {
        const all = await workspace.history(path);
        if (all.length === 0) return `${path} has no earlier content`;
        const lines = all.map((r) => `revision ${r.id}: ${bytes(r.size)}, written ${r.modified.toISOString()}`).join("\n");
        return within(lines, max_tokens, (n) => `${counted(n, "older revision")}; set a larger max_tokens`);
      },
    },
    restore: {
      description: `Brings an earlier content of a file back: that before its last change, or that of a revision. The current content becomes a revision.
e.g. {"path": "src/main.ts"} or {"path": "src/main.ts", "revision": 12}`,
      input: object({ path, revision: { type: "integer", minimum: 1, description: "A revision of workspace_history. Default: the newest." } }, ["path"]),
      annotations: { destructive: true },
      run: async ({ path, revision }, { workspace }) => {
        if (revision === undefined && (revision = (await workspace.history(path))[0]?.id) === undefined) throw new Error(`${path} has no earlier content`);
        await workspace.restore(path, revision);
        return `restored ${path} to revision ${revision}: ${bytes((await workspace.stat(path)).size)}, version ${short(await workspace.digest(path))}`;
      },
    },
  },
});

/** A match with the lines around it, as grep prints them. */
function matchLines(m: wit.Workspace.Match): string[] {
  return [
    ...m.before.map((text, i) => `${m.path}-${m.line - m.before.length + i}- ${line(text)}`),
    `${m.path}:${m.line}: ${line(m.text)}`,
    ...m.after.map((text, i) => `${m.path}-${m.line + 1 + i}- ${line(text)}`),
  ];
}

/** The status of a path. If there is nothing, the error names what is there instead. */
async function found(workspace: Workspace, path: string): Promise<FileStatus> {
  try {
    return await workspace.stat(path);
  } catch (error) {
    if (!(error instanceof CapabilityError) || error.code !== "not-found") throw error;
    let directory = path;
    for (;;) {
      const at = directory.replace(/\/+$/, "").lastIndexOf("/");
      directory = at > 0 ? directory.slice(0, at) : "";
      try {
        const { entries, cursor } = await workspace.list(directory, { limit: 20 });
        const names = entries.map((e) => (e.kind === "directory" ? `${e.name}/` : e.name)).join(", ");
        throw new Error(`there is no ${path}; ${directory || "the workspace"} ${names ? `has ${names}${cursor === undefined ? "" : ", ..."}` : "is empty"}`);
      } catch (error) {
        if (directory === "" || !(error instanceof CapabilityError)) throw error;
      }
    }
  }
}

/** A file at one moment. It has a text unless it is larger than `max` bytes, or no text. */
async function opened(workspace: Workspace, path: string, max = wholeFile): Promise<{ text?: string; digest: string; size: number }> {
  try {
    return await workspace.readWithDigest(path, { max });
  } catch (error) {
    if ((await found(workspace, path)).kind === "directory") throw new Error(`${path} is a directory: workspace_list lists it`);
    throw error;
  }
}

/** A line with its number in six places, with few steps, because an answer has many. */
const numbered = (n: number, text: string) => (n < 10 ? `     ${n}\t${text}` : n < 100 ? `    ${n}\t${text}` : `${String(n).padStart(6)}\t${text}`);

/** The answer with a line from a character on. */
function partOfLine(file: string, lines: string[], number: number, column: number, most: number = defaultTokens): string {
  const whole = lines[0]!;
  if (column > Math.max(1, whole.length)) throw new Error(`line ${number} has ${counted(whole.length, "character")}; column is ${column}`);
  const isHalf = (at: number) => at > 0 && whole.charCodeAt(at) >>> 10 === 0xdc00 >>> 10 && whole.charCodeAt(at - 1) >>> 10 === 0xd800 >>> 10;
  const start = isHalf(column - 1) ? column - 2 : column - 1;
  const shown = fitting(whole.slice(start), most - 80);
  const end = start + shown.length;
  const left = end < whole.length ? `"from": ${number}, "column": ${end + 1}` : lines.length > 1 ? `"from": ${number + 1}` : undefined;
  return [`${file}, line ${number}, characters ${start + 1} to ${end} of ${whole.length}`, numbered(number, shown), ...(left ? [`[continue with ${left}]`] : [])].join("\n");
}

/** The digest of a file, which must have the version that was read; undefined if there must be no file, and is none. */
async function same(workspace: Workspace, path: string, version: string): Promise<string | undefined> {
  let now: string | undefined;
  try {
    now = await workspace.digest(path);
  } catch (error) {
    if (!(error instanceof CapabilityError) || error.code !== "not-found") throw error;
  }
  isSame(path, version, now);
  return now;
}

function isSame(path: string, version: string, now: string | undefined): void {
  const is = now === undefined ? "none" : short(now);
  if (is === version) return;
  if (version === "none") throw new Error(`${path} exists, with version ${is}; read it before you change it`);
  throw new Error(`${path} has changed since you read it: ${now === undefined ? "it is gone" : `it has version ${is}, not ${version}; read it again`}`);
}

const short = (digest: string) => digest.slice("sha256:".length).slice(0, 12);

/** The lines of a text. A line break at the end begins no line. */
function split(text: string): string[] {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

const size = (text: string) => (/[^\x00-\x7f]/.test(text) ? new TextEncoder().encode(text).length : text.length);

async function entryLine(workspace: Workspace, path: string, entry: FileStatus & { name: string }): Promise<string> {
  if (entry.kind === "directory") return `${entry.name}/`;
  if (entry.kind === "link") return `${entry.name} -> ${await workspace.readLink(path)}`;
  return `${entry.name}  ${bytes(entry.size)}`;
}

interface Edit {
  readonly old: string;
  readonly new: string;
  readonly all?: boolean;
}

/** Applies edits to a text. The places are where the new texts begin and end in the result. */
function applied(path: string, text: string, edits: readonly Edit[]): { text: string; places: { from: number; to: number }[] } {
  const found: { at: number; edit: Edit; number: number }[] = [];
  for (const [i, edit] of edits.entries()) {
    const at: number[] = [];
    for (let next = text.indexOf(edit.old); next >= 0 && (edit.all || at.length < 10_000); next = text.indexOf(edit.old, next + (edit.all ? edit.old.length : 1))) at.push(next);
    if (at.length === 0) throw new Error(`edit ${i + 1}: its old text is not in ${path}${near(text, edit.old)}; nothing was changed`);
    if (at.length > 1 && !edit.all) {
      const lines = at.slice(0, 5).map((place) => lineOf(text, place));
      throw new Error(
        `edit ${i + 1}: its old text occurs ${at.length} times in ${path}, in lines ${lines.join(", ")}${at.length > 5 ? ", ..." : ""}; add more of the lines around it, or set "all"; nothing was changed`,
      );
    }
    for (const place of at) found.push({ at: place, edit, number: i + 1 });
  }
  found.sort((a, b) => a.at - b.at);
  const parts: string[] = [];
  const places: { from: number; to: number }[] = [];
  let end = 0;
  let length = 0;
  let last = 0;
  for (const { at, edit, number } of found) {
    if (at < end) throw new Error(`edits ${last} and ${number}: their old texts overlap; nothing was changed`);
    parts.push(text.slice(end, at), edit.new);
    length += at - end;
    places.push({ from: length, to: length + edit.new.length });
    length += edit.new.length;
    end = at + edit.old.length;
    last = number;
  }
  parts.push(text.slice(end));
  return { text: parts.join(""), places };
}

function lineOf(text: string, at: number): number {
  let count = 1;
  for (let next = text.indexOf("\n"); next >= 0 && next < at; next = text.indexOf("\n", next + 1)) count++;
  return count;
}

/** Says where a text that does not occur almost does: where its first line is, without the spaces around it. */
function near(text: string, old: string): string {
  const wanted = old.split("\n").find((l) => l.trim() !== "")?.trim();
  if (wanted === undefined) return "";
  const at = text.indexOf(wanted);
  if (at < 0) return "";
  const number = lineOf(text, at);
  return `; line ${number} is ${JSON.stringify(line(split(text)[number - 1] ?? ""))}, so spaces or the lines after it differ`;
}

/** Adds the lines around the changes, with their numbers. */
function around(answer: Answer, lines: string[], places: { from: number; to: number }[]): string {
  let shown = 0; // lines up to this one are in the answer
  let at = 0; // the offset at which the line below begins
  let number = 0;
  let left = places.length;
  for (const place of places) {
    while (number < lines.length && at + lines[number]!.length + 1 <= place.from) at += lines[number++]!.length + 1;
    let last = number;
    for (let end = at; last < lines.length && end < place.to; last++) end += lines[last]!.length + 1;
    const from = Math.max(shown, number - 2);
    if (from > shown && shown > 0 && !answer.add("   ...")) break;
    for (let n = from; n < Math.min(lines.length, Math.max(last, number + 1) + 2); n++) {
      if (!answer.add(numbered(n + 1, line(lines[n]!)))) return answer.end("more changes are not shown");
      shown = n + 1;
    }
    left--;
  }
  return answer.end(left > 0 ? "more changes are not shown" : undefined);
}
