package random

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"sync"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/captest"
	"github.com/stilehost/stile/wit"
)

var _ abi.Opener = (*Random)(nil)

func open(t *testing.T, r *Random) *Sequence {
	t.Helper()
	v, err := r.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v.(*Sequence)
}

// draw takes a mixed sequence: a number, some bytes, a number.
func draw(t *testing.T, s *Sequence) (first uint64, b []byte, last uint64) {
	t.Helper()
	first, err1 := s.U64(t.Context())
	b, err2 := s.Bytes(t.Context(), 33)
	last, err3 := s.U64(t.Context())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return first, b, last
}

func TestMatchesWIT(t *testing.T) {
	captest.Implements(t, wit.Capability(), Interface, nil, reflect.TypeFor[*Sequence]())
}

func TestSeededRepeats(t *testing.T) {
	r := Seeded([32]byte{1})
	a1, a2, a3 := draw(t, open(t, r))
	b1, b2, b3 := draw(t, open(t, r))
	if a1 != b1 || !bytes.Equal(a2, b2) || a3 != b3 {
		t.Error("two calls with one seed differ")
	}
	if c1, _, _ := draw(t, open(t, Seeded([32]byte{2}))); c1 == a1 {
		t.Error("another seed gives the same numbers")
	}
}

func TestSystemDoesNotRepeat(t *testing.T) {
	a1, a2, a3 := draw(t, open(t, System()))
	b1, b2, b3 := draw(t, open(t, System()))
	if a1 == b1 || bytes.Equal(a2, b2) || a3 == b3 || a1 == a3 {
		t.Error("system randomness repeats")
	}
}

func TestBytesLimit(t *testing.T) {
	s := open(t, System())
	for _, tt := range []struct {
		length uint32
		want   error
	}{
		{0, nil}, {1, nil}, {65_536, nil}, {65_537, abi.ErrTooLarge}, {math.MaxUint32, abi.ErrTooLarge},
	} {
		b, err := s.Bytes(t.Context(), tt.length)
		if !errors.Is(err, tt.want) {
			t.Errorf("%d: %v, want %v", tt.length, err, tt.want)
		}
		if err == nil && len(b) != int(tt.length) {
			t.Errorf("%d: got %d bytes", tt.length, len(b))
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := open(t, Seeded([32]byte{}))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				_, _ = s.U64(t.Context())
				_, _ = s.Bytes(t.Context(), 100)
			}
		})
	}
	wg.Wait()
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("no entropy") }

func TestSourceFails(t *testing.T) {
	s := &Sequence{source: broken{}}
	if _, err := s.U64(t.Context()); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("u64: %v", err)
	}
	if _, err := s.Bytes(t.Context(), 1); !errors.Is(err, abi.ErrUnavailable) {
		t.Errorf("bytes: %v", err)
	}
}
