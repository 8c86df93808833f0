// package: dayjs@1.11.23
// input: {"at": "2024-06-01 12:00"}
// missing: Intl
import { extension } from "stile";
import dayjs from "dayjs";
import timezone from "dayjs/plugin/timezone.js";
import utc from "dayjs/plugin/utc.js";

export default extension({
  tools: {
    call: {
      description: "Calls dayjs.",
      run: async (input) => {
        dayjs.extend(utc);
        dayjs.extend(timezone);
        return dayjs.tz(input.at, "America/New_York").format();
      },
    },
  },
});
