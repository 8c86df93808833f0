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
	SpecForm: "signals[,reachable]", SpecMeans: "messages for durable calls; reachable: strangers can post them to addresses that the tool makes",
}

// parse reads `true`, or an object that asks for more.
func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	if n.Value == true {
		return Rights{}
	}
	reachable := r.Fields(n, exampleReachable, []string{"reachable"}, "reachable")["reachable"]
	if reachable != nil && reachable.Value != true && r.Err == nil {
		r.Fail(reachable, "true, or write only true for the binding", "%s where true belongs", reachable.What())
	}
	return Rights{Reachable: true}
}

const exampleReachable = `{ "reachable": true }`

func parseSpec(s capability.Spec) (capability.Grant, error) {
	if s.HasArgument || s.Options != "" && s.Options != "reachable" {
		return nil, &capability.MistakeError{Text: "signals takes no argument, and only the option reachable", Fix: s.Name + "=signals,reachable"}
	}
	return Rights{Reachable: s.Options != ""}, nil
}

// Rights are the right to receive messages.
type Rights struct {
	// Reachable is set if mailboxes may have addresses to which strangers can post.
	Reachable bool
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant].
func (g Rights) Document() any {
	if g.Reachable {
		return map[string]bool{"reachable": true}
	}
	return true
}

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	lines := []string{"may wait, in durable calls, for signals that you and your programs send; it must not trust what they say"}
	if g.Reachable {
		lines = append(lines, "is reachable from outside: may make addresses to which anybody who has one can post such signals, until the call ends")
	}
	return lines
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	if g.Reachable {
		return []string{"signals", "signals reachable from outside"}
	}
	return []string{"signals"}
}

// Covers implements [capability.Grant].
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	return ok && (g.Reachable || !a.Reachable)
}

// Limit implements [capability.Limiter].
func (g Rights) Limit(ceiling []capability.Grant) capability.Grant {
	for _, by := range []Rights{g, {}} {
		if capability.CoversAll(ceiling, []capability.Grant{by}) {
			return by
		}
	}
	return nil
}

// Reach implements [capability.Reacher].
func (g Rights) Reach() (changes, open bool) { return false, g.Reachable }

// Open implements [capability.Opener].
func (g Rights) Open(context.Context, *capability.Site) (abi.Capability, error) {
	return &Mailboxes{Reachable: g.Reachable}, nil
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
