package host_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/usagetest"
)

// conversions are guests that pass or return as much as they can. n is the number of items.
var conversions = map[string]struct {
	uses, setup, call string // parts of the tool, with %d for n
	describe          string // replaces the default describe
	n                 []int  // the last is above the limit
}{
	"definitions": {
		describe: `(drop (memory.grow (i32.const 1000))) (i32.store (i32.const 64) (i32.const 131072)) (i32.store (i32.const 68) (i32.const %d)) (i32.const 64)`,
		n:        []int{1_000, 10_000, 20_000, 40_000, 1_500_000},
	},
	"definitions with one text": {
		describe: `(local $i i32) (drop (memory.grow (i32.const 400)))
			(loop $l
				(i32.store (i32.add (i32.const 131080) (i32.mul (local.get $i) (i32.const 40))) (i32.const 4000000))
				(i32.store (i32.add (i32.const 131084) (i32.mul (local.get $i) (i32.const 40))) (i32.const 1048576))
				(local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const %[1]d))))
			(i32.store (i32.const 64) (i32.const 131072)) (i32.store (i32.const 68) (i32.const %[1]d)) (i32.const 64)`,
		n: []int{8, 16, 1000},
	},
	"problems": {
		call: `(drop (memory.grow (i32.const 600))) (drop (call $error (i32.const 1)))
			(i32.store (i32.const 136) (i32.const 131072)) (i32.store (i32.const 140) (i32.const %d)) (i32.const 128)`,
		n: []int{20, 50_000, 80_000, 2_000_000},
	},
	"a result":            {call: `(drop (memory.grow (i32.const 700))) (call $ok (i32.const 0) (i32.const %d))`, n: []int{1 << 20, 17 << 20, 40 << 20}},
	"bytes":               {uses: "open put", call: `(drop (memory.grow (i32.const 100))) (call $put (local.get $box) (i32.const 0) (i32.const %d) (i32.const 256)) ` + returns, n: []int{262_144, 450_000, 3_300_000}},
	"bytes, in an option": {uses: "open nest", call: `(drop (memory.grow (i32.const 100))) (call $nest (local.get $box) (i32.const 1) (i32.const 0) (i32.const %d) (i32.const 256)) ` + returns, n: []int{262_144, 450_000, 3_300_000}},
	"a text":              {uses: "open text", call: `(drop (memory.grow (i32.const 700))) (call $text (local.get $box) (i32.const 65536) (i32.const %d)) ` + returns, n: []int{1 << 20, 16 << 20, 17 << 20, 40 << 20}},
	"a text after another": {uses: "open text", call: `(drop (memory.grow (i32.const 700))) (local.set $i (i32.const 2))
			(loop $l (call $text (local.get $box) (i32.const 65536) (i32.const %d))
				(br_if $l (local.tee $i (i32.sub (local.get $i) (i32.const 1))))) ` + returns, n: []int{16 << 20, 40 << 20}},
	"texts": {uses: "open texts", call: `(drop (memory.grow (i32.const 700))) (call $texts (local.get $box) (i32.const 65536) (i32.const %d)) ` + returns, n: []int{1_000, 200_000, 240_000, 5_000_000}},
	"one text in a list": {uses: "open texts", call: `(drop (memory.grow (i32.const 400)))
			(loop $l
				(i32.store (i32.add (i32.const 131072) (i32.mul (local.get $i) (i32.const 8))) (i32.const 4000000))
				(i32.store (i32.add (i32.const 131076) (i32.mul (local.get $i) (i32.const 8))) (i32.const 1048576))
				(local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const %[1]d))))
			(call $texts (local.get $box) (i32.const 131072) (i32.const %[1]d)) ` + returns, n: []int{8, 16, 1000}},
	"small texts in a list": {uses: "open texts", call: `(drop (memory.grow (i32.const 400)))
			(loop $l
				(i32.store (i32.add (i32.const 131076) (i32.mul (local.get $i) (i32.const 8))) (i32.const 1))
				(local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const %[1]d))))
			(call $texts (local.get $box) (i32.const 131072) (i32.const %[1]d)) ` + returns, n: []int{100_000, 230_000, 1_000_000}},
	"numbers": {uses: "open numbers", call: `(drop (memory.grow (i32.const 1000))) (call $numbers (local.get $box) (i32.const 65536) (i32.const %d)) ` + returns, n: []int{1_000, 50_000, 60_000, 80_000, 4_000_000}},
	"things":  {uses: "open things", call: `(drop (memory.grow (i32.const 1000))) (call $things (local.get $box) (i32.const 65536) (i32.const %d)) ` + returns, n: []int{256, 10_000, 15_000, 20_000, 600_000}},
	"lists of lists": {uses: "open nested", call: `(drop (memory.grow (i32.const 1000)))
			(loop $l
				(i32.store (i32.add (i32.const 131072) (i32.mul (local.get $i) (i32.const 8))) (i32.const 131072))
				(i32.store (i32.add (i32.const 131076) (i32.mul (local.get $i) (i32.const 8))) (i32.const %[1]d))
				(local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (i32.const %[1]d))))
			(call $nested (local.get $box) (i32.const 131072) (i32.const %[1]d)) ` + returns, n: []int{10, 70, 100, 1_000}},
	"a case of a variant": {uses: "open either", call: `(drop (memory.grow (i32.const 700))) (call $either (local.get $box) (i32.const 3) (i64.const 65536) (i32.const %d) (i32.const 0) (i32.const 0)) ` + returns, n: []int{1_000, 200_000, 5_000_000}},
}

