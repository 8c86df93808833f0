package modeltest_test

import (
	"testing"

	"github.com/stilehost/stile/model"
	"github.com/stilehost/stile/model/modeltest"
)

func Example() {
	var t *testing.T // a test has one
	p := modeltest.Protocols[0]
	s := modeltest.Serve(t, p.Reply("Hello"))
	reply, err := p.Model(t, s, model.Options{}).Complete(t.Context(), model.Conversation{Turns: []model.Turn{{Role: model.User, Text: "Hi"}}}, nil)
	if err != nil || reply.Text != "Hello" {
		t.Error(reply, err)
	}
}
