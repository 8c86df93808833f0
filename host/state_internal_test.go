package host

import (
	"encoding/binary"
	"encoding/json"
	"testing"
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
		j := &journal{rest: [][]byte{b}}
		_, _ = j.next(b)
	})
}
