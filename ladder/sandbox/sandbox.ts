// The tools of rung 4: a container with real programs, whose working tree follows the workspace.
import { extension, type SandboxChanges } from "stile";
import { Answer, budget, counted, line, within } from "../text";

declare module "stile" {
  interface Env {
    sandbox: Sandbox;
    workspace: Workspace;
  }
}

const object = <const P extends Record<string, unknown>, const R extends readonly string[]>(properties: P, required: R) =>
  ({ type: "object", properties, required, additionalProperties: false }) as const;

export default extension({
  tools: {
    run: {
      description: `Runs a command in a container with real programs, such as git, npm, go or cargo. The workspace is at /work: it is copied in before the command, and what the command has changed is copied back after it.
e.g. {"command": "npm test"} or {"command": ["git", "status"], "cwd": "project", "timeout": 60}`,
      input: object(
        {
          command: { type: ["string", "array"], items: { type: "string" }, minLength: 1, minItems: 1, description: "A command of /bin/sh, or a program with its arguments." },
          cwd: { type: "string", maxLength: 4096, description: "A directory of the workspace. Default: the top." },
          env: { type: "object", additionalProperties: { type: "string" }, description: "Environment variables." },
          stdin: { type: "string" },
          timeout: { type: "integer", minimum: 1, maximum: 3600, description: "Seconds. Default: what the operator allows." },
          git_files: { type: "boolean", description: "Lists what changed in .git file by file. Default: one line with numbers." },
          sync: { type: "boolean", description: "Copies the workspace in before and what changed back after. Default true." },
          ...budget,
        },
        ["command"],
      ),
      annotations: { destructive: true, openWorld: true },
      run: async ({ command, cwd, env, stdin, timeout, sync = true, git_files = false, max_tokens }, { sandbox, workspace }) => {
        if (sync) await sandbox.push(workspace);
        let room = 16 << 10; // a call may log a bounded number of bytes; the log is how a client sees progress
        const result = await sandbox.run(command as string | string[], {
          ...(cwd === undefined ? {} : { cwd }),
          ...(env === undefined ? {} : { env: env as Record<string, string> }),
          ...(stdin === undefined ? {} : { stdin }),
          ...(timeout === undefined ? {} : { timeout: timeout * 1000 }),
          onOutput: ({ text }) => {
            if (text.length <= room) console.log(text.trimEnd());
            room -= text.length;
          },
        });
        const changes = sync ? await sandbox.pull(workspace) : undefined;
        const most = max_tokens ?? 6_000;
        const how = result.ending === "exited" ? `exit code ${result.exitCode}` : `ended by ${result.ending === "timeout" ? "its timeout" : result.ending === "memory" ? "the limit of memory" : "a stop"}`;
        const parts = [how + (result.truncated ? ", and only the end of its output was kept" : "")];
        if (result.stdout) parts.push("stdout:\n" + tail(result.stdout, most / 2));
        if (result.stderr) parts.push("stderr:\n" + tail(result.stderr, most / 3));
        if (changes) parts.push(described(changes, git_files, most / 6));
        return parts.filter(Boolean).join("\n");
      },
    },
    limits: {
      description: "Says what the container may take, and which of these limits the host could verify.",
      input: object({}, []),
      annotations: { readOnly: true },
      run: async (_, { sandbox }) => within((await sandbox.limits()).map(({ path, reason }) => `${path}: ${reason}`).join("\n"), undefined, (n) => counted(n, "more line")),
    },
  },
});

/** The end of an output, because that is where failures are. */
function tail(text: string, most: number): string {
  const lines = text.replace(/\n$/, "").split("\n");
  const answer = new Answer(most + 60);
  let at = lines.length;
  while (at > 0 && answer.add(line(lines[at - 1]!))) at--;
  const shown = answer.lines.reverse().join("\n");
  return at === 0 ? shown : `[${counted(at, "line")} before these left out]\n${shown}`;
}

/** What a command has changed in the workspace. Unless all is set, a folder of git's is one line. */
function described(c: SandboxChanges, all: boolean, most: number): string {
  const lines: string[] = [];
  const folded = new Map<string, { lines: string[]; counts: [added: number, changed: number, removed: number] }>();
  const list = (how: number, word: string, paths: string[]) => {
    for (const path of paths) {
      const git = all ? null : /^(?:.*?\/)?\.git(?=\/|$)/.exec(path);
      if (!git) {
        lines.push(`${word} ${path}`);
        continue;
      }
      const folder = folded.get(git[0]) ?? { lines: [], counts: [0, 0, 0] };
      folder.lines.push(`${word} ${path}`);
      folder.counts[how]!++;
      folded.set(git[0], folder);
    }
  };
  list(0, "added", c.added);
  list(1, "changed", c.changed);
  list(2, "removed", c.removed);
  for (const [folder, { lines: each, counts: [added, changed, removed] }] of folded) {
    if (each.length === 1) {
      lines.push(each[0]!);
      continue;
    }
    const counts = [added > 0 && `${added} added`, changed > 0 && `${changed} changed`, removed > 0 && `${removed} removed`].filter(Boolean);
    lines.push(`${folder}: ${counts.join(", ")} (workspace_find lists what is there, git_files what a command changes)`);
  }
  const notes = [
    ...c.conflicts.map(({ path, reason }) => `conflict ${path}: ${reason}`),
    ...c.skipped.map(({ path, reason }) => `not copied ${path}: ${reason}`),
  ];
  if (lines.length + notes.length + c.omitted === 0) return "no file of the workspace changed";
  const omitted = c.omitted > 0 ? [`${counted(c.omitted, "change")} left out, and these:`] : [];
  return within([...omitted, ...notes, ...lines].join("\n"), most + 60, (n) => counted(n, "more change"));
}
