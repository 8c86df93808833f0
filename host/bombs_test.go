package host

import (
	"fmt"
	"slices"
	"testing"
)

// bomb is a component that takes long to compile. Its size grows with n, or with m in another dimension.
type bomb struct {
	name  string
	n, m  int
	build func(n, m int) []byte
}

// wide is n value types.
func wide(n int, t byte) []byte { return repeat(n, t) }

// manyTypes is n different function types, with m more parameters and r more results.
func manyTypes(n, m, r int) (types [][]byte) {
	for i := range n {
		params := wide(8+m, tI32)
		for k, rest := 0, i; k < 8; k++ {
			params[k] = valueTypes[rest%5]
			rest /= 5
		}
		types = append(types, funcType(params, wide(r, tI64)))
	}
	return types
}

func name(i int) []byte { return sized(fmt.Appendf(nil, "%x", i)) }

// kebab is a name as the component model spells it.
func kebab(i int) []byte { return sized(fmt.Appendf(nil, "x%d", i)) }

// nested is a component that contains another one n times.
func nested(n int, inner []byte) []byte {
	return cat(componentOf(), times(n, []byte{4}, sized(inner)))
}

func callOf(f int) []byte { return cat([]byte{0x10}, leb(f)) }

func get(i int) []byte { return cat([]byte{0x20}, leb(i)) }

func set(i int) []byte { return cat([]byte{0x21}, leb(i)) }

func times(n int, code ...[]byte) []byte { return slices.Repeat(cat(code...), n) }

// each joins the results of f for 0 to n-1.
func each(n int, f func(i int) []byte) (code []byte) {
	for i := range n {
		code = append(code, f(i)...)
	}
	return code
}

func alone(m *testModule) []byte { return componentOf(m.encode()) }

// addresses is a function with sums of integers and a global that never changes, at most m bytes apart from each other, which other code takes.
func addresses(code func(i int, sum func(i int) []byte) []byte, head, tail func(n int) []byte) func(n, m int) []byte {
	return func(n, m int) []byte {
		mod := newModule()
		base := []byte{0x23, byte(len(mod.globals))}
		mod.globals = append(mod.globals, cat([]byte{tI32, 0}, zeroOf(tI32), []byte{0x0b}))
		sum := func(i int) []byte { return cat(base, []byte{0x41}, sleb(1_000_000+i%m*8), []byte{0x6a}) }
		mod.add(0, nil)
		mod.add(0, []byte{tI32, tI32}, head(n), each(n, func(i int) []byte { return code(i, sum) }), tail(n))
		return alone(mod)
	}
}

func nothing(int) []byte { return nil }

// readGlobals sets n locals to a global, writeGlobals keeps them live.
func readGlobals(n int) []byte {
	return each(n, func(i int) []byte { return cat([]byte{0x23, 0}, set(i)) })
}

func writeGlobals(n int) []byte {
	return each(n, func(i int) []byte { return cat(get(i), []byte{0x24, 0}) })
}

// jumpsWithLocals has n blocks in each other, and 20 jumps out of each, between which w locals get other values.
var jumpsWithLocals = bodyOf(func(n, w int) []byte {
	sets := each(w, func(i int) []byte { return cat([]byte{0x23, 0}, set(i)) })
	return cat(repeat2(n, []byte{0x02, 0x40}), times(20, sets, each(n, func(i int) []byte { return cat(get(0), []byte{0x0d}, leb(i)) })), each(n, func(int) []byte { return cat([]byte{0x0b}, get(7), []byte{0x24, 0}) }), writeGlobals(w))
})

// tablesWithLocals is the same with br_table.
var tablesWithLocals = bodyOf(func(n, w int) []byte {
	sets := each(w, func(i int) []byte { return cat([]byte{0x23, 0}, set(i)) })
	return cat(repeat2(n, []byte{0x02, 0x40}), times(20, []byte{0x02, 0x40}, sets, get(0), []byte{0x0e}, leb(n), each(n+1, func(i int) []byte { return leb(n - i) }), []byte{0x0b}), each(n, func(int) []byte { return cat([]byte{0x0b}, get(7), []byte{0x24, 0}) }), writeGlobals(w))
})

