package host

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
)

// This file generates WebAssembly: parts of modules, all instructions that the engine accepts, and random functions made of them.

// Value types.
const (
	tI32, tI64, tF32, tF64, tV128, tFuncref, tExternref = 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f
)

var valueTypes = []byte{tI32, tI64, tF32, tF64, tV128}

func leb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func cat(parts ...[]byte) []byte { return slices.Concat(parts...) }

// vec is a vector: the number of items and the items.
func vec(items ...[]byte) []byte { return cat(leb(len(items)), cat(items...)) }

func repeat(n int, b ...byte) []byte { return slices.Repeat(b, n) }

// sized is content with a length prefix.
func sized(content []byte) []byte { return cat(leb(len(content)), content) }

func sectionOf(id byte, items ...[]byte) []byte {
	if len(items) == 0 {
		return nil
	}
	return cat([]byte{id}, sized(vec(items...)))
}

// componentOf is a component made of core modules.
func componentOf(modules ...[]byte) []byte {
	b := []byte("\x00asm\x0d\x00\x01\x00")
	for _, m := range modules {
		b = cat(b, []byte{1}, sized(m))
	}
	return b
}

// funcType is a function type.
func funcType(params, results []byte) []byte {
	return cat([]byte{0x60}, sized(params), sized(results))
}

// testModule has the parts of a module, each encoded.
type testModule struct {
	types, imports, funcs, tables, memories, globals, exports, elements, bodies, data [][]byte
	dataCount                                                                         bool
}

func (m *testModule) encode() []byte {
	var count []byte
	if m.dataCount {
		count = cat([]byte{12}, sized(leb(len(m.data))))
	}
	return cat([]byte("\x00asm\x01\x00\x00\x00"), sectionOf(1, m.types...), sectionOf(2, m.imports...), sectionOf(3, m.funcs...),
		sectionOf(4, m.tables...), sectionOf(5, m.memories...), sectionOf(6, m.globals...), sectionOf(7, m.exports...),
		sectionOf(9, m.elements...), count, sectionOf(10, m.bodies...), sectionOf(11, m.data...))
}

// addType returns the index of a function type.
func (m *testModule) addType(params, results []byte) int {
	m.types = append(m.types, funcType(params, results))
	return len(m.types) - 1
}

// add adds a function.
func (m *testModule) add(typ int, locals []byte, code ...[]byte) {
	m.funcs = append(m.funcs, leb(typ))
	var groups [][]byte
	for i := 0; i < len(locals); {
		n := 1
		for i+n < len(locals) && locals[i+n] == locals[i] {
			n++
		}
		groups = append(groups, cat(leb(n), locals[i:i+1]))
		i += n
	}
	m.bodies = append(m.bodies, sized(cat(vec(groups...), cat(code...), []byte{0x0b})))
}

// newModule has a memory, a table of functions, a passive segment of each kind, a mutable global of each type and function type 0, which is empty.
func newModule() *testModule {
	m := &testModule{dataCount: true}
	m.addType(nil, nil)
	m.memories = [][]byte{{0, 1}}
	m.tables = [][]byte{{tFuncref, 0, 10}}
	for _, t := range valueTypes {
		m.globals = append(m.globals, cat([]byte{t, 1}, zeroOf(t), []byte{0x0b}))
	}
	m.elements = [][]byte{{1, 0, 0}}
	m.data = [][]byte{{1, 1, 'x'}}
	return m
}

func zeroOf(t byte) []byte {
	switch t {
	case tI32:
		return []byte{0x41, 0}
	case tI64:
		return []byte{0x42, 0}
	case tF32:
		return cat([]byte{0x43}, make([]byte, 4))
	case tF64:
		return cat([]byte{0x44}, make([]byte, 8))
	case tV128:
		return cat([]byte{0xfd, 12}, make([]byte, 16))
	}
	return []byte{0xd0, t}
}

// op is an instruction with operands on the stack.
type op struct {
	code    []byte // with immediates
	in, out []byte
}

