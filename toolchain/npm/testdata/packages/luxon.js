// package: luxon@3.7.2
// input: {"at": "2024-01-31T12:00:00Z"}
// missing: Intl
import { extension } from "stile";
import { DateTime } from "luxon";

export default extension({
  tools: {
    call: {
      description: "Calls luxon.",
      run: async (input) => {
        return DateTime.fromISO(input.at, { zone: "Europe/Berlin" }).plus({ months: 1 }).toISO();
      },
    },
  },
});
