package capabilities_test

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capabilities/clock"
	"github.com/stilehost/stile/capabilities/code"
	"github.com/stilehost/stile/capabilities/console"
	"github.com/stilehost/stile/capabilities/http"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/random"
	"github.com/stilehost/stile/capabilities/tools"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/extension"
)

// usual are texts that operations accept, by the name of the parameter's field.
var usual = map[string]string{
	"Method": "POST", "Methods": "GET", "URL": "https://a.example/x", "Scheme": "https", "Host": "a.example", "Path": "/x", "Name": "x-a", "Headers": "x-a",
}

// TestErrorsAreShort calls every method that guests can call with texts of 1 MiB, one parameter at a time. Texts that need escaping
// become four times as long in quotes, so no error may have a text as it is. The other parameters are acceptable in the first round, and
// not in the second, so that more errors are reached.
func TestErrorsAreShort(t *testing.T) {
	ctx := t.Context()
	store, err := workspace.Open(ctx, t.TempDir()+"/ws.db", workspace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	disk, err := workspace.OpenDisk(t.TempDir(), workspace.DiskOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = disk.Close() })
	buckets, err := kv.Open(ctx, t.TempDir()+"/kv.db", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = buckets.Close() })
	client, err := http.New(http.Options{Rules: []http.Rule{{Host: "a.example"}}})
	if err != nil {
		t.Fatal(err)
	}
	open := func(c abi.Opener) any {
		v, err := c.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	written := open(blob.NewStore(blob.StoreOptions{})).(*blob.Store)
	writer, err := written.Create(ctx, "")
	if err != nil {
		t.Fatal(err)
	}
	toolbox, err := tools.New(tools.Options{Finder: tools.NewCatalog([]tools.Description{{Name: "f"}}), Resolve: func(tool string) (tools.Func, error) {
		return nil, abi.Errorf(abi.CodeNotFound, "no tool")
	}})
	if err != nil {
		t.Fatal(err)
	}
	values := []any{
		store.Workspace("w"), disk.Directory(), buckets.Bucket("b"), open(client), written, writer, blob.New("text/plain", []byte("x")),
		open(toolbox), open(code.New(code.Rights{}, func(_ context.Context, _ code.Program, done func([]byte, error)) { done(nil, abi.ErrUnavailable) })), open(clock.System()), open(random.System()), open(console.To(func(console.Level, string) {})),
	}
	values = append(values, others(t, values)...)
	calls := 0
	for _, value := range values {
		v := reflect.ValueOf(value)
		for i := range v.NumMethod() {
			m := v.Type().Method(i)
			if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() {
				continue
			}
			for _, others := range []map[string]string{usual, nil} {
				for _, unit := range []string{"\x01", "a", "/", "x-forwarded-"} {
					long := strings.Repeat(unit, 1<<20/len(unit))
					for at := 0; ; at++ {
						f := filler{long: long, at: at, others: others}
						args := []reflect.Value{v, reflect.ValueOf(ctx)}
						for n := 2; n < m.Type.NumIn(); n++ {
							args = append(args, f.fill(m.Type.In(n), ""))
						}
						if f.at >= 0 || f.skip {
							break // every text was long once
						}
						calls++
						text, allocated := failing(m.Func, args)
						if len(text) > 32<<10 {
							t.Errorf("%T.%s: text %d of %.2q: an error of %d bytes: %.100q", value, m.Name, at, unit, len(text), text)
						}
						if allocated > 16<<20 {
							t.Errorf("%T.%s: text %d of %.2q: it allocates %d bytes", value, m.Name, at, unit, allocated)
						}
					}
				}
			}
		}
	}
	if calls < 300 {
		t.Errorf("only %d calls were made", calls)
	}
}

// others are values of the kinds that values lacks, opened as the examples of the kinds ask.
func others(t *testing.T, values []any) []any {
	var folders []string
	for _, v := range values {
		folders = append(folders, path.Base(reflect.TypeOf(v).Elem().PkgPath()))
	}
	var more []any
	site := capability.NewSite(t.TempDir(), func(capability.Level, string) {})
	t.Cleanup(func() { _ = site.Close() })
	for _, k := range capabilities.Builtin.All() {
		folder, _, _ := strings.Cut(strings.TrimPrefix(k.Interface, "stile:capability/"), "@")
		if slices.Contains(folders, folder) {
			continue
		}
		m, err := extension.Parse(fmt.Appendf(nil, `{"name": "a", "version": "1.0.0", "description": "a", "tools": ["a"], "bindings": {"a": {%q: %s}}}`, k.Name, k.Example))
		if err != nil {
			t.Fatalf("the example of the kind %s: %v", k.Name, err)
		}
		c, err := m.Bindings[0].Grant.(capability.Opener).Open(t.Context(), site)
		if err != nil {
			t.Fatalf("open the example of the kind %s: %v", k.Name, err)
		}
		var value any = c
		if o, ok := c.(abi.Opener); ok {
			if value, err = o.Open(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		more = append(more, value)
	}
	return more
}

// failing calls a method and returns its error's text and how many bytes it allocated.
func failing(method reflect.Value, args []reflect.Value) (text string, allocated uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	results := method.Call(args)
	if n := len(results); n > 0 {
		if err, ok := reflect.TypeAssert[error](results[n-1]); ok {
			text = err.Error()
		}
	}
	runtime.ReadMemStats(&after)
	return text, after.TotalAlloc - before.TotalAlloc
}

// filler makes arguments. The text with number at is long.
type filler struct {
	long   string
	at     int // counts down
	others map[string]string
	skip   bool // a parameter cannot be made
}

func (f *filler) fill(t reflect.Type, name string) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() {
	case reflect.String:
		f.at--
		switch {
		case f.at == -1:
			v.SetString(f.long)
		case f.others == nil:
			v.SetString("\x01")
		case f.others[name] != "":
			v.SetString(f.others[name])
		default:
			v.SetString("f")
		}
	case reflect.Pointer:
		if t == reflect.TypeFor[*blob.Blob]() {
			v.Set(reflect.ValueOf(blob.New("text/plain", []byte("x"))))
		}
		if f.skip = f.skip || t == reflect.TypeFor[*blob.Writer](); t.Elem().Kind() == reflect.String {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(f.fill(t.Elem(), name))
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.Append(v, f.fill(t.Elem(), name)))
		}
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); field.IsExported() {
				v.Field(i).Set(f.fill(field.Type, field.Name))
			}
		}
	case reflect.Interface:
		if f.skip = f.skip || t != reflect.TypeFor[abi.Env](); !f.skip {
			v.Set(reflect.ValueOf(noBindings{}))
		}
	case reflect.Func:
		f.skip = true // no guest calls this method
	case reflect.Uint32:
		v.SetUint(1)
	default:
	}
	return v
}

type noBindings struct{}

func (noBindings) Capabilities() map[string]abi.Capability { return nil }
func (noBindings) Origin(string) string                    { return "" }