// ops has all instructions except control, variable and constant instructions.
var ops = func() (all []op) {
	letters := map[byte]byte{'i': tI32, 'l': tI64, 'f': tF32, 'd': tF64, 'v': tV128, 'r': tFuncref}
	types := func(s string) (b []byte) {
		for i := range s {
			b = append(b, letters[s[i]])
		}
		return b
	}
	add := func(code []byte, in, out string) { all = append(all, op{code, types(in), types(out)}) }
	plain := func(from, to byte, in, out string) {
		for c := int(from); c <= int(to); c++ {
			add([]byte{byte(c)}, in, out)
		}
	}
	memory := func(from byte, in, out string, n int) {
		for i := range n {
			add([]byte{from + byte(i), 0, 16}, in, out)
		}
	}
	memory(0x28, "i", "i", 1)
	memory(0x29, "i", "l", 1)
	memory(0x2a, "i", "f", 1)
	memory(0x2b, "i", "d", 1)
	memory(0x2c, "i", "i", 4)
	memory(0x30, "i", "l", 6)
	memory(0x36, "ii", "", 1)
	memory(0x37, "il", "", 1)
	memory(0x38, "if", "", 1)
	memory(0x39, "id", "", 1)
	memory(0x3a, "ii", "", 2)
	memory(0x3c, "il", "", 3)
	add([]byte{0x3f, 0}, "", "i")
	add([]byte{0x40, 0}, "i", "i")
	plain(0x45, 0x45, "i", "i")
	plain(0x46, 0x4f, "ii", "i")
	plain(0x50, 0x50, "l", "i")
	plain(0x51, 0x5a, "ll", "i")
	plain(0x5b, 0x60, "ff", "i")
	plain(0x61, 0x66, "dd", "i")
	plain(0x67, 0x69, "i", "i")
	plain(0x6a, 0x78, "ii", "i")
	plain(0x79, 0x7b, "l", "l")
	plain(0x7c, 0x8a, "ll", "l")
	plain(0x8b, 0x91, "f", "f")
	plain(0x92, 0x98, "ff", "f")
	plain(0x99, 0x9f, "d", "d")
	plain(0xa0, 0xa6, "dd", "d")
	for i, s := range []string{
		"li", "fi", "fi", "di", "di", "il", "il", "fl", "fl", "dl", "dl", "if", "if", "lf", "lf", "df", "id", "id", "ld", "ld", "fd",
		"fi", "dl", "if", "ld", "ii", "ii", "ll", "ll", "ll",
	} {
		plain(0xa7+byte(i), 0xa7+byte(i), s[:1], s[1:])
	}
	for i, s := range []string{"fi", "fi", "di", "di", "fl", "fl", "dl", "dl"} {
		add([]byte{0xfc, byte(i)}, s[:1], s[1:])
	}
	add([]byte{0xfc, 8, 0, 0}, "iii", "")
	add([]byte{0xfc, 10, 0, 0}, "iii", "")
	add([]byte{0xfc, 11, 0}, "iii", "")
	add([]byte{0xfc, 12, 0, 0}, "iii", "")
	add([]byte{0xfc, 14, 0, 0}, "iii", "")
	add([]byte{0xfc, 9, 0}, "", "")
	add([]byte{0xfc, 13, 0}, "", "")
	add([]byte{0xfc, 16, 0}, "", "i")
	add(cat([]byte{0xd0, tFuncref}, zeroOf(tI32), []byte{0xfc, 15, 0, 0x1a}), "", "") // null, grow, drop
	add(cat(zeroOf(tI32), []byte{0xd0, tFuncref}, zeroOf(tI32), []byte{0xfc, 17, 0}), "", "")
	add([]byte{0x25, 0, 0xd1}, "i", "i") // table.get, is it null
	add([]byte{0xd0, tFuncref, 0x26, 0}, "i", "")
	for _, t := range "ilfdv" {
		add([]byte{0x1b}, string(t)+string(t)+"i", string(t))
		if t == 'v' {
			all = all[:len(all)-1]
		}
		add([]byte{0x1c, 1, letters[byte(t)]}, string(t)+string(t)+"i", string(t))
	}
	simd := func(n int, in, out string, immediates ...byte) { add(cat([]byte{0xfd}, leb(n), immediates), in, out) }
	span := func(from, to int, in, out string, immediates ...byte) {
		for n := from; n <= to; n++ {
			simd(n, in, out, immediates...)
		}
	}
	span(0, 10, "i", "v", 0, 16)
	simd(11, "iv", "", 0, 16)
	simd(13, "vv", "v", 0, 17, 2, 19, 4, 21, 6, 23, 8, 25, 10, 27, 12, 29, 14, 31)
	simd(14, "vv", "v")
	for i, s := range []string{"i", "i", "i", "l", "f", "d"} {
		simd(15+i, s, "v")
	}
	for i, s := range []string{"v.i", "v.i", "vi.v", "v.i", "v.i", "vi.v", "v.i", "vi.v", "v.l", "vl.v", "v.f", "vf.v", "v.d", "vd.v"} {
		dot := slices.Index([]byte(s), '.')
		simd(21+i, s[:dot], s[dot+1:], 1)
	}
	span(35, 76, "vv", "v")
	simd(77, "v", "v")
	span(78, 81, "vv", "v")
	simd(82, "vvv", "v")
	simd(83, "v", "i")
	span(84, 87, "iv", "v", 0, 16, 1)
	span(88, 91, "iv", "", 0, 16, 1)
	span(92, 93, "i", "v", 0, 16)
	shapes := map[string]string{"1": "v.v", "2": "vv.v", "s": "vi.v", "t": "v.i"}
	for n, kind := range map[int]string{
		94: "1", 95: "1", 96: "1", 97: "1", 98: "1", 99: "t", 100: "t", 101: "2", 102: "2", 103: "1", 104: "1", 105: "1", 106: "1", 107: "s", 108: "s", 109: "s",
		110: "2", 111: "2", 112: "2", 113: "2", 114: "2", 115: "2", 116: "1", 117: "1", 118: "2", 119: "2", 120: "2", 121: "2", 122: "1", 123: "2", 124: "1", 125: "1", 126: "1", 127: "1",
		128: "1", 129: "1", 130: "2", 131: "t", 132: "t", 133: "2", 134: "2", 135: "1", 136: "1", 137: "1", 138: "1", 139: "s", 140: "s", 141: "s",
		142: "2", 143: "2", 144: "2", 145: "2", 146: "2", 147: "2", 148: "1", 149: "2", 150: "2", 151: "2", 152: "2", 153: "2", 155: "2", 156: "2", 157: "2", 158: "2", 159: "2",
		160: "1", 161: "1", 163: "t", 164: "t", 167: "1", 168: "1", 169: "1", 170: "1", 171: "s", 172: "s", 173: "s", 174: "2", 177: "2", 181: "2", 182: "2", 183: "2", 184: "2", 185: "2", 186: "2",
		188: "2", 189: "2", 190: "2", 191: "2", 192: "1", 193: "1", 195: "t", 196: "t", 199: "1", 200: "1", 201: "1", 202: "1", 203: "s", 204: "s", 205: "s", 206: "2", 209: "2", 213: "2",
		214: "2", 215: "2", 216: "2", 217: "2", 218: "2", 219: "2", 220: "2", 221: "2", 222: "2", 223: "2", 224: "1", 225: "1", 227: "1", 228: "2", 229: "2", 230: "2", 231: "2", 232: "2", 233: "2", 234: "2", 235: "2",
		236: "1", 237: "1", 239: "1", 240: "2", 241: "2", 242: "2", 243: "2", 244: "2", 245: "2", 246: "2", 247: "2", 248: "1", 249: "1", 250: "1", 251: "1", 252: "1", 253: "1", 254: "1", 255: "1",
	} {
		s := shapes[kind]
		dot := slices.Index([]byte(s), '.')
		simd(n, s[:dot], s[dot+1:])
	}
	slices.SortFunc(all, func(a, b op) int { return slices.Compare(a.code, b.code) })
	return all
}()

