package durable_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/durable"
)

// mail is a mailbox in the shape of a clock: to sleep is to wait for a message in "go", and the time is the number in the oldest.
type mail struct {
	deaf bool // nothing that comes while the call is awake wakes it
}

func (*mail) Interface() string { return clock.Interface }

func (*mail) Repeat(function string, _ []abi.Value) abi.Repeat {
	if function == "clock.now" {
		return abi.Repeats
	}
	return abi.Reads
}

func (*mail) Now(ctx context.Context) (uint64, error) {
	got, ok, err := abi.MailboxesOf(ctx).Take(ctx, "go")
	if err != nil || !ok {
		return 0, err
	}
	var n uint64
	return n, json.Unmarshal(got.Data, &n)
}

func (*mail) Monotonic(context.Context) uint64 { return 0 }

func (m *mail) Subscribe(ctx context.Context, _ uint64) (*abi.Pollable, error) {
	stop := func() {}
	p := abi.NewPollable(func() { stop() }).Lasts(abi.Wait{Event: "go"})
	if m.deaf {
		return p, nil
	}
	var err error
	stop, err = abi.MailboxesOf(ctx).Watch(ctx, "go", p.SetReady)
	return p, err
}

func (m *mail) Restore(ctx context.Context, _ string, _ []byte) (any, error) {
	if m.deaf {
		return abi.Ready(), nil // it looks itself
	}
	return m.Subscribe(ctx, 0)
}

const receive = `const receive = async () => { for (;;) { const n = env.mail.now(); if (n) return n; await env.mail.sleep(1); } };`

func send(t *testing.T, runs *durable.Runs, run string, n int, key string) bool {
	t.Helper()
	delivered, err := runs.Signal(t.Context(), run, "go", durable.Message{Data: fmt.Append(nil, n), Key: key, From: "a test"})
	if err != nil {
		t.Fatal(err)
	}
	return delivered
}

// TestMessagesInOrder delivers messages before the run waits, while it waits awake and while it sleeps, from its own process and from another.
func TestMessagesInOrder(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, receive+`
		const got = [];
		for (let i = 0; i < 6; i++) got.push(await receive());
		return got;`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	send(t, s.runs, run.Name, 1, "")
	send(t, s.runs, run.Name, 2, "")
	other, err := open(t.Context(), s.dir, s.cacheDir, s.keyDir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.close() }()
	send(t, other.runs, run.Name, 3, "")
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	if r, err := s.runs.Get(t.Context(), run.Name); err != nil || !r.Wake.IsZero() {
		t.Errorf("it wakes at %v, %v", r.Wake, err)
	}
	send(t, other.runs, run.Name, 4, "") // asleep
	send(t, s.runs, run.Name, 5, "")
	for {
		left, err := s.runs.Messages(t.Context(), run.Name)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			break
		}
		<-time.After(time.Millisecond)
	}
	send(t, other.runs, run.Name, 6, "") // likely awake
	r, err := s.runs.Wait(t.Context(), run.Name)
	if err != nil || string(r.Output) != `[1,2,3,4,5,6]` {
		t.Errorf("got %s %s %v %v", r.State, r.Output, r.Err(), err)
	}
	_, err = s.runs.Signal(t.Context(), run.Name, "go", durable.Message{Data: []byte(`7`)})
	if ended, ok := errors.AsType[*durable.EndedError](err); !ok || ended.State != durable.Done {
		t.Errorf("got %v", err)
	}
}

