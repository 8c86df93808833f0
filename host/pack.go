package host

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// memory are the exports through which the host takes an instance away from a call that waits: stile:extension/memory. The component is
// not trusted: what it answers is bounded and has the right length, and it can only damage its own instances.
type memory struct {
	size, grow, sums, peek, patch, discard export
	adopt                                  map[*abi.Resource]export

	mu     sync.Mutex // held for moments; whoever sets the fields holds Host.pristine too
	failed bool       // there is no base
	key    string     // random, for sums
	base   []byte     // the memory of a fresh instance
	summed []byte     // its sums
}

const (
	page = 4 << 10
	// pagesAtOnce, peekBytes and patchBytes bound what one call of an export passes.
	pagesAtOnce = 512
	peekBytes   = 64 << 10
	patchBytes  = 16 << 10
	sumBytes    = 16
	keyBytes    = page + 32
	// packBytes is how much is compressed at a time.
	packBytes = 256 << 10
	// maxBase bounds the memory of a fresh instance, which the host keeps.
	maxBase = 16 * mib
	// packTime is what the host's own work for a byte takes at worst, in either direction: to compare, convert and compress it.
	packTime = 4 * time.Nanosecond
	// packedCall is what a packed call takes besides its memory, packedHandle what each of its handles takes, and packedName each name in
	// its envs.
	packedCall   = 16 * kib
	packedHandle = 512
	packedName   = 256
)

// exportMemory finds the exports.
func (c *Component) exportMemory(item *wasmtime.Item) (*memory, error) {
	m := &memory{adopt: map[*abi.Resource]export{}}
	for name, x := range map[string]*export{"size": &m.size, "grow": &m.grow, "sums": &m.sums, "peek": &m.peek, "patch": &m.patch, "discard": &m.discard} {
		var err error
		if *x, err = c.export(item, name); err != nil {
			return nil, err
		}
	}
	for _, f := range item.Items {
		if f.Kind != wasmtime.ItemFunc || !strings.HasPrefix(f.Name, "adopt") {
			continue
		}
		refused := &LoadError{Name: item.Name + "#" + f.Name, Reason: "its type is not that of a function that takes an own handle"}
		if f.Func.Result != nil || len(f.Func.Params) != 1 || f.Func.Params[0].Type.Kind != abi.KindOwn {
			return nil, refused
		}
		r := f.Func.Params[0].Type.Resource
		known := c.host.known.Interface(r.Interface.Name)
		if known == nil {
			return nil, refused
		}
		if r = resourceNamed(known, r.Name); r == nil || m.adopt[r].index != nil {
			return nil, refused
		}
		m.adopt[r] = export{c.component.Export(item.Name, f.Name), []*abi.Type{{Kind: abi.KindOwn, Resource: r}}, nil}
	}
	if m.adopt[c.host.env].index == nil { // envs also fill places of the table that were free
		return nil, &LoadError{Name: item.Name, Reason: "no function takes an own handle of an env"}
	}
	if slices.ContainsFunc(c.imports, func(i Import) bool { return i.Kind == "wasi" }) {
		for _, x := range m.exports() { // the handles of the empty world are not known here
			x.index.Close()
		}
		return nil, nil
	}
	return m, nil
}

func (m *memory) exports() []export {
	if m == nil {
		return nil
	}
	all := []export{m.size, m.grow, m.sums, m.peek, m.patch, m.discard}
	for _, x := range m.adopt {
		all = append(all, x)
	}
	return all
}

// free gives back the memory of the base.
func (m *memory) free(h *Host) {
	if m != nil && m.base != nil {
		h.packed.Release(int64(len(m.base)))
	}
}

// table mirrors the engine's table of the guest's handles: which has which index, and which indices come next.
type table struct {
	kept  bool
	slots []abi.Rep // by index - 1; 0 if free
	free  []uint32  // the last comes next
}

func (t *table) add(rep abi.Rep) {
	if !t.kept {
		return
	}
	if n := len(t.free); n > 0 {
		t.slots[t.free[n-1]-1], t.free = rep, t.free[:n-1]
		return
	}
	t.slots = append(t.slots, rep)
}

func (t *table) remove(rep abi.Rep) {
	if !t.kept {
		return
	}
	if i := slices.Index(t.slots, rep); i >= 0 {
		t.slots[i] = 0
		t.free = append(t.free, uint32(i)+1)
	}
}

