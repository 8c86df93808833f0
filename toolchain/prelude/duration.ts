// Lengths of time that authors write.

const units = new Map(
  Object.entries({ ms: 1, millisecond: 1, s: 1e3, second: 1e3, min: 6e4, minute: 6e4, h: 36e5, hour: 36e5, d: 864e5, day: 864e5, w: 6048e5, week: 6048e5 }),
);

/** Milliseconds of a number of milliseconds, or of a text like "3 days". name is the function that it is given to. */
export function milliseconds(given: unknown, name: string): number {
  let time = given;
  if (typeof given === "string") {
    const [, count, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(given) ?? [];
    const word = unit?.toLowerCase() ?? "";
    const factor = units.get(word) ?? (word.length > 3 ? units.get(word.replace(/s$/, "")) : undefined);
    if (factor === undefined) throw new RangeError(`${name}: ${JSON.stringify(given.slice(0, 100))} is no length of time; write a number and ms, s, min, h, d, w or a whole word, such as "90 s" or "3 days"`);
    time = Number(count) * factor;
  }
  if (typeof time !== "number") throw new TypeError(`${name}: a number of milliseconds or a text like "3 days" is wanted, not ${given === null ? "null" : `a ${typeof given}`}`);
  if (Number.isNaN(time) || time < 0) throw new RangeError(`${name}: ${given} is no length of time`);
  return time;
}
