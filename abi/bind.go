package abi

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Implementation says which Go method implements each method of a WIT resource. It is safe for concurrent use.
type Implementation struct{ methods map[string]*Method }

// Implement matches every method of r with a method of the Go type t, which may be an interface, and prepares the
// conversions. If some methods do not match, the error lists all of them with the Go signature that each one needs.
//
// A WIT method `compare-and-set` is the Go method CompareAndSet; case does not matter, so `get-url` may be GetURL. Its first
// parameter is a context.Context, which ends with the call, and the others are the WIT parameters without self. Its results follow
// from the WIT result:
//
//	(nothing)      ()  or  error
//	T              T   or  (T, error)
//	result<T, E>   (T, error)          result<T> alike
//	result<_, E>   error               result    alike
//
// Types correspond like this; names of Go types are free:
//
//	bool, s8 ... s64, u8 ... u64, f32, f64, string    the Go type of that kind and size, e.g. int64 for s64
//	char          rune; surrogates are refused
//	list<T>       []T; []byte for list<u8>, not copied
//	tuple<T, U>   a struct with these fields in this order, or an array
//	record        a struct with these fields; those of an embedded struct count as its own
//	flags         a struct with a bool field for each label
//	enum          an integer type (the index of the case) or a string type (its name)
//	option<T>     *T, nil for none
//	variant       a struct, see below
//	own<R>        the type of the Go value behind the handle, or an interface that it implements; nil is not allowed
//	borrow<R>     the same, as a parameter only, for the time of the call
//	pollable      *Pollable, for the resource of stile:capability/poll
//
// A field `input-schema` is the Go field InputSchema, or the one with the tag `wit:"input-schema"`. Every exported field
// needs a counterpart, unless it has the tag `wit:"-"`. If a Go string is not UTF-8, the guest sees U+FFFD in place of the invalid
// bytes.
//
// A variant is a struct that starts with an integer field named Case, the index of the case, and has a pointer field for
// each case with a payload. The field that Case names must be set and the others must be nil:
//
//	variant content { none, text(string), bytes(list<u8>), blob(blob) }
//
//	type ContentCase uint8
//
//	const (
//		ContentNone ContentCase = iota
//		ContentText
//		ContentBytes
//		ContentBlob
//	)
//
//	type Content struct {
//		Case  ContentCase
//		Text  *string
//		Bytes *[]byte
//		Blob  *Blob
//	}
//
//	Content{Case: ContentText, Text: new("hello")}
//
// A result inside another type is the variant { ok(T), err(E) }. A resource behind an option or in a variant is its own Go
// type, which must be able to be nil: *Blob and not **Blob.
//
// The variant `error` of stile:capability/types is a Go error; [Method.Encode] says what a guest learns about it.
func Implement(r *Resource, t reflect.Type) (*Implementation, error) {
	if t == nil {
		return nil, fmt.Errorf("nil does not implement the resource %s of %s", r.Name, r.Interface.Name)
	}
	impl := &Implementation{methods: map[string]*Method{}}
	compiler := newCompiler()
	var misfits []string
	for _, f := range r.Interface.Funcs {
		if f.Resource != r || !strings.HasPrefix(f.Name, "[method]") {
			continue
		}
		goMethod, ok := findMethod(t, methodName(f))
		if !ok {
			misfits = append(misfits, misfitMethod(f, goName(methodName(f)), missing(f, t)))
			continue
		}
		method, have := compiler.method(f, t, goMethod)
		if have != "" {
			misfits = append(misfits, misfitMethod(f, goMethod.Name, have))
		}
		impl.methods[f.Name] = method
	}
	if misfits != nil {
		return nil, fmt.Errorf("%s does not implement the resource %s of %s:%s", t, r.Name, r.Interface.Name, strings.Join(misfits, ""))
	}
	return impl, nil
}

// Method returns a method by its name in the component model, such as "[method]bucket.get". It is nil if the resource has no such
// method.
func (i *Implementation) Method(name string) *Method { return i.methods[name] }

// Method is one WIT method and the Go method that implements it. It is safe for concurrent use.
type Method struct {
	f        *Func
	receiver reflect.Type
	index    int // of the Go method in receiver
	params   []*codec
	// frame is a struct of the Go parameters, so that a call allocates them at once.
	frame reflect.Type
	// result is the Go type of the result, and value its codec. Both are nil if there is no result.
	result reflect.Type
	value  *codec
	// fails is set if the last Go result is an error.
	fails bool
	// failure is the codec from error to the variant `error` of stile:capability/types. It is nil if E is another type.
	failure *codec
	// failures maps each Go error type to its *codec to another E, or to nil if there is none.
	failures sync.Map
}