var bombs = []bomb{
	{"addresses to store", 60_000, 1 << 30, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(2*i), sum(2*i+1), []byte{0x36, 2, 0}) }, nothing, nothing)},
	{"addresses to store again", 60_000, 30_000, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(i), sum(i+7), []byte{0x36, 2, 0}) }, nothing, nothing)},
	{"addresses to store in reverse", 60_000, 1 << 30, addresses(func(i int, sum func(int) []byte) []byte {
		return cat(sum(i), sum(60_000-i), []byte{0x36, 2, 0})
	}, nothing, nothing)},
	{"addresses that wait", 60_000, 1 << 30, addresses(func(i int, sum func(int) []byte) []byte { return sum(i) }, nothing, func(n int) []byte { return times(n/2, []byte{0x36, 2, 0}) })},
	{"addresses that wait for calls", 30_000, 1 << 30, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(i), callOf(0)) }, nothing, func(n int) []byte { return times(n/2, []byte{0x36, 2, 0}) })},
	{"addresses between calls", 40_000, 2_000, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(i), sum(i+1), []byte{0x36, 2, 0}, callOf(0)) }, nothing, nothing)},
	{"addresses in branches", 30_000, 3_000, addresses(func(i int, sum func(int) []byte) []byte {
		return cat(get(0), []byte{0x04, 0x40}, sum(i), sum(i+1), []byte{0x36, 2, 0, 0x0b})
	}, nothing, nothing)},
	{"addresses of loads", 40_000, 4_000, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(i), sum(i+1), []byte{0x28, 2, 0, 0x36, 2, 0}) }, nothing, nothing)},
	{"addresses in variables", 40_000, 4_000, addresses(func(i int, sum func(int) []byte) []byte {
		return cat(sum(i), set(i%2), sum(i+1), get(0), []byte{0x36, 2, 0})
	}, nothing, nothing)},
	{"addresses in globals", 40_000, 4_000, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(i), []byte{0x24, 0}) }, nothing, nothing)},
	{"sums of addresses", 16_000, 4_000, addresses(func(i int, sum func(int) []byte) []byte { return cat(sum(i), []byte{0x6a}) }, func(int) []byte { return get(0) }, func(int) []byte { return []byte{0x24, 0} })},
	{"differences of addresses", 16_000, 1 << 30, addresses(func(i int, sum func(int) []byte) []byte {
		return cat(sum(i), sum(3*i), []byte{0x6b}, sum(i), []byte{0x36, 2, 0})
	}, nothing, nothing)},
	{"types wide", 500, 990, func(n, m int) []byte {
		mod := &testModule{types: manyTypes(n, min(m, 990), min(m, 990)+10)}
		return alone(mod)
	}},
	{"types narrow", 100_000, 0, func(n, _ int) []byte { return alone(&testModule{types: manyTypes(n, 0, 0)}) }},
	{"types in modules", 100, 10, func(n, m int) []byte {
		var mods [][]byte
		for range n {
			mods = append(mods, (&testModule{types: manyTypes(m, 100, 100)}).encode())
		}
		return componentOf(mods...)
	}},
	{"modules", 999, 0, func(n, _ int) []byte {
		return componentOf(slices.Repeat([][]byte{(&testModule{}).encode()}, n)...)
	}},
	// For each item, the engine copies a list of all previous ones.
	{"components in components", 30, 32, func(n, m int) []byte { return nested(n, nested(m, componentOf())) }},
	{"modules in components", 30, 32, func(n, m int) []byte {
		return nested(n, componentOf(slices.Repeat([][]byte{(&testModule{}).encode()}, m)...))
	}},
	{"imports in a component in it", 20_000, 0, func(n, _ int) []byte {
		items := make([][]byte, 0, n)
		for i := range n {
			items = append(items, cat([]byte{0}, kebab(i), []byte{1, 0}))
		}
		emptyFunc := []byte{0x40, 0, 1, 0}
		return nested(4, cat(componentOf(), sectionOf(7, emptyFunc), sectionOf(10, items...)))
	}},
	{"instances of exports in a component in it", 900, 100, func(n, m int) []byte {
		items := make([][]byte, 0, m)
		for i := range m {
			items = append(items, cat([]byte{0}, kebab(i), []byte{3, 0}))
		}
		instance := cat([]byte{1}, vec(items...))
		return nested(2, cat(componentOf(), sectionOf(7, []byte{0x7f}), sectionOf(5, slices.Repeat([][]byte{instance}, n)...)))
	}},
	{"empty functions", 50_000, 0, func(n, _ int) []byte {
		m := newModule()
		for range n {
			m.add(0, nil)
		}
		return alone(m)
	}},
	{"wide functions", 10_000, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		for range n {
			m.add(t, nil, []byte{0})
		}
		return alone(m)
	}},
	{"functions of many results", 2000, 200, func(n, w int) []byte {
		m := newModule()
		t := m.addType(nil, wide(w, tI64))
		for range n {
			m.add(t, nil, times(w, zeroOf(tI64)))
		}
		return alone(m)
	}},
	{"exports", 20_000, 0, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		for i := range n {
			m.add(t, nil, []byte{0})
			m.exports = append(m.exports, cat(name(i), []byte{0}, leb(i)))
		}
		return alone(m)
	}},
	{"exports wide", 900, 500, nil},
	{"exports of distinct types", 2000, 100, func(n, w int) []byte {
		m := &testModule{types: manyTypes(n, w, w)}
		for i := range n {
			m.add(i, nil, []byte{0})
			m.exports = append(m.exports, cat(name(i), []byte{0}, leb(i)))
		}
		return alone(m)
	}},
	{"exports of one function", 100_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.add(0, nil)
		for i := range n {
			m.exports = append(m.exports, cat(name(i), []byte{0, 0}))
		}
		return alone(m)
	}},
	{"functions in a table", 20_000, 0, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		var all [][]byte
		for i := range n {
			m.add(t, nil, []byte{0})
			all = append(all, leb(i))
		}
		m.elements = append(m.elements, cat([]byte{1, 0}, vec(all...)))
		return alone(m)
	}},
	{"imports", 50_000, 0, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		for i := range n {
			m.imports = append(m.imports, cat(name(i), name(i), []byte{0}, leb(t)))
		}
		return alone(m)
	}},
	{"imported globals", 50_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.globals = nil
		for i := range n {
			m.imports = append(m.imports, cat(name(i), name(i), []byte{3, tI32, 0}))
		}
		return alone(m)
	}},
	{"globals", 100_000, 0, func(n, _ int) []byte {
		m := newModule()
		for range n {
			m.globals = append(m.globals, cat([]byte{tI32, 1}, zeroOf(tI32), []byte{0x0b}))
		}
		return alone(m)
	}},
	{"globals of expressions", 1000, 300, func(n, w int) []byte {
		m := newModule()
		for range n {
			m.globals = append(m.globals, cat([]byte{tI32, 1}, zeroOf(tI32), times(w, zeroOf(tI32), []byte{0x6a}), []byte{0x0b}))
		}
		return alone(m)
	}},
	{"tables", 100, 0, func(n, _ int) []byte {
		m := newModule()
		m.tables = slices.Repeat(m.tables, n)
		return alone(m)
	}},
	{"large tables", 10, 100_000, func(n, w int) []byte {
		var mods [][]byte
		for range n {
			m := newModule()
			m.tables = slices.Repeat([][]byte{cat([]byte{tFuncref, 0}, leb(w))}, 4)
			m.add(0, nil)
			m.elements = nil
			for i := range 4 {
				m.elements = append(m.elements, cat([]byte{2}, leb(i), []byte{0x41}, sleb(w-1), []byte{0x0b, 0}, vec([]byte{0})))
			}
			mods = append(mods, m.encode())
		}
		return componentOf(mods...)
	}},
	{"element segments", 50_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.elements = slices.Repeat([][]byte{cat([]byte{0, 0x41, 0, 0x0b}, vec())}, n)
		return alone(m)
	}},
	{"passive element segments", 50_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.elements = slices.Repeat(m.elements, n)
		return alone(m)
	}},
	{"elements of one function", 500_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.add(0, nil)
		m.elements = append(m.elements, cat([]byte{1, 0}, vec(slices.Repeat([][]byte{{0}}, n)...)))
		return alone(m)
	}},
	{"element expressions", 200_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.add(0, nil)
		m.elements = append(m.elements, cat([]byte{5, tFuncref}, vec(slices.Repeat([][]byte{{0xd2, 0, 0x0b}}, n)...)))
		return alone(m)
	}},
	{"data segments", 50_000, 0, func(n, _ int) []byte {
		m := newModule()
		for range n {
			m.data = append(m.data, cat([]byte{0, 0x41, 0, 0x0b}, sized([]byte{'x'})))
		}
		return alone(m)
	}},
	{"passive data segments", 50_000, 0, func(n, _ int) []byte {
		m := newModule()
		m.data = slices.Repeat(m.data, n)
		return alone(m)
	}},
	{"sparse data", 20, 16<<20 - 100, func(n, w int) []byte {
		var mods [][]byte
		for range n {
			m := newModule()
			m.memories = [][]byte{{0, 0x80, 8}}
			m.data = [][]byte{cat([]byte{0, 0x41}, sleb(0), []byte{0x0b}, sized([]byte("x"))), cat([]byte{0, 0x41}, sleb(w), []byte{0x0b}, sized([]byte("x")))}
			mods = append(mods, m.encode())
		}
		return componentOf(mods...)
	}},
	{"dense data", 16 << 20, 0, func(n, _ int) []byte {
		m := newModule()
		m.memories = [][]byte{{0, 0x80, 8}}
		m.data = [][]byte{cat([]byte{0, 0x41, 0, 0x0b}, sized(make([]byte, n)))}
		return alone(m)
	}},
	{"blocks", 50_000, 0, body(func(n, _ int) []byte { return times(n, []byte{0x02, 0x40, 0x0b}) })},
	{"nested blocks", 50_000, 0, body(func(n, _ int) []byte { return cat(times(n, []byte{0x02, 0x40}), repeat(n, 0x0b)) })},
	{"nested ifs", 30_000, 0, body(func(n, _ int) []byte { return cat(times(n, get(0), []byte{0x04, 0x40}), repeat(n, 0x0b)) })},
	{"nested loops", 1000, 0, body(func(n, _ int) []byte { return cat(times(n, []byte{0x03, 0x40}), repeat(n, 0x0b)) })},
	{"loops", 1000, 0, body(func(n, _ int) []byte { return times(n, []byte{0x03, 0x40, 0x20, 0, 0x0d, 0, 0x0b}) })},
	{"nested loops back", 1000, 0, body(func(n, _ int) []byte {
		return cat(times(n, []byte{0x03, 0x40}), times(n, []byte{0x20, 0, 0x0d, 0, 0x0b}))
	})},
	{"ifs", 40_000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x04, 0x40, 0x0b}) })},
	{"ifs and calls", 30_000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x04, 0x40}, callOf(0), []byte{0x0b}) })},
	{"br_if", 40_000, 0, body(func(n, _ int) []byte {
		return cat([]byte{0x02, 0x40}, times(n, get(0), []byte{0x0d, 0}), []byte{0x0b})
	})},
	{"br_if to many", 30_000, 1000, body(func(n, w int) []byte {
		return cat(times(w, []byte{0x02, 0x40}), each(n, func(i int) []byte { return cat(get(0), []byte{0x0d}, leb(i%w)) }), repeat(w, 0x0b))
	})},
	{"br_table of one target", 240_000, 0, body(func(n, _ int) []byte {
		return cat([]byte{0x02, 0x40}, get(0), []byte{0x0e}, leb(n), make([]byte, n+1), []byte{0x0b})
	})},
	{"br_tables", 1000, 200, body(func(n, w int) []byte {
		return times(n, []byte{0x02, 0x40}, get(0), []byte{0x0e}, leb(w), make([]byte, w+1), []byte{0x0b})
	})},
	{"br_table to many", 100_000, 1000, body(func(n, w int) []byte {
		return cat(times(w, []byte{0x02, 0x40}), get(0), []byte{0x0e}, leb(n), each(n+1, func(i int) []byte { return leb(i % w) }), repeat(w, 0x0b))
	})},
	{"br_tables to many", 100, 1000, body(func(n, w int) []byte {
		return cat(times(w, []byte{0x02, 0x40}), times(n, []byte{0x02, 0x40}, get(0), []byte{0x0e}, leb(w), each(w+1, func(i int) []byte { return leb(i % w) }), []byte{0x0b}), repeat(w, 0x0b))
	})},
	// Each if changes one of w locals, so each local may have two values after it.
	{"ifs that set", 15_000, 100, bodyOf(func(n, w int) []byte {
		return cat(readGlobals(w), each(n, func(i int) []byte {
			return cat(get((i*7)%w), []byte{0x04, 0x40}, get((i*3)%w), set((i*5)%w), []byte{0x0b})
		}), writeGlobals(w))
	})},
	{"loops that set", 500, 500, bodyOf(func(n, w int) []byte {
		return cat(readGlobals(w), each(n, func(i int) []byte {
			return cat([]byte{0x03, 0x40}, get((i*3)%w), set((i*5)%w), get((i*7)%w), []byte{0x0d, 0, 0x0b})
		}), writeGlobals(w))
	})},
	{"nested loops that set", 500, 500, bodyOf(func(n, w int) []byte {
		return cat(readGlobals(w), repeat2(n, []byte{0x03, 0x40}), each(n, func(i int) []byte {
			return cat(get((i*3)%w), set((i*5)%w), get((i*7)%w), []byte{0x0d, 0, 0x0b})
		}), writeGlobals(w))
	})},
	{"br_table to loops that set", 500, 500, bodyOf(func(n, w int) []byte {
		return cat(readGlobals(w), repeat2(n, []byte{0x03, 0x40}), each(n, func(i int) []byte {
			return cat(get((i*3)%w), set((i*5)%w), get((i*7)%w), []byte{0x0e}, leb(n-i), each(n-i+1, leb), []byte{0x0b})
		}), writeGlobals(w))
	})},
	{"br_if with values", 500, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(nil, wide(w, tI32))
		m.add(0, wide(w, tI32), readGlobals(w), []byte{0x02}, leb(t), each(w, get), each(n, func(i int) []byte { return cat(get(i%w), []byte{0x0d, 0}) }), []byte{0x0b}, times(w, []byte{0x24, 0}))
		return alone(m)
	}},
	{"br_table with values", 100, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(nil, wide(w, tI32))
		m.add(0, wide(w, tI32), readGlobals(w), repeat2(n, cat([]byte{0x02}, leb(t))), each(w, get), get(0), []byte{0x0e}, leb(n-1), each(n, leb), repeat(n, 0x0b), times(w, []byte{0x24, 0}))
		return alone(m)
	}},
	{"blocks with values", 2000, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		m.add(0, wide(w, tI32), readGlobals(w), each(w, get), times(n, get(0), []byte{0x04}, leb(t), []byte{0x05, 0x0b}), times(w, []byte{0x24, 0}))
		return alone(m)
	}},
	{"loops with values", 500, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		m.add(0, wide(w, tI32), readGlobals(w), each(w, get), times(n, []byte{0x03}, leb(t), get(0), []byte{0x0d, 0, 0x0b}), times(w, []byte{0x24, 0}))
		return alone(m)
	}},
	{"calls", 100_000, 0, body(func(n, _ int) []byte { return times(n, callOf(0)) })},
	{"wide calls", 300, 500, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), nil)
		m.add(t, nil, times(n, each(w, get), callOf(0)))
		return alone(m)
	}},
	{"calls of wide results", 5000, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(nil, wide(w, tI32))
		m.add(t, nil, []byte{0})
		m.add(0, nil, times(n, callOf(0), times(w, []byte{0x24, 0})))
		return alone(m)
	}},
	{"calls in and out", 20_000, 20, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tI32), wide(w, tI32))
		m.add(t, nil, each(w, get), times(n, callOf(0)))
		return alone(m)
	}},
	{"calls with live values", 50_000, 500, func(n, w int) []byte {
		m := newModule()
		m.add(0, wide(w, tI32), readGlobals(w), times(n, callOf(0)), writeGlobals(w))
		return alone(m)
	}},
	{"calls between uses", 40_000, 500, func(n, w int) []byte {
		m := newModule()
		m.add(0, wide(w, tI32), readGlobals(w), each(n, func(i int) []byte { return cat(callOf(0), get(i%w), get((i*7)%w), []byte{0x6a}, set((i*3)%w)) }), writeGlobals(w))
		return alone(m)
	}},
	{"indirect calls", 2000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x11, 0, 0}) })},
	{"indirect calls with vectors", 1500, 46, func(n, w int) []byte {
		m := newModule()
		t := m.addType(wide(w, tV128), nil)
		for left := n; left > 0; left -= 1900 {
			m.add(t, nil, times(min(left, 1900), each(w, get), []byte{0x41, 0, 0x11}, leb(t), []byte{0}))
		}
		return alone(m)
	}},
	{"tail calls", 30_000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x04, 0x40, 0x12, 0, 0x0b}) })},
	{"tail calls through a table", 2000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x04, 0x40}, get(0), []byte{0x13, 0, 0, 0x0b}) })},
	{"returns", 50_000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x04, 0x40, 0x0f, 0x0b}) })},
	{"wide returns", 1000, 100, func(n, w int) []byte {
		m := newModule()
		t := m.addType(nil, wide(w, tI32))
		m.add(t, wide(w, tI32), readGlobals(w), each(w, get), times(n, get(0), []byte{0x04, 0x40}, each(w, get), []byte{0x0f, 0x0b}))
		return alone(m)
	}},
	{"unreachable", 50_000, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x04, 0x40, 0x00, 0x0b}) })},
	{"dead code", 200_000, 0, body(func(n, _ int) []byte { return cat([]byte{0}, repeat(n, 0x01)) })},
	{"constants", 50_000, 0, body(func(n, _ int) []byte {
		return each(n, func(i int) []byte { return cat([]byte{0x41}, sleb(i), []byte{0x24, 0}) })
	})},
	{"wide constants", 10_000, 0, body(func(n, _ int) []byte {
		return each(n, func(i int) []byte { return cat([]byte{0xfd, 12}, leb(i+1<<20), make([]byte, 13), []byte{0x24, 4}) })
	})},
	{"constants on the stack", 50_000, 0, body(func(n, _ int) []byte {
		return cat(each(n, func(i int) []byte { return cat([]byte{0x23, 0}) }), times(n, []byte{0x24, 0}))
	})},
	{"sums on the stack", 50_000, 0, body(func(n, _ int) []byte {
		return cat(get(0), each(n, func(i int) []byte { return cat([]byte{0x23, 0}) }), times(n, []byte{0x6a}), []byte{0x24, 0})
	})},
	{"values of blocks", 2000, 0, body(func(n, _ int) []byte {
		return cat(each(n, func(i int) []byte { return cat([]byte{0x23, 0}, get(0), []byte{0x04, 0x40, 0x0b}) }), times(n, []byte{0x24, 0}))
	})},
	{"local.tee", 60_000, 2000, bodyOf(func(n, w int) []byte {
		return cat(get(0), each(n, func(i int) []byte { return cat([]byte{0x22}, leb(i%w)) }), []byte{0x1a})
	})},
	{"globals in turn", 40_000, 0, body(func(n, _ int) []byte { return times(n, []byte{0x23, 0, 0x24, 0}) })},
}

