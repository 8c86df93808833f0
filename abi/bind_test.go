package abi_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/wit"
)

const shelfWIT = `
	variant lookup-error { missing, shut-until(string) }
	enum reason { slow, shut }
	resource shelf {
		count: func() -> u32;
		clear: func();
		put-all: func(entries: list<entry>, level: level) -> result<_, error>;
		get-url: func(name: string) -> result<option<string>, error>;
		open: func(name: string) -> result<file, error>;
		lend: func(source: borrow<file>) -> string;
		find: func(name: string) -> result<entry, lookup-error>;
		check: func() -> result<_, reason>;
		text: func() -> result<string, string>;
		bare: func() -> result;
		next: func() -> file;
		make: static func() -> shelf;
	}
	free: func();
`

// shelf fails every method with err when it is set.
type shelf struct {
	put []entry
	err error
}

func (s *shelf) Count(context.Context) uint32 { return uint32(len(s.put)) }

func (s *shelf) Clear(context.Context) error { return s.err }

func (s *shelf) PutAll(_ context.Context, entries []entry, _ level) error {
	s.put = append(s.put, entries...)
	return s.err
}

func (s *shelf) GetURL(_ context.Context, name string) (*string, error) { return &name, s.err }

func (s *shelf) Open(_ context.Context, name string) (fmt.Stringer, error) {
	return &file{name}, s.err
}

func (s *shelf) Lend(_ context.Context, source fmt.Stringer) (string, error) {
	return source.String(), s.err
}

func (s *shelf) Find(_ context.Context, name string) (entry, error) { return entry{Name: name}, s.err }

func (s *shelf) Check(context.Context) error { return s.err }

func (s *shelf) Text(ctx context.Context) (string, error) {
	text, _ := ctx.Value(s).(string)
	return text, s.err
}

func (s *shelf) Bare(context.Context) error { return s.err }

func (s *shelf) Next(context.Context) *file { return nil }

// Reason is what Check fails with.
type Reason uint8 //nolint:errname // it has the name of the WIT type

func (r Reason) Error() string { return "check failed" }

func shelfResource(t testing.TB) *abi.Resource { return resource(t, parse(t, shelfWIT), "shelf") }

func resource(t testing.TB, i *abi.Interface, name string) *abi.Resource {
	t.Helper()
	for _, r := range i.Resources {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("no resource %s", name)
	return nil
}

func implement(t testing.TB, r *abi.Resource, goType reflect.Type) *abi.Implementation {
	t.Helper()
	impl, err := abi.Implement(r, goType)
	if err != nil {
		t.Fatal(err)
	}
	return impl
}

func TestCall(t *testing.T) {
	type key = *shelf
	impl := implement(t, shelfResource(t), reflect.TypeFor[*shelf]())
	tests := []struct {
		method string
		args   values
		want   abi.Value
	}{
		{"count", nil, uint32(0)},
		{"clear", nil, nil},
		{"put-all", values{values{values{"a", uint64(1)}}, variant{Case: 1}}, variant{}},
		{"get-url", values{"a"}, variant{0, variant{1, "a"}}},
		{"open", values{"a"}, variant{0, abi.Rep(1)}},
		{"lend", values{abi.Rep(0)}, "lent"},
		{"find", values{"a"}, variant{0, values{"a", uint64(0)}}},
		{"check", nil, variant{}},
		{"text", nil, variant{0, "from the context"}},
		{"bare", nil, variant{}},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			s, h := &shelf{}, &handles{held: map[abi.Rep]any{0: &file{"lent"}}}
			method := impl.Method("[method]shelf." + test.method)
			result, err := method.Call(context.WithValue(t.Context(), key(s), "from the context"), s, test.args, h)
			equal(t, nil, err)
			value, err := method.Encode(result, err, h)
			equal(t, nil, err)
			equal(t, test.want, value)
		})
	}
	for _, name := range []string{"count", "[method]shelf.none", "[static]shelf.make", "free"} {
		equal(t, (*abi.Method)(nil), impl.Method(name))
	}
}

// counter is an interface that a capability may be known by.
type counter interface {
	Count(context.Context) uint32
	secret()
}