// sweep is a function body that repeats the instruction n times. Its operands are locals or its earlier results. Each result is
// stored in one of width locals of its type, and all locals are stored at the end, so that the compiler cannot drop any. With width
// 0, a result stays on the stack as an operand of the next instruction.
func (o op) sweep(n, width int) (locals, code []byte) {
	width, chain := max(1, width), width == 0
	at := map[byte]int{} // the first local of each type
	for _, t := range valueTypes {
		if slices.Contains(o.in, t) || slices.Contains(o.out, t) {
			at[t] = len(locals)
			locals = append(locals, repeat(width, t)...)
		}
	}
	get := func(op, t byte, i int) {
		if t != tFuncref {
			code = cat2(code, op, at[t]+i%width)
		}
	}
	for _, t := range valueTypes {
		if first, ok := at[t]; ok {
			for i := range width {
				code = append(code, 0x23, byte(slices.Index(valueTypes, t)))
				code = cat2(code, 0x21, first+i)
			}
		}
	}
	chain = chain && len(o.in) > 0 && len(o.out) > 0 && o.in[0] == o.out[0]
	if chain {
		get(0x20, o.in[0], 0)
	}
	for i := range n {
		for k, t := range o.in {
			if k > 0 || !chain {
				get(0x20, t, i*(2*k+1)+k)
			}
		}
		code = append(code, o.code...)
		for _, t := range o.out {
			if !chain {
				get(0x21, t, i*7+3)
			}
		}
	}
	if chain {
		get(0x21, o.out[0], 0)
	}
	for _, t := range o.out {
		for i := range width {
			get(0x20, t, i)
			code = append(code, 0x24, byte(slices.Index(valueTypes, t)))
		}
	}
	return locals, code
}