func init() {
	bombs = append(bombs, []bomb{
		// Each if gives the locals in one order or another.
		{"ifs of many results", 80, 200, func(n, w int) []byte {
			const locals = 4
			m := newModule()
			t := m.addType(nil, wide(w, tI32))
			order := func(from int) []byte { return each(w, func(k int) []byte { return get((from + k) % locals) }) }
			ifs := each(n, func(i int) []byte {
				return cat(get(i%locals), []byte{0x04}, leb(t), order(i), []byte{0x05}, order(i+3), []byte{0x0b}, each(w, func(k int) []byte { return set((3*i + k) % locals) }))
			})
			for range 3 {
				m.add(0, wide(locals, tI32), readGlobals(locals), ifs, writeGlobals(locals))
			}
			return alone(m)
		}},
		// Values computed at the beginning and again at the end stay live between.
		{"products over ifs", 3000, 0, bodyOf2(200, func(n, _ int) []byte {
			products := each(n, func(i int) []byte { return cat(get(i%200), get((i/200+i)%199), []byte{0x6c, 0x24, 0}) })
			return cat(readGlobals(200), products, times(n, get(0), []byte{0x04, 0x40, 0x0b}), products)
		})},
		{"loads over ifs", 4000, 0, body(func(n, _ int) []byte {
			loads := each(n, func(i int) []byte { return cat([]byte{0x41, 0, 0x28, 2}, leb(4*i), []byte{0x1a}) })
			return cat(loads, times(n, get(0), []byte{0x04, 0x40, 0x0b}), loads)
		})},
		{"jumps with locals", 100, 500, jumpsWithLocals},
		{"jumps with a local each", 4000, 16, bodyOf(func(n, w int) []byte {
			return cat([]byte{0x02, 0x40}, each(n, func(i int) []byte { return cat([]byte{0x23, 0}, set(i%w), []byte{0x23, 0, 0x0d, 0}) }), []byte{0x0b}, writeGlobals(w))
		})},
		{"jumps with fewer locals", 200, 200, jumpsWithLocals},
		{"jumps with few locals", 1000, 80, jumpsWithLocals},
		{"tables of jumps with locals", 200, 500, tablesWithLocals},
		{"tables of jumps with fewer locals", 200, 200, tablesWithLocals},
		{"ifs of many parameters", 5000, 900, func(n, w int) []byte {
			m := newModule()
			t := m.addType(wide(w, tI32), nil)
			m.add(t, nil, times(n, get(0), []byte{0x04, 0x40, 0x0b}), writeGlobals(w))
			return alone(m)
		}},
		{"ifs between uses of locals", 8000, 1000, bodyOf(func(n, w int) []byte {
			return cat(readGlobals(w), each(n, func(i int) []byte { return cat(get(i%w), []byte{0x04, 0x40, 0x0b}) }), writeGlobals(w))
		})},
		{"locals", 20000, 500, func(n, w int) []byte {
			m := newModule()
			for range n {
				m.add(0, wide(w, tI32))
			}
			return alone(m)
		}},
		{"rotations", 5000, 0, body(func(n, _ int) []byte { return cat(get(0), times(n, get(0), []byte{0x77}), []byte{0x24, 0}) })},
		{"rotations by what was rotated", 60, 50, func(n, w int) []byte {
			m := newModule()
			differ := cat([]byte{0xc3, 0x22, 0, 0x21, 1}, get(1), []byte{0x42, 0x7f, 0x85}, set(2), get(1), get(2), []byte{0x8a}) // rotate y by not y
			m.add(0, repeat(3, tI64), []byte{0x23, 1, 0x21, 0, 0x23, 1}, times(n, times(w, get(0), []byte{0x89}), differ), []byte{0x24, 1})
			return alone(m)
		}},
		{"sums of constants", 600, 100, func(n, w int) []byte {
			m := newModule()
			for range n {
				m.add(0, []byte{tI32}, []byte{0x23, 0}, times(w/3+1, times(2, set(0), []byte{0x41, 7}, get(0), []byte{0x6a}), []byte{0x41, 1, 0x6b}), []byte{0x24, 0})
			}
			return alone(m)
		}},
		{"huge table", 1, 10_000_000, bombs[slices.IndexFunc(bombs, func(b bomb) bool { return b.name == "large tables" })].build},
		{"elements of a table", 1900, 0, body(func(n, _ int) []byte { return times(n, get(0), []byte{0x25, 0, 0x1a}) })},
		// What cannot trap is computed last, so that all that was loaded for it stays live.
		{"sums of chased loads", 8000, 0, body(func(n, _ int) []byte {
			return cat([]byte{0x41, 0}, each(n, func(i int) []byte { return cat(get(0), []byte{0x28, 2}, leb(200_000_000+i), []byte{0x22, 0, 0x6a}) }), []byte{0x24, 0})
		})},
		{"comparisons of quotients", 8000, 0, bodyOf2(2, func(n, _ int) []byte {
			return cat(readGlobals(2), []byte{0x41, 0}, times(n, get(0), get(1), []byte{0x6d, 0x22, 0, 0x48}), []byte{0x24, 0})
		})},
		{"comparisons of elements of a table", 1900, 0, body(func(n, _ int) []byte {
			return cat([]byte{0x41, 0}, times(n, get(0), []byte{0x25, 0, 0xd1, 0x48}), []byte{0x24, 0})
		})},
		{"loops in loops that set", 900, 4, bodyOf(func(n, w int) []byte {
			sets := each(w, func(i int) []byte { return cat(get(i), []byte{0x41, 1, 0x6a}, set(i)) })
			return cat(repeat2(n, []byte{0x03, 0x40}), times(n, sets, get(0), []byte{0x0d, 0, 0x0b}))
		})},
		{"many small functions", 20_000, 0, func(n, _ int) []byte {
			m := newModule()
			for range n {
				m.add(0, []byte{tI32, tI32}, []byte{0x23, 0, 0x21, 0, 0x20, 0, 0x04, 0x40, 0x20, 0, 0x20, 1, 0x6a, 0x24, 0, 0x0b, 0x10, 0})
			}
			return alone(m)
		}},
		{"chains of floats", 10_000, 30, func(n, w int) []byte {
			m := newModule()
			i := slices.IndexFunc(ops, func(o op) bool { return string(o.code) == "\x92" })
			locals, code := ops[i].sweep(n, w)
			m.add(0, locals, code)
			return alone(m)
		}},
		{"references in globals", 1, 0, func(int, int) []byte {
			m := newModule()
			m.globals = append(m.globals, []byte{tFuncref, 1, 0xd0, tFuncref, 0x0b})
			m.add(0, nil, times(60_000, []byte{0x23, 5, 0x24, 5}))
			return alone(m)
		}},
		{"references in locals", 1, 0, func(int, int) []byte {
			m := newModule()
			m.add(0, wide(500, tFuncref), times(20_000, callOf(0)))
			return alone(m)
		}},
		{"ref.func", 1900, 0, func(n, _ int) []byte {
			m := newModule()
			m.elements = append(m.elements, []byte{3, 0, 1, 0}) // declares it
			m.add(0, nil, times(n, []byte{0xd2, 0, 0x1a}))
			return alone(m)
		}},
	}...)
}

