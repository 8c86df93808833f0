package toolchain

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
)

// randomBytes is the function that generators are seeded with.
const randomBytes = "wasi:random/random@0.2.0#get-random-bytes"

// generator is a random generator in the memory of a module: the ChaCha8 of Go, internal/chacha8rand.State. It has a buffer of numbers, then
// a seed, how many numbers of the buffer are used, how many it has, and a counter of blocks. It fits what it was made of, so it can be told
// from anything else.
type generator struct {
	at uint32
	// more is whether 8 bytes behind it are random too: in Go's runtime, those of a faster generator.
	more bool
}

const (
	generatorNumbers = 32
	generatorSeed    = 8 * generatorNumbers
	generatorUsed    = generatorSeed + 32
	generatorHas     = generatorUsed + 4
	generatorBlock   = generatorHas + 4
	generatorMore    = generatorBlock + 8
	generatorSize    = generatorMore + 8
	// newSeed is how many random bytes each gets. The first one's buffer takes those of all.
	newSeed        = 40
	mostGenerators = generatorSeed / newSeed
	// mostLikely is how many are examined.
	mostLikely = 10_000
)

// seeded finds the generators whose seeds came from random numbers that the initialization drew. a and b are the same but for these numbers. The
// reason says why a must not be used.
func seeded(a, b *initialized) (found []generator, reason string) {
	if bytes.Equal(a.memory, b.memory) && sameValues(a.values, b.values) {
		return nil, ""
	}
	const kept = "it keeps random numbers that its initialization draws"
	if a.draws != 1 || a.drawn != 32 || !sameValues(a.values, b.values) || len(a.memory) != len(b.memory) { // Go's runtime draws one seed
		return nil, kept
	}
	likely := 0
	for at := 0; at+generatorSize <= len(a.memory); at += 8 {
		x, y := a.memory[at:][:generatorSize], b.memory[at:][:generatorSize]
		if !isLikely(x) || bytes.Equal(x[generatorSeed:generatorUsed], y[generatorSeed:generatorUsed]) {
			continue
		}
		if likely++; likely > mostLikely {
			return nil, kept
		}
		if isGenerator(x) && isGenerator(y) {
			found = append(found, generator{uint32(at), !bytes.Equal(x[generatorMore:], y[generatorMore:])})
		}
	}
	if len(found) == 0 || len(found) > mostGenerators {
		return nil, kept
	}
	return found, ""
}

func sameValues(a, b map[int]any) bool {
	for k, v := range a {
		if v != b[k] { // also for one that is not a number
			return false
		}
	}
	return true
}

// isLikely is a quick look at what may be a generator.
func isLikely(g []byte) bool {
	used, has, block := binary.LittleEndian.Uint32(g[generatorUsed:]), binary.LittleEndian.Uint32(g[generatorHas:]), binary.LittleEndian.Uint32(g[generatorBlock:])
	return used <= has && (has == 32 && block%4 == 0 && block < 12 || has == 28 && block == 12)
}

// isGenerator reports whether the numbers in the buffer are those of the seed.
func isGenerator(g []byte) bool {
	if !isLikely(g) {
		return false
	}
	r := rand.NewChaCha8([32]byte(g[generatorSeed:generatorUsed]))
	for range binary.LittleEndian.Uint32(g[generatorBlock:]) / 4 * generatorNumbers {
		r.Uint64()
	}
	for k := range int(binary.LittleEndian.Uint32(g[generatorHas:])) {
		if r.Uint64() != binary.LittleEndian.Uint64(g[8*k:]) {
			return false
		}
	}
	return true
}

// seedText is a core module that seeds generators when it is instantiated. The host writes random bytes into the buffer of the first, whose seed
// takes the address and the length meanwhile. Buffers are used up then.
func seedText(generators []generator) string {
	var b strings.Builder
	first := generators[0].at
	fmt.Fprintf(&b, `(module $seed
  (import "world" %q (func $random (param i64 i32)))
  (import "guest" "memory" (memory 0))
  (func $start
    (call $random (i64.const %d) (i32.const %d))
    (if (i32.ne (i32.load (i32.const %[4]d)) (i32.const %[2]d)) (then unreachable))
`, randomBytes, newSeed*len(generators), first+generatorSeed, first+generatorSeed+4)
	for k, g := range generators {
		from := first + uint32(k*newSeed)
		fmt.Fprintf(&b, "    (memory.copy (i32.const %d) (i32.const %d) (i32.const 32))\n", g.at+generatorSeed, from)
		fmt.Fprintf(&b, "    (i32.store (i32.const %d) (i32.const 32)) (i32.store (i32.const %d) (i32.const 32)) (i32.store (i32.const %d) (i32.const 0))\n",
			g.at+generatorUsed, g.at+generatorHas, g.at+generatorBlock)
		if g.more {
			fmt.Fprintf(&b, "    (i64.store (i32.const %d) (i64.or (i64.load (i32.const %d)) (i64.const 1)))\n", g.at+generatorMore, from+32)
		}
	}
	for _, g := range generators {
		fmt.Fprintf(&b, "    (memory.fill (i32.const %d) (i32.const 0) (i32.const %d))\n", g.at, generatorSeed)
	}
	b.WriteString("  )\n  (start $start))\n")
	return b.String()
}