// operate calls the gate, and mirrors what the engine does with its table of handles before and after that.
func (c *call) operate(op *operation, args []abi.Value) (abi.Value, error) {
	if c.moving {
		return nil, &TrapError{Reason: "a function of " + abi.ExtensionMemory + " calls the host"}
	}
	if !c.handles.table.kept || !op.takes && !op.gives {
		return c.gate(op, args)
	}
	own := func(do func(abi.Rep)) func(*abi.Type, abi.Rep) error {
		return func(t *abi.Type, rep abi.Rep) error {
			if t.Kind == abi.KindOwn {
				do(rep)
			}
			return nil
		}
	}
	for i, p := range op.fn.Params {
		_ = eachHandle(p.Type, args[i], own(c.handles.table.remove))
	}
	v, err := c.gate(op, args)
	if err == nil && op.gives {
		_ = eachHandle(op.fn.Result, v, own(c.handles.table.add))
	}
	return v, err
}

// packed is a call that waits without an instance.
type packed struct {
	size  uint32   // of its memory
	parts [][]byte // runs of words that differ from the base, compressed
	held  int64    // bytes of Options.PackedMemory
	table table
}

var (
	packer = sync.OnceValue(func() *zstd.Encoder {
		e, _ := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(64<<10), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false))
		return e
	})
	unpacker = sync.OnceValue(func() *zstd.Decoder {
		d, _ := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(64*mib))
		return d
	})
)

var (
	// errKept says that a call keeps its instance.
	errKept = errors.New("the instance is kept")
	// errBusy says that it keeps it for now.
	errBusy = errors.New("another component is being read")
)

func (x export) in(i *wasmtime.Instance, args ...abi.Value) (abi.Value, error) {
	return i.Call(x.index, x.params, x.result, args...)
}

// answer calls an export that returns text, and returns the bytes that it stands for, which must be as many as are wanted.
func (x export) answer(i *wasmtime.Instance, want int, args ...abi.Value) ([]byte, error) {
	v, err := x.in(i, args...)
	if err != nil {
		return nil, err
	}
	b, ok := latin1(v.(string), want)
	if !ok {
		return nil, &TrapError{Reason: "a function of " + abi.ExtensionMemory + " returns a text of a wrong length"}
	}
	return b, nil
}

// measure returns the size of an instance's memory.
func (m *memory) measure(i *wasmtime.Instance, most int64) (uint32, error) {
	v, err := m.size.in(i)
	if err != nil {
		return 0, err
	}
	size := v.(uint32)
	if int64(size) > most || size%page != 0 {
		return 0, &TrapError{Reason: "a function of " + abi.ExtensionMemory + " returns a wrong size"}
	}
	return size, nil
}

// sum returns the sums of all pages.
func (m *memory) sum(i *wasmtime.Instance, size uint32) ([]byte, error) {
	var all []byte
	for at := uint32(0); at < size; at += pagesAtOnce * page {
		n := min(pagesAtOnce, (size-at)/page)
		b, err := m.sums.answer(i, int(n)*sumBytes, at, n, m.key)
		if err != nil {
			return nil, err
		}
		all = append(all, b...)
	}
	return all, nil
}

// prepared reports whether prepare has succeeded, or never will.
func (m *memory) prepared() (known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return true, errKept
	}
	return m.base != nil, nil
}

