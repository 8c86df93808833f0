package signals

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/wit"
)

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, []string{"mailboxes.url", "pending.subscribe", "pending.take"}, reflect.TypeFor[*Mailboxes](), reflect.TypeFor[*Pending]())
	captest.Implements(t, wit.Capability(), Interface, []string{"mailboxes.receive", "mailboxes.url", "pending.subscribe", "pending.take"}, reflect.TypeFor[*scripted](), reflect.TypeFor[*awaited]())
}

// box is one mailbox.
type box struct {
	messages []abi.Message
	ready    func()
}

func (b *box) Take(context.Context, string) (m abi.Message, ok bool, err error) {
	if len(b.messages) == 0 {
		return m, false, nil
	}
	m, b.messages = b.messages[0], b.messages[1:]
	return m, true, nil
}

func (b *box) Watch(_ context.Context, _ string, ready func()) (func(), error) {
	if b.ready = ready; len(b.messages) > 0 {
		ready()
	}
	return func() { b.ready = nil }, nil
}

func (*box) Address(_ context.Context, mailbox string, _ abi.Verify) (string, error) {
	return "https://a.example/" + mailbox, nil
}

func (b *box) put(text string) {
	b.messages = append(b.messages, abi.Message{Data: []byte(text), From: "a test", Received: time.UnixMilli(5)})
	if b.ready != nil {
		b.ready()
	}
}

