import { extension } from "stile";

export default extension({
  tools: {
    greet: {
      description: "Greet somebody",
      input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      run: async ({ name }, env) => {
        const { greeting, times, signature } = env.vars;
        const text = `${Array(times).fill(greeting).join(" ")} ${name}`;
        return signature ? `${text}\n-- ${signature}` : text;
      },
    },
  },
});
