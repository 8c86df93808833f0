// node:process, the global of that name; see prelude/parts/process.ts.
const process = (globalThis as any).process;
export default process;
export const { argv, argv0, arch, browser, cwd, emitWarning, env, execArgv, execPath, exit, features, hrtime, memoryUsage, nextTick, pid, platform, stderr, stdin, stdout, title, uptime, version, versions } = process;