// bodies are components with one function of about n bytes.
var bodies = []bomb{
	{"roots", 250_000, 0, chain(tF64, []byte{0x9f}, 1)},
	{"truncations", 250_000, 0, chain(tF64, []byte{0xaa, 0xb7}, 2)}, // to an integer and back
	{"growths", 250_000, 0, chain(tI32, []byte{0x40, 0}, 2)},
	{"direct calls", 250_000, 0, body(func(n, _ int) []byte { return times(n/2, callOf(0)) })},
	{"quotients", 250_000, 0, chain(tI64, []byte{0x20, 0, 0x7f}, 3)},
	{"loads", 250_000, 0, chain(tI32, []byte{0x28, 0, 0}, 3)},
	{"stores", 250_000, 0, body(func(n, _ int) []byte { return times(n/7, get(0), get(0), []byte{0x36, 0, 0}) })},
	{"fills", 250_000, 0, body(func(n, _ int) []byte { return times(n/9, get(0), get(0), get(0), []byte{0xfc, 11, 0}) })},
	{"copies", 250_000, 0, body(func(n, _ int) []byte { return times(n/10, get(0), get(0), get(0), []byte{0xfc, 10, 0, 0}) })},
	{"conditions", 250_000, 0, body(func(n, _ int) []byte { return times(n/5, get(0), []byte{0x04, 0x40, 0x0b}) })},
	{"conditions that set", 250_000, 20, bodyOf(func(n, w int) []byte {
		return each(n/10, func(i int) []byte { return cat(get(i%w), []byte{0x04, 0x40}, get(0), set(i%(w-1)), []byte{0x0b}) })
	})},
	{"jumps", 250_000, 0, body(func(n, _ int) []byte {
		return cat([]byte{0x02, 0x40}, times(n/4, get(0), []byte{0x0d, 0}), []byte{0x0b})
	})},
	{"tables of jumps", 250_000, 200, body(func(n, w int) []byte {
		return cat([]byte{0x02, 0x40}, times(n/(w+10), []byte{0x02, 0x40}, get(0), []byte{0x0e}, leb(w), make([]byte, w+1), []byte{0x0b}), []byte{0x0b})
	})},
	{"table of jumps to many", 250_000, 1000, body(func(n, w int) []byte {
		n = max(1, n/2-3*w)
		return cat(times(w, []byte{0x02, 0x40}), get(0), []byte{0x0e}, leb(n), each(n, func(i int) []byte { return leb(i % w) }), []byte{0}, repeat(w, 0x0b))
	})},
	{"products of vectors", 250_000, 0, chain(tV128, []byte{0x20, 0, 0xfd, 0x95, 1}, 5)},
	{"bits of vectors", 250_000, 0, chain(tV128, []byte{0xfd, 0x62}, 2)},
	{"roots of vectors", 250_000, 0, chain(tV128, []byte{0xfd, 0xe3, 1}, 3)},
	{"truncations of vectors", 250_000, 0, chain(tV128, []byte{0xfd, 0xf8, 1}, 3)},
	{"shifts of vectors", 250_000, 0, chain(tV128, cat(zeroOf(tI32), []byte{0xfd, 0x6b}), 4)},
	{"live values over calls", 20_000_000, 500, bodyOf(func(n, w int) []byte {
		return cat(readGlobals(w), times(max(1, n/w/2-5*w), callOf(0)), writeGlobals(w))
	})},
	{"references in globals", 250_000, 0, withReference(func(n, _ int) []byte { return times(n/4, []byte{0x23, 5, 0x24, 5}) })},
	{"references over calls", 20_000_000, 500, withReference(func(n, w int) []byte {
		return cat(each(w, func(i int) []byte { return cat([]byte{0x23, 5}, set(i)) }), times(max(1, n/w/2-5*w), callOf(0)),
			each(w, func(i int) []byte { return cat(get(i), []byte{0x24, 5}) }))
	})},
	{"exceptions", 250_000, 0, body(func(n, _ int) []byte {
		return times(n/11, []byte{0x02, 0x40, 0x1f, 0x40, 1, 2, 0, 0x10, 0, 0x0b, 0x0b}) // try_table with catch_all
	})},
}

