package host

import (
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/errkind"
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
	e := newEntry(entryWhole)
	e.text("stile:capability/clock@0.1.0#[method]clock.now")
	e.arguments(nil, nil)
	e.sized(func() { e.number(7) })
	e.bytes([]byte("state"))
	f.Add(e.buf)
	f.Add([]byte{entryAnswer, 0, 0, 0, 0})
	f.Add([]byte{entryBegun, 1, 'x', 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := readLogged(b)
		if err == nil && e.kind != entryAnswer && len(e.args) == 0 {
			t.Fatalf("%+v has no arguments", e)
		}
		j := &journal{Durable: &Durable{}, rest: [][]byte{b}}
		_, _ = j.next(b)
	})
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
