const text = Array.from({ length: 40 }, (_, i) => `2026-01-${10 + (i % 20)} host${i} GET /items/${i * 37} 200 ${i * 101}ms`).join("\n");
const record = { name: "route", legs: Array.from({ length: 50 }, (_, i) => ({ from: i, to: i + 1, km: i * 1.5, tags: ["a", "b"] })) };

const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));

// Each takes less than a millisecond, and gives the same whole number every time.
const works = {
  fib: () => fib(16),
  json: () => JSON.parse(JSON.stringify(record)).legs.length,
  sort: () => {
    const numbers = [];
    for (let i = 0, x = 1; i < 500; i++) numbers.push((x = (x * 48271) % 2147483647));
    return numbers.sort((a, b) => a - b)[250];
  },
  regex: () => [...text.matchAll(/^(\d+)-(\d+)-(\d+) (\w+) (GET|POST) \/items\/(\d+) 200 (\d+)ms$/gm)].length,
  strings: () => {
    let out = "";
    for (let i = 0; i < 500; i++) out += `${i}:${String.fromCharCode(97 + (i % 26)).toUpperCase()};`;
    return out.split(";").reverse().join(",").replaceAll(":", "").length;
  },
};

function tool({ work, n }) {
  let value = 0;
  for (let i = 0; i < n; i++) value += works[work]();
  return { value };
}
