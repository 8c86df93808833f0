package host

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stilehost/stile/abi"
)

// keptGrant counts what a durable call uses of a grant that somebody gave it. The grant itself may be used by others too, and may be another one when the call goes on. Both apply.
type keptGrant struct {
	name string // in the log and the state; no binding has such a name
	*Grant
}

// grantUse is what is written down of it.
type grantUse struct {
	Operations int64         `json:"operations,omitempty"`
	Bytes      int64         `json:"bytes,omitempty"`
	Time       time.Duration `json:"time,omitempty"`
	Expires    time.Time     `json:"expires,omitzero"`
}

// keepGrants begins to count, from what the call has used before. A grant that now ends later than before still ends when it did.
func (c *call) keepGrants(env environment) error {
	known := map[*Grant]*Grant{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		b, own := env[name], []*Grant(nil)
		for n, g := 0, b.given; ; n++ { // from outside to inside
			given, ok := g.(*Grant)
			if !ok {
				break
			}
			g = given.capability
			o := given.options
			if o.Expires.IsZero() && o.Operations == 0 && o.Bytes == 0 && o.Time == 0 {
				continue
			}
			k := keptGrant{fmt.Sprintf("\x00grant %d of %s", n, name), known[given]}
			if k.Grant == nil {
				k.Grant = NewGrant(given.capability, o)
				known[given] = k.Grant
			}
			if state := c.opened[k.name]; state != nil {
				var u grantUse
				if json.Unmarshal(state, &u) != nil {
					return &StateError{"what it has used of a grant is malformed"}
				}
				k.used.Operations, k.used.Bytes, k.used.Time = max(k.used.Operations, u.Operations), max(k.used.Bytes, u.Bytes), max(k.used.Time, u.Time)
				if e := k.options.Expires; !u.Expires.IsZero() && (e.IsZero() || u.Expires.Before(e)) {
					k.options.Expires = u.Expires
				}
			}
			c.grants, own = append(c.grants, k), append(own, k.Grant)
		}
		if own != nil {
			b.grants = union(b.grants, own)
		}
	}
	return nil
}

// use is what the call has used of the grant.
func (k keptGrant) use() []byte {
	u := k.Usage()
	state, _ := json.Marshal(grantUse{u.Operations, u.Bytes, u.Time, k.options.Expires.UTC()}) // it never fails
	return state
}

// changed returns what is to be written down of the call's use of its limits, by name, if it has changed.
func (c *call) changed(each func(name string, state []byte) error) error {
	note := func(name string, state []byte) error {
		if state == nil || bytes.Equal(state, c.opened[name]) {
			return nil
		}
		c.opened[name] = state
		return each(name, state)
	}
	for name, b := range c.env {
		state, _ := b.used()
		if err := note(name, state); err != nil {
			return err
		}
	}
	for _, k := range c.grants {
		if err := note(k.name, k.use()); err != nil {
			return err
		}
	}
	return nil
}

// free has the call's own grants take nothing until the function that it returns is called: for what the call does again, and has counted before. Nothing else happens
// meanwhile, because the call is still answered from its log.
func (c *call) free() func() {
	set := func(free bool) {
		for _, k := range c.grants { // the same grant may be there under several names
			k.mu.Lock()
			k.free = free
			k.mu.Unlock()
		}
	}
	set(true)
	return func() { set(false) }
}

// charge has the call's own grants count an operation that began in a process which ended before it logged what the operation took: the bytes that it was given, and none that it moved besides. Nobody knows
// whether it happened, so it counts even if they refuse it today. The value of its handle may have ended with the process, so the grants of its binding are charged too.
func (c *call) charge(op *operation, binding string, args []abi.Value) {
	charged := c.lease.granted()
	if b := c.env[binding]; b != nil {
		charged = union(charged, b.grants)
	}
	took := op.cost()
	for _, a := range args {
		took.bytes += content(a)
	}
	for _, g := range charged {
		if slices.ContainsFunc(c.grants, func(k keptGrant) bool { return k.Grant == g }) {
			g.mu.Lock()
			g.used.Operations, g.used.Bytes = g.used.Operations+took.operations, g.used.Bytes+took.bytes
			g.mu.Unlock()
		}
	}
}

// content returns how many bytes of text and of bytes are in a value.
func content(v abi.Value) (n int64) {
	switch v := v.(type) {
	case string:
		n = int64(len(v))
	case []byte:
		n = int64(len(v))
	case []abi.Value:
		for _, part := range v {
			n += content(part)
		}
	case abi.Variant:
		n = content(v.Value)
	}
	return n
}