// back turns a value of one type into another one.
func back(from, to byte) []byte {
	via := map[[2]byte]string{
		{tI32, tI64}: "\xac", {tI32, tF32}: "\xbe", {tI32, tF64}: "\xb7", {tI32, tV128}: "\xfd\x11",
		{tI64, tI32}: "\xa7", {tI64, tF32}: "\xb4", {tI64, tF64}: "\xbf", {tI64, tV128}: "\xfd\x12",
		{tF32, tI32}: "\xbc", {tF32, tI64}: "\xbc\xac", {tF32, tF64}: "\xbb", {tF32, tV128}: "\xfd\x13",
		{tF64, tI32}: "\xbd\xa7", {tF64, tI64}: "\xbd", {tF64, tF32}: "\xb6", {tF64, tV128}: "\xfd\x14",
		{tV128, tI32}: "\xfd\x1b\x00", {tV128, tI64}: "\xfd\x1d\x00", {tV128, tF32}: "\xfd\x1f\x00", {tV128, tF64}: "\xfd\x21\x00",
	}
	return []byte(via[[2]byte{from, to}])
}

// inBranches repeats the instruction n times on its own result, which is read only in branches. Without effects, each branch computes
// the whole chain again.
func (o op) inBranches(n int) (locals, code []byte) {
	locals = valueTypes[:5]
	at := func(t byte) byte { return byte(slices.Index(valueTypes, t)) }
	for i := range locals {
		code = append(code, 0x23, byte(i), 0x21, byte(i))
	}
	to := o.in[0]
	step := o.code
	for _, t := range slices.Backward(o.in) {
		step = cat([]byte{0x20, at(t)}, step)
	}
	step = cat(step, back(o.out[0], to), []byte{0x21, at(to)})
	return locals, cat(code, times(n, step, []byte{0x23, 0, 0x04, 0x40, 0x20, at(to), 0x24, at(to), 0x0b}))
}

func cat2(code []byte, op byte, index int) []byte {
	return binary.AppendUvarint(append(code, op), uint64(index))
}