// chain is a function that repeats an operation on its one local.
func chain(t byte, code []byte, length int) func(n, m int) []byte {
	return func(n, _ int) []byte {
		m := newModule()
		m.add(0, []byte{t}, get(0), times(n/length, code), []byte{0x1a})
		return alone(m)
	}
}

// withReference is a function with m reference locals, and a global reference.
func withReference(f func(n, m int) []byte) func(n, m int) []byte {
	return func(n, w int) []byte {
		m := newModule()
		m.globals = append(m.globals, []byte{tExternref, 1, 0xd0, tExternref, 0x0b})
		m.add(0, wide(w, tExternref), f(n, w))
		return alone(m)
	}
}

func bodyOf2(w int, f func(n, m int) []byte) func(n, m int) []byte {
	return func(n, _ int) []byte { return bodyOf(f)(n, w) }
}

func bombNamed(t *testing.T, name string, n, m int) []byte {
	t.Helper()
	i := slices.IndexFunc(bombs, func(b bomb) bool { return b.name == name })
	if i < 0 {
		t.Fatalf("there is no bomb %q", name)
	}
	return bombs[i].build(n, m)
}

func repeat2(n int, b []byte) []byte { return slices.Repeat(b, n) }

func sleb(n int) []byte {
	var b []byte
	for {
		low := byte(n & 0x7f)
		n >>= 7
		if n == 0 && low&0x40 == 0 || n == -1 && low&0x40 != 0 {
			return append(b, low)
		}
		b = append(b, low|0x80)
	}
}

