// There is no Intl yet. Locales and options are refused where they would have an effect, because they would be ignored. Without
// them, dates are in UTC, numbers have no separators, and strings are compared by code points.

interface Refused {
  holder: object;
  name: string;
  /** Arguments before the locales. */
  before: number;
  instead: string;
}

/** Makes the methods that take locales refuse them. */
export function installLocale(): void {
  const dates = "use toISOString(), the getUTC methods, or a package that has the time zones";
  const numbers = "use toFixed(), or a package that formats numbers";
  const typed = Object.getPrototypeOf(Uint8Array.prototype);
  const methods: Refused[] = [
    ...["toLocaleString", "toLocaleDateString", "toLocaleTimeString"].map((name) => ({ holder: Date.prototype, name, before: 0, instead: dates })),
    ...[Number.prototype, BigInt.prototype, Array.prototype, typed].map((holder) => ({ holder, name: "toLocaleString", before: 0, instead: numbers })),
    {
      holder: String.prototype,
      name: "localeCompare",
      before: 1,
      instead: "compare keys that you make yourself, such as lower-case text or numbers, or use a package that collates",
    },
  ];
  for (const method of methods) refuse(method);
  for (const name of ["toLocaleLowerCase", "toLocaleUpperCase"] as const) casing(name);
}

function refuse({ holder, name, before, instead }: Refused): void {
  const native: Function = (holder as any)[name];
  wrap(holder, name, native.length, function (this: unknown, args: unknown[]) {
    if (args.length > before) check(name, args[before], args[before + 1], holder === Date.prototype, instead);
    return native.apply(this, args.slice(0, before));
  });
}

// Languages with their own case mapping.
const special = /^(az|el|hy|lt|tr)(-|$)/i;

function casing(name: "toLocaleLowerCase" | "toLocaleUpperCase"): void {
  const native = String.prototype[name];
  const instead = name === "toLocaleLowerCase" ? "toLowerCase()" : "toUpperCase()";
  wrap(String.prototype, name, 0, function (this: string, [locales]: unknown[]) {
    if (list(locales).some((locale) => special.test(`${locale}`)))
      throw new TypeError(`${name}: there is no Intl here, so the locale ${quoted(locales)} would be ignored; use ${instead}, which knows no language`);
    return native.call(this);
  });
}

function list(locales: unknown): unknown[] {
  return locales === undefined ? [] : Array.isArray(locales) ? locales : [locales];
}

function check(name: string, locales: unknown, options: any, isDate: boolean, instead: string): void {
  let ignored = list(locales).length ? `the locale ${quoted(locales)}` : "";
  if (!ignored && options !== undefined) {
    if (options === null) throw new TypeError(`${name}: the options are an object, not null`);
    for (const option in Object(options)) {
      const value = options[option];
      if (value !== undefined && !(isDate && option === "timeZone" && /^(etc\/)?(utc|gmt)$/i.test(`${value}`))) {
        ignored = `the option ${option}: ${quoted(value)}`;
        break;
      }
    }
  }
  if (ignored) throw new TypeError(`${name}: there is no Intl here, so ${ignored} would be ignored; ${instead}`);
}

function quoted(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value.slice(0, 100)) : Array.isArray(value) ? value.map(quoted).join(", ").slice(0, 200) : String(value).slice(0, 100);
}

function wrap(holder: object, name: string, length: number, act: (this: any, args: unknown[]) => unknown): void {
  const methods = {
    [name](this: unknown, ...args: unknown[]) {
      return act.call(this, args);
    },
  };
  const value = Object.defineProperty(methods[name], "length", { value: length, configurable: true });
  Object.defineProperty(holder, name, { value, writable: true, configurable: true });
}