// randomModule is a module of random parts, with some thousand instructions in total. Each function has its own preferences, so that some
// are extreme.
func randomModule(r *rand.Rand, budget int) []byte {
	m := newModule()
	upTo := func(most int) int { // small numbers as likely as large ones
		return int(math.Exp(r.Float64()*math.Log(float64(most+1)))) - 1
	}
	signatures := []struct{ params, results []byte }{{}}
	some := func(most int) (types []byte) {
		for range upTo(most) {
			types = append(types, valueTypes[r.IntN(5)])
		}
		return types
	}
	widest := upTo(60)
	for range 1 + upTo(300) {
		s := struct{ params, results []byte }{some(widest), some(widest)}
		signatures = append(signatures, s)
		m.addType(s.params, s.results)
	}
	var funcs []int
	for i := range upTo(200) {
		t := r.IntN(len(signatures))
		m.imports = append(m.imports, cat(name(i), name(i), []byte{0}, leb(t)))
		funcs = append(funcs, t)
	}
	imported := len(funcs)
	for range upTo(2000) {
		t := valueTypes[r.IntN(5)]
		m.globals = append(m.globals, cat([]byte{t, 1}, zeroOf(t), []byte{0x0b}))
	}
	for range upTo(2000) {
		m.data = append(m.data, cat([]byte{0, 0x41}, sleb(r.IntN(65_000)), []byte{0x0b}, sized(make([]byte, upTo(200)))))
	}
	most := min(500, budget/10)
	if r.IntN(2) == 0 {
		most = 2 // few functions, which may be long
	}
	for range 1 + upTo(most) {
		funcs = append(funcs, r.IntN(len(signatures)))
	}
	for i := range upTo(len(funcs)) {
		m.exports = append(m.exports, cat(name(i), []byte{0}, leb(i)))
	}
	var all [][]byte
	for range upTo(1000) {
		all = append(all, leb(r.IntN(len(funcs))))
	}
	m.elements = append(m.elements, cat([]byte{1, 0}, vec(all...)))
	for _, t := range funcs[imported:] {
		s := signatures[t]
		locals := slices.Clone(valueTypes)
		for range upTo(400) {
			locals = append(locals, valueTypes[r.IntN(5)])
		}
		slices.Sort(locals)
		g := &codegen{rand: r, locals: cat(s.params, locals), results: s.results, module: m, funcs: funcs, deepest: upTo(100), highest: upTo(300)}
		for i := range g.likes {
			g.likes[i] = upTo(1000)
		}
		for range 1 + r.IntN(5) {
			g.favourites = append(g.favourites, ops[r.IntN(len(ops))])
		}
		for _, s := range signatures {
			g.params, g.gives = append(g.params, s.params), append(g.gives, s.results)
		}
		g.budget = budget / (len(funcs) - imported)
		for i, t := range g.locals { // so that the compiler does not know their values
			g.code = cat(g.code, []byte{0x23, byte(slices.Index(valueTypes, t))}, set(i))
		}
		g.block(nil, s.results)
		m.add(t, locals, g.code)
	}
	return m.encode()
}

// codegen writes the body of a function.
type codegen struct {
	rand       *rand.Rand
	module     *testModule
	funcs      []int
	params     [][]byte // by type
	gives      [][]byte
	locals     []byte
	results    []byte
	likes      [12]int
	favourites []op

	budget, deepest, highest int
	code, stack              []byte
	labels                   [][]byte // the types that a jump takes
}

// get puts a value of a type on the stack.
func (g *codegen) get(t byte) {
	var of []int
	for i, l := range g.locals {
		if l == t {
			of = append(of, i)
		}
	}
	switch {
	case len(of) > 0 && g.rand.IntN(20) > 0:
		g.code = cat2(g.code, 0x20, of[g.rand.IntN(len(of))])
	case t == tI32:
		g.code = cat(g.code, []byte{0x41}, sleb(g.rand.IntN(1<<20)))
	case slices.Contains(valueTypes, t):
		g.code = append(g.code, 0x23, byte(slices.Index(valueTypes, t)))
	default:
		g.code = cat(g.code, zeroOf(t))
	}
	g.stack = append(g.stack, t)
	g.budget--
}

// need puts values on top of the stack, unless they are there already.
func (g *codegen) need(base int, types []byte) {
	if n := len(g.stack) - len(types); n >= base && slices.Equal(g.stack[n:], types) && g.rand.IntN(4) > 0 {
		return
	}
	for _, t := range types {
		g.get(t)
	}
}

func (g *codegen) take(n int) { g.stack = g.stack[:len(g.stack)-n] }

// put stores the top of the stack in a random place.
func (g *codegen) put() {
	t := g.stack[len(g.stack)-1]
	var of []int
	for i, l := range g.locals {
		if l == t {
			of = append(of, i)
		}
	}
	switch {
	case len(of) > 0 && g.rand.IntN(8) > 0:
		g.code = cat(g.code, set(of[g.rand.IntN(len(of))]))
	case slices.Contains(valueTypes, t):
		g.code = append(g.code, 0x24, byte(slices.Index(valueTypes, t)))
	default:
		g.code = append(g.code, 0x1a)
	}
	g.take(1)
}