// misfitMethod reports the signature that the Go method needs, and what was found instead.
func misfitMethod(f *Func, name, have string) string {
	return fmt.Sprintf("\n%s: %s\n\twant %s\n\thave %s", f.Name, witSignature(f), wantSignature(f, name), have)
}

// missing describes what t has instead of a method.
func missing(f *Func, t reflect.Type) string {
	if onPointer, ok := findMethod(reflect.PointerTo(t), methodName(f)); ok {
		return onPointer.Name + " of *" + t.String() + " only"
	}
	return "no such method"
}

// method binds f to a method of t. If f does not fit, have describes the method that was found and why it does not fit.
func (c *compiler) method(f *Func, t reflect.Type, goMethod reflect.Method) (_ *Method, have string) {
	params := slices.Collect(goMethod.Type.Ins())
	if t.Kind() != reflect.Interface {
		params = params[1:]
	}
	have = haveSignature(goMethod.Name, goMethod.Type, params)

	m := &Method{f: f, receiver: t, index: goMethod.Index}
	if len(params) != len(f.Params) || params[0] != reflect.TypeFor[context.Context]() || goMethod.Type.IsVariadic() {
		return nil, have
	}
	fields := make([]reflect.StructField, len(params))
	for i, p := range params {
		fields[i] = reflect.StructField{Name: "P" + strconv.Itoa(i), Type: p}
		if i == 0 {
			continue
		}
		param, misfit := c.codec(f.Params[i].Type, p)
		if misfit != nil {
			return nil, have + "; " + misfit.in(f.Params[i].Name).Error()
		}
		m.params = append(m.params, param)
	}
	m.frame = reflect.StructOf(fields)

	result, mustFail := f.Result, false
	if result != nil && result.Kind == KindResult {
		result, mustFail = result.Ok, true
		if f.Result.Err != nil && isError(f.Result.Err) {
			var misfit *ValueError
			if m.failure, misfit = c.codec(f.Result.Err, errorType); misfit != nil {
				return nil, have + "; " + misfit.in("error").Error()
			}
		}
	}
	results := slices.Collect(goMethod.Type.Outs())
	if result != nil {
		if len(results) == 0 {
			return nil, have
		}
		value, misfit := c.codec(result, results[0])
		if misfit != nil {
			return nil, have + "; " + misfit.in("result").Error()
		}
		m.result, m.value, results = results[0], value, results[1:]
	}
	m.fails = len(results) == 1 && results[0] == errorType
	if len(results) > 1 || len(results) == 1 && !m.fails || mustFail && !m.fails {
		return nil, have
	}
	return m, ""
}

// methodName is the kebab-case name of a method without its resource.
func methodName(f *Func) string { return f.Name[strings.LastIndexByte(f.Name, '.')+1:] }

func findMethod(t reflect.Type, witName string) (reflect.Method, bool) {
	for m := range t.Methods() {
		if m.IsExported() && sameName(m.Name, witName) {
			return m, true
		}
	}
	return reflect.Method{}, false
}

// Call calls the Go method on recv, which is of the Go type given to [Implement], with the WIT arguments that follow self. It
// returns the method's results. If recv or an argument does not fit, Call returns an error that wraps a *[ValueError] and does
// not call the method. Call does not recover panics; the caller must.
func (m *Method) Call(ctx context.Context, recv any, args []Value, h Handles) (result any, err error) {
	self := reflect.ValueOf(recv)
	switch {
	case isNil(self) || !is(self, m.receiver):
		return nil, m.misfit(&ValueError{Path: "self", Want: "a " + m.receiver.String(), Got: describe(self)})
	case len(args) != len(m.params):
		return nil, m.misfit(&ValueError{Want: fmt.Sprintf("%d arguments", len(m.params)), Got: strconv.Itoa(len(args))})
	case m.receiver.Kind() == reflect.Interface:
		concrete := self
		self = reflect.New(m.receiver).Elem()
		self.Set(concrete)
	}
	frame := reflect.New(m.frame).Elem()
	in := make([]reflect.Value, 1+len(args))
	in[0] = frame.Field(0)
	*in[0].Addr().Interface().(*context.Context) = ctx
	for i, param := range m.params {
		in[i+1] = frame.Field(i + 1)
		if misfit := param.decode(args[i], in[i+1], h); misfit != nil {
			return nil, m.misfit(misfit.in(m.f.Params[i+1].Name))
		}
	}
	out := self.Method(m.index).Call(in)
	if m.fails {
		err, _ = reflect.TypeAssert[error](out[len(out)-1])
	}
	if m.value != nil {
		result = out[0].Interface()
	}
	return result, err
}

