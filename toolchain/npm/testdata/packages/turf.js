// package: @turf/turf@7.4.0
// input: {"a": [0, 0], "b": [1, 1]}
// output: ["157.250",true,"12363718145"]
import { extension } from "stile";
import * as turf from "@turf/turf";

export default extension({
  tools: {
    call: {
      description: "Calls @turf/turf.",
      run: async (input) => {
        return [turf.distance(input.a, input.b).toFixed(3), turf.booleanPointInPolygon([0.5, 0.5], turf.polygon([[[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]])), turf.area(turf.bboxPolygon([0, 0, 1, 1])).toFixed(0)];
      },
    },
  },
});
