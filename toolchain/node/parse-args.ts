// util.parseArgs, for given args.
interface Option {
  type: "string" | "boolean";
  short?: string;
  multiple?: boolean;
  default?: unknown;
}
interface Config {
  args?: string[];
  options?: Record<string, Option>;
  strict?: boolean;
  allowPositionals?: boolean;
  allowNegative?: boolean;
}

function wrong(code: string, text: string): never {
  throw Object.assign(new TypeError(text), { code });
}

export function parseArgs({ args = [], options = {}, strict = true, allowPositionals = !strict, allowNegative = false }: Config = {}) {
  const values: Record<string, any> = Object.create(null);
  const positionals: string[] = [];
  const set = (name: string, value: string | boolean, shown: string) => {
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    if (!option && strict) wrong("ERR_PARSE_ARGS_UNKNOWN_OPTION", `Unknown option '${shown}'`);
    if (strict && option!.type === "string" && typeof value !== "string") wrong("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${shown} <value>' argument missing`);
    if (strict && option!.type === "boolean" && typeof value === "string") wrong("ERR_PARSE_ARGS_INVALID_OPTION_VALUE", `Option '${shown}' does not take an argument`);
    if (option?.multiple) (values[name] ??= []).push(value);
    else values[name] = value;
  };
  const rest = [...args];
  while (rest.length) {
    const arg = rest.shift()!;
    if (arg === "--") {
      positionals.push(...rest.splice(0));
    } else if (arg.startsWith("--")) {
      const [, name, value] = /^--([^=]*)(?:=(.*))?$/s.exec(arg)!;
      const negated = name.slice(3);
      if (allowNegative && name.startsWith("no-") && options[negated]?.type === "boolean" && value === undefined) set(negated, false, arg);
      else set(name, value ?? (Object.hasOwn(options, name) && options[name].type === "string" && rest.length ? rest.shift()! : true), `--${name}`);
    } else if (arg.length > 1 && arg[0] === "-") {
      for (let at = 1; at < arg.length; at++) {
        const name = Object.keys(options).find((key) => options[key].short === arg[at]) ?? arg[at];
        if (Object.hasOwn(options, name) && options[name].type === "string") {
          set(name, arg.slice(at + 1) || (rest.length ? rest.shift()! : true), `-${arg[at]}`);
          break;
        }
        set(name, true, `-${arg[at]}`);
      }
    } else {
      if (!allowPositionals) wrong("ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL", `Unexpected argument '${arg}'`);
      positionals.push(arg);
    }
  }
  for (const [name, option] of Object.entries(options)) if (option.default !== undefined && !(name in values)) values[name] = option.default;
  return { values, positionals };
}