// Encode converts what [Method.Call] returned into the WIT result. If err is set, it ignores result.
//
// When the WIT result is a result<T, E> with the variant `error` of stile:capability/types for E, a guest learns
//
//	of an *[Error] in err's tree       exactly that, its text included
//	of context.DeadlineExceeded        timed-out
//	of any other error                 unavailable, with a fixed text
//
// because the text of an error that was not written for the guest may name files, addresses or secrets of the host. To
// tell a guest more, return an *[Error]. With string for E, the guest gets the text of any error: declare it only if you write
// your errors for the guest. With `_`, the guest learns only that the operation failed. With any other E, the first error in
// err's tree that converts to E is used, by itself or behind its pointer; if E has a name, its Go type must have it too.
//
// Encode returns an error that the WIT type cannot express. It also returns context.Canceled and *[ValueError] whatever E is,
// unless the tree contains an *[Error].
func (m *Method) Encode(result any, err error, h Handles) (Value, error) {
	inResult := m.f.Result != nil && m.f.Result.Kind == KindResult
	switch {
	case err != nil && inResult:
		return m.encodeFailure(err, h)
	case err != nil:
		return nil, err
	}
	var value Value
	if m.value != nil {
		goValue := reflect.ValueOf(result)
		if !goValue.IsValid() || !is(goValue, m.result) {
			return nil, m.misfit(&ValueError{Path: "result", Want: m.result.String(), Got: describe(goValue)})
		}
		var misfit *ValueError
		if value, misfit = m.value.encode(goValue, h); misfit != nil {
			return nil, m.misfit(misfit.in("result"))
		}
	}
	if inResult {
		value = Variant{Value: value}
	}
	return value, nil
}

// errCase is the case err of a result.
const errCase = 1

func (m *Method) encodeFailure(err error, h Handles) (Value, error) {
	t := m.f.Result.Err
	switch {
	case m.failure != nil:
		e := guestError(err)
		if e == nil {
			return nil, err
		}
		return m.encodeError(m.failure, reflect.ValueOf(e), h)
	case !forGuest(err):
		return nil, err
	case t == nil:
		return Variant{Case: errCase}, nil
	case t.Kind == KindString:
		return Variant{Case: errCase, Value: validUTF8(err.Error())}, nil
	}
	for e := range errorTree(err) {
		goValue := reflect.ValueOf(e)
		c := m.failureCodec(goValue.Type())
		if c == nil || isNil(goValue) {
			continue
		}
		if goValue.Kind() == reflect.Pointer {
			goValue = goValue.Elem()
		}
		return m.encodeError(c, goValue, h)
	}
	return nil, fmt.Errorf("%s: no error here fits %s: %w", m.f.Name, t.String(), err)
}

func (m *Method) encodeError(c *codec, goValue reflect.Value, h Handles) (Value, error) {
	value, misfit := c.encode(goValue, h)
	if misfit != nil {
		return nil, m.misfit(misfit.in("error"))
	}
	return Variant{Case: errCase, Value: value}, nil
}

// failureCodec converts errors of one Go type, or the values they point to, to E. It is nil if the type does not fit.
func (m *Method) failureCodec(goType reflect.Type) *codec {
	if known, ok := m.failures.Load(goType); ok {
		return known.(*codec)
	}
	t, base := m.f.Result.Err, goType
	if base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	var made *codec
	// The name keeps out types that fit by accident: base64.CorruptInputError would be a case of any enum.
	if t.Name == "" || sameName(base.Name(), t.Name) {
		made, _ = newCompiler().codec(t, base)
	}
	m.failures.Store(goType, made)
	return made
}

func (m *Method) misfit(e *ValueError) error { return fmt.Errorf("%s: %w", m.f.Name, e) }

// is reports whether v has the type t.
func is(v reflect.Value, t reflect.Type) bool {
	return v.Type() == t || t.Kind() == reflect.Interface && v.Type().Implements(t)
}

func describe(v reflect.Value) string {
	switch {
	case !v.IsValid():
		return "nil"
	case isNil(v):
		return "a nil " + v.Type().String()
	default:
		return v.Type().String()
	}
}
