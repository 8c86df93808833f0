//go:build long

package host

import (
	"math/rand/v2"
	"slices"
)

// template makes statements that a function repeats.
type template struct {
	r     *rand.Rand
	fav   map[byte][]op // by output type
	sinks []op
	w     int // locals of each type
}

// node is an expression in the statements' i-th repetition.
type node func(i int) []byte

func (g *template) local(t byte) node {
	ti := slices.Index(valueTypes, t)
	a, b := g.r.IntN(g.w), []int{0, 1, 1, 3, 7}[g.r.IntN(5)]
	return func(i int) []byte { return get(ti*g.w + (a+b*i)%g.w) }
}

func (g *template) leaf(t byte) node {
	switch g.r.IntN(6) {
	case 0:
		if t == tI32 {
			c := []int{0, 1, -1, 2, 31, 255, 65535, 1 << 30, 7, 16, 24}[g.r.IntN(11)]
			vary := g.r.IntN(3) == 0
			return func(i int) []byte {
				if vary {
					return cat([]byte{0x41}, sleb(c+i))
				}
				return cat([]byte{0x41}, sleb(c))
			}
		}
		if t == tI64 {
			c := []int{0, 1, -1, 2, 31, 255, 65535, 1 << 40, 32, 48}[g.r.IntN(10)]
			vary := g.r.IntN(3) == 0
			return func(i int) []byte {
				if vary {
					return cat([]byte{0x42}, sleb(c+i))
				}
				return cat([]byte{0x42}, sleb(c))
			}
		}
		return func(int) []byte { return zeroOf(t) }
	case 1:
		return func(int) []byte { return []byte{0x23, byte(slices.Index(valueTypes, t))} }
	default:
		return g.local(t)
	}
}

func (g *template) expr(t byte, depth int) node {
	if depth == 0 || g.r.IntN(8) == 0 {
		return g.leaf(t)
	}
	switch g.r.IntN(10) {
	case 0: // select
		a, b, c := g.expr(t, depth-1), g.expr(t, depth-1), g.expr(tI32, depth-1)
		return func(i int) []byte {
			return cat(a(i), b(i), c(i), []byte{0x1c, 1, t})
		}
	case 1: // if else
		if g.r.IntN(3) == 0 {
			a, b, c := g.expr(t, depth-1), g.expr(t, depth-1), g.expr(tI32, depth-1)
			return func(i int) []byte { return cat(c(i), []byte{0x04, t}, a(i), []byte{0x05}, b(i), []byte{0x0b}) }
		}
	case 2:
		ti := slices.Index(valueTypes, t)
		a := g.expr(t, depth-1)
		x, y := g.r.IntN(g.w), g.r.IntN(3)
		return func(i int) []byte { return cat(a(i), []byte{0x22}, leb(ti*g.w+(x+y*i)%g.w)) }
	}
	f := g.fav[t]
	if len(f) == 0 {
		return g.leaf(t)
	}
	o := f[g.r.IntN(len(f))]
	var in []node
	for _, t := range o.in {
		in = append(in, g.expr(t, depth-1))
	}
	return func(i int) []byte {
		var b []byte
		for _, n := range in {
			b = append(b, n(i)...)
		}
		return append(b, o.code...)
	}
}

// templateOf returns a component that repeats the statements of a seed n times.
func templateOf(seed uint64) func(n int) []byte {
	r := rand.New(rand.NewPCG(seed, 77))
	g := &template{r: r, fav: map[byte][]op{}, w: []int{1, 2, 4, 8, 24, 60}[r.IntN(6)]}
	var pool []op
	for range 1 + r.IntN(4) {
		o := ops[r.IntN(len(ops))]
		if slices.Contains(o.in, byte(tFuncref)) || slices.Contains(o.out, byte(tFuncref)) {
			continue
		}
		pool = append(pool, o)
	}
	for _, o := range pool {
		if len(o.out) == 1 {
			g.fav[o.out[0]] = append(g.fav[o.out[0]], o)
		} else if len(o.out) == 0 {
			g.sinks = append(g.sinks, o)
		}
	}
	types := []byte{}
	for t := range g.fav {
		types = append(types, t)
	}
	slices.Sort(types)
	if len(types) == 0 {
		types = []byte{tI32}
	}
	var stmts []node
	var stackT []byte
	for range 1 + r.IntN(3) {
		t := types[r.IntN(len(types))]
		ti := slices.Index(valueTypes, t)
		e := g.expr(t, 1+r.IntN(5))
		switch k := r.IntN(9); k {
		case 0: // global
			stmts = append(stmts, func(i int) []byte { return cat(e(i), []byte{0x24, byte(ti)}) })
		case 1:
			if len(g.sinks) > 0 {
				o := g.sinks[r.IntN(len(g.sinks))]
				var in []node
				for _, t := range o.in {
					in = append(in, g.expr(t, 3))
				}
				stmts = append(stmts, func(i int) []byte {
					var b []byte
					for _, n := range in {
						b = append(b, n(i)...)
					}
					return append(b, o.code...)
				})
				continue
			}
			stmts = append(stmts, func(i int) []byte { return cat(e(i), []byte{0x24, byte(ti)}) })
		case 2: // br_if out
			e := g.expr(tI32, 1+r.IntN(4))
			stmts = append(stmts, func(i int) []byte { return cat(e(i), []byte{0x0d, 0}) })
		case 3: // stay on the stack
			stackT = append(stackT, t)
			stmts = append(stmts, e)
		case 4: // in an if
			c := g.expr(tI32, 1+r.IntN(3))
			x := r.IntN(g.w)
			stmts = append(stmts, func(i int) []byte {
				return cat(c(i), []byte{0x04, 0x40}, e(i), set(ti*g.w+(x+i)%g.w), []byte{0x0b})
			})
		case 5: // call between
			x := r.IntN(g.w)
			stmts = append(stmts, func(i int) []byte { return cat(callOf(0), e(i), set(ti*g.w+(x+i)%g.w)) })
		default:
			x, y := r.IntN(g.w), []int{0, 1, 5}[r.IntN(3)]
			stmts = append(stmts, func(i int) []byte { return cat(e(i), set(ti*g.w+(x+y*i)%g.w)) })
		}
	}
	return func(n int) []byte {
		m := newModule()
		m.add(0, nil)
		var locals []byte
		var code []byte
		for _, t := range valueTypes[:5] {
			locals = append(locals, wide(g.w, t)...)
		}
		for i, t := range locals {
			code = cat(code, []byte{0x23, byte(slices.Index(valueTypes, t))}, set(i))
		}
		code = append(code, 0x02, 0x40)
		for i := range n {
			for _, s := range stmts {
				code = append(code, s(i)...)
			}
		}
		for range n {
			for k := range stackT {
				t := stackT[len(stackT)-1-k]
				code = append(code, 0x24, byte(slices.Index(valueTypes, t)))
			}
		}
		code = append(code, 0x0b)
		for i, t := range locals {
			code = cat(code, get(i), []byte{0x24, byte(slices.Index(valueTypes, t))})
		}
		m.add(0, locals, code)
		return alone(m)
	}
}
