package toolchain

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
)

// The functions of stile:extension/memory use the upper end of the engine's stack, which is empty between two steps: for the text that
// the host passes (it may need twice its bytes while it arrives), for the sums, and at the very end for the text that they return.
const (
	scratchSize = 32 << 10
	scratchSums = 16 << 10
	scratchText = scratchSize - 8
)

// writeMemory writes a function of stile:extension/memory. None may change the memory outside of its scratch, unless that is its purpose.
func writeMemory(b *strings.Builder, l *linkage, f *abi.Func, stackTop uint32) {
	scratch := stackTop - scratchSize
	params, results := f.Core(false)
	define := func(locals, body string) {
		fmt.Fprintf(b, "  (func (export %q)%s%s\n%s  )\n", coreName(f), signature(params, results), locals, body)
	}
	// text returns an address in local 0 and a length in local 1.
	text := fmt.Sprintf(`    (i32.store (i32.const %[1]d) (local.get 0))
    (i32.store offset=4 (i32.const %[1]d) (local.get 1))
    (i32.const %[1]d)
`, scratch+scratchText)
	switch f.Name {
	case "size":
		define("", "    (i32.mul (memory.size) (i32.const 65536))\n")
		fmt.Fprintf(b, "  (func (export \"scratch\") (param i32 i32 i32 i32) (result i32) (i32.const %d))\n", scratch)
	case "grow":
		define("", `    (local.set 0 (i32.sub (i32.div_u (local.get 0) (i32.const 65536)) (memory.size)))
    (if (i32.gt_s (local.get 0) (i32.const 0))
      (then (if (i32.lt_s (memory.grow (local.get 0)) (i32.const 0)) (then (call $stile:limit-memory)))))
`)
	case "peek":
		define("", text)
	case "patch":
		// Runs are of whole words. The host adds code to memory.copy.
		define(" (local $end i32) (local $to i32) (local $last i32)", `    (local.set $end (i32.add (local.get 0) (local.get 1)))
    (block $done (loop $run
      (br_if $done (i32.ge_u (local.get 0) (local.get $end)))
      (local.set $to (i32.load (local.get 0)))
      (local.set $last (i32.add (local.get $to) (i32.load offset=4 (local.get 0))))
      (local.set 0 (i32.add (local.get 0) (i32.const 8)))
      (loop $word
        (i64.store (local.get $to) (i64.load (local.get 0)))
        (local.set 0 (i32.add (local.get 0) (i32.const 8)))
        (br_if $word (i32.lt_u (local.tee $to (i32.add (local.get $to) (i32.const 8))) (local.get $last))))
      (br $run)))
`)
	case "sums":
		define(" (local $out i32) (local $key i32) (local $end i32) (local $a v128) (local $b v128) (local $x v128) (local $y v128)", sumsText(scratch)+
			strings.NewReplacer("(local.get 0)", fmt.Sprintf("(i32.const %d)", scratch+scratchSums),
				"(local.get 1)", fmt.Sprintf("(i32.sub (local.get $out) (i32.const %d))", scratch+scratchSums)).Replace(text))
	case "discard":
		for i, r := range l.drops {
			if r.Interface.Name == abi.EnvInterface {
				define("", fmt.Sprintf("    (call $import%d (local.get 0))\n", len(l.calls)+i))
			}
		}
	default: // adopt: the handle is in the table of the instance, where it stays
		define("", "")
	}
}

// sumsText sums pages up with the universal hash NH, under a secret key and, for the other 8 bytes, under the same key shifted by 32
// bytes. Whoever does not know the key finds two pages with the same sums with a probability of 2^-64.
func sumsText(scratch uint32) string {
	var step strings.Builder
	for at := 0; at < 64; at += 32 {
		fmt.Fprintf(&step, `        (local.set $x (v128.load offset=%[1]d (local.get 0)))
        (local.set $y (v128.load offset=%[2]d (local.get 0)))
`, at, at+16)
		for _, sum := range []struct {
			name  string
			shift int
		}{{"$a", 0}, {"$b", 32}} {
			x := fmt.Sprintf("(i32x4.add (local.get $x) (v128.load offset=%d (local.get $key)))", at+sum.shift)
			y := fmt.Sprintf("(i32x4.add (local.get $y) (v128.load offset=%d (local.get $key)))", at+sum.shift+16)
			fmt.Fprintf(&step, "        (local.set %[1]s (i64x2.add (local.get %[1]s) (i64x2.add (i64x2.extmul_low_i32x4_u %[2]s %[3]s) (i64x2.extmul_high_i32x4_u %[2]s %[3]s))))\n",
				sum.name, x, y)
		}
	}
	return fmt.Sprintf(`    (local.set $out (i32.const %[1]d))
    (block $done (loop $page
      (br_if $done (i32.eqz (local.get 1)))
      (local.set $end (i32.add (local.get 0) (i32.const 4096)))
      (local.set $key (local.get 2))
      (local.set $a (v128.const i64x2 0 0))
      (local.set $b (v128.const i64x2 0 0))
      (if (i32.lt_u (i32.sub (local.get 0) (i32.const %[2]d)) (i32.const %[3]d))
        (then (local.set 0 (local.get $end)))
        (else (loop $words
%[4]s          (local.set $key (i32.add (local.get $key) (i32.const 64)))
          (br_if $words (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 64))) (local.get $end))))))
      (i64.store (local.get $out) (i64.add (i64x2.extract_lane 0 (local.get $a)) (i64x2.extract_lane 1 (local.get $a))))
      (i64.store offset=8 (local.get $out) (i64.add (i64x2.extract_lane 0 (local.get $b)) (i64x2.extract_lane 1 (local.get $b))))
      (local.set $out (i32.add (local.get $out) (i32.const 16)))
      (local.set 1 (i32.sub (local.get 1) (i32.const 1)))
      (br $page)))
`, scratch+scratchSums, scratch, scratchSize, step.String())
}