// body is a function with one local.
func body(f func(n, m int) []byte) func(n, m int) []byte {
	return func(n, w int) []byte {
		m := newModule()
		m.add(0, []byte{tI32}, f(n, w))
		return alone(m)
	}
}

// bodyOf is a function with m locals.
func bodyOf(f func(n, m int) []byte) func(n, m int) []byte {
	return func(n, w int) []byte {
		m := newModule()
		m.add(0, wide(w, tI32), f(n, w))
		return alone(m)
	}
}

func init() {
	for i, b := range bombs {
		if b.build == nil {
			bombs[i].build = bombs[i-1].build
		}
	}
}

// A value without effects is computed where it is needed. Here, each step extends a value that only branches need, and each branch
// computes all of it again.
func init() {
	const x, y = 0, 1
	chained := func(step, read func(i int) []byte) func(n, m int) []byte {
		return func(n, _ int) []byte {
			m := newModule()
			m.add(0, repeat(8, tF64), each(8, func(i int) []byte { return cat([]byte{0x23, 3}, set(i)) }), []byte{0x02, 0x40},
				each(n, func(i int) []byte { return cat(step(i), read(i)) }), []byte{0x0b})
			return alone(m)
		}
	}
	sum := func(int) []byte { return cat(get(x), get(y), []byte{0xa0}, set(x)) }
	use := cat(get(x), []byte{0x24, 3})
	branch := []byte{0x23, 0, 0x04, 0x40}
	in := func(code ...[]byte) func(int) []byte {
		return func(int) []byte { return cat(branch, cat(code...), []byte{0x0b}) }
	}
	bombs = append(bombs, []bomb{
		{"sums that branches need", 600, 0, chained(sum, in(use))},
		{"sums that both branches need", 300, 0, chained(sum, in(use, []byte{0x05}, use))},
		{"sums that nested branches need", 400, 0, chained(sum, in(branch, use, []byte{0x0b}))},
		{"sums that branches store", 400, 0, chained(sum, in([]byte{0x41, 0}, get(x), []byte{0x39, 3, 0}))},
		{"sums that loops in branches need", 400, 0, chained(sum, in([]byte{0x03, 0x40}, use, []byte{0x23, 0, 0x0d, 0, 0x0b}))},
		{"sums that loops in branches begin with", 400, 0, chained(sum, in(get(x), set(3), []byte{0x03, 0x40}, get(3), []byte{0x1a}, get(y), set(3), []byte{0x23, 0, 0x0d, 0, 0x0b}))},
		{"sums that jumps take", 400, 0, chained(sum, in(get(x), set(3), []byte{0x0c, 1}))},
		{"sums that tables of jumps lead to", 300, 0, chained(sum, func(int) []byte {
			return cat([]byte{0x02, 0x40, 0x02, 0x40, 0x23, 0, 0x0e, 1, 0, 1, 0x0b}, use, []byte{0x0b})
		})},
		{"sums behind jumps", 400, 0, chained(sum, func(int) []byte { return cat([]byte{0x02, 0x40, 0x23, 0, 0x0d, 0}, use, []byte{0x0b}) })},
		{"sums that branches set to themselves", 400, 0, chained(sum, in(get(x), set(3), get(3), set(x), use))},
		{"sums that are needed twice", 400, 0, chained(func(int) []byte {
			return cat(get(x), get(x), []byte{0xa2}, get(y), []byte{0xa0}, set(x))
		}, in(use))},
		{"sums in three variables", 300, 0, chained(func(i int) []byte {
			return cat(get(2+i%3), get(2+(i+1)%3), []byte{0xa0}, set(2+i%3))
		}, in(get(2), get(3), []byte{0xa0}, get(4), []byte{0xa0, 0x24, 3}))},
		{"choices that branches need", 300, 0, chained(func(i int) []byte { return cat(get(x), get(2+i%6), []byte{0x23, 0, 0x1b}, set(x)) }, in(use))},
		{"loaded sums that branches need", 200, 0, chained(func(i int) []byte {
			return cat(get(x), []byte{0x23, 3, 0xa0, 0x23, 3, 0xa0}, set(x))
		}, in(use))},
		{"sums on the stack that branches need", 300, 0, func(n, _ int) []byte {
			m := newModule()
			t := m.addType([]byte{tF64}, []byte{tF64})
			m.add(0, []byte{tF64}, []byte{0x23, 3}, times(n, []byte{0x23, 3, 0xa0, 0x22, 0, 0x23, 0, 0x04}, leb(t), get(0), []byte{0x24, 3, 0x0b}), []byte{0x24, 3})
			return alone(m)
		}},
		{"loaded sums that few branches need", 2000, 8, func(n, w int) []byte {
			m := newModule()
			m.add(0, []byte{tF64}, []byte{0x23, 3}, times(n, []byte{0x23, 3, 0xa0}), set(0), times(w, in(use)(0)))
			return alone(m)
		}},
		{"quotients by constants that branches need", 400, 0, bodyOf2(2, func(n, _ int) []byte {
			return cat(readGlobals(2), times(n, get(0), []byte{0x41, 7, 0x6e, 0x21, 0}, get(0), get(1), []byte{0x73, 0x21, 0}, branch, get(0), []byte{0x24, 0, 0x0b}))
		})},
		{"bits that cancel and that branches need", 300, 0, bodyOf2(2, func(n, _ int) []byte {
			return cat(readGlobals(2), times(n, get(0), get(1), []byte{0x72}, get(1), []byte{0x77, 0x21, 0}, get(0), get(0), []byte{0x73, 0x24, 0}, branch, get(0), []byte{0x24, 0, 0x0b}))
		})},
	}...)
}
