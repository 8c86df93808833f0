import ivm from "isolated-vm";

import { serve } from "./driver.mjs";

serve(async (source, input) => {
  const isolate = new ivm.Isolate({ memoryLimit: 64 });
  const context = await isolate.createContext();
  const output = await context.evalClosure(`${source}\nreturn JSON.stringify(tool(JSON.parse($0)));`, [input], { timeout: 5000 });
  return { output, end: () => isolate.dispose() };
});
