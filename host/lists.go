package host

import (
	"fmt"
	"strings"

	"github.com/stilehost/stile/abi"
)

// maxLists says how many elements each list in the WIT of stile:capability and stile:extension may have. A place is the interface,
// the function, the parameter or "result", and the fields and cases on the way. The host checks what an operation gets before a
// capability sees it. Lists of an embedder's WIT have no entry: their memory is bounded all the same, and a list<u8> by
// wasmtime.MaxBytes.
var maxLists = map[string]int{
	"extension/tools.describe.result":                 maxTools,
	"extension/tools.call.result.error.invalid-input": maxProblems, // the rest is cut off

	"env.env.names.result":                    10_000,
	"env.env.subset.names":                    10_000,
	"poll.poll.pollables":                     10_000, // and Limits.Pending
	"poll.poll.result":                        10_000,
	"blob.blob.bytes.result":                  256 * kib,
	"blob.writer.append.bytes":                256 * kib,
	"http.client.start.request.headers":       100,
	"http.client.start.request.content.bytes": 256 * kib,
	"http.client.narrow.rules":                256,
	"http.client.narrow.rules.methods":        32,
	"http.client.narrow.rules.headers":        64,
	"http.client.rules.result":                256,
	"http.client.rules.result.methods":        32,
	"http.client.rules.result.headers":        64,
	"http.exchange.head.result.headers":       20_000, // of 64 KiB together
	"random.random.bytes.result":              64 * kib,
	"kv.bucket.list.result.entries":           1000,
	"tools.toolbox.search.result":             100,

	"workspace.directory.read-bytes.result":          256 * kib,
	"workspace.directory.write-bytes.bytes":          256 * kib,
	"workspace.directory.append-bytes.bytes":         256 * kib,
	"workspace.directory.edit.replacements":          1000,
	"workspace.directory.list.result.entries":        1000,
	"workspace.directory.find.result.paths":          1000,
	"workspace.directory.grep.search.include":        32,
	"workspace.directory.grep.search.exclude":        32,
	"workspace.directory.grep.result.matches":        1000,
	"workspace.directory.grep.result.matches.before": 20,
	"workspace.directory.grep.result.matches.after":  20,
	"workspace.directory.history.result":             10_000,
	"workspace.directory.snapshots.result":           10_000,
}

// bound says how long the lists in a value may be. It is nil for a type without bounded lists.
type bound struct {
	place string
	most  int // of a list
	parts map[int]*bound
}

// placeOf is where a function's entries in maxLists begin.
func placeOf(f *abi.Func) string {
	name, _, _ := strings.Cut(f.Interface.Name, "@")
	return strings.TrimPrefix(strings.TrimPrefix(name, capabilityPackage), "stile:") + "." + strings.TrimPrefix(f.Name, "[method]")
}

// bounds are those of a function's parameters. An entry is nil if its parameter has none.
func bounds(f *abi.Func) []*bound {
	of := make([]*bound, len(f.Params))
	for i, p := range f.Params {
		of[i] = boundOf(p.Type, placeOf(f)+"."+p.Name)
	}
	return of
}

func boundOf(t *abi.Type, place string) *bound {
	if t == nil {
		return nil
	}
	b := &bound{place: place, parts: map[int]*bound{}}
	add := func(i int, t *abi.Type, place string) {
		if part := boundOf(t, place); part != nil {
			b.parts[i] = part
		}
	}
	switch t.Kind {
	case abi.KindList:
		b.most = maxLists[place]
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

// tooLong answers an operation that got too long a list: with the error `invalid` if its type has that, or else by ending the call.
// It returns false if no list is too long.
func (c *call) tooLong(op *operation, args []abi.Value) (_ abi.Value, err error, refused bool) {
	for i, b := range op.bounds {
		long := b.check(args[i])
		if long == "" {
			continue
		}
		if t := op.fn.Result; t != nil && t.Kind == abi.KindResult && t.Err != nil && t.Err.Name == "error" {
			v, err := c.errResult(t, abi.Errorf(abi.CodeInvalid, "%s", long))
			return v, err, true
		}
		return nil, &LimitError{Limit: "list", Detail: long}, true
	}
	return nil, nil, false
}