func receive(t *testing.T, ctx context.Context, timeout *uint64) *Pending {
	t.Helper()
	p, err := new(Mailboxes).Receive(ctx, "go", timeout)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func subscribe(t *testing.T, ctx context.Context, p *Pending) *abi.Pollable {
	t.Helper()
	ready, err := p.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ready
}

func TestReceive(t *testing.T) {
	b := &box{}
	ctx := abi.WithMailboxes(t.Context(), b)
	p := receive(t, ctx, nil)
	ready := subscribe(t, ctx, p)
	if m, err := p.Take(ctx); m != nil || err != nil || ready.IsReady() {
		t.Errorf("got %v, %v", m, err)
	}
	b.put(`1`)
	if m, err := p.Take(ctx); err != nil || !ready.IsReady() || *m != (Message{`1`, "a test", 5}) {
		t.Errorf("got %v, %v", m, err)
	}
	if w, lasts := ready.Lasting(); !lasts || w.Event != "go" || !w.At.IsZero() {
		t.Errorf("it waits for %+v", w)
	}
	if _ = ready.Close(); b.ready != nil {
		t.Error("it still waits")
	}
	b.put(`2`)
	if !subscribe(t, ctx, p).IsReady() {
		t.Error("a message that is there is not seen")
	}
}

// TestTimeout checks that the time to wait is counted once, however often the call sleeps.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := abi.WithMailboxes(t.Context(), &box{})
		minute := uint64(60_000)
		p := receive(t, ctx, &minute)
		ready := subscribe(t, ctx, p)
		time.Sleep(40 * time.Second)
		state, ok := p.Save()
		w, lasts := ready.Lasting()
		if !ok || !lasts || !w.At.Equal(time.Now().Add(20*time.Second)) {
			t.Fatalf("it lasts until %v", w.At)
		}
		restored := func(resource string, state []byte) any {
			v, err := new(Mailboxes).Restore(ctx, resource, state)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		again, after := restored("pending", state).(*Pending), restored("pollable", w.State).(*abi.Pollable)
		time.Sleep(19 * time.Second)
		if m, err := again.Take(ctx); m != nil || err != nil || after.IsReady() {
			t.Errorf("got %v, %v", m, err)
		}
		time.Sleep(2 * time.Second)
		if _, err := again.Take(ctx); !errors.Is(err, abi.ErrTimedOut) || !after.IsReady() || !ready.IsReady() {
			t.Errorf("got %v", err)
		}
		if !restored("pollable", w.State).(*abi.Pollable).IsReady() {
			t.Error("what woke after its time still waits")
		}
		huge := ^uint64(0)
		if w, _ := subscribe(t, ctx, receive(t, ctx, &huge)).Lasting(); !w.At.IsZero() {
			t.Errorf("it waits until %v", w.At)
		}
		for _, state := range []string{"", "{", `{"until":"soon"}`} {
			if v, err := new(Mailboxes).Restore(ctx, "pending", []byte(state)); err == nil {
				t.Errorf("%q makes %v", state, v)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	if _, err := new(Mailboxes).Receive(t.Context(), "go", nil); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	ctx := abi.WithMailboxes(t.Context(), &box{})
	for _, name := range []string{"", "a b", "a:b", "ä", string(make([]byte, 1<<20))} {
		if _, err := new(Mailboxes).Receive(ctx, name, nil); !errors.Is(err, abi.ErrInvalid) || len(err.Error()) > 1000 {
			t.Errorf("%.20q: got %v", name, err)
		}
	}
}

func TestDouble(t *testing.T) {
	test := &double.Test{Path: "tests[0].env.mail", Binding: "mail", Clock: double.NewClock()}
	var missing string
	test.Missing = func(_, what, line string) { missing = what + " " + line }
	opened, err := Rights{}.Double(t.Context(), test, []byte(`{"go": [1, null]}`))
	if err != nil {
		t.Fatal(err)
	}
	minute := uint64(60_000)
	receive := func() *awaited {
		t.Helper()
		p, err := opened.(*scripted).Receive(t.Context(), "go", &minute)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, want := range []string{"1", "null"} {
		p := receive()
		if ready, err := p.Subscribe(t.Context()); err != nil || !ready.IsReady() {
			t.Error(err)
		}
		if m, err := p.Take(t.Context()); err != nil || m.Data != want {
			t.Errorf("got %v, %v", m, err)
		}
	}
	p := receive()
	if ready, err := p.Subscribe(t.Context()); err != nil || ready.IsReady() || !test.Clock.Move() || !ready.IsReady() {
		t.Error("no time passes", err)
	}
	if _, err := p.Take(t.Context()); !errors.Is(err, abi.ErrTimedOut) {
		t.Errorf("got %v", err)
	}
	if _, err := opened.(*scripted).Receive(t.Context(), "other", nil); !errors.Is(err, abi.ErrUnavailable) || missing != `a message in other "other": [{}]` {
		t.Errorf("got %v; missing is %s", err, missing)
	}
	for _, answers := range []string{`[]`, `{"a b": []}`, `{"a": {}}`, `{"a": null}`} {
		if _, err := (Rights{}).Double(t.Context(), test, []byte(answers)); err == nil {
			t.Errorf("%s is accepted", answers)
		}
	}
}

func TestReachable(t *testing.T) {
	ctx := abi.WithMailboxes(t.Context(), &box{})
	if url, err := (&Mailboxes{Reachable: true}).URL(ctx, "go"); err != nil || url != "https://a.example/go" {
		t.Errorf("got %s, %v", url, err)
	}
	if _, err := new(Mailboxes).URL(ctx, "go"); !errors.Is(err, abi.ErrDenied) {
		t.Errorf("got %v", err)
	}
	if _, err := (&Mailboxes{Reachable: true}).URL(t.Context(), "go"); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if _, err := (&Mailboxes{Reachable: true}).URL(ctx, "a b"); !errors.Is(err, abi.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	plain, reachable := Rights{}, Rights{Reachable: true}
	if plain.Covers(reachable) || !reachable.Covers(plain) || !plain.Covers(plain) || !reachable.Covers(reachable) {
		t.Error("a grant covers more or less than it allows")
	}
	if got := reachable.Limit([]capability.Grant{plain}); got != plain {
		t.Errorf("a ceiling leaves %v", got)
	}
}

// signs gives the addresses of a test by how posts are verified.
type signs struct{ box }

func (*signs) Address(_ context.Context, mailbox string, v abi.Verify) (string, error) {
	return mailbox + " " + v.Secret + " " + v.As, nil
}

// TestVerified checks that a call obtains addresses with just the signature that its grant says.
func TestVerified(t *testing.T) {
	grant, err := parseSpec(capability.Spec{Name: "mail", Options: "reachable,verify=hook,as=hex:x-sig"})
	if err != nil {
		t.Fatal(err)
	}
	if lines := grant.Describe(); lines[1] != "is reachable from outside; posts must be signed with the secret hook (hex:X-Sig)" {
		t.Errorf("it says %q", lines)
	}
	opened, err := grant.(capability.Opener).Open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if url, err := opened.(*Mailboxes).URL(abi.WithMailboxes(t.Context(), &signs{}), "go"); err != nil || url != "go hook hex:X-Sig" {
		t.Errorf("got %s, %v", url, err)
	}
	user := grant.(capability.SecretUser)
	again, err := parseSpec(capability.Spec{Name: "mail", Options: user.Specs()[0][1:]})
	if err != nil || again != grant || len(user.Secrets()) != 1 || user.Secrets()[0] != "hook" {
		t.Errorf("%v uses %v, %v", again, user.Secrets(), err)
	}
	for _, options := range []string{
		"verify=hook,as=github", "reachable,verify=hook", "reachable,as=github", "reachable,verify=Hook,as=github", "reachable,verify=,as=github", "reachable,verify=hook,as=md5",
		"reachable,reachable", "reachable,verify=hook,as=github,verify=hook", "reachable,verify=hook,as=github,as=github", "reachable,", "reachable=1", "verify",
	} {
		if g, err := parseSpec(capability.Spec{Name: "mail", Options: options}); err == nil || strings.Contains(err.Error(), "Hook") {
			t.Errorf("%s: got %v, %v", options, g, err)
		}
	}
	for text, want := range map[string]string{
		`{"reachable": true, "verify": {"secret": "hook", "as": "base64:x-sig"}}`:            "base64:X-Sig",
		`{"reachable": true, "verify": {"secret": "hook", "as": "sha1:x"}}`:                  "",
		`{"reachable": true, "verify": {"secret": "Hook!", "as": "github"}}`:                 "",
		`{"reachable": true, "verify": {"secret": "hook"}}`:                                  "",
		`{"reachable": true, "verify": {"as": "github"}}`:                                    "",
		`{"reachable": true, "verify": {}}`:                                                  "",
		`{"reachable": true, "verify": true}`:                                                "",
		`{"reachable": true, "verify": null}`:                                                "",
		`{"reachable": true, "verify": {"secret": "hook", "as": "github", "more": 1}}`:       "",
		`{"verify": {"secret": "hook", "as": "github"}}`:                                     "",
		`{"reachable": false, "verify": {"secret": "hook", "as": "github"}}`:                 "",
		`{"reachable": true, "verify": {"secret": "hook", "secret": "two", "as": "github"}}`: "",
	} {
		r := jsonform.New("a test", []byte(text))
		n := r.Parse()
		var g Rights
		if r.Err == nil {
			g = parse(r, n).(Rights)
		}
		if (r.Err == nil) != (want != "") || r.Err == nil && g.Verify != (abi.Verify{Secret: "hook", As: want}) || r.Err != nil && strings.Contains(r.Err.Problem(), "Hook!") {
			t.Errorf("%s: got %v, %v", text, g, r.Err)
		}
	}
}

// TestCovers checks that a grant covers no address that it does not allow as it is, and that a ceiling never leaves more.
func TestCovers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grant := rapid.Custom(func(t *rapid.T) Rights {
			g := Rights{Reachable: rapid.Bool().Draw(t, "reachable")}
			if g.Reachable && rapid.Bool().Draw(t, "verified") {
				g.Verify = abi.Verify{Secret: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "secret"), As: rapid.SampledFrom([]string{"github", "stripe", "hex:X-A", "hex:X-B"}).Draw(t, "as")}
			}
			return g
		})
		a, b, c := grant.Draw(t, "a"), grant.Draw(t, "b"), grant.Draw(t, "c")
		if want := !b.Reachable || a == b; a.Covers(b) != want {
			t.Errorf("%v covers %v: %v", a, b, !want)
		}
		if !a.Covers(a) || a.Covers(b) && b.Covers(c) && !a.Covers(c) || a.Covers(b) && b.Covers(a) && a != b {
			t.Errorf("no order: %v, %v, %v", a, b, c)
		}
		ceiling := []capability.Grant{b, c}
		limited := a.Limit(ceiling)
		if limited == nil || !a.Covers(limited) || !capability.CoversAll(ceiling, []capability.Grant{limited}) {
			t.Errorf("within %v, %v has %v", ceiling, a, limited)
		}
		if (limited == a) != capability.CoversAll(ceiling, []capability.Grant{a}) {
			t.Errorf("within %v, %v has %v", ceiling, a, limited)
		}
		read, err := parseSpec(capability.Spec{Name: "m", Options: strings.TrimPrefix(a.Specs()[0], ",")})
		if err != nil || read != a {
			t.Errorf("%v is read as %v, %v", a, read, err)
		}
	})
}
