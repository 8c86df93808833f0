package random

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/capability/double"
)

// Kind is the random numbers of this machine.
var Kind = capability.NewSwitch(capability.Switched{
	Kind: capability.Kind{
		Name: "random", Interface: Interface, Example: "true", Harmless: true, Globals: []string{"crypto", "Math.random"},
		Learn: func(*double.Recording, string) double.Answerer { return &recorded{} },
	},
	Unasked:   true,
	Says:      "may draw random numbers",
	New:       func(*capability.Site) abi.Capability { return System() },
	NewDouble: newDouble,
})

// seed is the seed of every test's random numbers.
var seed = [32]byte([]byte("stile tests draw the same number"))

// newDouble makes random numbers that follow from seed, in each handle. If the test lists bytes, in hex, all handles together draw these first.
func newDouble(t *double.Test, answers json.RawMessage) (abi.Capability, error) {
	if answers == nil {
		return Seeded(seed), nil
	}
	var text string
	err := double.Strict(answers, &text)
	first, notHex := hex.DecodeString(text)
	if err != nil || notHex != nil || text == "" {
		return nil, t.Wrong(": not the bytes to draw", `a text in hex, such as "00ff17"`)
	}
	drawn := &shared{source: io.MultiReader(bytes.NewReader(first), rand.NewChaCha8(seed))}
	return &Random{open: func() io.Reader { return drawn }}, nil
}

// shared is what several sequences draw from.
type shared struct {
	mu     sync.Mutex
	source io.Reader
}

// Read implements [io.Reader]. It reads all of b.
func (s *shared) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return io.ReadFull(s.source, b)
}

// recorded is a binding of a recorded call: the bytes that it gave.
type recorded struct{ drawn []byte }

// Learn implements [double.Learner].
func (r *recorded) Learn(o double.Operation) (double.Learner, error) {
	switch v := o.Value.(type) {
	case uint64:
		r.drawn = binary.LittleEndian.AppendUint64(r.drawn, v)
	case []byte:
		r.drawn = append(r.drawn, v...)
	default:
		if o.Failed == "" {
			return nil, double.ErrUnanswered
		}
	}
	if len(r.drawn) > double.MaxRecorded/2 {
		return nil, double.ErrUnanswered
	}
	return r, nil
}

// Answers implements [double.Answerer].
func (r *recorded) Answers() (any, error) {
	if len(r.drawn) == 0 {
		return nil, nil
	}
	return hex.EncodeToString(r.drawn), nil
}
