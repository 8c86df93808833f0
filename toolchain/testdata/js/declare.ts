// bindings:
import { extension } from "stile";
import { equal, ok, throws } from "./assert";

const run = () => {};
const tool = { description: "d", run };
const standard = (extra: object) => ({ "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }), ...extra } });

export default function (): void {
  const wrong: [unknown, string][] = [
    [undefined, "the argument of extension(): an object"],
    [{ tools: {}, permissions: {} }, "unknown field permissions"],
    [{ tools: {} }, "at least one tool"],
    [{ tools: [] }, "tools: an object"],
    [{ tools: { "Bad-Name": tool } }, "tools.Bad-Name: a tool's name"],
    [{ tools: { ["a".repeat(65)]: tool } }, "at most 64"],
    [{ tools: { a: run } }, "tools.a: an object"],
    [{ tools: { a: { run } } }, "tools.a.description"],
    [{ tools: { a: { description: " ", run } } }, "tools.a.description"],
    [{ tools: { a: { description: "d" } } }, "tools.a.run"],
    [{ tools: { a: { ...tool, inputs: {} } } }, "unknown field inputs; known are description, input"],
    [{ tools: { a: { ...tool, input: "text" } } }, "tools.a.input: a JSON Schema"],
    [{ tools: { a: { ...tool, input: { type: "string" } } } }, 'tools.a.input: the schema of an input has type: "object"'],
    [{ tools: { a: { ...tool, input: { type: "object", x: 1n } } } }, "tools.a.input: the schema has no JSON"],
    [{ tools: { a: { ...tool, input: standard({}) } } }, "a schema of test cannot say itself as JSON Schema; give JSON Schema instead"],
    [
      { tools: { a: { ...tool, input: standard({ vendor: "valibot" }) } } },
      "a schema of valibot cannot say itself as JSON Schema; pass it through toStandardJsonSchema of @valibot/to-json-schema, or give",
    ],
    [{ tools: { a: { ...tool, output: [] } } }, "tools.a.output"],
    [{ tools: { a: { ...tool, annotations: { readonly: true } } } }, "unknown field readonly"],
    [{ tools: { a: { ...tool, annotations: { readOnly: 1 } } } }, "tools.a.annotations.readOnly"],
  ];
  for (const [definition, message] of wrong) throws(() => extension(definition as any), { name: "TypeError", message });

  const schema = { type: "object" };
  const good = extension({
    tools: {
      a: tool,
      b: { ...tool, input: schema, output: { type: "string" }, annotations: { readOnly: true } },
      c: { ...tool, input: Object.assign(standard({}), { toJSONSchema: () => schema }) as any },
      d: { ...tool, input: standard({ jsonSchema: { input: () => schema } }) as any },
      e: { ...tool, input: { $schema: "https://json-schema.org/draft/2020-12/schema", ...schema, ...standard({}) } as any },
    },
  });
  equal([...good.tools], ["a", "b", "c", "d", "e"]);
  ok(Object.isFrozen(good), "what it returns does not change");
}
