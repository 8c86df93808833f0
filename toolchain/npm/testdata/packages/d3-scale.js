// package: d3-scale@4.0.3
// input: {"x": 2.5}
// output: [25,[0,2,4,6,8,10],"50%","rgb(128, 0, 128)",0.5]
import { extension } from "stile";
import { scaleLinear, scaleTime } from "d3-scale";

export default extension({
  tools: {
    call: {
      description: "Calls d3-scale.",
      run: async (input) => {
        const s = scaleLinear([0, 10], [0, 100]);
        return [s(input.x), s.ticks(5), s.tickFormat(5, "%")(0.5), scaleLinear([0, 1], ["red", "blue"])(0.5), scaleTime([new Date(0), new Date(864e5)], [0, 1])(new Date(432e5))];
      },
    },
  },
});
