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

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/wordtext"
)

// memory are the exports through which the host takes an instance away from a call that waits: stile:extension/memory. The component is
// not trusted: what it answers is bounded and has the right length, and it can only damage its own instances.
type memory struct {
	size, grow, changes, peek, patch, discard export
	adopt                                     map[*abi.Resource]export

	mu      sync.Mutex // held for moments; whoever sets the fields up to pages holds Host.pristine too
	failed  bool       // there is no base
	base    []byte     // the memory of a fresh instance; nil until it was read
	digest  string     // of the base
	key     []byte     // random, for sums
	sums    []byteSums // of the blocks of the base, and of a page of zeros after it
	pages   []byte     // the sums of these pages, as changes gets them
	pattern *pattern
}

// pattern is what an earlier call of the component has packed. Calls of a tool change their memory in almost the same way.
type pattern struct {
	dict *s2.Dict
	uses int
}

// byteSums are the two sums of a block.
type byteSums [2]uint64

const (
	page  = 4 << 10
	block = 256
	// pagesAtOnce, changesAtOnce, blocksAtOnce and patchBytes bound what one call of an export passes.
	pagesAtOnce   = 512
	changesAtOnce = 64
	blocksAtOnce  = 192
	patchBytes    = 48 << 10
	changeBytes   = 16 + page/block*sumBytes
	sumBytes      = 16
	keyBytes      = page + 32
	// packBytes is how much is compressed at a time.
	packBytes = 256 << 10
	// maxBase bounds the memory of a fresh instance, which the host keeps.
	maxBase = 16 * mib
	// patternUses is for how many calls a pattern serves, so that data of a call is not kept for ever. patternBytes is what it takes.
	patternUses, patternBytes = 1000, 128 * kib
	// packTime is what the host's own work for a byte takes at worst, in either direction: to compare, convert and compress it.
	packTime = 4 * time.Nanosecond
	// waitTime is the host's own work for a wait, watchTime that for each pollable and grant that it watches, and moveTime that to pack or
	// unpack a call, besides its bytes.
	waitTime, watchTime, moveTime = 30 * time.Microsecond, 300 * time.Nanosecond, 150 * time.Microsecond
	// movingTime and movingRate are the processor time that a component's functions have to give the memory of one instance: for all of it,
	// and for each byte that it may have. The memory of JavaScript takes a tenth of that.
	movingTime, movingRate = 100 * time.Millisecond, 8 * time.Nanosecond
	// packedCall is what a packed call takes besides its memory, packedHandle what each of its handles takes, and packedName each name in
	// its envs.
	packedCall   = 16 * kib
	packedHandle = 512
	packedName   = 256
	// packedGrant is what each grant of a lease takes.
	packedGrant = 64
)

