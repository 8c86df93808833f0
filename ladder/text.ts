// What the tools of all rungs say to a model, within a budget of tokens.

/** How many tokens an answer has by default, and at most. */
export const defaultTokens = 6_000;
export const mostTokens = 25_000;

/** Where a line is cut, in characters. */
const longLine = 2_000;

/** The property of a tool's input that sets its budget. */
export const budget = {
  max_tokens: {
    type: "integer",
    minimum: 100,
    maximum: mostTokens,
    description: `About how many tokens the answer may have. Default ${defaultTokens}.`,
  },
} as const;

/** About how many tokens a text has: four ASCII characters make one, and every other character counts as one. */
export function tokens(text: string): number {
  const others = wide.test(text) ? text.replace(/[\x00-\x7f]+/g, "").length : 0;
  return Math.ceil((text.length - others) / 4) + others;
}

const wide = /[^\x00-\x7f]/;

/** Cuts a text after so many UTF-16 units, and never through a character. */
export function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

/** The beginning of a text that has at most so many tokens, and at least a character. */
export function fitting(text: string, most: number): string {
  let some = cut(text, 4 * most);
  for (let n; (n = tokens(some)) > most && some.length > 2; ) some = cut(some, Math.max(2, Math.floor((some.length * most) / n)));
  return some;
}

/** A line that is not too long for a model. It says how much of it is missing, and `how` to have that. */
export function line(text: string, how?: (shown: number) => string): string {
  if (text.length <= longLine) return text;
  const shown = cut(text, longLine);
  return `${shown} [... ${text.length - shown.length} more characters in this line${how ? `: ${how(shown.length)}` : ""}]`;
}

/** Collects lines as long as the budget lasts. */
export class Answer {
  readonly lines: string[] = [];
  #left: number;

  /** Some tokens are kept for the last line, which says what is missing. */
  constructor(most: number = defaultTokens) {
    this.#left = most - 60;
  }

  /** Adds a line. Returns false, without it, if the budget does not allow it. The first line always fits. */
  add(text: string): boolean {
    const cost = tokens(text) + 1;
    if (this.lines.length > 0 && cost > this.#left) return false;
    this.lines.push(text);
    this.#left -= cost;
    return true;
  }

  /** Adds lines if the budget allows all of them. */
  addAll(lines: string[]): boolean {
    const cost = lines.reduce((sum, text) => sum + tokens(text) + 1, 0);
    if (cost > this.#left) return false;
    this.lines.push(...lines);
    this.#left -= cost;
    return true;
  }

  /** Adds lines in one step if it is certain that none is too long and that the budget allows them. That takes a fraction of the time of add. */
  addAtOnce(lines: readonly string[], show: (text: string, at: number) => string): boolean {
    let length = 0;
    for (const { length: more } of lines) {
      if (more > longLine) return false;
      length += more;
    }
    if (length > 4 * this.#left) return false;
    const text = lines.map(show).join("\n");
    const cost = tokens(text) + 2 * lines.length; // at least what each line costs by itself
    if (cost > this.#left) return false;
    this.lines.push(text);
    this.#left -= cost;
    return true;
  }

  /** The text, with what is missing at its end. */
  end(missing?: string): string {
    return [...this.lines, ...(missing ? [`[${missing}]`] : [])].join("\n");
  }
}

/**
 * An answer made of pages, each of at most `limit` items, from a cursor on. A page that does not fit is asked for again with fewer items, so
 * that the cursor at the end is exactly where the answer ends.
 */
export async function paged(
  most: number | undefined,
  cursor: string | undefined,
  next: (limit: number, cursor: string | undefined) => Promise<{ lines: string[]; cursor?: string | undefined }>,
  none: string,
): Promise<string> {
  const answer = new Answer(most);
  const more = (cursor: string) => answer.end(`there may be more: "cursor": ${JSON.stringify(cursor)}`);
  for (let limit = 200; ; ) {
    const page = await next(limit, cursor);
    if (!answer.addAll(page.lines)) {
      if (limit > 1) {
        limit >>= 1;
        continue;
      }
      if (answer.lines.length > 0) return cursor === undefined ? answer.end() : more(cursor);
      for (const l of page.lines) if (!answer.add(l)) break;
      const left = page.lines.length - answer.lines.length;
      if (left > 0) answer.lines.push(`[${counted(left, "more line")} of this; set a larger max_tokens]`);
    }
    if (page.cursor === undefined) return answer.lines.length > 0 ? answer.end() : none;
    cursor = page.cursor;
    if (limit === 1) return more(cursor);
  }
}

/** A whole text within the budget, cut between lines, with what is missing at its end. */
export function within(text: string, most: number | undefined, how: (lines: number) => string): string {
  const answer = new Answer(most);
  const lines = text.replace(/\n$/, "").split("\n");
  for (const [at, l] of lines.entries()) if (!answer.add(line(l))) return answer.end(how(lines.length - at));
  return answer.end();
}

/** A size for people and models. */
export function bytes(n: number): string {
  if (n < 1024) return `${n} B`;
  const units = ["KiB", "MiB", "GiB"];
  let at = -1;
  do n /= 1024;
  while (++at < units.length - 1 && n >= 1024);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[at]}`;
}

/** "1 line", "2 lines". */
export function counted(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}
