/** Where to go on in a list. */
export interface PageOptions {
  limit?: number;
  cursor?: string;
}

/** The last two arguments of every raw method that lists. */
export function page({ limit = 1000, cursor }: PageOptions = {}): [number, string | undefined] {
  return [limit, cursor];
}