func (s *shelf) secret() {}

// counted has its method from an embedded value.
type counted struct{ *shelf }

type plain uint32

func (p plain) Count(context.Context) uint32 { return uint32(p) }

func TestReceivers(t *testing.T) {
	r := resource(t, parse(t, "resource counter { count: func() -> u32; }"), "counter")
	full := &shelf{put: make([]entry, 3)}
	tests := []struct {
		name     string
		receiver reflect.Type
		value    any
		misfit   string
	}{
		{"pointer", reflect.TypeFor[*shelf](), full, ""},
		{"interface", reflect.TypeFor[counter](), full, ""},
		{"embedded", reflect.TypeFor[counted](), counted{full}, ""},
		{"embedded behind an interface", reflect.TypeFor[counter](), counted{full}, ""},
		{"value", reflect.TypeFor[plain](), plain(3), ""},
		{"pointer to value", reflect.TypeFor[*plain](), new(plain(3)), ""},
		{"nil", reflect.TypeFor[*shelf](), nil, "have nil"},
		{"nil pointer", reflect.TypeFor[*shelf](), (*shelf)(nil), "have a nil *abi_test.shelf"},
		{"nil pointer to value", reflect.TypeFor[*plain](), (*plain)(nil), "have a nil *abi_test.plain"},
		{"nil interface", reflect.TypeFor[counter](), counter(nil), "have nil"},
		{"nil pointer behind an interface", reflect.TypeFor[counter](), (*shelf)(nil), "have a nil *abi_test.shelf"},
		{"another type", reflect.TypeFor[*shelf](), counted{full}, "have abi_test.counted"},
		{"not the interface", reflect.TypeFor[counter](), plain(3), "have abi_test.plain"},
		{"value for pointer", reflect.TypeFor[*plain](), plain(3), "have abi_test.plain"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			method := implement(t, r, test.receiver).Method("[method]counter.count")
			result, err := method.Call(t.Context(), test.value, nil, nil)
			if test.misfit != "" {
				checkMisfit(t, "[method]counter.count: self: want a "+test.receiver.String()+", "+test.misfit, err)
				return
			}
			equal(t, nil, err)
			equal(t, any(uint32(3)), result)
		})
	}
}

func TestCallMisfits(t *testing.T) {
	impl := implement(t, shelfResource(t), reflect.TypeFor[*shelf]())
	revoked := &handles{err: abi.Errorf(abi.CodeRevoked, "by the owner")}
	tests := []struct {
		method string
		args   values
		want   string
	}{
		{"count", values{1}, "[method]shelf.count: want 0 arguments, have 1"},
		{"open", nil, "[method]shelf.open: want 1 arguments, have 0"},
		{"open", values{1}, "[method]shelf.open: name: want string, have int"},
		{"put-all", values{values{values{}}, variant{}}, "[method]shelf.put-all: entries[0]: want 2 fields, have 0"},
		{"lend", values{abi.Rep(9)}, "[method]shelf.lend: source: want borrow<file>: revoked: by the owner"},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			s := &shelf{}
			_, err := impl.Method("[method]shelf."+test.method).Call(t.Context(), s, test.args, revoked)
			checkMisfit(t, test.want, err)
			equal(t, &shelf{}, s)
		})
	}

	// What the host says of a handle reaches the guest when the WIT type has a place for it.
	method := impl.Method("[method]shelf.open")
	_, err := method.Call(t.Context(), &shelf{}, nil, nil)
	_, again := method.Encode(nil, err, nil)
	equal(t, err, again)
	value, err := method.Encode(nil, &abi.ValueError{Err: revoked.err}, nil)
	equal(t, nil, err)
	equal(t, abi.Value(variant{1, variant{1, "by the owner"}}), value)
}

