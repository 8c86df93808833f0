package abi

import (
	"reflect"
	"slices"
	"strings"
)

// witSignature returns a method as its resource declares it, without self.
func witSignature(f *Func) string {
	var b strings.Builder
	(&printer{b: &b}).signature(f.Params[1:], f.Result)
	return "func" + strings.TrimSuffix(b.String(), ";\n")
}

// goText returns the Go type for t, with the name that a declared type would naturally have.
func goText(t *Type) string {
	switch {
	case t.IsPollable():
		return "*abi.Pollable"
	case t.Resource != nil:
		return goName(t.Resource.Name)
	case isError(t):
		return "error"
	case t.Name != "":
		return goName(t.Name)
	case t.Kind == KindOption:
		return nilableText(t.Elem)
	case t.Kind == KindTuple:
		return goStruct("", t.Fields, goText)
	default:
		return goShape(t)
	}
}

// goShape describes a Go type for t, one level deep.
func goShape(t *Type) string {
	switch t.Kind {
	case KindList:
		if t.Elem.Kind == KindU8 {
			return "[]byte"
		}
		return "[]" + goText(t.Elem)
	case KindRecord:
		return goStruct("", t.Fields, goText)
	case KindTuple:
		return goText(t) + " or an array"
	case KindFlags:
		return "struct{ " + joinTexts(t.Labels, goName) + " bool }"
	case KindEnum:
		return "an integer type (case index) or a string type (case name)"
	case KindVariant:
		if isError(t) {
			return "error or *abi.Error"
		}
		return goStruct("Case int", payloadsOf(t.Cases), nilableText)
	case KindResult:
		return goStruct("Case int", payloadsOf(resultCases(t)), nilableText)
	case KindChar:
		return "rune"
	case KindOption, KindOwn, KindBorrow:
		return goText(t)
	default:
		return scalars[t.Kind].kind.String()
	}
}

// payloadsOf lists the payloads of the cases.
func payloadsOf(cases []Case) []Field {
	var fields []Field
	for _, c := range cases {
		if c.Type != nil {
			fields = append(fields, Field{Name: c.Name, Type: c.Type})
		}
	}
	return fields
}

// nilableText returns the Go type for a t that may be absent.
func nilableText(t *Type) string {
	if byReference(t) {
		return goText(t)
	}
	return "*" + goText(t)
}

// goStruct writes a struct of fields, after the text of the first one.
func goStruct(first string, fields []Field, text func(*Type) string) string {
	var texts []string
	if first != "" {
		texts = append(texts, first)
	}
	for _, f := range fields {
		texts = append(texts, goName(f.Name)+" "+text(f.Type))
	}
	return "struct{ " + strings.Join(texts, "; ") + " }"
}

// goName returns a kebab-case name as an exported Go identifier. An element of a tuple ("0") gets a letter.
func goName(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word != "" {
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	if text := b.String(); text != "" && (text[0] < '0' || text[0] > '9') {
		return text
	}
	return "F" + b.String()
}

// wantSignature returns the Go method that implements f.
func wantSignature(f *Func, name string) string {
	params := []string{"context.Context"}
	for _, p := range f.Params[1:] {
		params = append(params, goText(p.Type))
	}
	text := name + "(" + strings.Join(params, ", ") + ")"
	switch {
	case f.Result == nil:
		return text + ", optionally with an error"
	case f.Result.Kind != KindResult:
		return text + " " + goText(f.Result) + ", optionally with an error"
	case f.Result.Ok == nil:
		return text + " error"
	default:
		return text + " (" + goText(f.Result.Ok) + ", error)"
	}
}

// haveSignature returns a Go method type without its receiver.
func haveSignature(name string, method reflect.Type, params []reflect.Type) string {
	inputs := joinTexts(params, reflect.Type.String)
	if method.IsVariadic() {
		last := params[len(params)-1].String()
		inputs = strings.TrimSuffix(inputs, last) + "..." + strings.TrimPrefix(last, "[]")
	}
	text := name + "(" + inputs + ")"
	results := joinTexts(slices.Collect(method.Outs()), reflect.Type.String)
	switch method.NumOut() {
	case 0:
		return text
	case 1:
		return text + " " + results
	default:
		return text + " (" + results + ")"
	}
}

func joinTexts[T any](items []T, text func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = text(item)
	}
	return strings.Join(texts, ", ")
}
