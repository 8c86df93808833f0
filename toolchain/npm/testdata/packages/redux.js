// package: redux@5.0.1
// input: {"text": "milk"}
// output: {"todos":["milk"]}
import { extension } from "stile";
import { combineReducers, legacy_createStore as createStore } from "redux";

export default extension({
  tools: {
    call: {
      description: "Calls redux.",
      run: async (input) => {
        const store = createStore(combineReducers({ todos: (list = [], a) => (a.type === "add" ? [...list, a.text] : list) }));
        store.dispatch({ type: "add", text: input.text });
        return store.getState();
      },
    },
  },
});