func TestEncodeResultMisfits(t *testing.T) {
	impl := implement(t, shelfResource(t), reflect.TypeFor[*shelf]())
	h := &handles{held: map[abi.Rep]any{}}
	tests := []struct {
		method string
		result any
		want   string
	}{
		{"count", nil, "[method]shelf.count: result: want uint32, have nil"},
		{"count", 1, "[method]shelf.count: result: want uint32, have int"},
		{"find", &entry{}, "[method]shelf.find: result: want abi_test.entry, have *abi_test.entry"},
		{"open", nil, "[method]shelf.open: result: want fmt.Stringer, have nil"},
		{"open", (*file)(nil), "[method]shelf.open: result: want file, have nil"},
		{"open", 1, "[method]shelf.open: result: want fmt.Stringer, have int"},
		{"next", (*file)(nil), "[method]shelf.next: result: want file, have nil"},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			_, err := impl.Method("[method]shelf."+test.method).Encode(test.result, nil, h)
			checkMisfit(t, test.want, err)
			equal(t, 0, len(h.held))
		})
	}
}

// errSecret is an error of the kind that must not reach a guest.
var errSecret = &fs.PathError{Op: "open", Path: "/home/alice/.stile/kv.db", Err: os.ErrPermission}

func TestErrors(t *testing.T) {
	impl := implement(t, shelfResource(t), reflect.TypeFor[*shelf]())
	timeout, cancel := context.WithTimeoutCause(t.Context(), 0, nil)
	defer cancel()
	const unavailable = "the host failed"
	var typedNil *abi.Error
	var nilLookup *LookupError
	tests := []struct {
		name   string
		method string
		err    error
		want   abi.Value // nil: err itself comes back
	}{
		{"own error", "open", abi.Errorf(abi.CodeNotFound, "no a\xff"), variant{1, variant{6, "no a\uFFFD"}}},
		{"sentinel", "open", abi.ErrNotFound, variant{1, variant{6, ""}}},
		{"denial", "open", abi.Deny(abi.Denial{Operation: "x", Wants: secretGrant("secret")}), variant{1, variant{0, values{"", "x", "", ""}}}},
		{"denial without words", "open", abi.ErrDenied, variant{1, variant{0, values{"", "", "", ""}}}},
		{"wrapped", "open", fmt.Errorf("secret: %w", abi.Errorf(abi.CodeConflict, "it changed")), variant{1, variant{8, "it changed"}}},
		{"joined", "put-all", errors.Join(errSecret, &abi.Error{Code: abi.CodeTooLarge, Size: 7}), variant{1, variant{5, uint64(7)}}},
		{"own error of a cancelled call", "open", errors.Join(context.Canceled, abi.ErrExpired), variant{1, variant{Case: 2}}},
		{"deadline", "open", fmt.Errorf("secret: %w", timeout.Err()), variant{1, variant{Case: 4}}},
		{"deadline of os", "open", &fs.PathError{Err: os.ErrDeadlineExceeded}, variant{1, variant{10, unavailable}}},
		{"host secret", "open", errSecret, variant{1, variant{10, unavailable}}},
		{"typed nil", "open", typedNil, variant{1, variant{10, unavailable}}},
		{"cancelled", "open", fmt.Errorf("wait: %w", context.Canceled), nil},
		{"misfit", "open", &abi.ValueError{Want: "a"}, nil},

		{"no place", "clear", abi.ErrNotFound, nil},
		{"no place beside a result", "count", abi.ErrNotFound, nil},
		{"nothing told", "bare", errSecret, variant{Case: 1}},
		{"cancelled, nothing told", "bare", context.Canceled, nil},
		{"text", "text", errors.New("bad\xff"), variant{1, "bad\uFFFD"}},
		{"text of own error", "text", abi.Errorf(abi.CodeNotFound, "x"), variant{1, "not found: x"}},
		{"cancelled text", "text", context.Canceled, nil},

		{"variant", "find", &LookupError{Case: 1, ShutUntil: new("May")}, variant{1, variant{1, "May"}}},
		{"wrapped variant", "find", fmt.Errorf("a: %w", errors.Join(errSecret, &LookupError{})), variant{1, variant{}}},
		{"nil variant", "find", nilLookup, nil},
		{"another error", "find", errSecret, nil},
		{"own error elsewhere", "find", abi.ErrNotFound, nil},
		{"enum", "check", Reason(1), variant{1, variant{Case: 1}}},
		{"pointer to enum", "check", new(Reason(1)), variant{1, variant{Case: 1}}},
		{"fits by accident", "check", base64.CorruptInputError(1), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			method := impl.Method("[method]shelf." + test.method)
			for range 2 { // the second time from the cache
				value, err := method.Encode(nil, test.err, nil)
				equal(t, test.want, value)
				if test.want != nil {
					equal(t, nil, err)
				} else if !errors.Is(err, test.err) {
					t.Fatalf("want %v, have %v", test.err, err)
				}
			}
		})
	}

	_, err := impl.Method("[method]shelf.find").Encode(nil, &LookupError{Case: 3}, nil)
	checkMisfit(t, "[method]shelf.find: error: want a case from 0 to 1, have 3", err)
	_, err = impl.Method("[method]shelf.open").Encode(nil, &abi.Error{Code: 99}, nil)
	checkMisfit(t, "[method]shelf.open: error: want a case from 0 to 11, have 99", err)
}