// block writes the content of a block up to its end instruction, which the caller writes.
func (g *codegen) block(takes, gives []byte) {
	base := len(g.stack) - len(takes)
	g.labels = append(g.labels, gives)
	kinds := 0
	for _, l := range g.likes {
		kinds += l
	}
	for n := 1 + g.rand.IntN(1+max(0, g.budget)); n > 0 && g.budget > 0; n-- {
		kind, pick := 0, g.rand.IntN(kinds+1)
		for kind < len(g.likes)-1 && pick >= g.likes[kind] {
			pick -= g.likes[kind]
			kind++
		}
		g.budget--
		g.instruction(kind, base)
		for len(g.stack)-base > g.highest {
			g.put()
		}
	}
	for len(g.stack) > base {
		g.put()
	}
	for _, t := range gives {
		g.get(t)
	}
	g.labels = g.labels[:len(g.labels)-1]
}

func (g *codegen) instruction(kind, base int) {
	r := g.rand
	t := r.IntN(len(g.params))
	f := r.IntN(len(g.funcs))
	switch kind {
	default:
		o := ops[r.IntN(len(ops))]
		if kind < 4 {
			o = g.favourites[r.IntN(len(g.favourites))]
		}
		g.need(base, o.in)
		g.code = append(g.code, o.code...)
		g.take(len(o.in))
		g.stack = append(g.stack, o.out...)
	case 4:
		if len(g.stack) > base {
			g.put()
		}
	case 5, 6: // a block, a loop, a condition
		if len(g.labels) > g.deepest {
			return
		}
		if r.IntN(3) > 0 {
			t = 0
		}
		g.need(base, g.params[t])
		opcode := byte(2 + r.IntN(3))
		if opcode == 4 {
			g.get(tI32)
			g.take(1)
		}
		g.code = cat(g.code, []byte{opcode}, sleb(t))
		below := len(g.stack) - len(g.params[t])
		if opcode == 3 {
			g.loop(g.params[t], g.gives[t])
		} else {
			g.block(g.params[t], g.gives[t])
		}
		if opcode == 4 {
			g.code = append(g.code, 0x05)
			g.stack = append(g.stack[:below], g.params[t]...)
			g.block(g.params[t], g.gives[t])
		}
		g.code = append(g.code, 0x0b)
	case 7: // br_if
		to := r.IntN(len(g.labels))
		g.need(base, g.labels[len(g.labels)-1-to])
		g.get(tI32)
		g.take(1)
		g.code = cat2(g.code, 0x0d, to)
	case 8: // br_table, in a block of its own
		to := r.IntN(len(g.labels))
		takes := g.labels[len(g.labels)-1-to]
		g.code = append(g.code, 0x02, 0x40)
		for _, t := range takes {
			g.get(t)
		}
		g.get(tI32)
		n := g.rand.IntN(100)
		g.code = cat(append(g.code, 0x0e), leb(n), slices.Repeat(leb(to+1), n+1), []byte{0x0b})
		g.take(len(takes) + 1)
		g.budget -= n / 4
	case 9:
		t = g.funcs[f]
		g.need(base, g.params[t])
		g.code = cat2(g.code, 0x10, f)
		g.take(len(g.params[t]))
		g.stack = append(g.stack, g.gives[t]...)
	case 10:
		if g.budget%4 > 0 { // tables are used at most 2,000 times
			return
		}
		g.need(base, g.params[t])
		g.get(tI32)
		g.code = cat(g.code, []byte{0x11}, leb(t), []byte{0})
		g.take(len(g.params[t]) + 1)
		g.stack = append(g.stack, g.gives[t]...)
	}
}

// loop is a loop with jumps to its beginning.
func (g *codegen) loop(takes, gives []byte) {
	g.labels = append(g.labels, takes)
	g.code = append(g.code, 0x02, 0x40) // the content jumps over one more level
	for _, t := range takes[len(takes):] {
		g.get(t)
	}
	g.block(nil, nil)
	g.code = append(g.code, 0x0b)
	for range takes {
		g.put()
	}
	for _, t := range gives {
		g.get(t)
	}
	g.labels = g.labels[:len(g.labels)-1]
}
