// What the types promise, checked by tsc alone: nothing here runs.
import { CapabilityError, DeniedError, extension, type Env, type FromSchema, type StandardSchema, type Tool } from "stile";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
declare function same<_ extends true>(): void;

type Shape = FromSchema<{
  type: "object";
  properties: {
    a: { type: "string" };
    b: { type: "array"; items: { type: "integer" } };
    c: { enum: ["x", 1] };
    d: { anyOf: [{ type: "boolean" }, { type: "null" }] };
    e: { type: "object"; properties: { f: { const: true } }; required: ["f"] };
  };
  required: ["a", "e"];
}>;
same<Equal<Shape, { a: string; e: { f: true }; b?: number[]; c?: "x" | 1; d?: boolean | null }>>();
same<Equal<FromSchema<{ type: "object" }>, any>>();

declare const library: StandardSchema<{ n?: number }, { n: number }>;

export default extension({
  tools: {
    literal: {
      description: "Input typed by a literal schema",
      input: { type: "object", properties: { a: { type: "string" }, k: { enum: ["p", "q"] } }, required: ["a"] },
      run: (input, env) => {
        same<Equal<typeof input, { a: string; k?: "p" | "q" }>>();
        same<Equal<typeof env, Env>>();
        // @ts-expect-error: not in the schema
        input.b;
        // @ts-expect-error: not bound
        env.nothing;
      },
    },
    library: {
      description: "Input typed by a library: what it parsed, not what it was given",
      input: library,
      run: async (input) => same<Equal<typeof input, { n: number }>>(),
    },
    none: {
      description: "Without a schema nothing is known",
      run: (input) => same<Equal<typeof input, any>>(),
    },
    // @ts-expect-error: a schema is wanted
    number: { description: "", input: 5, run() {} },
    // @ts-expect-error: text is wanted
    description: { description: 5, run() {} },
    // @ts-expect-error: there is no run
    run: { description: "" },
  },
});

// A tool may be declared on its own.
const tool: Tool = { description: "Alone", run: (input, env) => [input, env] };
extension({ tools: { tool } });

export async function use(env: Env): Promise<void> {
  const bytes: Uint8Array = await env.notes.readBytes("a", { length: 5 });
  await env.notes.subdirectory("b").write("c", bytes);
  const { entries, cursor } = await env.notes.list("", { limit: 5 });
  same<Equal<typeof cursor, string | undefined>>();
  same<Equal<(typeof entries)[0]["kind"], "file" | "directory" | "link">>();
  const { matches } = await env.notes.grep(/a/i, { include: "*.md", context: 1, limit: 5 });
  same<Equal<(typeof matches)[0]["before"], string[]>>();
  const [revision] = await env.notes.history("a");
  await env.notes.write("a", await env.notes.readRevision("a", revision!.id));
  await env.notes.edit("a", [{ old: "x", new: "y" }]);
  const response = await env.github.narrow(["api.github.com"]).fetch("https://api.github.com", { signal: AbortSignal.timeout(5) });
  same<Equal<typeof response, Response>>();
  same<Equal<Awaited<ReturnType<typeof env.events.increment>>, number>>();
  // @ts-expect-error: values are text
  await env.events.set("a", 5);
  console.log(entries, env.clock.now());
  const error: unknown = null;
  if (error instanceof DeniedError) same<Equal<typeof error.denial.remedy, string>>();
  // @ts-expect-error: there is no such code
  if (error instanceof CapabilityError) error.code === "absent";
  // @ts-expect-error: there is no DOM
  document;
}