// A call passes the method's own error on as it is, for the host's log.
func TestCallReturnsTheError(t *testing.T) {
	impl := implement(t, shelfResource(t), reflect.TypeFor[*shelf]())
	_, err := impl.Method("[method]shelf.open").Call(t.Context(), &shelf{err: errSecret}, values{"a"}, nil)
	equal(t, error(errSecret), err)
}

type wrongShelf struct{}

func (*wrongShelf) Count(context.Context) int                      { return 0 }
func (*wrongShelf) Clear()                                         {}
func (*wrongShelf) PutAll(context.Context, ...entry) error         { return nil }
func (*wrongShelf) GetURL(context.Context, string) (string, error) { return "", nil }
func (*wrongShelf) Open(context.Context, string) *file             { return nil }
func (*wrongShelf) Lend(context.Context, *file) (string, string)   { return "", "" }
func (*wrongShelf) Find(context.Context, string) (struct{ Name, ByteSize string }, error) {
	panic("never called")
}
func (*wrongShelf) Check(context.Context) *LookupError { return nil }
func (*wrongShelf) Text(string) (string, error)        { return "", nil }
func (*wrongShelf) Bare(context.Context)               {}

func TestImplementListsEveryMisfit(t *testing.T) {
	_, err := abi.Implement(shelfResource(t), reflect.TypeFor[*wrongShelf]())
	equal(t, `*abi_test.wrongShelf does not implement the resource shelf of test:test/test@0.1.0:
[method]shelf.count: func() -> u32
	want Count(context.Context) uint32, optionally with an error
	have Count(context.Context) int; result: want uint32, have int
[method]shelf.clear: func()
	want Clear(context.Context), optionally with an error
	have Clear()
[method]shelf.put-all: func(entries: list<entry>, level: level) -> result<_, error>
	want PutAll(context.Context, []Entry, Level) error
	have PutAll(context.Context, ...abi_test.entry) error
[method]shelf.get-url: func(name: string) -> result<option<string>, error>
	want GetURL(context.Context, string) (*string, error)
	have GetURL(context.Context, string) (string, error); result: want *string, have string
[method]shelf.open: func(name: string) -> result<file, error>
	want Open(context.Context, string) (File, error)
	have Open(context.Context, string) *abi_test.file
[method]shelf.lend: func(source: borrow<file>) -> string
	want Lend(context.Context, File) string, optionally with an error
	have Lend(context.Context, *abi_test.file) (string, string)
[method]shelf.find: func(name: string) -> result<entry, lookup-error>
	want Find(context.Context, string) (Entry, error)
	have Find(context.Context, string) (struct { Name string; ByteSize string }, error); result.byte-size: want uint64, have string
[method]shelf.check: func() -> result<_, reason>
	want Check(context.Context) error
	have Check(context.Context) *abi_test.LookupError
[method]shelf.text: func() -> result<string, string>
	want Text(context.Context) (string, error)
	have Text(string) (string, error)
[method]shelf.bare: func() -> result
	want Bare(context.Context) error
	have Bare(context.Context)
[method]shelf.next: func() -> file
	want Next(context.Context) File, optionally with an error
	have no such method`, fmt.Sprint(err))
}

