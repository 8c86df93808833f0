import { extension } from "stile";

export default extension({
  tools: {
    mail_to: {
      description: "The address to write to somebody",
      input: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      run: async (input: { name: string }, env) => {
        const matches = await env.crm.search(input.name);
        if (matches.length === 0) throw new Error(`nobody is called ${input.name}`);
        const contact = await env.crm.lookup(matches[0]);
        return { to: `${contact.name} <${contact.email}>`, phone: contact.phone ?? null };
      },
    },
  },
});
