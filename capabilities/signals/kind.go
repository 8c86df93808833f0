package signals

import (
	"context"
	"encoding/json"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
)

// Kind is messages for durable calls.
var Kind = &capability.Kind{
	Name: "signals", Interface: Interface, Permission: "signals", Example: "true", Parse: parse, ParsePermission: parse, ParseSpec: parseSpec,
}

func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	return capability.True(r, n, Rights{})
}

func parseSpec(s capability.Spec) (capability.Grant, error) {
	if s.HasArgument || s.Options != "" {
		return nil, &capability.MistakeError{Text: "signals takes neither an argument nor options", Fix: s.Name + "=signals"}
	}
	return Rights{}, nil
}

// Rights are the right to receive messages.
type Rights struct{}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant].
func (Rights) Document() any { return true }

// Describe implements [capability.Grant].
func (Rights) Describe() []string {
	return []string{"may wait, in durable calls, for signals that you and your programs send; it must not trust what they say"}
}

// Authority implements [capability.Grant].
func (Rights) Authority() []string { return []string{"signals"} }

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool { return g == asked }

// Reach implements [capability.Reacher].
func (Rights) Reach() (changes, open bool) { return false, false }

// Open implements [capability.Opener].
func (Rights) Open(context.Context, *capability.Site) (abi.Capability, error) {
	return &Mailboxes{}, nil
}

// Double implements [double.Doubler] with mailboxes that have the messages of the test from the start.
func (Rights) Double(_ context.Context, t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	messages, err := double.Members[[]json.RawMessage](t, answers, `{"approved": [{"by": "ada"}]}`)
	if err != nil {
		return nil, err
	}
	for name := range messages {
		if !abi.IsMailbox(name) {
			return nil, t.Wrong("["+double.Quoted(name)+"]: this cannot name a mailbox", abi.MailboxNames)
		}
	}
	return &scripted{test: t, messages: messages}, nil
}
