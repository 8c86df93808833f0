package host_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/wit"
)

func TestValuesOfRecording(t *testing.T) {
	records := &kept{}
	h := newHost(t, host.Options{Recorder: records})
	c := guest{uses: "open fetch put", call: fetchOnce + `(call $put (local.get $box) (i32.const 0) (i32.const 60000) (i32.const 256)) ` + returns}.load(t, h)
	if _, err := c.Call(t.Context(), "t", nil, host.Env{"box": &numbered{}}); err != nil {
		t.Fatal(err)
	}
	r := records.last(t)
	all, err := r.Values(h.WIT())
	if err != nil || len(all) != 3 {
		t.Fatalf("got %+v, %v", all, err)
	}
	if open := all[0]; open.Func != "get" || !reflect.DeepEqual(open.Args, []abi.Value{abi.Rep(1), "box"}) || !reflect.DeepEqual(open.Answer, abi.Variant{Value: abi.Rep(2)}) {
		t.Errorf("got %+v", open)
	}
	if fetch := all[1]; fetch.Binding != "box" || fetch.Type == nil || !reflect.DeepEqual(fetch.Args, []abi.Value{abi.Rep(2), uint32(8)}) || string(fetch.Answer.([]byte)) != "22222222" {
		t.Errorf("got %+v", fetch)
	}
	if put := all[2]; put.Type == nil || put.Args != nil {
		t.Errorf("arguments of which there is only a digest: %+v", put)
	}
	other, err := abi.ParseCapability(wit.Capability())
	if err != nil {
		t.Fatal(err)
	}
	if all, err := r.Values(other); err != nil || all[1].Type != nil || all[1].Args != nil || all[1].Answer != nil {
		t.Errorf("an interface that is not known: %+v, %v", all, err)
	}
	r.Operations = r.Operations[:len(r.Operations)-1]
	if all, err := r.Values(h.WIT()); len(all) != 2 || !isDamaged(err) {
		t.Errorf("got %+v, %v", all, err)
	}
}

func isDamaged(err error) bool {
	_, ok := errors.AsType[*host.DamagedError](err)
	return ok
}

// TestForgedOperations reads more operations than a host records.
func TestForgedOperations(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability())
	if err != nil {
		t.Fatal(err)
	}
	one := make([]byte, 12)
	r := host.Recording{Operations: append(make([]byte, 16), bytes.Repeat(one, 3<<20)...), Recorded: 3<<20 + 1}
	if list, err := r.Values(known); !isDamaged(err) || len(list) != 1<<20 {
		t.Errorf("%d operations, %v", len(list), err)
	}
	// Each value takes a byte here, and 40 bytes when it is read.
	const many = 5 << 20
	answer := append(binary.AppendUvarint(nil, many), make([]byte, 2*many)...)
	r = host.Recording{Operations: forged(abi.EnvInterface, "[method]env.names", []byte{1}, answer), Recorded: 1}
	if list, err := r.Values(known); !isDamaged(err) || len(list) != 0 {
		t.Errorf("%d operations of many values, %v", len(list), err)
	}
	if list, err := r.All(known); !isDamaged(err) || len(list) != 0 {
		t.Errorf("%d operations of many values, %v", len(list), err)
	}
	// The last value is among arguments, and nothing follows that could not be read.
	const pairs = (4<<20 - 2) / 3
	answer = append(binary.AppendUvarint(nil, pairs), make([]byte, 2*pairs)...)
	operations := forged(abi.EnvInterface, "[method]env.names", []byte{1}, answer)
	logs := forged("stile:capability/console@0.1.0", "[method]console.log", []byte{2, 0, 0}, nil)
	logs[0] = 1 // another function
	r = host.Recording{Operations: append(operations, logs...), Recorded: 2}
	if list, err := r.All(known); !isDamaged(err) || len(list) != 1 {
		t.Errorf("%d operations, the last with one value too many: %v", len(list), err)
	}
	// The names stand once, and each of the operations has them.
	name := strings.Repeat("n", 10_000)
	r = host.Recording{Operations: append(forged(name, name, nil, nil), bytes.Repeat(one, 400_000)...), Recorded: 400_001}
	if list, err := r.All(known); !isDamaged(err) || len(list) == 0 || len(list) > 300_000 {
		t.Errorf("%d operations with long names, %v", len(list), err)
	}
}

// TestForgedReplay replays a call that makes none of the operations of its recording, which have 100,000 texts each.
func TestForgedReplay(t *testing.T) {
	c := guest{}.load(t, newHost(t, host.Options{}))
	const many, texts = 300, 100_000
	one := forged("test:cap/box@1.0.0", "[method]box.texts", append(binary.AppendUvarint([]byte{2}, texts), make([]byte, texts)...), nil)
	operations := one
	for range many - 1 {
		operations = append(operations, 0) // the same function
		operations = append(operations, one[bytes.LastIndexByte(one[:60], 's')+1:]...)
	}
	r := host.Recording{Operations: operations, Recorded: many, Tool: "t", Component: c.Digest(), Input: []byte("{}")}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := c.Replay(t.Context(), &r, host.ReplayOptions{Deny: true})
	runtime.ReadMemStats(&after)
	if err != nil || len(got.Differences)+got.DifferencesDropped < many {
		t.Errorf("%d differences and %d more, %v", len(got.Differences), got.DifferencesDropped, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<30 {
		t.Errorf("it took %d MiB", took>>20)
	}
}

// forged is the recorded form of an operation.
func forged(in, name string, args, answer []byte) []byte {
	b := []byte{0}
	for _, s := range []string{in, name} {
		b = append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...)
	}
	b = append(b, 0) // the binding
	for _, part := range [][]byte{args, answer} {
		b = append(binary.LittleEndian.AppendUint32(append(b, 0), uint32(len(part))), part...)
	}
	return b
}

// TestForgedPark replays a recording with an operation that no host records.
func TestForgedPark(t *testing.T) {
	h := newHost(t, host.Options{})
	c := guest{call: returns}.load(t, h)
	r := &host.Recording{Component: c.Digest(), Tool: "t", Input: []byte("{}"), Operations: forged(abi.PollInterface, "park", []byte{1, 2}, []byte{1}), Recorded: 1}
	if got, err := c.Replay(t.Context(), r, host.ReplayOptions{Deny: true}); err != nil || got.Recorded != 1 || got.Answered != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}
