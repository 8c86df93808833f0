// node:console.
export default console;
export const { assert, count, countReset, debug, dir, error, group, groupEnd, info, log, table, time, timeEnd, timeLog, trace, warn } = console as any;
