/** The binding of a `stile:capability/sandbox` interface: a container with real programs. Its working tree is /work, empty at first. */
export interface Sandbox {
  /** Runs a command until it ends, and returns what it wrote. A string is a command of /bin/sh. It does not reject if the command fails: see `exitCode`. */
  run(command: string | readonly string[], options?: SandboxCommand & { onOutput?(part: SandboxOutput): void }): Promise<SandboxResult>;
  /** Starts a command. All that it started ends with it, and it ends with the call. */
  start(command: string | readonly string[], options?: SandboxCommand): SandboxProcess;
  /** Copies what changed in a directory since the last copy to /work, or to a folder of it. */
  push(directory: Workspace, options?: { to?: string }): Promise<SandboxChanges>;
  /** Copies what changed in /work, or in a folder of it, since the last copy to a directory. */
  pull(directory: Workspace, options?: { from?: string }): Promise<SandboxChanges>;
  /** The limits of the container, and whether the host could verify them. */
  limits(): Promise<{ path: string; reason: string }[]>;
}

/** How a command of a {@link Sandbox} runs. */
export interface SandboxCommand {
  /** A folder of the working tree. /work when absent. */
  cwd?: string;
  env?: Record<string, string>;
  stdin?: string | Blob;
  /** Milliseconds. The grant's limit still applies. */
  timeout?: number;
}

/** Output of a command, as it arrives. */
export interface SandboxOutput {
  stream: "stdout" | "stderr";
  text: string;
}

/** What a command of a {@link Sandbox} did. */
export interface SandboxResult {
  /** 128 plus the number of the signal, if one ended it. */
  exitCode: number;
  stdout: string;
  stderr: string;
  /** Whether output is missing. The last mebibyte is kept. */
  truncated: boolean;
  /** "exited" if it ended by itself, "timeout", "memory" if the sandbox had none left, or "stopped". */
  ending: "exited" | "timeout" | "memory" | "stopped";
}

/** A running command. Iterate over it for its output. */
export interface SandboxProcess extends AsyncIterable<SandboxOutput> {
  /** What it did, once it has ended. */
  readonly result: Promise<SandboxResult>;
  /** Ends it, and all that it started. */
  stop(): void;
}

/** What a copy did. Lists have at most 1,000 paths, and `omitted` counts those that are left out. */
export interface SandboxChanges {
  added: string[];
  changed: string[];
  removed: string[];
  /** Paths that changed on both sides. The directory's file stays, and that of the sandbox is kept under the name with ".sandbox" at its end. */
  conflicts: { path: string; reason: string }[];
  /** What was not copied, and why. */
  skipped: { path: string; reason: string }[];
  omitted: number;
}
