// package: rrule@2.8.1
// input: {"rule": "DTSTART:20240101T090000Z\nRRULE:FREQ=WEEKLY;COUNT=3;BYDAY=MO,WE"}
// output: ["2024-01-01T09:00:00.000Z","2024-01-03T09:00:00.000Z","2024-01-08T09:00:00.000Z"]
import { extension } from "stile";
import * as all from "rrule";

export default extension({
  tools: {
    call: {
      description: "Calls rrule.",
      run: async (input) => {
        const { RRule } = all.default ?? all;
        return RRule.fromString(input.rule).all().map((d) => d.toISOString());
      },
    },
  },
});
