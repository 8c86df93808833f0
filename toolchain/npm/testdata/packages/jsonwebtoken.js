// package: jsonwebtoken@9.0.3
// input: {"sub": "7"}
// output: ["eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiI3IiwiaWF0IjoxNzAwMDAwMDAwLCJleHAiOjE3MDAwMDAwNjB9.wQ_C4uUGfF8svVMrjytEjC67eteGVqy-oTZxsW47GCw",{"sub":"7","iat":1700000000,"exp":1700000060},"JsonWebTokenError","invalid signature"]
import { extension } from "stile";
import jwt from "jsonwebtoken";

export default extension({
  tools: {
    call: {
      description: "Calls jsonwebtoken.",
      run: async (input) => {
        const token = jwt.sign({ ...input, iat: 1700000000 }, "a key of this test", { algorithm: "HS256", expiresIn: 60 });
        const read = jwt.verify(token, "a key of this test", { clockTimestamp: 1700000001 });
        try {
          jwt.verify(token, "another key", { clockTimestamp: 1700000001 });
        } catch (error) {
          return [token, read, error.name, error.message];
        }
      },
    },
  },
});
