// package: winston@3.19.0
// input: {"m": "hi"}
// output: ["{\"a\":1,\"level\":\"info\",\"message\":\"hi\"}"]
import { extension } from "stile";
import winston from "winston";
import { Writable } from "node:stream";

export default extension({
  tools: {
    call: {
      description: "Calls winston.",
      run: async (input) => {
        const lines = [];
        const stream = new Writable({ write: (chunk, _, done) => { lines.push(String(chunk).trim()); done(); } });
        const log = winston.createLogger({ format: winston.format.json(), transports: [new winston.transports.Stream({ stream })] });
        log.info(input.m, { a: 1 });
        return lines;
      },
    },
  },
});
