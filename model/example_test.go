package model_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stilehost/stile/model"
)

func Example() {
	m, err := model.OpenAI(model.Options{BaseURL: "http://127.0.0.1:11434/v1", Model: "qwen3"})
	if err != nil {
		log.Fatal(err)
	}
	reply, err := m.Complete(context.Background(), model.Conversation{Turns: []model.Turn{{Role: model.User, Text: "Hello"}}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Text, reply.Tokens)
}
