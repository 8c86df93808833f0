package host

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/wit"
)

// TestEveryListHasAMaximum walks the WIT that the host itself implements or calls. Each list in a function's type has an entry in the
// table, and each entry is a list. The tests of each kind of capability do the same for that kind.
func TestEveryListHasAMaximum(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	unused := map[string]bool{}
	for place := range maxLists {
		unused[place] = true
	}
	var walk func(t *abi.Type, place string) []string
	walk = func(t *abi.Type, place string) (lists []string) {
		if t == nil {
			return nil
		}
		if t.Kind == abi.KindList {
			lists = append(lists, place)
		}
		for _, f := range t.Fields {
			lists = append(lists, walk(f.Type, place+"."+f.Name)...)
		}
		for _, c := range t.Cases {
			lists = append(lists, walk(c.Type, place+"."+c.Name)...)
		}
		return slices.Concat(lists, walk(t.Elem, place), walk(t.Ok, place), walk(t.Err, place+".error"))
	}
	for _, name := range []string{abi.EnvInterface, abi.PollInterface, abi.ExtensionTools, abi.ExtensionStepwise, abi.ExtensionMemory, abi.ExtensionEvaluator} {
		for _, f := range known.Interface(name).Funcs {
			lists := walk(f.Result, placeOf(f)+".result")
			for _, p := range f.Params {
				lists = append(lists, walk(p.Type, placeOf(f)+"."+p.Name)...)
			}
			for _, place := range lists {
				if maxLists[place] == 0 {
					t.Errorf("%s has no maximum", place)
				}
				delete(unused, place)
			}
		}
	}
	for place := range unused {
		t.Errorf("there is no list %s", place)
	}
}

// TestListsAreBounded passes lists of every bounded parameter, at the maximum length and one above it.
func TestListsAreBounded(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	// fill makes a value with n elements in the list at a place, and one element in the lists that lead there.
	var fill func(typ *abi.Type, at, place string, n int) abi.Value
	fill = func(typ *abi.Type, at, place string, n int) abi.Value {
		switch typ.Kind {
		case abi.KindList:
			switch {
			case at != place:
				return []abi.Value{fill(typ.Elem, at, place, n)}
			case typ.Elem.Kind == abi.KindU8:
				return make([]byte, n)
			}
			return slices.Repeat([]abi.Value{fill(typ.Elem, at, "", n)}, n)
		case abi.KindRecord, abi.KindTuple:
			var fields []abi.Value
			for _, f := range typ.Fields {
				fields = append(fields, fill(f.Type, at, place+"."+f.Name, n))
			}
			return fields
		case abi.KindVariant:
			for i, c := range typ.Cases {
				if c.Type != nil && c.Type.Kind == abi.KindList {
					return abi.Variant{Case: uint32(i), Value: fill(c.Type, at, place+"."+c.Name, n)}
				}
			}
		default:
		}
		return nil
	}
	all := maps.Clone(maxLists)
	for iface, v := range map[string]any{"blob": &blob.Writer{}, "http": &http.Client{}, "workspace": &workspace.Directory{}} {
		maps.Copy(all, listsIn(known.Interface(abi.CapabilityPackage+iface+abi.ContractVersion), v))
	}
	tried := 0
	for _, i := range known.Interfaces() {
		for _, f := range i.Funcs {
			for k, p := range f.Params {
				b := bounds(f, all)[k]
				for place, most := range all {
					at := placeOf(f) + "." + p.Name
					if b == nil || place != at && !strings.HasPrefix(place, at+".") {
						continue
					}
					tried++
					if long := b.check(fill(p.Type, place, at, most)); long != "" {
						t.Errorf("%d: %s", most, long)
					}
					if long, want := b.check(fill(p.Type, place, at, most+1)), fmt.Sprintf("%s: %d elements; at most %d", place, most+1, most); long != want {
						t.Errorf("got %q, want %q", long, want)
					}
				}
			}
		}
	}
	if want := 14; tried != want {
		t.Errorf("%d lists were tried, want %d", tried, want)
	}
}

// TestTooLong has operations refused, with an error if the type has one, or else by ending the call.
func TestTooLong(t *testing.T) {
	known, err := abi.ParseCapability(wit.Capability(), wit.Extension())
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{known: known}
	for _, c := range []struct {
		iface, name string
		args        []abi.Value
		ends        bool
	}{
		{"stile:capability/blob@0.1.0", "[method]writer.append", []abi.Value{abi.Rep(1), make([]byte, 256*kib+1)}, false},
		{"stile:capability/env@0.1.0", "[method]env.subset", []abi.Value{abi.Rep(1), slices.Repeat([]abi.Value{"a"}, 10_001)}, true},
	} {
		f := funcNamed(known.Interface(c.iface), c.name)
		most := maxLists
		if f.Resource.Name == "writer" {
			most = listsIn(f.Interface, &blob.Writer{})
		}
		v, err, refused := (&call{host: h}).tooLong(f, bounds(f, most), c.args)
		limit, ended := err.(*LimitError) //nolint:errorlint // it is what was made
		if !refused || ended != c.ends || ended && limit.Limit != "list" {
			t.Errorf("%s: got %v, %v, %t", c.name, v, err, refused)
		}
		if outcome, ok := v.(abi.Variant); !c.ends && (!ok || outcome.Case != 1 || outcome.Value.(abi.Variant).Case != uint32(abi.CodeInvalid)) {
			t.Errorf("%s: got %v", c.name, v)
		}
	}
}
