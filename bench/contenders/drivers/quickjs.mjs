import { getQuickJS, shouldInterruptAfterDeadline } from "quickjs-emscripten";

import { serve } from "./driver.mjs";

const engine = await getQuickJS();

serve((source, input) => {
  const runtime = engine.newRuntime();
  runtime.setMemoryLimit(64 << 20);
  runtime.setMaxStackSize(256 << 10);
  runtime.setInterruptHandler(shouldInterruptAfterDeadline(Date.now() + 5000));
  const context = runtime.newContext();
  context.newString(input).consume((text) => context.setProp(context.global, "input", text));
  const result = context.unwrapResult(context.evalCode(`${source}\nJSON.stringify(tool(JSON.parse(input)))`));
  const output = result.consume((value) => context.getString(value));
  return { output, end: () => (context.dispose(), runtime.dispose()) };
});
