import { z } from "zod"; // rung 2

// Rung 0: a small repository in the workspace.
await tools.workspace.write({ path: "project/package.json", text: '{ "name": "answer", "type": "module", "scripts": { "test": "node --test" } }\n' });
await tools.workspace.write({ path: "project/answer.js", text: "export const answer = () => 0;\n" });
await tools.workspace.write({
  path: "project/answer.test.js",
  text: [
    'import assert from "node:assert";',
    'import { writeFileSync } from "node:fs";',
    'import test from "node:test";',
    'import { answer } from "./answer.js";',
    'test("answer", () => {',
    '  writeFileSync("report.txt", `the answer is ${answer()}\\n`);',
    "  assert.ok(answer() > 0);",
    "});",
    "",
  ].join("\n"),
});

// Rung 3: a page says what the answer is.
const page: string = await tools.browser.open({ url: input.url });

// Rungs 1 and 2: compute with what it says, and check it with a package.
const wanted = z.coerce.number().int().positive().parse(/\d+$/m.exec(page.split("\n\n").at(-1)!)?.[0]);
await tools.workspace.edit({ path: "project/answer.js", edits: [{ old: "=> 0", new: `=> ${wanted}` }] });

// Rung 4: the repository's own tests, whose report comes back to the workspace.
const tests: string = await tools.sandbox.run({ command: "npm test", cwd: "project" });
return { tests, report: await env.workspace.read("project/report.txt") };
