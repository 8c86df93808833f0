// Package random gives a guest random numbers: the capability stile:capability/random.
package random

import (
	"context"
	cryptorand "crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/stilehost/stile/abi"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/random.wit.
const Interface = "stile:capability/random@0.1.0"

// maxBytes is how many bytes one call of Bytes returns at most.
const maxBytes = 65_536

// Random is the right to draw random numbers. It is immutable and safe for concurrent use.
type Random struct {
	open func() io.Reader
}

// System returns random numbers fit for secrets, from the operating system.
func System() *Random {
	return &Random{open: func() io.Reader { return cryptorand.Reader }}
}

// Seeded returns numbers that follow from seed (ChaCha8): every call that uses it draws the same sequence from its start.
func Seeded(seed [32]byte) *Random {
	return &Random{open: func() io.Reader { return rand.NewChaCha8(seed) }}
}

// Interface implements [abi.Capability].
func (r *Random) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Random) Quick() []string { return []string{"get"} }

// Open implements [abi.Opener]; the value is a [*Sequence].
func (r *Random) Open(context.Context) (any, error) { return &Sequence{source: r.open()}, nil }

// Sequence is the random numbers of one call. It is safe for concurrent use.
type Sequence struct {
	mu     sync.Mutex
	source io.Reader
}

// Repeat implements [abi.Repeatable].
func (*Sequence) Repeat(string, []abi.Value) abi.Repeat { return abi.Reads }

// Quick implements [abi.Quick].
func (*Sequence) Quick() []string { return []string{"random.u64", "random.bytes"} }

// Lists implements [abi.Bounded].
func (*Sequence) Lists() map[string]int {
	return map[string]int{"random.bytes.result": maxBytes}
}

// U64 returns a number, each equally likely.
func (s *Sequence) U64(context.Context) (uint64, error) {
	var b [8]byte
	err := s.read(b[:])
	return binary.LittleEndian.Uint64(b[:]), err
}

var randomLimit = fmt.Sprintf("one operation returns at most %d", maxBytes)

// Bytes returns length random bytes; above 65,536 the error is [abi.ErrTooLarge].
func (s *Sequence) Bytes(_ context.Context, length uint32) ([]byte, error) {
	if length > maxBytes {
		return nil, abi.TooLarge(uint64(length), randomLimit)
	}
	b := make([]byte, length)
	return b, s.read(b)
}

func (s *Sequence) read(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := io.ReadFull(s.source, b); err != nil {
		return abi.Errorf(abi.CodeUnavailable, "random: %v", err)
	}
	return nil
}