// exportMemory finds the exports.
func (c *Component) exportMemory(item *wasmtime.Item) (*memory, error) {
	m := &memory{adopt: map[*abi.Resource]export{}}
	for name, x := range map[string]*export{"size": &m.size, "grow": &m.grow, "changes": &m.changes, "peek": &m.peek, "patch": &m.patch, "discard": &m.discard} {
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
	all := []export{m.size, m.grow, m.changes, m.peek, m.patch, m.discard}
	for _, x := range m.adopt {
		all = append(all, x)
	}
	return all
}

// ofAll is whose the base of a component is: the calls of all users need it.
const ofAll = ""

// free gives back the memory of the base.
func (m *memory) free(h *Host) {
	if m != nil && m.base != nil {
		h.packed.Give(ofAll, baseBytes(uint32(len(m.base))))
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
	size    uint32   // of its memory
	parts   [][]byte // runs of words that differ from the base, compressed
	pattern *s2.Dict // for the only part, or nil
	plain   bool     // the parts are not compressed
	held    int64    // bytes of Options.PackedMemory
	table   table
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

// answer calls an export that returns a text of at most this length, which it writes to a buffer.
func (x export) answer(i *wasmtime.Instance, to *[]byte, most int, args ...abi.Value) error {
	text, err := i.CallText((*to)[:0], x.index, x.params, args...)
	if err != nil {
		return err
	}
	if len(text) > most || len(text)%8 != 0 {
		return &TrapError{Reason: "a function of " + abi.ExtensionMemory + " returns a text of a wrong length"}
	}
	*to = text
	return nil
}

// scratch has the buffers with which calls are packed and unpacked. Together they have a megabyte at most.
type scratch struct {
	words        []byte // in a text that the guest gets
	asked, given []byte // texts that the guest gets and returns
	content      []byte // words in what it returned
	runs         []byte
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

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

// changed returns the addresses of the blocks that may differ from those of a fresh instance.
func (m *memory) changed(i *wasmtime.Instance, size uint32, s *scratch) (blocks []uint32, err error) {
	for at := uint32(0); at < size; {
		n := min(pagesAtOnce, (size-at)/page)
		s.words = append(s.words[:0], m.key...)
		for p := range n {
			s.words = append(s.words, m.pages[min(int(at/page+p)*sumBytes, len(m.pages)-sumBytes):][:sumBytes]...)
		}
		s.asked = wordtext.Encode(s.asked[:0], s.words)
		if err := m.changes.answer(i, &s.given, wordtext.Length(changesAtOnce*changeBytes), at, n, s.asked); err != nil {
			return nil, err
		}
		s.content = wordtext.Decode(s.content[:0], s.given)
		end := at + n*page
		for c := s.content; len(c) >= changeBytes; c = c[changeBytes:] {
			p := binary.LittleEndian.Uint32(c)
			if p < at || p >= end || p%page != 0 {
				return nil, &TrapError{Reason: "a function of " + abi.ExtensionMemory + " returns a wrong page"}
			}
			for b := range uint32(page / block) {
				s := c[16+b*sumBytes:]
				if m.sumOf(p+b*block) != (byteSums{binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])}) {
					blocks = append(blocks, p+b*block)
				}
			}
			at = p + page
		}
		if len(s.given) < wordtext.Length(changesAtOnce*changeBytes) {
			at = end
		}
	}
	return blocks, nil
}

// sumOf returns the sums of a block of a fresh instance.
func (m *memory) sumOf(at uint32) byteSums {
	n := int(at / block)
	if n >= len(m.sums) {
		n = len(m.sums) - page/block + n%(page/block)
	}
	return m.sums[n]
}

// sumBlock sums a block up, as the function changes does. key is the part of the key for it.
func sumBlock(b, key []byte) (s byteSums) {
	for at := 0; at < block; at += 32 {
		for n := at; n < at+16; n += 4 {
			x, y := binary.LittleEndian.Uint32(b[n:]), binary.LittleEndian.Uint32(b[n+16:])
			for i := range s {
				k := key[n+32*i:]
				s[i] += uint64(x+binary.LittleEndian.Uint32(k)) * uint64(y+binary.LittleEndian.Uint32(k[16:]))
			}
		}
	}
	return s
}

// read returns blocks of an instance's memory, in s.content.
func (m *memory) read(i *wasmtime.Instance, blocks []uint32, s *scratch) ([]byte, error) {
	s.words = s.words[:0]
	for _, at := range blocks {
		s.words = binary.LittleEndian.AppendUint32(s.words, at)
	}
	if len(blocks)%2 != 0 { // a text stands for whole words
		s.words = binary.LittleEndian.AppendUint32(s.words, blocks[0])
	}
	count := len(s.words) / 4
	s.asked = wordtext.Encode(s.asked[:0], s.words)
	if err := m.peek.answer(i, &s.given, count*wordtext.Length(block), s.asked); err != nil {
		return nil, err
	}
	if len(s.given) != count*wordtext.Length(block) {
		return nil, &TrapError{Reason: "a function of " + abi.ExtensionMemory + " returns a text of a wrong length"}
	}
	s.content = s.content[:0]
	for n := range blocks {
		s.content = wordtext.Decode(s.content, s.given[n*wordtext.Length(block):][:wordtext.Length(block)])
	}
	return s.content, nil
}

// baseBytes is what is kept of a component with a base of this size: the base, its sums and a pattern.
func baseBytes(size uint32) int64 { return int64(size) + int64(size)/8 + patternBytes }

// prepared reports whether prepare has succeeded, or never will.
func (m *memory) prepared() (known bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed {
		return true, errKept
	}
	return m.base != nil, nil
}

// prepare reads the memory of a fresh instance, once. It uses the slot of the engine that no call can have, and the time of this call. An impatient caller gets
// errBusy while another component is being read.
func (m *memory) prepare(c *call, of *Component, patient bool) (err error) {
	if known, err := m.prepared(); known {
		return err
	}
	h := c.host
	if patient {
		h.pristine.Lock()
	} else if !h.pristine.TryLock() { // the functions of a component may take long
		return errBusy
	}
	defer h.pristine.Unlock()
	if known, err := m.prepared(); known {
		return err
	}
	s := h.engine.NewStore(c.storeLimits, &call{host: h, ctx: c.ctx, limits: c.limits, stepping: stepping{moving: true}})
	defer func() {
		s.Close()
		c.usage.CPU += s.CPU()
	}()
	defer context.AfterFunc(c.storeLimits.Context, s.Cancel)()
	defer confine(s, c.limits.Memory, &err)()
	i, err := s.Instantiate(of.linker, of.component)
	if err != nil {
		return err
	}
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
	if !h.packed.Take(ofAll, baseBytes(size)) {
		return errKept
	}
	base := make([]byte, 0, size)
	buffers := scratches.Get().(*scratch)
	defer scratches.Put(buffers)
	var blocks []uint32
	for at := uint32(0); at < size && err == nil; at += block * uint32(len(blocks)) {
		blocks = blocks[:0]
		for b := at; b < size && len(blocks) < blocksAtOnce; b += block {
			blocks = append(blocks, b)
		}
		var content []byte
		content, err = m.read(i, blocks, buffers)
		base = append(base, content...)
	}
	if err != nil {
		h.packed.Give(ofAll, baseBytes(size))
		return err
	}
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	var sums []byteSums
	var pages []byte
	for at := 0; at < len(base)+page; at += page {
		var whole byteSums
		for o := 0; o < page; o += block {
			sum := sumBlock(baseBlock(base, at+o), key[o:])
			sums = append(sums, sum)
			whole[0], whole[1] = whole[0]+sum[0], whole[1]+sum[1]
		}
		pages = binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(pages, whole[0]), whole[1])
	}
	digest := sha256hex.Of(base)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base, m.digest, m.key, m.sums, m.pages = base, digest, key, sums, pages
	return nil
}

var zeroBlock = make([]byte, block)

// baseBlock is a block of a fresh instance's memory, which is zero beyond its end.
func baseBlock(base []byte, at int) []byte {
	if at >= len(base) {
		return zeroBlock
	}
	return base[at:][:block]
}

// patterned returns what to pack runs with: the pattern of an earlier call, or else these runs become one.
func (m *memory) patterned(runs []byte) *s2.Dict {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pattern == nil || m.pattern.uses == patternUses {
		text := make([]byte, s2.MinDictSize, s2.MaxDictSize)
		text = append(text, runs[:min(len(runs), cap(text)-len(text))]...)
		m.pattern = &pattern{dict: s2.MakeDict(text, nil)}
	}
	m.pattern.uses++
	return m.pattern.dict
}

// pack takes the instance away from a call that waits: what differs from a fresh one is kept. The caller has a place in packing. The error errKept says that the call
// keeps it.
func (c *call) pack(of *Component, i *wasmtime.Instance) (_ *packed, err error) {
	h, m := c.host, of.memory
	defer func() { <-h.packing }()
	c.moving = true
	defer func() { c.moving = false }()
	if err := m.prepare(c, of, false); err != nil {
		return nil, err
	}
	defer confine(c.store, c.limits.Memory, &err)()
	c.store.Keep()
	defer c.rest()
	for _, rep := range c.handles.table.slots {
		if h := c.handles.open[rep]; rep != 0 && (h == nil || m.adopt[h.resource].index == nil) {
			return nil, errKept
		}
	}
	if err := c.frame.work(moveTime); err != nil {
		return nil, err
	}
	p := &packed{}
	if p.size, err = m.measure(i, c.limits.Memory); err != nil {
		return nil, err
	}
	p.held = c.keeps()
	if !h.packed.Take(c.frame.user, p.held) {
		return nil, errKept
	}
	defer func() {
		if err != nil {
			h.packed.Give(c.frame.user, p.held)
		}
	}()
	buffers := scratches.Get().(*scratch)
	defer scratches.Put(buffers)
	blocks, err := m.changed(i, p.size, buffers)
	if err != nil {
		return nil, err
	}
	runs := buffers.runs[:0]
	flush := func() error {
		if p.parts == nil && len(runs) <= s2.MaxDictSize {
			p.pattern = m.patterned(runs)
			buffers.given = p.pattern.Encode(buffers.given[:cap(buffers.given)], runs)
		} else {
			buffers.given = packer().EncodeAll(runs, buffers.given[:0])
		}
		part := bytes.Clone(buffers.given)
		buffers.runs, runs = runs, runs[:0]
		if !h.packed.Take(c.frame.user, int64(len(part))) {
			return errKept
		}
		p.held += int64(len(part))
		p.parts = append(p.parts, part)
		return nil
	}
	for len(blocks) > 0 {
		some := blocks[:min(blocksAtOnce, len(blocks))]
		blocks = blocks[len(some):]
		now, err := m.read(i, some, buffers)
		if err != nil {
			return nil, err
		}
		if err := c.frame.work(time.Duration(len(now)) * packTime); err != nil {
			return nil, err
		}
		for n, at := range some {
			runs = appendRuns(runs, at, now[n*block:][:block], baseBlock(m.base, int(at)))
		}
		if len(runs) > packBytes {
			if err := flush(); err != nil {
				return nil, err
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	p.table = c.handles.table
	c.closeStore()
	c.place.give()
	return p, nil
}

// confine bounds the time of the functions that give the memory of an instance, because others wait for the place in packing. The function
// that it returns ends that, and replaces an error because of it.
func confine(s *wasmtime.Store, size int64, err *error) (end func()) {
	confined := s.Confine(movingTime + time.Duration(size)*movingRate)
	return func() {
		if confined() && errors.Is(*err, wasmtime.ErrCPU) {
			*err = &TrapError{Reason: "functions of " + abi.ExtensionMemory + " take too long"}
		}
	}
}

// keeps estimates what a call takes besides its memory.
func (c *call) keeps() int64 {
	n := packedCall + packedHandle*max(len(c.handles.open), len(c.handles.table.slots)) + packedName*max(0, c.handles.names) + c.handles.sizes + c.usage.denialTexts()
	for _, l := range c.leases {
		n += packedHandle + packedGrant*len(l.grants)
	}
	for _, o := range c.owned { // also of envs that were dropped
		n += packedHandle + sizeOf(o.Closer)
	}
	return int64(n) + c.record.share()
}

// appendRuns appends the runs of words in which a block differs from another: address, length, bytes.
func appendRuns(runs []byte, at uint32, now, before []byte) []byte {
	for o := 0; o < block; {
		if binary.LittleEndian.Uint64(now[o:]) == binary.LittleEndian.Uint64(before[o:]) {
			o += 8
			continue
		}
		end := o + 8
		for end < block && binary.LittleEndian.Uint64(now[end:]) != binary.LittleEndian.Uint64(before[end:]) {
			end += 8
		}
		runs = binary.LittleEndian.AppendUint32(runs, at+uint32(o))
		runs = binary.LittleEndian.AppendUint32(runs, uint32(end-o))
		runs = append(runs, now[o:end]...)
		o = end
	}
	return runs
}

// unpack gives a call an instance again. The call has asked for a slot.
func (c *call) unpack(of *Component, p *packed) (*wasmtime.Instance, error) {
	h, m := c.host, of.memory
	defer h.packed.Give(c.frame.user, p.held)
	if err := c.place.settle(c.storeLimits.Context); err != nil {
		return nil, err
	}
	if err := c.frame.work(moveTime); err != nil {
		return nil, err
	}
	if c.store == nil { // a call that slept begins with one
		c.openStore()
	}
	c.store.Keep()
	c.moving = true
	defer func() { c.moving = false }()
	i, err := c.store.Instantiate(of.linker, of.component)
	if err != nil {
		return nil, err
	}
	if err := c.adopt(of, i, p.table); err != nil {
		return nil, err
	}
	if int(p.size) > len(m.base) {
		if _, err := m.grow.in(i, p.size); err != nil {
			return nil, err
		}
	}
	buffers := scratches.Get().(*scratch)
	defer scratches.Put(buffers)
	for _, part := range p.parts {
		if buffers.runs, err = p.runs(buffers.runs, part); err != nil {
			return nil, err
		}
		runs := buffers.runs
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
			buffers.asked = wordtext.Encode(buffers.asked[:0], runs[:n])
			if _, err := m.patch.in(i, buffers.asked); err != nil {
				return nil, err
			}
			runs = runs[n:]
		}
	}
	return i, nil
}

// runs unpacks a part, to a buffer.
func (p *packed) runs(to, part []byte) (runs []byte, err error) {
	switch {
	case p.plain:
		return append(to[:0], part...), nil
	case p.pattern != nil:
		runs, err = p.pattern.Decode(to[:cap(to)], part)
	default:
		runs, err = unpacker().DecodeAll(part, to[:0])
	}
	if err != nil {
		return nil, fmt.Errorf("unpack a call: %w", err)
	}
	return runs, nil
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
