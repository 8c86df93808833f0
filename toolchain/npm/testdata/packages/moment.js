// package: moment@2.31.0
// input: {"at": "2024-01-31"}
// output: ["Thursday, February 29th 2024","2 hours"]
import { extension } from "stile";
import moment from "moment";

export default extension({
  tools: {
    call: {
      description: "Calls moment.",
      run: async (input) => {
        return [moment.utc(input.at).add(1, "month").format("dddd, MMMM Do YYYY"), moment.duration(90, "minutes").humanize()];
      },
    },
  },
});
