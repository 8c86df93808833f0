package host

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
)

// maxLists says how many elements each list may have in the functions that the host itself implements or calls. A place is the
// interface, the function, the parameter or "result", and the fields and cases on the way. For all other functions, the Go value
// declares it with [abi.Bounded]. The host checks the arguments of an operation before a capability sees them. The memory of a list
// without an entry is bounded all the same, and a list<u8> by [abi.MaxBytes].
var maxLists = map[string]int{
	"extension/tools.describe.result":                 maxTools,
	"extension/tools.call.result.error.invalid-input": abi.MaxProblems, // the rest is cut off

	"extension/stepwise.start.result.error.invalid-input":  abi.MaxProblems,
	"extension/stepwise.resume.result.error.invalid-input": abi.MaxProblems,

	"env.env.names.result": 10_000,
	"env.env.subset.names": 10_000,
	"poll.park.pollables":  10_000,
	"poll.poll.pollables":  10_000, // and Limits.Pending
	"poll.poll.result":     10_000,
}

// bound limits the length of the lists in a value. It is nil for a type without bounded lists.
type bound struct {
	place string
	most  int // of a list
	parts map[int]*bound
}

// listsOf begins the places of an interface's lists.
func listsOf(i *abi.Interface) string {
	name, _, _ := strings.Cut(i.Name, "@")
	return strings.TrimPrefix(strings.TrimPrefix(name, abi.CapabilityPackage), "stile:") + "."
}

// placeOf is where a function's lists begin.
func placeOf(f *abi.Func) string {
	return listsOf(f.Interface) + strings.TrimPrefix(f.Name, "[method]")
}

// listsIn returns a Go value's maximums for the lists of its functions, by their places.
func listsIn(i *abi.Interface, v any) map[string]int {
	b, ok := v.(abi.Bounded)
	if !ok {
		return nil
	}
	most := map[string]int{}
	for place, n := range b.Lists() {
		most[listsOf(i)+place] = n
	}
	return most
}

// bounds returns a bound for each of a function's parameters, nil for those without lists.
func bounds(f *abi.Func, most map[string]int) []*bound {
	of := make([]*bound, len(f.Params))
	for i, p := range f.Params {
		of[i] = boundOf(p.Type, placeOf(f)+"."+p.Name, most)
	}
	return of
}

func boundOf(t *abi.Type, place string, most map[string]int) *bound {
	if t == nil {
		return nil
	}
	b := &bound{place: place, parts: map[int]*bound{}}
	add := func(i int, t *abi.Type, place string) {
		if part := boundOf(t, place, most); part != nil {
			b.parts[i] = part
		}
	}
	switch t.Kind {
	case abi.KindList:
		b.most = most[place]
		add(0, t.Elem, place)
	case abi.KindRecord, abi.KindTuple:
		for i, f := range t.Fields {
			add(i, f.Type, place+"."+f.Name)
		}
	case abi.KindVariant:
		for i, c := range t.Cases {
			add(i, c.Type, place+"."+c.Name)
		}
	case abi.KindOption:
		add(1, t.Elem, place)
	case abi.KindResult:
		add(0, t.Ok, place)
		add(1, t.Err, place+".error")
	default:
	}
	if b.most == 0 && len(b.parts) == 0 {
		return nil
	}
	return b
}

// check describes the first list that is too long. It returns "" if there is none.
func (b *bound) check(v abi.Value) string {
	if b == nil {
		return ""
	}
	n := 0
	switch v := v.(type) {
	case []byte:
		n = len(v)
	case abi.Variant:
		return b.parts[int(v.Case)].check(v.Value)
	case []abi.Value:
		if b.most == 0 {
			for i, part := range b.parts {
				if long := part.check(v[i]); long != "" {
					return long
				}
			}
			return ""
		}
		if n = len(v); n <= b.most && len(b.parts) > 0 {
			for _, element := range v {
				if long := b.parts[0].check(element); long != "" {
					return long
				}
			}
		}
	}
	if b.most > 0 && n > b.most {
		return fmt.Sprintf("%s: %d elements; at most %d", b.place, n, b.most)
	}
	return ""
}

// tooLong handles an operation with a list that is too long. It answers with the error `invalid` if the operation's type has that
// case, and otherwise ends the call. It returns false if no list is too long.
func (c *call) tooLong(f *abi.Func, bounds []*bound, args []abi.Value) (_ abi.Value, err error, refused bool) {
	for i, b := range bounds {
		long := b.check(args[i])
		if long == "" {
			continue
		}
		if t := f.Result; t != nil && t.Kind == abi.KindResult && t.Err != nil && t.Err.Name == "error" {
			v, err := c.errResult(t, abi.Errorf(abi.CodeInvalid, "%s", long))
			return v, err, true
		}
		return nil, &LimitError{Limit: "list", Detail: long}, true
	}
	return nil, nil, false
}
