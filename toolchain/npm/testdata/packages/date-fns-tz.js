// package: date-fns-tz@3.2.0
// package: date-fns@4.4.0
// input: {"at": "2024-06-01T12:00:00Z"}
// missing: Intl
import { extension } from "stile";
import { formatInTimeZone } from "date-fns-tz";

export default extension({
  tools: {
    call: {
      description: "Calls date-fns-tz.",
      run: async (input) => {
        return formatInTimeZone(new Date(input.at), "America/New_York", "yyyy-MM-dd HH:mm zzz");
      },
    },
  },
});