func TestImplementNil(t *testing.T) {
	_, err := abi.Implement(shelfResource(t), reflect.TypeOf(nil))
	equal(t, "nil does not implement the resource shelf of test:test/test@0.1.0", fmt.Sprint(err))
}

func TestImplementMisfits(t *testing.T) {
	tests := []struct {
		method   string
		receiver reflect.Type
		want     string
	}{
		{
			"f: func(x: s8, y: error) -> result<tuple<string, u8>, reason>;", reflect.TypeFor[plain](),
			`: func(x: s8, y: error) -> result<tuple<string, u8>, reason>
	want F(context.Context, int8, error) (struct{ F0 string; F1 uint8 }, error)
	have no such method`,
		},
		{
			"count: func(x: option<option<u8>>) -> option<file>;", reflect.TypeFor[interface{ Count(context.Context) *file }](),
			`: func(x: option<option<u8>>) -> option<file>
	want Count(context.Context, **uint8) File, optionally with an error
	have Count(context.Context) *abi_test.file`,
		},
		{
			"count: func() -> u32;", reflect.TypeFor[interface {
				Count(context.Context, ...string) (uint32, error)
			}](),
			`: func() -> u32
	want Count(context.Context) uint32, optionally with an error
	have Count(context.Context, ...string) (uint32, error)`,
		},
		{
			"count: func(x: list<string>) -> u32;", reflect.TypeFor[interface {
				Count(context.Context, ...[]string) uint32
			}](),
			`: func(x: list<string>) -> u32
	want Count(context.Context, []string) uint32, optionally with an error
	have Count(context.Context, ...[]string) uint32`,
		},
		{
			"count: func(x: list<entry>) -> u32;", reflect.TypeFor[interface {
				Count(context.Context, []page) uint32
			}](),
			`: func(x: list<entry>) -> u32
	want Count(context.Context, []Entry) uint32, optionally with an error
	have Count(context.Context, []abi_test.page) uint32; x[].name: want a field Name, have none in abi_test.page`,
		},
		{
			"count: func() -> page;", reflect.TypeFor[interface{ Count(context.Context) }](),
			`: func() -> page
	want Count(context.Context) Page, optionally with an error
	have Count(context.Context)`,
		},
		{
			"secret: func();", reflect.TypeFor[counter](),
			`: func()
	want Secret(context.Context), optionally with an error
	have no such method`,
		},
		{
			"clear: func();", reflect.TypeFor[shelf](),
			`: func()
	want Clear(context.Context), optionally with an error
	have Clear of *abi_test.shelf only`,
		},
	}
	for _, test := range tests {
		t.Run(test.method, func(t *testing.T) {
			r := resource(t, parse(t, "enum reason { a } resource r { "+test.method+" }"), "r")
			_, err := abi.Implement(r, test.receiver)
			name, _, _ := strings.Cut(test.method, ":")
			equal(t, fmt.Sprintf("%v does not implement the resource r of test:test/test@0.1.0:\n[method]r.%s%s", test.receiver, name, test.want), fmt.Sprint(err))
		})
	}
}

func TestPollableIsAResource(t *testing.T) {
	type clock interface {
		Now(context.Context) uint64
		Monotonic(context.Context) (uint64, error)
		Subscribe(ctx context.Context, nanoseconds uint64) *abi.Pollable
	}
	resolve, err := abi.Parse(wit.Capability())
	equal(t, nil, err)
	impl := implement(t, resource(t, resolve.Interface("stile:capability/clock@0.1.0"), "clock"), reflect.TypeFor[clock]())
	h := &handles{held: map[abi.Rep]any{}}
	ready := abi.Ready()
	value, err := impl.Method("[method]clock.subscribe").Encode(ready, nil, h)
	equal(t, nil, err)
	equal(t, abi.Value(abi.Rep(0)), value)
	equal(t, any(ready), h.held[0])
}

