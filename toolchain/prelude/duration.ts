// Lengths of time that authors write.

const units = new Map(
  Object.entries({ ms: 1, millisecond: 1, s: 1e3, second: 1e3, min: 6e4, minute: 6e4, h: 36e5, hour: 36e5, d: 864e5, day: 864e5, w: 6048e5, week: 6048e5 }),
);

const most = 9.2e12; // 291 years, which are as many nanoseconds as fit

const example = 'a number and ms, s, min, h, d, w or the whole word, such as "90 s" or "3 days"';

/** Milliseconds of a number of milliseconds, or of a text like "3 days". name is the function that it is given to. A number below 0 is over. */
export function milliseconds(given: unknown, name: string, instead = example): number {
  let time = given;
  if (typeof given === "string") {
    const [, count, word = ""] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/.exec(given.slice(0, 100).toLowerCase()) ?? [];
    const factor = units.get(word) ?? (word.length > 3 ? units.get(word.replace(/s$/, "")) : undefined);
    if (factor === undefined) throw new RangeError(`${name}: ${JSON.stringify(given.slice(0, 100))} is no length of time; write ${instead}`);
    time = Number(count) * factor;
  }
  if (typeof time !== "number") throw new TypeError(`${name}: ${given === null ? "null" : typeof given} is no length of time; write milliseconds, or ${instead}`);
  if (Number.isNaN(time)) throw new RangeError(`${name}: NaN is no length of time`);
  if (time > most) throw new RangeError(`${name}: ${given} is more than the 291 years that fit`);
  return Math.max(time, 0);
}

/** The time of a Date, or of a text that begins like one, in milliseconds since 1970. undefined for what is no date. */
export function instant(given: unknown, name: string): number | undefined {
  if (given instanceof Date) {
    const time = given.getTime();
    if (Number.isNaN(time)) throw new RangeError(`${name}: the date is invalid`);
    return time;
  }
  if (typeof given !== "string" || !/^\s*[+-]?\d{4,6}-/.test(given)) return undefined;
  const text = given.slice(0, 100).trim();
  const zoned = /^[+-]?\d{4,6}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?$/.exec(text);
  const time = zoned?.[3] ? Date.parse(text) : NaN;
  if (Number.isNaN(time)) {
    const what = zoned && !zoned[3] ? "has no time zone" : "is no date";
    throw new RangeError(`${name}: ${JSON.stringify(text)} ${what}; write it like "2026-12-24T18:00:00Z" or with an offset, "2026-12-24T18:00:00+01:00"`);
  }
  return time;
}
