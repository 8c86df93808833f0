// Keeps runs with Restate, for the benchmark of durable runs: what protocol.go says, in JavaScript. It starts the server of the npm package with its
// state in a folder, on the loopback ports PORT to PORT+3.
import { execFileSync, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";

// Its SDK needs this, which Node.js 20 lacks.
Promise.withResolvers ??= function () {
  let resolve, reject;
  const promise = new this((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
};

const dir = process.argv[2];
const port = Number(process.env.PORT);
const at = (n) => `127.0.0.1:${port + n}`;
let executed = 0;

const runs = restate.workflow({
  name: "runs",
  handlers: {
    run: async (ctx, { before, wait, after }) => {
      let made = 0;
      const steps = async (n) => {
        for (let i = 0; i < n; i++) {
          await ctx.run("step", () => ++executed);
          made++;
        }
      };
      await steps(before);
      if (wait) await ctx.sleep(wait);
      await steps(after);
      return made;
    },
  },
});

const server = spawn("node_modules/.bin/restate-server", ["--base-dir", dir], {
  cwd: import.meta.dirname,
  stdio: "ignore",
  env: {
    ...process.env,
    RESTATE_LISTEN_MODE: "tcp",
    RESTATE_BIND_ADDRESS: at(0),
    RESTATE_INGRESS__BIND_ADDRESS: at(1),
    RESTATE_ADMIN__BIND_ADDRESS: at(2),
    RESTATE_LOG_FILTER: "off",
    DO_NOT_TRACK: "1",
  },
});
server.on("exit", (code, signal) => {
  console.error(`the server ended: ${code ?? signal}`);
  process.exit(1);
});
const stop = () => {
  server.removeAllListeners("exit");
  server.on("exit", () => process.exit(0));
  server.kill("SIGTERM");
};
process.on("SIGTERM", stop);

const { createServer } = await import("node:http2");
createServer(restate.createEndpointHandler({ services: [runs], logger: () => {} })).listen(port + 3, "127.0.0.1");

for (let tries = 0; ; tries++) {
  try {
    const answer = await fetch(`http://${at(2)}/deployments`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ uri: `http://${at(3)}`, force: true }),
    });
    if (answer.ok) break;
    if (tries > 600) throw new Error(await answer.text());
  } catch (error) {
    if (tries > 600) throw error;
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
}
const ingress = clients.connect({ url: `http://${at(1)}` });

async function each({ prefix, count }, act) {
  let next = 0;
  const one = async () => {
    while (next < count) await act(`${prefix}-${next++}`);
  };
  await Promise.all(Array.from({ length: 64 }, one));
}

const acts = {
  start: (r) => each(r, (id) => ingress.workflowClient(runs, id).workflowSubmit(r.work)),
  end: (r) =>
    each(r, async (id) => {
      const made = await ingress.workflowClient(runs, id).workflowAttach();
      if (made !== r.work.before + r.work.after) throw new Error(`${id} made ${made} steps`);
    }),
  steps: () => {},
  size: () => {},
};

console.log(JSON.stringify({}));
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  const answer = { steps: executed, size: 0 };
  try {
    await acts[request.do](request);
    if (request.do === "size") answer.size = 1024 * Number(execFileSync("du", ["-sk", dir], { encoding: "utf8" }).split("\t")[0]);
  } catch (error) {
    answer.error = `${error}`;
  }
  console.log(JSON.stringify(answer));
}
stop();
