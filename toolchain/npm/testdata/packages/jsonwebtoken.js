// package: jsonwebtoken@9.0.3
// input: {"secret": "s"}
// output: ["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJhIjoxfQ.sad3AhpjllXE_XL6lSwwMXhV_4WThhyMgxWlDkDaBHQ",{"a":1}]
import { extension } from "stile";
import jwt from "jsonwebtoken";

export default extension({
  tools: {
    call: {
      description: "Calls jsonwebtoken.",
      run: async (input) => {
        const token = jwt.sign({ a: 1 }, input.secret, { noTimestamp: true });
        return [token, jwt.verify(token, input.secret)];
      },
    },
  },
});
