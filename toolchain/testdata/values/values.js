// Every value comes back as it was given, and what does not fit its type is refused by name.
const { extension } = globalThis[Symbol.for("stile.sdk")];

const point = { xPosition: -5, y: -(2n ** 63n), label: "ä", tags: ["", "b"] };
const wide = { p: "last" };
for (const [i, name] of [..."abcdefghijklmno"].entries()) wide[name] = BigInt(i) * 2n ** 58n;
const many = Object.fromEntries(Array.from({ length: 32 }, (_, i) => [`a${i}`, i % 3 === 0 || i === 31]));
const large = "x".repeat(300_000);

const same = {
  bool: [true, false],
  s8: [-128, 127], u8: [0, 255], s16: [-32768, 32767], u16: [65535], s32: [-2147483648, 2147483647], u32: [4294967295, 7],
  s64: [-(2n ** 63n), 2n ** 63n - 1n, -1n], u64: [2n ** 64n - 1n, 0n],
  f32: [0.5, -Infinity, NaN, -0], f64: [Math.PI, 5e-324, NaN, -0, 3],
  char: ["a", "ß", "🙂", "\0", "\u{10ffff}"],
  string: ["", "plain", "äöü €", "🙂\0🙂", large, "ä" + large],
  bytes: [new Uint8Array(0), new Uint8Array([1, 2, 255]), new Uint8Array(200_000).fill(7), new Uint8Array([1, 2, 3, 4]).subarray(1, 3)],
  numbers: [[], [-1, 2, -3]],
  nested: [[], [[]], [["a", "b"], [], ["ä"]]],
  points: [[], [point, { ...point, label: undefined, tags: [] }]],
  shape: [
    { tag: "none" }, { tag: "dot", val: point }, { tag: "number", val: 2n ** 64n - 1n }, { tag: "float", val: -1.5 },
    { tag: "double", val: Math.E }, { tag: "pair", val: [9, 0.1] }, { tag: "names", val: ["a", "b"] },
    { tag: "far-away", val: 200 }, { tag: "far-away", val: undefined },
  ],
  shapes: [[{ tag: "none" }, { tag: "double", val: 1e300 }, { tag: "dot", val: point }, { tag: "pair", val: [1, 2.5] }]],
  color: ["red", "dark-green", "blue"],
  rights: [{ read: true, writeAll: false, run: true }, { read: false, writeAll: true, run: false }],
  many: [many],
  maybe: [{ tag: "none" }, { tag: "some", val: undefined }, { tag: "some", val: 5 }],
  either: [[{ tag: "ok", val: 3 }, { tag: "err", val: "no" }]],
  tuple: [[1, "two", true]],
  spilled: [wide],
};

const wrong = {
  bool: [1, undefined, null], s8: [128, 1.5, "1", 1n], u8: [-1, NaN], u32: [4294967296, -1], s64: [1, 2n ** 63n], u64: [-1n, 2n ** 64n],
  f64: ["1", 1n, undefined], char: ["", "ab", "\ud800", 97], string: [1, undefined, null, {}, Symbol()], bytes: ["text", 5, null],
  numbers: [[1, "2"], {}, { length: 2 ** 31 }, { length: 2 ** 40 }, "12"], nested: [[["a", 1]]], points: [[{}], [null]],
  shape: [{ tag: "other" }, {}, null, undefined, "none", { tag: "number", val: 1 }, { tag: "constructor" }], color: ["green", 0, "toString", "__proto__"],
  rights: [null, 1], maybe: [5, undefined], either: [[{ tag: "none" }], [null]], tuple: [5, [1, 2, true]], spilled: [{}, { ...wide, p: 5 }],
};

function equal(a, b) {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return a.length === b.length && [...keys].every((key) => equal(a[key], b[key]));
}

const text = (value) => JSON.stringify(value, (_, v) => (typeof v === "bigint" ? `${v}n` : v))?.slice(0, 200);

async function run(_, { echo }) {
  const problems = [];
  const check = async (what, work) => {
    try {
      if (!(await work())) problems.push(what);
    } catch (error) {
      problems.push(`${what}: ${error.name}: ${error.message}`);
    }
  };
  const fails = async (work) => {
    try {
      await work();
    } catch (error) {
      return error;
    }
  };
  for (const [name, values] of Object.entries(same))
    for (const value of values)
      await check(`${name}(${text(value)})`, async () => {
        const got = await echo[name](value);
        if (!equal(got, value)) problems.push(`${name}(${text(value)}) gave ${text(got)}`);
        return true;
      });
  for (const [name, values] of Object.entries(wrong))
    for (const value of values)
      await check(`${name} of a wrong value: ${String(value)}`, async () => {
        const error = await fails(() => echo[name](value));
        if (error?.name !== "TypeError" && error?.name !== "RangeError") problems.push(`${name}(${text(value)}): ${error}`);
        else if (!error.message.startsWith(`echo.${name}: v: `) && error.name === "TypeError") problems.push(error.message);
        return true;
      });
  await check("lone surrogates", async () => (await echo.string("a\ud800b\udc00\u20ac\ud83d")) === "a\ufffdb\ufffd\u20ac\ufffd");
  await check("bytes of an array", async () => equal(await echo.bytes([1, 2]), new Uint8Array([1, 2])));
  const mixed = [255, "ä", 0.1, { tag: "pair", val: [7, -1] }, new Uint8Array([9])];
  await check("mixed", async () => equal(await echo.mixed(...mixed), mixed));
  await check("a value that calls while it is converted", async () => {
    let inner;
    class Calling extends Int16Array {
      get length() {
        inner = echo.mixed(...mixed);
        return super.length;
      }
    }
    return equal(await echo.numbers(new Calling([1, 2])), [1, 2]) && equal(await inner, mixed);
  });
  await check("an error of the contract", async () => (await fails(() => echo.fail({ tag: "not-found", val: "x" })))?.message.includes("x"));
  await check("an error that is text", async () => String(await fails(() => echo.refuse("because"))).includes("because"));
  await check("nothing", async () => (await echo.nothing()) === undefined);
  await check("handles", async () => {
    const [a, b, c] = [await echo.make(1), await echo.make(2), await echo.make(3)];
    const sum = (await echo.read(a)) + (await echo.read(b)) + (await c.number());
    if (sum !== 6 || (await echo.take([a, b])) !== 3) return false;
    for (const gone of [() => echo.read(a), () => a.number(), () => echo.take([c, b])])
      if (!(await fails(gone))?.message.includes("was dropped or given away")) return false;
    return (await fails(() => echo.read(echo)))?.message.includes("expected Token") === true;
  });
  return problems;
}

export default extension({ tools: { run: { description: "Runs", run } } });
