// package: semver@7.8.6
// input: {"versions": ["1.2.3", "1.9.0", "2.0.0"]}
// output: ["1.9.0","1.3.0",true]
import { extension } from "stile";
import semver from "semver";

export default extension({
  tools: {
    call: {
      description: "Calls semver.",
      run: async (input) => {
        return [semver.maxSatisfying(input.versions, "^1.2.0"), semver.inc("1.2.3", "minor"), semver.intersects("^1", ">=1.5")];
      },
    },
  },
});
