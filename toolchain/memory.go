package toolchain

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
)

// The functions of stile:extension/memory use the upper end of the engine's stack, which is empty between two steps: for the text that
// the host passes, for what becomes the text that they return, for that text, and at the very end for where it is.
const (
	scratchSize    = 64 << 10
	scratchBlocks  = 1 << 10 // where the text of blocks begins: after the longest list of them
	scratchChanges = 14 << 10
	scratchText    = 32 << 10
	scratchPair    = scratchSize - 8
)

// changedPages is how many pages the function changes returns at most.
const changedPages = 64

// writeMemory writes a function of stile:extension/memory. None may change the memory outside of its scratch, unless that is its purpose.
func writeMemory(b *strings.Builder, l *linkage, f *abi.Func, stackTop uint32) {
	scratch := stackTop - scratchSize
	params, results := f.Core(false)
	define := func(locals, body string) {
		fmt.Fprintf(b, "  (func (export %q)%s%s\n%s  )\n", coreName(f), signature(params, results), locals, body)
	}
	// answer returns the text from an address to $end.
	answer := func(at int) string {
		return fmt.Sprintf(`    (i32.store (i32.const %[1]d) (i32.const %[2]d))
    (i32.store offset=4 (i32.const %[1]d) (i32.sub (local.get $end) (i32.const %[2]d)))
    (i32.const %[1]d)
`, scratch+scratchPair, int(scratch)+at)
	}
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
		define(" (local $list i32) (local $at i32) (local $end i32)", fmt.Sprintf(`    (local.set $list (call $stile:decode (local.get 0) (local.get 1)))
    (local.set $end (i32.const %d))
    (block $done (loop $block
      (br_if $done (i32.ge_u (local.get 0) (local.get $list)))
      (local.set $at (i32.load (local.get 0)))
      (local.set $end (call $stile:encode (local.get $at) (i32.add (local.get $at) (i32.const 256)) (local.get $end)))
      (local.set 0 (i32.add (local.get 0) (i32.const 4)))
      (br $block)))
`, scratch+scratchBlocks)+answer(scratchBlocks))
	case "patch":
		// Runs are of whole words. The host adds code to memory.copy.
		define(" (local $end i32) (local $to i32) (local $last i32)", `    (local.set $end (call $stile:decode (local.get 0) (local.get 1)))
    (block $done (loop $run
      (br_if $done (i32.ge_u (local.get 0) (local.get $end)))
      (local.set $to (i32.load (local.get 0)))
      (local.set $last (i32.add (local.get $to) (i32.load offset=4 (local.get 0))))
      (local.set 0 (i32.add (local.get 0) (i32.const 8)))
      (br_if $run (i32.ge_u (local.get $to) (local.get $last)))
      (loop $word
        (i64.store (local.get $to) (i64.load (local.get 0)))
        (local.set 0 (i32.add (local.get 0) (i32.const 8)))
        (br_if $word (i32.lt_u (local.tee $to (i32.add (local.get $to) (i32.const 8))) (local.get $last))))
      (br $run)))
`)
	case "changes":
		define(" (local $end i32) (local $block i32) (local $key i32) (local $known i32) (local $out i32) (local $a v128) (local $b v128) (local $x v128) (local $y v128)",
			changesText(scratch)+answer(scratchText))
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

// textCode has the functions between bytes and the texts that stand for them. Decoding happens in place. Both return the end of what
// they wrote.
const textCode = `  (func $stile:encode (param $at i32) (param $end i32) (param $to i32) (result i32)
    (local $word i64) (local $high i64) (local $shift i64)
    (block $done (loop $group
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $high (i64.const 0))
      (local.set $shift (i64.const 1))
      (loop $next
        (i64.store (local.get $to) (i64.and (local.tee $word (i64.load (local.get $at))) (i64.const 0x7f7f7f7f7f7f7f7f)))
        (local.set $high (i64.or (local.get $high) (i64.shr_u (i64.and (local.get $word) (i64.const 0x8080808080808080)) (local.get $shift))))
        (local.set $shift (i64.add (local.get $shift) (i64.const 1)))
        (local.set $to (i32.add (local.get $to) (i32.const 8)))
        (br_if $next (i32.and (i64.lt_u (local.get $shift) (i64.const 8))
          (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (local.get $end)))))
      (i64.store (local.get $to) (local.get $high))
      (local.set $to (i32.add (local.get $to) (i32.const 8)))
      (br $group)))
    (local.get $to))
  (func $stile:decode (param $at i32) (param $length i32) (result i32)
    (local $to i32) (local $end i32) (local $last i32) (local $high i64) (local $shift i64)
    (local.set $to (local.get $at))
    (local.set $end (i32.add (local.get $at) (local.get $length)))
    (block $done (loop $group
      (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
      (local.set $last (i32.add (local.get $at) (i32.const 56)))
      (if (i32.ge_u (local.get $last) (local.get $end)) (then (local.set $last (i32.sub (local.get $end) (i32.const 8)))))
      (local.set $high (i64.load (local.get $last)))
      (local.set $shift (i64.const 1))
      (loop $next
        (i64.store (local.get $to) (i64.or (i64.load (local.get $at))
          (i64.and (i64.shl (local.get $high) (local.get $shift)) (i64.const 0x8080808080808080))))
        (local.set $shift (i64.add (local.get $shift) (i64.const 1)))
        (local.set $to (i32.add (local.get $to) (i32.const 8)))
        (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (local.get $last))))
      (local.set $at (i32.add (local.get $last) (i32.const 8)))
      (br $group)))
    (local.get $to))
`

// changesText sums blocks of 256 bytes up with the universal hash NH, under a secret key and, for the other 8 bytes, under the same key
// shifted by 32 bytes. Whoever does not know the key finds two pages with the same sums with a probability of 2^-64.
//
// It skips the engine's stack, which is empty.
func changesText(scratch uint32) string {
	stack := scratch + scratchSize - guestStack
	var sum strings.Builder
	for at := 0; at < 256; at += 32 {
		fmt.Fprintf(&sum, `        (local.set $x (v128.load offset=%[1]d (local.get 0)))
        (local.set $y (v128.load offset=%[2]d (local.get 0)))
`, at, at+16)
		for _, s := range []struct {
			name  string
			shift int
		}{{"$a", 0}, {"$b", 32}} {
			x := fmt.Sprintf("(i32x4.add (local.get $x) (v128.load offset=%d (local.get $key)))", at+s.shift)
			y := fmt.Sprintf("(i32x4.add (local.get $y) (v128.load offset=%d (local.get $key)))", at+s.shift+16)
			fmt.Fprintf(&sum, "        (local.set %[1]s (i64x2.add (local.get %[1]s) (i64x2.add (i64x2.extmul_low_i32x4_u %[2]s %[3]s) (i64x2.extmul_high_i32x4_u %[2]s %[3]s))))\n",
				s.name, x, y)
		}
	}
	return fmt.Sprintf(`    (drop (call $stile:decode (local.get 2) (local.get 3)))
    (local.set $known (i32.add (local.get 2) (i32.const 4128)))
    (local.set $out (i32.const %[1]d))
    (block $done (loop $page
      (br_if $done (i32.or (i32.eqz (local.get 1)) (i32.eq (local.get $out) (i32.const %[2]d))))
      (local.set $end (i32.add (local.get 0) (i32.const 4096)))
      (if (i32.lt_u (i32.sub (local.get 0) (i32.const %[3]d)) (i32.const %[4]d))
        (then (local.set 0 (local.get $end)))
        (else
          (i32.store (local.get $out) (local.get 0))
          (local.set $key (local.get 2))
          (local.set $block (local.get $out))
          (loop $sum
            (local.set $a (v128.const i64x2 0 0))
            (local.set $b (v128.const i64x2 0 0))
%[5]s            (local.set $block (i32.add (local.get $block) (i32.const 16)))
            (v128.store (local.get $block) (i64x2.add
              (i8x16.shuffle 0 1 2 3 4 5 6 7 16 17 18 19 20 21 22 23 (local.get $a) (local.get $b))
              (i8x16.shuffle 8 9 10 11 12 13 14 15 24 25 26 27 28 29 30 31 (local.get $a) (local.get $b))))
            (local.set $key (i32.add (local.get $key) (i32.const 256)))
            (br_if $sum (i32.lt_u (local.tee 0 (i32.add (local.get 0) (i32.const 256))) (local.get $end))))
          (local.set $x (v128.load (local.get $known)))
          (loop $total
            (local.set $x (i64x2.sub (local.get $x) (v128.load (local.get $block))))
            (br_if $total (i32.gt_u (local.tee $block (i32.sub (local.get $block) (i32.const 16))) (local.get $out))))
          (if (v128.any_true (local.get $x)) (then (local.set $out (i32.add (local.get $out) (i32.const 272)))))))
      (local.set $known (i32.add (local.get $known) (i32.const 16)))
      (local.set 1 (i32.sub (local.get 1) (i32.const 1)))
      (br $page)))
    (local.set $end (call $stile:encode (i32.const %[1]d) (local.get $out) (i32.const %[6]d)))
`, scratch+scratchChanges, scratch+scratchChanges+changedPages*272, stack, uint32(guestStack), sum.String(), scratch+scratchText)
}