// TestMessageBeforeSleep delivers a message after the last look of a run and before its sleep: nothing in memory tells the run.
func TestMessageBeforeSleep(t *testing.T) {
	s := newStored(t)
	s.mail.deaf = true
	spec := program(t, s.shop, s.cacheDir, s.keyDir, receive+`return [await receive(), await receive()];`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s.runs.Work()
	for s.until(t, run.Name, durable.Running); ; { // it is awake for 20 ms
		send(t, s.runs, run.Name, 1, "only")
		if left, err := s.runs.Messages(t.Context(), run.Name); err != nil || len(left) == 0 {
			break
		}
	}
	send(t, s.runs, run.Name, 2, "")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if r, err := s.runs.Wait(ctx, run.Name); err != nil || string(r.Output) != `[1,2]` {
		t.Errorf("got %s %s %v %v", r.State, r.Output, r.Err(), err)
	}
}

// TestMessageKeys delivers messages again: with their key, they count once, even when the run has taken them long ago.
func TestMessageKeys(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, receive+`
		const got = [];
		while (got.at(-1) !== 9) got.push(await receive());
		return got;`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if !send(t, s.runs, run.Name, 1, "a") || send(t, s.runs, run.Name, 2, "a") || !send(t, s.runs, run.Name, 3, "b") {
		t.Error("a key counts twice, or not once")
	}
	s.runs.Work()
	s.until(t, run.Name, durable.Asleep)
	if send(t, s.runs, run.Name, 4, "a") {
		t.Error("a key counts again once its message is taken")
	}
	send(t, s.runs, run.Name, 5, "")
	send(t, s.runs, run.Name, 5, "")
	send(t, s.runs, run.Name, 9, "")
	if r, err := s.runs.Wait(t.Context(), run.Name); err != nil || string(r.Output) != `[1,3,5,5,9]` {
		t.Errorf("got %s %s %v %v", r.State, r.Output, r.Err(), err)
	}
}

func TestMessageLimits(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `return 1;`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	large := []byte(`"` + strings.Repeat("x", durable.MaxMessage-2) + `"`)
	signal := func(mailbox string, m durable.Message) error {
		_, err := s.runs.Signal(t.Context(), run.Name, mailbox, m)
		return err
	}
	for name, m := range map[string]durable.Message{
		"go": {Data: append(large, ' ')}, "a": {Data: []byte(`{`)}, "b": {}, "c": {Data: []byte("\"\xff\"")}, "d": {Data: []byte(`1`), Key: strings.Repeat("k", 300)},
		"": {Data: []byte(`1`)}, "child:1": {Data: []byte(`1`)}, strings.Repeat("n", 65): {Data: []byte(`1`)}, "ä": {Data: []byte(`1`)},
	} {
		if err := signal(name, m); !errors.As(err, new(*durable.MessageError)) {
			t.Errorf("%.20q: got %v", name, err)
		}
	}
	full := func(mailbox, what string) {
		t.Helper()
		if err, ok := errors.AsType[*durable.FullError](signal(mailbox, durable.Message{Data: large})); !ok || err.What != what {
			t.Errorf("got %v", err)
		}
	}
	for range durable.MaxMessages {
		if err := signal("go", durable.Message{Data: large}); err != nil {
			t.Fatal(err)
		}
	}
	full("go", "messages in the mailbox")
	for i := range durable.MaxMailboxes - 2 {
		if err := signal(fmt.Sprint("m", i), durable.Message{Data: []byte(`1`)}); err != nil {
			t.Fatal(err)
		}
	}
	for range (durable.MaxWaiting - durable.MaxMessages*durable.MaxMessage) / durable.MaxMessage {
		for i := range durable.MaxMailboxes - 2 {
			if err = signal(fmt.Sprint("m", i), durable.Message{Data: large}); err != nil {
				break
			}
		}
	}
	if e, ok := errors.AsType[*durable.FullError](err); !ok || e.What != "bytes of messages" {
		t.Errorf("got %v", err)
	}
	if err := signal("one-more", durable.Message{Data: []byte(`1`)}); err != nil {
		t.Error(err)
	}
	full("two-more", "mailboxes with messages")
	if _, err := s.runs.Signal(t.Context(), "none", "go", durable.Message{Data: []byte(`1`)}); !errors.As(err, new(*durable.UnknownError)) {
		t.Errorf("got %v", err)
	}
	if _, err := s.runs.Cancel(t.Context(), run.Name); err != nil {
		t.Fatal(err)
	}
	if left, err := s.runs.Messages(t.Context(), run.Name); err != nil || len(left) != 0 {
		t.Errorf("its end leaves %d messages, %v", len(left), err)
	}
}

// TestAlteredMessage alters messages in the file. The run is parked before it gets one.
func TestAlteredMessage(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, receive+`return await receive();`)
	for name, statements := range map[string][]string{
		"a byte":          {flip("message", "body", "true")},
		"another mailbox": {`UPDATE message SET mailbox = 'go' WHERE mailbox = 'stop'`, `DELETE FROM message WHERE n = (SELECT min(n) FROM message)`},
		"another run":     {`DELETE FROM message WHERE n = (SELECT min(n) FROM message)`, `UPDATE message SET run = (SELECT min(id) FROM run), mailbox = 'go'`},
		"another place":   {`UPDATE message SET n = n + 1000`},
	} {
		t.Run(name, func(t *testing.T) {
			run, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			other, _, err := s.runs.Start(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			send(t, s.runs, run.Name, 1, "")
			if _, err := s.runs.Signal(t.Context(), run.Name, "stop", durable.Message{Data: []byte(`2`)}); err != nil {
				t.Fatal(err)
			}
			send(t, s.runs, other.Name, 3, "")
			s.change(t, statements...)
			s.runs.Work(run.Name)
			if r := s.until(t, run.Name, durable.Parked); !strings.Contains(r.Reason, "damaged") {
				t.Errorf("it is parked because %s", r.Reason)
			}
			s.change(t, `DELETE FROM run`, `DELETE FROM message`)
		})
	}
}

// TestAlteredSignal alters a message for a tool that catches all errors. The run is parked all the same.
func TestAlteredSignal(t *testing.T) {
	s := newStored(t)
	spec := program(t, s.shop, s.cacheDir, s.keyDir, `try { return await env.signals.receive("go"); } catch (e) { return e.message; }`)
	run, _, err := s.runs.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	send(t, s.runs, run.Name, 1, "")
	s.change(t, flip("message", "body", "true"))
	s.runs.Work()
	if r := s.until(t, run.Name, durable.Parked); !strings.Contains(r.Reason, "damaged") {
		t.Errorf("it is parked because %s", r.Reason)
	}
}
