package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// answerAsModel speaks the chat completions protocol, for clients with the key. Its first try does not build, and the types of its second are
// wrong. The model "picky" accepts no temperature, like some reasoning models.
func answerAsModel(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Authorization") != "Bearer canary-of-the-model" {
		http.Error(w, `{"error":{"message":"no such key"}}`, http.StatusUnauthorized)
		return
	}
	body = bytes.ReplaceAll(body, []byte(" "), nil)
	if bytes.Contains(body, []byte(`"model":"picky"`)) && bytes.Contains(body, []byte(`"temperature":`)) {
		http.Error(w, `{"error":{"message":"Unsupported parameter: temperature"}}`, http.StatusBadRequest)
		return
	}
	tries := []string{"(", "m * 2", "n * 2"}
	run := tries[min(bytes.Count(body, []byte(`"role":"assistant"`)), len(tries)-1)]
	name := "doubler"
	if bytes.Contains(body, []byte("thereisanextensiondoubleralready")) {
		name += "-two"
	}
	reply := "```json\n{\"name\": \"" + name + "\", \"version\": \"1.0.0\", \"description\": \"Doubles numbers\", \"tools\": [\"double\"]}\n```\n```ts\n" +
		`import { extension } from "stile";` + "\n" +
		`export default extension({ tools: { double: { description: "Doubles a number", input: { type: "object", properties: { n: { type: "number" } } }, run: async ({ n }: any) => ` +
		run + " } } });\n```\n"
	content, _ := json.Marshal(reply) // a string
	w.Header().Set("Content-Type", "text/event-stream")
	const chunk = `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`
	_, _ = fmt.Fprintf(w, chunk+`{"content":%s},"finish_reason":null}]}`+"\n\n"+chunk+`{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n", content)
}
