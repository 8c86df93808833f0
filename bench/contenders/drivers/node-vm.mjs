import vm from "node:vm";

import { serve } from "./driver.mjs";

serve((source, input) => {
  const context = vm.createContext({ input });
  return { context, output: vm.runInContext(`${source}\nJSON.stringify(tool(JSON.parse(input)))`, context) };
});
