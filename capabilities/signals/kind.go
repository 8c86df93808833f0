package signals

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/signature"
	"github.com/stilehost/stile/internal/spelling"
)

// Kind is messages for durable calls.
var Kind = &capability.Kind{
	Name: "signals", Interface: Interface, Permission: "signals", Example: "true", Parse: parse, ParsePermission: parse, ParseSpec: parseSpec,
	SpecForm: "signals[,option]...",
	SpecMeans: `messages for durable calls; options: reachable, for addresses to which
strangers can post them; then also verify=SECRET,as=github|stripe|hex:HEADER|base64:HEADER,
if posts must be signed`,
}

// parse reads `true`, or an object that asks for more.
func parse(r *jsonform.Reader, n *jsonform.Node) capability.Grant {
	if n.Value == true {
		return Rights{}
	}
	fields := r.Fields(n, exampleReachable, []string{"reachable", "verify"}, "reachable")
	reachable := fields["reachable"]
	if reachable != nil && reachable.Value != true && r.Err == nil {
		r.Fail(reachable, "true, or write only true for the binding", "%s where true belongs", reachable.What())
	}
	g := Rights{Reachable: true}
	if verify := fields["verify"]; verify != nil {
		g.Verify = parseVerify(r, verify)
	}
	return g
}

const (
	exampleReachable = `{ "reachable": true }`
	exampleVerify    = `{ "secret": "github-hook", "as": "github" }`
	exampleName      = `the name of a secret, like "github-hook"`
	wrongName        = "this is not a name of a-z, 0-9, - and _" // it is not shown, because somebody may have written the secret itself
)

func parseVerify(r *jsonform.Reader, n *jsonform.Node) (v abi.Verify) {
	for name, field := range r.Fields(n, exampleVerify, []string{"secret", "as"}, "secret", "as") {
		switch {
		case r.Err != nil:
			return abi.Verify{}
		case name == "secret":
			if v.Secret = r.Text(field, exampleName); r.Err == nil && !spelling.IsName(v.Secret) {
				r.Fail(field, exampleName, "%s", wrongName)
			}
		default:
			var ok bool
			if v.As, ok = signature.Parse(r.Text(field, signature.Forms)); r.Err == nil && !ok {
				r.Fail(field, signature.Forms, "this says not where a signature is")
			}
		}
	}
	return v
}

func parseSpec(s capability.Spec) (capability.Grant, error) {
	wrong := func(text string) (capability.Grant, error) {
		return nil, &capability.MistakeError{Text: text, Fix: s.Name + "=signals,reachable or " + s.Name + "=signals,reachable,verify=SECRET,as=github"}
	}
	if s.HasArgument {
		return wrong("signals takes no argument")
	}
	if s.Options == "" {
		return Rights{}, nil
	}
	var g Rights
	seen := map[string]bool{}
	for option := range strings.SplitSeq(s.Options, ",") {
		name, value, has := strings.Cut(option, "=")
		ok := !seen[name]
		seen[name] = true
		switch {
		case ok && name == "reachable" && !has:
			g.Reachable = true
		case ok && name == "verify" && has:
			if g.Verify.Secret = value; !spelling.IsName(value) {
				return wrong("verify: " + wrongName)
			}
		case ok && name == "as" && has:
			if g.Verify.As, ok = signature.Parse(value); !ok {
				return wrong("as: the forms are " + signature.Forms)
			}
		default:
			return wrong("signals takes only the options reachable, verify and as, each once")
		}
	}
	if !g.Reachable || (g.Verify.Secret == "") != (g.Verify.As == "") {
		return wrong("verify and as belong together, and to reachable")
	}
	return g, nil
}

// Rights are the right to receive messages.
type Rights struct {
	// Reachable is set if mailboxes may have addresses to which strangers can post.
	Reachable bool
	// Verify says how posts to these addresses must be signed.
	Verify abi.Verify
}

// Kind implements [capability.Grant].
func (Rights) Kind() *capability.Kind { return Kind }

// Interface implements [capability.Grant].
func (Rights) Interface() string { return Interface }

// Document implements [capability.Grant].
func (g Rights) Document() any {
	switch {
	case g.verified():
		return map[string]any{"reachable": true, "verify": g.Verify}
	case g.Reachable:
		return map[string]bool{"reachable": true}
	}
	return true
}

func (g Rights) verified() bool { return g.Verify != abi.Verify{} }

// Secrets implements [capability.SecretUser].
func (g Rights) Secrets() []string {
	if !g.verified() {
		return nil
	}
	return []string{g.Verify.Secret}
}

// Specs implements [capability.SecretUser].
func (g Rights) Specs() []string {
	switch {
	case g.verified():
		return []string{",reachable,verify=" + g.Verify.Secret + ",as=" + g.Verify.As}
	case g.Reachable:
		return []string{",reachable"}
	}
	return []string{""}
}

// Describe implements [capability.Grant].
func (g Rights) Describe() []string {
	lines := []string{"may wait, in durable calls, for signals that you, your programs and other extensions send; it must not trust what they say"}
	switch {
	case g.verified():
		lines = append(lines, fmt.Sprintf("is reachable from outside; posts must be signed with the secret %s (%s)", g.Verify.Secret, g.Verify.As))
	case g.Reachable:
		lines = append(lines, "is reachable from outside: may make addresses to which anybody who has one can post such signals, until the call ends")
	}
	return lines
}

// Authority implements [capability.Grant].
func (g Rights) Authority() []string {
	switch {
	case g.verified():
		return []string{"signals", fmt.Sprintf("signals reachable from outside, signed with the secret %s (%s)", g.Verify.Secret, g.Verify.As)}
	case g.Reachable:
		return []string{"signals", "signals reachable from outside"}
	}
	return []string{"signals"}
}

// Covers implements [capability.Grant]. As with a credential of http, a secret must be the same on both sides: to ask for none takes what strangers post, and to
// ask for another uses a secret that nobody allowed.
func (g Rights) Covers(asked capability.Grant) bool {
	a, ok := asked.(Rights)
	return ok && (!a.Reachable || g == a)
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
	return &Mailboxes{Reachable: g.Reachable, Verify: g.Verify}, nil
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
