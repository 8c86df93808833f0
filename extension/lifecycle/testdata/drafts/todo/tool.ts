import { extension } from "stile";

interface Todo { id: number; text: string; done: boolean }

const key = (id: number) => "todo/" + String(id).padStart(6, "0");

export default extension({
  tools: {
    add_todo: {
      description: "Add something to do",
      input: { type: "object", properties: { text: { type: "string", minLength: 1 } }, required: ["text"] },
      run: async ({ text }, env) => {
        const id = await env.kv.increment("next");
        const todo: Todo = { id, text, done: false };
        await env.kv.set(key(id), JSON.stringify(todo));
        return todo;
      },
    },
    list_todos: {
      description: "List what is to do",
      input: { type: "object", properties: { all: { type: "boolean" } } },
      annotations: { readOnly: true },
      run: async ({ all }, env) => {
        const todos: Todo[] = [];
        let cursor: string | undefined;
        do {
          const page = await env.kv.list("todo/", { cursor });
          for (const { value } of page.entries) todos.push(JSON.parse(value));
          cursor = page.cursor;
        } while (cursor);
        return todos.filter((todo) => all || !todo.done);
      },
    },
    finish_todo: {
      description: "Mark something as done",
      input: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
      annotations: { idempotent: true },
      run: async ({ id }, env) => {
        const text = await env.kv.get(key(id));
        if (text === undefined) throw new Error(`there is no todo ${id}`);
        const todo: Todo = { ...JSON.parse(text), done: true };
        await env.kv.set(key(id), JSON.stringify(todo));
        return todo;
      },
    },
  },
});