// TestConversionsAreBounded has guests pass and return large values, one and many at once, each time in a separate process. It measures
// how far that process's peak memory rose. Memory that a guest wrote to counts too; here it is at most 8 MB. Many are as many as would
// need more than they may take together, if none waited; TestLongConversions has many of each kind.
func TestConversionsAreBounded(t *testing.T) {
	if wanted := os.Getenv("STILE_TEST_CONVERSION"); wanted != "" {
		convert(t, wanted)
		return
	}
	t.Parallel()
	convertAll(t, []string{"texts", "bytes", "a result", "definitions with one text"})
}

// convertAll measures every kind of conversion, and many at once of some kinds.
func convertAll(t *testing.T, many []string) {
	const one, together = 64 << 10, 512 << 10 // KiB
	grown := func(name string, i, callers, most int) int {
		w := fmt.Sprintf("%s;%d;%d", name, i, callers)
		kib, out, err := usagetest.Grown(t, "TestConversionsAreBounded", "STILE_TEST_CONVERSION="+w)
		if err != nil || kib > most {
			t.Errorf("%s: %v\n%s", w, err, out)
		}
		t.Logf("%s: %d KiB", w, kib)
		return kib
	}
	for name, c := range conversions {
		last := len(c.n) - 1
		for i := range last {
			kib := grown(name, i, 1, one)
			if i == last-1 && slices.Contains(many, name) {
				grown(name, i, min(32, 1+together*5/4/max(kib, 1)), together)
			}
		}
		grown(name, last, 1, one)
		grown(name, last, 32, together)
	}
}

// convert runs in the separate process.
func convert(t *testing.T, wanted string) {
	parts := strings.Split(wanted, ";")
	which, _ := strconv.Atoi(parts[1])
	callers, _ := strconv.Atoi(parts[2])
	c := conversions[parts[0]]
	h := newHost(t, host.Options{Limits: host.Limits{CPU: 20 * time.Second, Output: 64 << 20}})
	g := guest{uses: c.uses}
	if c.describe != "" {
		g.describe = fmt.Sprintf(c.describe, c.n[which])
	} else {
		g.call = fmt.Sprintf(c.call, c.n[which])
	}
	component, idle := g.load(t, h), guest{}.load(t, h)
	if _, err := idle.Call(t.Context(), "t", nil, nil); err != nil {
		t.Fatal(err)
	}
	errs := make([]error, callers)
	usagetest.Tell(t, func() {
		var ended sync.WaitGroup
		for i := range callers {
			ended.Go(func() { _, errs[i] = component.Call(t.Context(), "t", nil, host.Env{"box": &box{}}) })
		}
		ended.Wait()
	})
	for _, err := range errs {
		limit, limited := errors.AsType[*host.LimitError](err)
		if last := which == len(c.n)-1; last && (!limited || limit.Limit != "bytes") {
			t.Errorf("got %v", err)
		}
		if which == 0 && limited {
			t.Errorf("got %v", err)
		}
		t.Log(err)
	}
}
