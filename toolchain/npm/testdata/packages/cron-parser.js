// package: cron-parser@5.10.6
// input: {"cron": "0 9 * * 1-5"}
// missing: Intl
import { extension } from "stile";
import { CronExpressionParser } from "cron-parser";

export default extension({
  tools: {
    call: {
      description: "Calls cron-parser.",
      run: async (input) => {
        const i = CronExpressionParser.parse(input.cron, { currentDate: "2024-03-01T10:00:00Z", tz: "UTC" });
        return [i.next().toISOString(), i.next().toISOString()];
      },
    },
  },
});
