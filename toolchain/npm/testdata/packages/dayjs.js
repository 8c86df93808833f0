// package: dayjs@1.11.23
// input: {"at": "2024-02-28"}
// output: ["2024-03-01","2 months ago"]
import { extension } from "stile";
import dayjs from "dayjs";
import relative from "dayjs/plugin/relativeTime.js";
import utc from "dayjs/plugin/utc.js";

export default extension({
  tools: {
    call: {
      description: "Calls dayjs.",
      run: async (input) => {
        dayjs.extend(utc);
        dayjs.extend(relative);
        return [dayjs.utc(input.at).add(2, "day").format("YYYY-MM-DD"), dayjs.utc("2024-01-01").from(dayjs.utc("2024-03-01"))];
      },
    },
  },
});
