package host

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/wit"
)

// FuzzState reads states that nobody wrote. What is accepted has runs within the memory that it says.
func FuzzState(f *testing.F) {
	text, err := json.Marshal(savedCall{Component: "c", Size: 65536, Parked: nil})
	if err != nil {
		f.Fatal(err)
	}
	state := append(binary.AppendUvarint([]byte{stateVersion}, uint64(len(text))), text...)
	f.Add(state)
	run := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 512), 8)
	f.Add(append(state, append(run, "12345678"...)...))
	f.Add([]byte{stateVersion, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, state []byte) {
		s, runs, err := readState(state)
		if err != nil {
			return
		}
		for len(runs) > 0 {
			at, length := binary.LittleEndian.Uint32(runs), binary.LittleEndian.Uint32(runs[4:])
			if uint64(at)+uint64(length) > uint64(s.Size) {
				t.Fatalf("a run at %d of %d bytes is outside of %d", at, length, s.Size)
			}
			runs = runs[8+length:]
		}
	})
}

// FuzzLogged reads entries of logs that nobody wrote.
func FuzzLogged(f *testing.F) {
	h := reading(f)
	e := newEntry(entryWhole)
	e.text("stile:capability/clock@0.1.0#[method]clock.now")
	e.arguments(nil, nil)
	e.sized(func() { e.number(7) })
	e.bytes([]byte("state"))
	f.Add(e.buf)
	f.Add([]byte{entryAnswer, 0, 0, 0, 0})
	f.Add(incremented(entryWhole|entryNamed, "store", 7))
	f.Add([]byte{entryBegun, 1, 'x', 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := readLogged(b)
		if err == nil && e.kind != entryAnswer && len(e.args) == 0 {
			t.Fatalf("%+v has no arguments", e)
		}
		j := &journal{Durable: &Durable{}, rest: [][]byte{b}}
		_, _ = j.next(b)
		r := h.NewLogReader()
		o, _, err := r.Read(b)
		for _, text := range []string{o.String(), o.Answer, o.Code} {
			if printable.OneLine(text) != text {
				t.Fatalf("%q is not one printable line", text)
			}
		}
		if err == nil && o.Open {
			if o, _, err = r.Read(b); err == nil {
				t.Fatalf("what began is answered by what begins: %+v", o)
			}
		}
	})
}

// reading is a host that only reads logs. It knows a secret.
func reading(tb testing.TB) *Host {
	tb.Helper()
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		tb.Fatal(err)
	}
	return &Host{known: known, options: Options{Redact: func(b []byte) []byte { return bytes.ReplaceAll(b, []byte("hunter2"), []byte("[secret]")) }}}
}

// incremented is an entry of increment, with an answer unless it only begins.
func incremented(kind int, key string, answer int64) []byte {
	e := newEntry(kind)
	e.text("shop")
	e.text("stile:capability/kv@0.1.0#[method]bucket.increment")
	e.byte(argsWhole)
	e.sized(func() {
		e.number(5)
		e.text(key)
		e.signed(1)
	})
	if kind&^entryNamed == entryWhole {
		e.sized(func() {
			e.number(0)
			e.signed(answer)
		})
	}
	return e.buf
}

// TestLogReader reads a log for people: what is whole, what only begins, errors, secrets, and what is too large to read.
func TestLogReader(t *testing.T) {
	h := reading(t)
	answer := func(write func(*encoder)) []byte {
		e := newEntry(entryAnswer)
		e.sized(func() { write(e) })
		return e.buf
	}
	r := h.NewLogReader()
	used := newEntry(entryUsed)
	used.text("web")
	used.bytes([]byte("state"))
	long := newEntry(entryWhole | entryNamed)
	long.text("\x1b[31mfiles")
	long.text("stile:capability/kv@0.1.0#[method]bucket.get")
	long.byte(argsDigest)
	long.sized(func() { put(long, binary.LittleEndian.AppendUint64(nil, 5000)); put(long, make([]byte, 32)) })
	long.sized(func() { long.number(0); long.number(1); long.bytes(make([]byte, maxLogged)) })
	for _, c := range []struct {
		entry []byte
		want  LoggedOperation
	}{
		{incremented(entryWhole|entryNamed, "hunter2\n\x1b[2J", 7), LoggedOperation{Binding: "shop", Function: "increment", Args: `"[secret]\n\x1b[2J", 1`, Answer: "7"}},
		{incremented(entryRepeats|entryNamed, "k", 0), LoggedOperation{Binding: "shop", Function: "increment", Args: `"k", 1`, Open: true}},
		{answer(func(e *encoder) { e.number(1); e.number(uint64(abi.CodeInterrupted)); e.text("it may have happened") }), LoggedOperation{
			Binding: "shop", Function: "increment", Args: `"k", 1`, Code: "interrupted", Answer: `"it may have happened"`,
		}},
		{long.buf, LoggedOperation{Binding: `\x1b[31mfiles`, Function: "get", Args: "(5000 bytes)", Answer: "(65541 bytes)"}},
	} {
		if !BeginsOperation(c.entry) != (c.want.Code != "") {
			t.Errorf("%+v begins an operation, or does not", c.want)
		}
		if _, ok, err := r.Read(used.buf); ok || err != nil || BeginsOperation(used.buf) {
			t.Errorf("what a binding has used is an operation: %v", err)
		}
		got, ok, err := r.Read(c.entry)
		if err != nil || !ok || got != c.want {
			t.Errorf("got %+v, %v; want %+v", got, err, c.want)
		}
	}
	if _, _, err := r.Read(answer(func(e *encoder) { e.number(0) })); err == nil {
		t.Error("an answer to nothing is read")
	}
	for answer, want := range map[string]string{"https://a.example/signals/dG9rZW4": `"https://a.example/signals/[address]"`, "dG9rZW4": "[address]"} {
		made := newEntry(entryWhole | entryNamed)
		made.text("mail")
		made.text(addressOperation)
		made.byte(argsWhole)
		made.sized(func() { made.number(5); made.text("paid") })
		made.sized(func() { made.number(0); made.text(answer) })
		if got, _, err := r.Read(made.buf); err != nil || got.String() != `mail.url("paid")` || got.Answer != want {
			t.Errorf("%s is shown as %+v, %v", answer, got, err)
		}
	}
	if got := string(h.Redact([]byte("my hunter2"))); got != "my [secret]" {
		t.Errorf("got %s", got)
	}
}

// TestOldLog has a log go on whose entries do not name their bindings.
func TestOldLog(t *testing.T) {
	named := incremented(entryWhole|entryNamed, "k", 7)
	old := append([]byte{entryWhole}, unnamed(named)...)
	for _, logged := range [][]byte{named, old} {
		j := &journal{Durable: &Durable{}, rest: [][]byte{logged}}
		if e, err := j.next(incremented(entryBegun|entryNamed, "k", 0)); err != nil || e.kind != entryWhole {
			t.Errorf("got %+v, %v", e, err)
		}
	}
}

// A value that can be made again keeps its call awake, because a state has only values that are lost.
func TestMadeAgainStaysAwake(t *testing.T) {
	h := &handle{resource: &abi.Resource{Interface: &abi.Interface{Name: "stile:capability/http"}, Name: "exchange"}, binding: "web", dead: abi.ErrInterrupted, again: &repeated{}}
	if s, err := new(call).saveHandle(1, h); !errkind.Is[*awakeError](err) {
		t.Errorf("it became %+v, %v", s, err)
	}
	h.again = nil
	if s, err := new(call).saveHandle(1, h); err != nil || s.Dead == nil {
		t.Errorf("it became %+v, %v", s, err)
	}
}
