/** How often a word occurs. */
interface Count { word: string; count: number }

/** Count the words of a text, and list the most frequent ones. */
export async function countWords(text: string, top: number = 10): Promise<{ total: number; distinct: number; top: Count[] }> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  const sorted = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  return { total: words.length, distinct: counts.size, top: sorted.slice(0, top).map(([word, count]) => ({ word, count })) };
}