// prepare reads the memory of a fresh instance, once. It uses the slot of the engine that no call can have, and the time of this call.
func (m *memory) prepare(c *call, of *Component) (err error) {
	if known, err := m.prepared(); known {
		return err
	}
	h := c.host
	if !h.pristine.TryLock() { // the functions of a component may take long
		return errBusy
	}
	defer h.pristine.Unlock()
	if known, err := m.prepared(); known {
		return err
	}
	s := h.engine.NewStore(c.storeLimits, &call{host: h, ctx: c.ctx, limits: c.limits, stepping: stepping{moving: true}})
	defer s.Close()
	defer context.AfterFunc(c.storeLimits.Context, s.Cancel)()
	defer func() { c.usage.CPU += s.CPU() }()
	i, err := s.Instantiate(of.linker, of.component)
	if err != nil {
		return err
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	m.key = fromLatin1(key)
	size, err := m.measure(i, c.limits.Memory)
	if err != nil {
		return err
	}
	if size > maxBase {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.failed = true
		return errKept
	}
	if !h.packed.TryAcquire(int64(size)) {
		return errKept
	}
	base := make([]byte, 0, size)
	summed, err := m.sum(i, size)
	for at := uint32(0); at < size && err == nil; at += peekBytes {
		var b []byte
		n := min(peekBytes, size-at)
		b, err = m.peek.answer(i, int(n), at, n)
		base = append(base, b...)
	}
	if err != nil {
		h.packed.Release(int64(size))
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base, m.summed = base, summed
	return nil
}

var zeroPage = make([]byte, page)

// basePage is a page of a fresh instance's memory, which is zero beyond its end.
func (m *memory) basePage(n int) []byte {
	if (n+1)*page > len(m.base) {
		return zeroPage
	}
	return m.base[n*page:][:page]
}

// pack takes the instance away from a call that waits: what differs from a fresh one is kept. The caller has a place in packing. The error errKept says that the call
// keeps it.
func (c *call) pack(of *Component, i *wasmtime.Instance) (_ *packed, err error) {
	h, m := c.host, of.memory
	defer func() { <-h.packing }()
	c.moving = true
	defer func() { c.moving = false }()
	if err := m.prepare(c, of); err != nil {
		return nil, err
	}
	for _, rep := range c.handles.table.slots {
		if h := c.handles.open[rep]; rep != 0 && (h == nil || m.adopt[h.resource].index == nil) {
			return nil, errKept
		}
	}
	p := &packed{}
	if p.size, err = m.measure(i, c.limits.Memory); err != nil {
		return nil, err
	}
	held := int64(packedCall + packedHandle*max(len(c.handles.open), len(c.handles.table.slots)) + packedName*max(0, c.handles.names))
	if !h.packed.TryAcquire(held) {
		return nil, errKept
	}
	p.held = held
	defer func() {
		if err != nil {
			h.packed.Release(p.held)
		}
	}()
	sums, err := m.sum(i, p.size)
	if err != nil {
		return nil, err
	}
	same := func(n int) bool {
		if at := n * sumBytes; at < len(m.summed) {
			return string(sums[at:][:sumBytes]) == string(m.summed[at:][:sumBytes])
		}
		return false
	}
	var runs []byte
	flush := func() error {
		part := bytes.Clone(packer().EncodeAll(runs, nil))
		runs = runs[:0]
		if !h.packed.TryAcquire(int64(len(part))) {
			return errKept
		}
		p.held += int64(len(part))
		p.parts = append(p.parts, part)
		return nil
	}
	pages := int(p.size) / page
	for first := 0; first < pages; {
		if same(first) {
			first++
			continue
		}
		last := first + 1
		for last < pages && last-first < peekBytes/page && !same(last) {
			last++
		}
		now, err := m.peek.answer(i, (last-first)*page, uint32(first*page), uint32((last-first)*page))
		if err != nil {
			return nil, err
		}
		if err := c.frame.work(time.Duration((last-first)*page) * packTime); err != nil {
			return nil, err
		}
		for n := first; n < last; n++ {
			runs = appendRuns(runs, uint32(n*page), now[(n-first)*page:][:page], m.basePage(n))
		}
		if len(runs) > packBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		first = last
	}
	if err := flush(); err != nil {
		return nil, err
	}
	p.table = c.handles.table
	c.closeStore()
	c.place.give()
	return p, nil
}

// appendRuns appends the runs of words in which a page differs from another: address, length, bytes.
func appendRuns(runs []byte, at uint32, now, before []byte) []byte {
	for o := 0; o < page; {
		if binary.LittleEndian.Uint64(now[o:]) == binary.LittleEndian.Uint64(before[o:]) {
			o += 8
			continue
		}
		end := o + 8
		for end < page && binary.LittleEndian.Uint64(now[end:]) != binary.LittleEndian.Uint64(before[end:]) {
			end += 8
		}
		runs = binary.LittleEndian.AppendUint32(runs, at+uint32(o))
		runs = binary.LittleEndian.AppendUint32(runs, uint32(end-o))
		runs = append(runs, now[o:end]...)
		o = end
	}
	return runs
}

// unpack gives a call an instance again. It waits for a slot.
func (c *call) unpack(of *Component, p *packed) (*wasmtime.Instance, error) {
	h, m := c.host, of.memory
	defer h.packed.Release(p.held)
	if err := c.place.take(c.storeLimits.Context); err != nil {
		return nil, err
	}
	c.openStore()
	c.moving = true
	defer func() { c.moving = false }()
	i, err := c.store.Instantiate(of.linker, of.component)
	if err != nil {
		return nil, err
	}
	if err := c.adopt(of, i, p.table); err != nil {
		return nil, err
	}
	if _, err := m.grow.in(i, p.size); err != nil {
		return nil, err
	}
	for _, part := range p.parts {
		runs, err := unpacker().DecodeAll(part, nil)
		if err != nil {
			return nil, fmt.Errorf("unpack a call: %w", err)
		}
		if err := c.frame.work(time.Duration(len(runs)) * packTime); err != nil {
			return nil, err
		}
		for len(runs) > 0 {
			n := 0
			for n < len(runs) {
				next := n + 8 + int(binary.LittleEndian.Uint32(runs[n+4:]))
				if next > patchBytes {
					break
				}
				n = next
			}
			if _, err := m.patch.in(i, fromLatin1(runs[:n])); err != nil {
				return nil, err
			}
			runs = runs[n:]
		}
	}
	return i, nil
}

// adopt gives a fresh instance the handles of a table, at the same indices. Places that were free are filled and given back, in the
// order in which they became free.
func (c *call) adopt(of *Component, i *wasmtime.Instance, old table) error {
	c.handles.table = table{kept: true}
	t := &c.handles.table
	for n, rep := range old.slots {
		resource := c.host.env
		if rep == 0 {
			c.handles.next++
			rep = c.handles.next
			c.handles.open[rep] = &handle{resource: resource, value: environment(nil)}
		} else if h := c.handles.open[rep]; h != nil {
			resource = h.resource
		}
		t.add(rep)
		if _, err := of.memory.adopt[resource].in(i, rep); err != nil {
			return err
		}
		if n >= len(t.slots) || t.slots[n] != rep {
			return &TrapError{Reason: "a function of " + abi.ExtensionMemory + " drops a handle"}
		}
	}
	c.discarding = true
	defer func() { c.discarding = false }()
	for _, index := range old.free {
		if _, err := of.memory.discard.in(i, index); err != nil {
			return err
		}
	}
	if !slices.Equal(t.slots, old.slots) || !slices.Equal(t.free, old.free) {
		return &TrapError{Reason: "a function of " + abi.ExtensionMemory + " drops a wrong handle"}
	}
	return nil
}

const ascii = 0x8080808080808080

// latin1 returns the bytes of a text with this many characters, none above U+00FF.
func latin1(text string, length int) ([]byte, bool) {
	b := make([]byte, 0, length)
	s := []byte(text)
	for len(s) > 0 {
		n := 0
		for n+8 <= len(s) && binary.LittleEndian.Uint64(s[n:])&ascii == 0 {
			n += 8
		}
		if n == 0 && s[0] < 0x80 {
			n = 1
		}
		switch {
		case n > length-len(b) || len(b) == length:
			return nil, false
		case n > 0:
			b, s = append(b, s[:n]...), s[n:]
		case s[0]&0xfc == 0xc0 && len(s) > 1: // 110000xx 10xxxxxx
			b, s = append(b, s[0]<<6|s[1]&0x3f), s[2:]
		default:
			return nil, false
		}
	}
	return b, len(b) == length
}

// fromLatin1 returns the text that stands for bytes.
func fromLatin1(b []byte) string {
	s := make([]byte, 0, len(b)+len(b)/2)
	for len(b) > 0 {
		n := 0
		for n+8 <= len(b) && binary.LittleEndian.Uint64(b[n:])&ascii == 0 {
			n += 8
		}
		if n == 0 {
			if c := b[0]; c < 0x80 {
				s = append(s, c)
			} else {
				s = append(s, 0xc0|c>>6, 0x80|c&0x3f)
			}
			n = 1
		} else {
			s = append(s, b[:n]...)
		}
		b = b[n:]
	}
	return string(s)
}
