// node:os. The answers are the same everywhere: nothing of the machine shows.
export const EOL = "\n";
export const devNull = "/dev/null";
export const arch = () => "wasm32";
export const availableParallelism = () => 1;
export const cpus = () => [{ model: "", speed: 0, times: { user: 0, nice: 0, sys: 0, idle: 0, irq: 0 } }];
export const endianness = () => "LE";
export const freemem = () => 0;
export const homedir = () => "/";
export const hostname = () => "localhost";
export const loadavg = () => [0, 0, 0];
export const machine = () => "wasm32";
export const networkInterfaces = () => ({});
export const platform = () => "browser";
export const release = () => "";
export const tmpdir = () => "/tmp";
export const totalmem = () => 0;
export const type = () => "Stile";
export const uptime = () => 0;
export const userInfo = () => ({ uid: -1, gid: -1, username: "", homedir: "/", shell: null });
export const version = () => "";
const signals = Object.fromEntries("HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(" ").map((name, i) => [`SIG${name}`, i + 1]));
export const constants = { signals, errno: {}, priority: {} };
export default {
  EOL, devNull, arch, availableParallelism, cpus, endianness, freemem, homedir, hostname, loadavg, machine, networkInterfaces, platform, release, tmpdir, totalmem, type, uptime, userInfo,
  version, constants,
};
