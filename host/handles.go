package host

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host/internal/wasmtime"
)

// handle is one resource that the guest of a call holds.
type handle struct {
	resource       *abi.Resource
	value          any
	implementation implementation // nil for env and pollable, which the host itself implements
	// binding is the name in the env that it came from, for denials and records.
	binding string
	// shared values outlive the handle: they belong to the env, which closes them.
	shared bool
	closed bool
	// lease is a lease of the grants that it depends on. It is nil if it depends on none.
	lease *lease
	// made says how a durable call makes the value again; nil if it cannot. dead is why the value is lost.
	made *derivation
	dead *abi.Error
	// again makes a dead value when it is needed, as long as the guest has got nothing from it.
	again *repeated
}

// handles is the host's own table of a call's handles, because the engine does not run destructors when a store is closed.
type handles struct {
	open    map[abi.Rep]*handle
	next    abi.Rep
	foreign abi.Rep // how many of WASI there have been
	limit   int
	pending int
	// names counts the names in the guest's envs. Each env has its own names.
	names int
	// sizes is the sum of sizeOf of all values, and of those of WASI. They are apart, because a replay knows only the latter.
	sizes, foreignSizes int
	table               table
}

// sizeOf returns how many bytes a value takes, as it says itself, and in an env those that the guest put there.
func sizeOf(v any) (n int) {
	switch v := v.(type) {
	case environment:
		for _, b := range v {
			n += b.size()
		}
	case abi.Sized:
		n = v.Size()
	}
	return n
}

// maxNames is how many names the envs of one call may have together, and maxSizes how many bytes its values, as sizeOf counts them, per handle
// that the call may have. So the handles of a call take some 1 KiB each at most, whatever the guest passes.
const (
	maxNames = 2
	maxSizes = 256
)

// name counts more names in an env.
func (t *handles) name(n int) error {
	if t.names+n > maxNames*t.limit {
		return exceeded("handles", fmt.Sprintf("%d names in envs", maxNames*t.limit))
	}
	t.names += n
	return nil
}

// add gives a handle the next number.
func (t *handles) add(h *handle) (abi.Rep, error) {
	if err := t.put(t.next+1, h); err != nil {
		return 0, err
	}
	t.next++
	return t.next, nil
}

// addForeign gives a handle of WASI a number of another sequence, so that those in a recording do not depend on WASI.
func (t *handles) addForeign(h *handle) (abi.Rep, error) {
	if err := t.put(ownEnv-t.foreign-1, h); err != nil {
		return 0, err
	}
	t.foreign++
	return ownEnv - t.foreign, nil
}

func (t *handles) put(rep abi.Rep, h *handle) error {
	if len(t.open) >= t.limit {
		return exceeded("handles", strconv.Itoa(t.limit))
	}
	size, sizes := sizeOf(h.value), t.sizesAt(rep)
	if *sizes+size > maxSizes*t.limit {
		return exceeded("handles", fmt.Sprintf("%d bytes in handles", maxSizes*t.limit))
	}
	if e, ok := h.value.(environment); ok {
		if err := t.name(len(e)); err != nil {
			return err
		}
	}
	if _, ok := h.value.(*abi.Pollable); ok {
		t.pending++
	}
	*sizes += size
	t.open[rep] = h
	return nil
}

// sizesAt is the sum to which a handle with this number belongs.
func (t *handles) sizesAt(rep abi.Rep) *int {
	if rep > ownEnv/2 {
		return &t.foreignSizes
	}
	return &t.sizes
}

func (t *handles) find(rep abi.Rep, r *abi.Resource) (*handle, error) {
	h := t.open[rep]
	if h == nil || h.resource != r {
		return nil, fmt.Errorf("no open handle of %s", r.Name)
	}
	return h, nil
}

// remove takes a handle out of the table without closing its value.
func (t *handles) remove(rep abi.Rep) *handle {
	h := t.open[rep]
	delete(t.open, rep)
	*t.sizesAt(rep) -= sizeOf(h.value)
	if e, ok := h.value.(environment); ok {
		t.names -= len(e)
	}
	if _, ok := h.value.(*abi.Pollable); ok {
		t.pending--
	}
	return h
}

