// package: jose@6.2.18
// input: {"secret": "0123456789abcdef0123456789abcdef"}
// missing: crypto.subtle
import { extension } from "stile";
import { jwtVerify, SignJWT } from "jose";

export default extension({
  tools: {
    call: {
      description: "Calls jose.",
      run: async (input) => {
        const key = new TextEncoder().encode(input.secret);
        const token = await new SignJWT({ a: 1 }).setProtectedHeader({ alg: "HS256" }).sign(key);
        return (await jwtVerify(token, key)).payload;
      },
    },
  },
});
