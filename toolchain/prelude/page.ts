/** The position in a list from which to continue. */
export interface PageOptions {
  limit?: number;
  cursor?: string;
}

/** The last two arguments of every raw method that returns pages. */
export function page({ limit = 1000, cursor }: PageOptions = {}): [number, string | undefined] {
  return [limit, cursor];
}
