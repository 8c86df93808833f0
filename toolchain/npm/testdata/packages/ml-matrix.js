// package: ml-matrix@6.15.1
// input: {"m": [[2, 1], [1, 3]]}
// output: [[[1,0],[0,1]],7]
import { extension } from "stile";
import { inverse, Matrix } from "ml-matrix";

export default extension({
  tools: {
    call: {
      description: "Calls ml-matrix.",
      run: async (input) => {
        return [inverse(new Matrix(input.m)).mmul(new Matrix(input.m)).round().to2DArray(), new Matrix(input.m).transpose().sum()];
      },
    },
  },
});