// forget removes the handles in a value that the guest passes to the empty world. They have nothing to close.
func (t *handles) forget(typ *abi.Type, v abi.Value) {
	if typ == nil {
		return
	}
	switch v := v.(type) {
	case abi.Rep:
		if typ.Kind == abi.KindOwn && t.open[v] != nil {
			t.remove(v)
		}
	case []abi.Value:
		for i, item := range v {
			if typ.Kind == abi.KindList {
				t.forget(typ.Elem, item)
			} else {
				t.forget(typ.Fields[i].Type, item)
			}
		}
	case abi.Variant:
		switch typ.Kind {
		case abi.KindVariant:
			t.forget(typ.Cases[v.Case].Type, v.Value)
		case abi.KindResult:
			t.forget([]*abi.Type{typ.Ok, typ.Err}[v.Case], v.Value)
		default:
			t.forget(typ.Elem, v.Value) // an option's
		}
	}
}

// sweep closes the values that the guest left open.
func (t *handles) sweep() error {
	var errs []error
	for rep := range t.open {
		errs = append(errs, t.remove(rep).close())
	}
	return errors.Join(errs...)
}

func (h *handle) close() error {
	if c, ok := h.value.(io.Closer); ok && !h.shared && !h.closed {
		h.closed = true
		return closeValue(c)
	}
	return nil
}

// closeValue converts a panic into an error, so that the call's other values are closed too.
func closeValue(c io.Closer) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = wasmtime.NewPanicError(p)
		}
	}()
	return c.Close()
}

// dropHandle is the destructor of every resource.
func dropHandle(s *wasmtime.Store, rep abi.Rep) error {
	c := s.Data.(*call)
	if c.handles.open[rep] == nil || c.moving && !c.discarding {
		return fmt.Errorf("drop of handle %d, which is not open", rep)
	}
	c.handles.table.remove(rep)
	return c.handles.remove(rep).close()
}

// scoped gives a capability's method access to the handles of a call. The method's results belong to the same binding and depend on
// the same grants.
type scoped struct {
	call    *call
	binding string
	lease   *lease
}

// Value implements abi.Handles.
func (s scoped) Value(rep abi.Rep, r *abi.Resource) (any, error) {
	h, err := s.call.handles.find(rep, r)
	if err != nil {
		return nil, err
	}
	return h.value, nil
}

// Take implements abi.Handles.
func (s scoped) Take(rep abi.Rep, r *abi.Resource) (any, error) {
	h, err := s.call.handles.find(rep, r)
	if err != nil {
		return nil, err
	}
	s.call.handles.remove(rep)
	return h.value, nil
}

// Add implements abi.Handles.
func (s scoped) Add(r *abi.Resource, v any) (abi.Rep, error) {
	c := s.call
	h := &handle{resource: r, value: v, binding: s.binding, lease: s.lease}
	var err error
	if _, ok := v.(*abi.Pollable); !ok {
		h.implementation, err = c.host.implementation(r, v)
	} else if c.handles.pending >= c.limits.Pending {
		err = c.crowded()
	}
	var rep abi.Rep
	if err == nil {
		rep, err = c.handles.add(h)
	}
	if err != nil {
		c.faults = append(c.faults, h.close())
		return 0, err
	}
	return rep, nil
}

type implementationKey struct {
	resource *abi.Resource
	value    reflect.Type
}

// implementation has the methods of a resource by their names in the component model.
type implementation map[string]method

type method struct {
	*abi.Method
	// quick is set if it never waits. During a function that may wait, the guest gives up its turn.
	quick bool
	// bounds are of the lists among its parameters.
	bounds []*bound
}

// implementation matches a Go type with a resource, once for each pair.
func (h *Host) implementation(r *abi.Resource, v any) (implementation, error) {
	key := implementationKey{r, reflect.TypeOf(v)}
	if known, ok := h.implementations.Load(key); ok {
		return known.(implementation), nil
	}
	matched, err := abi.Implement(r, key.value)
	if err != nil {
		return nil, err
	}
	i, most := implementation{}, listsIn(r.Interface, v)
	for _, f := range r.Interface.Funcs {
		if m := matched.Method(f.Name); m != nil {
			i[f.Name] = method{m, isQuick(v, strings.TrimPrefix(f.Name, "[method]")), bounds(f, most)}
		}
	}
	h.implementations.Store(key, i)
	return i, nil
}

// isQuick reports whether v says that one of its functions never waits.
func isQuick(v any, name string) bool {
	q, ok := v.(abi.Quick)
	return ok && slices.Contains(q.Quick(), name)
}
