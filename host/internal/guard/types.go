package guard

import "math"

// valueType is a value type with its place in memory, its core values and its weight. Types share their parts, and an expanded type
// can be larger than any memory, so everything is computed once for each.
type valueType struct {
	kind        kind
	parts       []*valueType // fields; payloads of cases, nil if one has none; the element of a list
	offsets     []uint32     // of fields
	size, align uint32
	payload     uint32 // offset of payloads
	tag         uint32 // bytes of the case's number
	depth       int
	flat        []coreType // nil if there are more than maxFlat
	wide        bool       // there are more
	weight      int64      // weight of a value, without the contents of its lists and strings
	dynamic     bool       // it contains a list or string
	names       int64      // bytes of the names in it, written out
}

// named counts the names in a type. labels are its own.
func (t *valueType) named(labels int64) {
	if t.kind == kindPlain && labels == 0 {
		return // shared
	}
	t.names = labels
	for _, p := range t.parts {
		if p != nil {
			t.names = min(t.names+p.names, maxNames+1)
		}
	}
}

type kind uint8

const (
	kindPlain kind = iota
	kindString
	kindList
	kindFields
	kindCases
)

type coreType byte

const (
	coreI32 coreType = 0x7f
	coreI64 coreType = 0x7e
	coreF32 coreType = 0x7d
	coreF64 coreType = 0x7c
)

const (
	maxFlat = 16
	// maxSize bounds a value in memory without its lists, so that sums do not overflow.
	maxSize = 1 << 20
	// maxWeight is where weights stop growing. No value of such a type is accepted.
	maxWeight = 1 << 32
)

// The weights of values: the bytes that the host holds for one while it is converted. The engine makes two copies, one of its own
// and one for the C API, with every name of a field or case in a separate block, and lists that grow by doubling. A third copy is
// Go's. TestConversionsAreBounded checks this against measurements.
const (
	weighValue = 2*40 + 32 + 16 // in lists of the engine, of the C API and of Go
	weighName  = 2 * 32
	weighEntry = 2*64 + 48 // per entry of a record, with a name and a value
	weighBlock = 3 * 32    // memory blocks for a value that is not stored in place
	weighChar  = 3         // per byte of a string
	weighByte  = 2*40 + 32 + 1
)

func plain(core coreType, size uint32) *valueType {
	return &valueType{kind: kindPlain, size: size, align: size, flat: []coreType{core}, weight: weighValue + weighBlock}
}

func stringType() *valueType {
	return &valueType{kind: kindString, size: 8, align: 4, flat: []coreType{coreI32, coreI32}, weight: weighValue + weighBlock, dynamic: true}
}

func listType(element *valueType) *valueType {
	return &valueType{
		kind: kindList, parts: []*valueType{element}, depth: element.depth + 1, size: 8, align: 4, flat: []coreType{coreI32, coreI32},
		weight: weighValue + weighBlock, dynamic: true,
	}
}

// perElement is the weight of one more element of a list.
func (t *valueType) perElement(r *scope) int64 {
	if t == r.root.u8 {
		return weighByte
	}
	return t.weight
}

func alignTo(n, align uint32) uint32 { return (n + align - 1) / align * align }

// fields makes a record, or a tuple if it is not named.
func fields(parts []*valueType, named bool) *valueType {
	t := &valueType{kind: kindFields, parts: parts, align: 1, weight: weighValue + weighBlock, flat: []coreType{}}
	for _, p := range parts {
		at := alignTo(t.size, p.align)
		t.offsets = append(t.offsets, at)
		t.size = min(at+p.size, maxSize)
		t.align, t.depth = max(t.align, p.align), max(t.depth, p.depth+1)
		t.weight += p.weight
		if named {
			t.weight += weighEntry + weighName
		}
		t.dynamic = t.dynamic || p.dynamic
		t.append(p)
	}
	t.size = alignTo(t.size, t.align)
	t.weight = min(t.weight, maxWeight)
	return t
}

// append adds the core values of a part.
func (t *valueType) append(p *valueType) {
	if t.wide = t.wide || p.wide || len(t.flat)+len(p.flat) > maxFlat; t.wide {
		t.flat = nil
		return
	}
	t.flat = append(t.flat, p.flat...)
}

// cases makes a variant, an enum, an option or a result.
func cases(payloads []*valueType, named bool) *valueType {
	t := &valueType{kind: kindCases, parts: payloads, align: 1}
	switch n := len(payloads); {
	case n <= math.MaxUint8+1:
		t.tag = 1
	case n <= math.MaxUint16+1:
		t.tag = 2
	default:
		t.tag = 4
	}
	joined := []coreType{}
	var size uint32
	var heaviest int64
	for _, p := range payloads {
		if p == nil {
			continue
		}
		size, t.align, heaviest = max(size, p.size), max(t.align, p.align), max(heaviest, p.weight)
		t.dynamic = t.dynamic || p.dynamic
		t.wide, t.depth = t.wide || p.wide, max(t.depth, p.depth+1)
		for i, c := range p.flat {
			if i == len(joined) {
				joined = append(joined, c)
			} else {
				joined[i] = join(joined[i], c)
			}
		}
	}
	if t.wide = t.wide || len(joined) >= maxFlat; !t.wide {
		t.flat = append([]coreType{coreI32}, joined...)
	}
	t.payload = alignTo(t.tag, t.align)
	t.align = max(t.align, t.tag)
	t.size = min(alignTo(t.payload+size, t.align), maxSize)
	t.weight = weighValue + weighBlock + heaviest
	if named {
		t.weight += weighName
	}
	t.weight = min(t.weight, maxWeight)
	return t
}

func join(a, b coreType) coreType {
	switch {
	case a == b:
		return a
	case a == coreI32 && b == coreF32, a == coreF32 && b == coreI32:
		return coreI32
	default:
		return coreI64
	}
}

func flags(labels int) *valueType {
	t := plain(coreI32, 4)
	switch {
	case labels <= 8:
		t.size, t.align = 1, 1
	case labels <= 16:
		t.size, t.align = 2, 2
	}
	t.weight += int64(labels) * (weighName + 2*24 + 16)
	return t
}

// funcType is a function's type.
type funcType struct {
	params *valueType // as a tuple
	result *valueType // nil for none
}

// returns reports whether the result has lists or strings.
func (f *funcType) returns() bool { return f.result != nil && f.result.dynamic }

// instanceType maps the names of an instance's exports, or of a component's, to their types.
type instanceType map[string]any

// resource is a resource type. Nothing about it matters here.
type resource struct{}