// The host can wait for *abi.Pollable only. If a method returns an interface, each value decides.
func TestPollableHasOneGoType(t *testing.T) {
	resolve, err := abi.Parse(wit.Capability())
	equal(t, nil, err)
	clock := resource(t, resolve.Interface("stile:capability/clock@0.1.0"), "clock")
	type rest interface {
		Now(context.Context) uint64
		Monotonic(context.Context) uint64
	}
	for have, goType := range map[string]reflect.Type{
		"": reflect.TypeFor[interface {
			rest
			Subscribe(context.Context, uint64) (any, error)
		}](),
		"<-chan struct {}": reflect.TypeFor[interface {
			rest
			Subscribe(context.Context, uint64) <-chan struct{}
		}](),
		"abi.Pollable": reflect.TypeFor[interface {
			rest
			Subscribe(context.Context, uint64) abi.Pollable
		}](),
	} {
		_, err := abi.Implement(clock, goType)
		if have == "" {
			equal(t, nil, err)
			continue
		}
		equal(t, fmt.Sprintf(`%v does not implement the resource clock of stile:capability/clock@0.1.0:
[method]clock.subscribe: func(nanoseconds: u64) -> pollable
	want Subscribe(context.Context, uint64) *abi.Pollable, optionally with an error
	have Subscribe(context.Context, uint64) %s; result: want *abi.Pollable, have %[2]s`, goType, have), fmt.Sprint(err))
	}
}

func TestDefinitions(t *testing.T) {
	resolve, err := abi.Parse(wit.Capability(), wit.Extension())
	equal(t, nil, err)
	var describe *abi.Func
	for _, f := range resolve.Interface(abi.ExtensionTools).Funcs {
		if f.Name == "describe" {
			describe = f
		}
	}
	want := []abi.Definition{{Name: "add", InputSchema: "{}", OutputSchema: new("{}"), Annotations: abi.Annotations{ReadOnly: true}}}
	value, err := abi.Encode(describe.Result, want, nil)
	equal(t, nil, err)
	var got []abi.Definition
	equal(t, nil, abi.Decode(describe.Result, value, &got, nil))
	equal(t, want, got)
}

func TestMethodsAreShared(t *testing.T) {
	impl := implement(t, shelfResource(t), reflect.TypeFor[*shelf]())
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				method := impl.Method("[method]shelf.find")
				result, err := method.Call(t.Context(), &shelf{err: &LookupError{}}, values{"a"}, nil)
				if value, err := method.Encode(result, err, nil); err != nil || value != any(variant{1, variant{}}) {
					t.Errorf("%v, %v", value, err)
				}
			}
		})
	}
	wait.Wait()
}

type bucket map[string]*string

func (b bucket) Get(_ context.Context, key string) (*string, error) { return b[key], nil }

func BenchmarkCall(b *testing.B) {
	r := resource(b, parse(b, "resource bucket { get: func(key: string) -> result<option<string>, error>; }"), "bucket")
	method := implement(b, r, reflect.TypeFor[bucket]()).Method("[method]bucket.get")
	var store any = bucket{"key": new("value")}
	args := values{"key"}
	want := abi.Value(variant{0, variant{1, "value"}})
	for b.Loop() {
		result, err := method.Call(b.Context(), store, args, nil)
		value, err := method.Encode(result, err, nil)
		if err != nil || value != want {
			b.Fatal(value, err)
		}
	}
}

func BenchmarkCallPage(b *testing.B) {
	r := resource(b, parse(b, "resource bucket { %list: func(prefix: string, limit: u32, cursor: option<string>) -> result<page, error>; }"), "bucket")
	method := implement(b, r, reflect.TypeFor[*lister]()).Method("[method]bucket.list")
	store := &lister{page{Entries: make([]entry, 100)}}
	args := values{"a", uint32(100), variant{1, "b"}}
	for b.Loop() {
		result, err := method.Call(b.Context(), store, args, nil)
		if _, err = method.Encode(result, err, nil); err != nil {
			b.Fatal(err)
		}
	}
}

type lister struct{ page page }

func (l *lister) List(context.Context, string, uint32, *string) (page, error) { return l.page, nil }

// secretGrant is what a denial wants and no guest sees.
type secretGrant string

func (g secretGrant) Remedy(string) string { return string(g) }
