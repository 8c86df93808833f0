// Package formfield reads the part of JSON Schema in which a person fills a form: texts, numbers, yes or no, choices, and lists of texts.
// Vars of manifests and questions of tools use it. Checking a value takes time in proportion to its size, because nothing in
// a schema is a pattern or refers to another one.
package formfield

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Limits of a field.
const (
	// MaxValue is the largest value in bytes of JSON.
	MaxValue = 4 << 10

	maxChoices     = 64
	maxDescription = 500       // bytes
	maxItems       = 256       // of a list
	maxInteger     = 1<<53 - 1 // JavaScript has no larger ones
)

// The types of a field.
const (
	String  = "string"
	Number  = "number"
	Integer = "integer"
	Boolean = "boolean"
	Array   = "array" // of texts
)

// Field is one value that a person can set. It never changes.
type Field struct {
	Name, Type, Description string
	// Default is JSON, nil if there is none.
	Default json.RawMessage
	// Choices are the only texts that are allowed, or of which a list is made. It is nil if all are.
	Choices []string

	min, max             *float64 // of a number
	minLength, maxLength *int     // of a text, in characters
	most                 *int     // items
}

// Example is a field for messages.
const Example = `{"type": "string", "description": "what it is for", "default": "core"}`

// Read reads the field of a form. A problem is in r.
func Read(r *jsonform.Reader, name string, n *jsonform.Node) Field {
	f := Field{Name: name}
	fields := r.Fields(n, Example, []string{"type", "description", "default", "enum", "items", "minimum", "maximum", "minLength", "maxLength", "maxItems"}, "type")
	if r.Err != nil {
		return f
	}
	if f.Type = r.Text(fields["type"], `"string"`); r.Err == nil && !slices.Contains([]string{String, Number, Integer, Boolean, Array}, f.Type) {
		r.Fail(fields["type"], `"string", "number", "integer", "boolean" or "array"`, "the type is %s", jsonform.Quote(f.Type))
	}
	only := func(key string, types ...string) *jsonform.Node {
		n := fields[key]
		if n != nil && !slices.Contains(types, f.Type) {
			r.Fail(n, "it with the type "+strings.Join(types, " or "), "%s does not apply to the type %s", key, jsonform.Quote(f.Type))
			return nil
		}
		return n
	}
	if n := fields["description"]; n != nil {
		f.Description = text(r, n, maxDescription)
	}
	if list := only("items", Array); list != nil {
		items := r.Fields(list, `{"type": "string"}`, []string{"type", "enum"}, "type")
		if r.Err == nil {
			if t := r.Text(items["type"], `"string"`); r.Err == nil && t != String {
				r.Fail(items["type"], `"string"`, "items are %s", jsonform.Quote(t))
			}
			f.Choices = choices(r, items["enum"])
		}
	} else if f.Type == Array {
		r.Fail(n, `"items": {"type": "string"}`, "there are no items")
	}
	if n := only("enum", String); n != nil {
		f.Choices = choices(r, n)
	}
	if n := only("minimum", Number, Integer); n != nil {
		f.min = number(r, n)
	}
	if n := only("maximum", Number, Integer); n != nil {
		f.max = number(r, n)
	}
	if n := only("minLength", String); n != nil {
		f.minLength = count(r, n, MaxValue)
	}
	if n := only("maxLength", String); n != nil {
		f.maxLength = count(r, n, MaxValue)
	}
	if n := only("maxItems", Array); n != nil {
		f.most = count(r, n, maxItems)
	}
	if r.Err != nil {
		return f
	}
	if n := fields["default"]; n != nil {
		value, err := jsonform.Encode(n.Plain(), "")
		if err == nil {
			value, err = f.Check(value)
		}
		if err != nil {
			r.Fail(n, "a value that fits the schema", "the default %v", err)
		}
		f.Default = value
	}
	return f
}

func text(r *jsonform.Reader, n *jsonform.Node, most int) string {
	s := r.Text(n, `"what it is for"`)
	switch {
	case r.Err != nil:
	case len(s) > most:
		r.Fail(n, fmt.Sprintf("at most %d bytes", most), "the text has %d bytes", len(s))
	case printable.NextUnseen(s) >= 0:
		r.Fail(n, "printable text", "the text holds the character %+q", []rune(s[printable.NextUnseen(s):])[0])
	}
	return s
}

func choices(r *jsonform.Reader, n *jsonform.Node) (all []string) {
	if n == nil {
		return nil
	}
	for _, item := range r.Items(n, maxChoices, `["one", "two"]`) {
		s := text(r, item, maxDescription)
		if slices.Contains(all, s) {
			r.Fail(item, "each choice once", "%s is here twice", jsonform.Quote(s))
		}
		all = append(all, s)
	}
	if r.Err == nil && len(all) == 0 {
		r.Fail(n, `["one", "two"]`, "there is nothing to choose")
	}
	return all
}

func number(r *jsonform.Reader, n *jsonform.Node) *float64 {
	v, ok := n.Value.(json.Number)
	f, err := strconv.ParseFloat(v.String(), 64)
	if !ok || err != nil {
		r.Fail(n, "a number", "it is %s", n.What())
		return nil
	}
	return &f
}

func count(r *jsonform.Reader, n *jsonform.Node, most int) *int {
	v, ok := n.Value.(json.Number)
	i, err := strconv.Atoi(v.String())
	if !ok || err != nil || i < 0 || i > most {
		r.Fail(n, fmt.Sprintf("a whole number up to %d", most), "it is %s", n.What())
		return nil
	}
	return &i
}

// Check returns a value in its shortest form, or an error that continues "the value ...".
func (f *Field) Check(value json.RawMessage) (json.RawMessage, error) {
	if len(value) > MaxValue {
		return nil, fmt.Errorf("has %d bytes; %d are allowed", len(value), MaxValue)
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("is not JSON")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("is more than one value")
	}
	if err := f.fits(v); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Compact(&b, value); err != nil {
		return nil, errors.New("is not JSON")
	}
	return b.Bytes(), nil
}

func (f *Field) fits(v any) error {
	switch f.Type {
	case Boolean:
		if _, ok := v.(bool); !ok {
			return errors.New("must be true or false")
		}
	case String:
		s, ok := v.(string)
		if !ok {
			return errors.New("must be a text")
		}
		return f.fitsText(s)
	case Array:
		list, ok := v.([]any)
		most := maxItems
		if f.most != nil {
			most = *f.most
		}
		if !ok {
			return errors.New("must be a list of texts")
		}
		if len(list) > most {
			return fmt.Errorf("has %d items; %d are allowed", len(list), most)
		}
		for i, item := range list {
			s, ok := item.(string)
			if !ok {
				return fmt.Errorf("has no text at [%d]", i)
			}
			if err := f.fitsText(s); err != nil {
				return fmt.Errorf("is wrong at [%d]: it %w", i, err)
			}
		}
	default:
		n, ok := v.(json.Number)
		x, err := strconv.ParseFloat(n.String(), 64)
		switch {
		case !ok || err != nil || math.IsInf(x, 0):
			return errors.New("must be a number")
		case f.Type == Integer && (x != math.Trunc(x) || math.Abs(x) > maxInteger):
			return errors.New("must be a whole number")
		case f.min != nil && x < *f.min:
			return fmt.Errorf("must be at least %v", *f.min)
		case f.max != nil && x > *f.max:
			return fmt.Errorf("must be at most %v", *f.max)
		}
	}
	return nil
}

func (f *Field) fitsText(s string) error {
	switch n := utf8.RuneCountInString(s); {
	case f.Choices != nil && !slices.Contains(f.Choices, s):
		return errors.New("must be one of " + printable.Short(strings.Join(f.Choices, ", "), 200))
	case f.minLength != nil && n < *f.minLength:
		return fmt.Errorf("must have at least %d characters", *f.minLength)
	case f.maxLength != nil && n > *f.maxLength:
		return fmt.Errorf("must have at most %d characters", *f.maxLength)
	case strings.ContainsRune(s, 0):
		return errors.New("must not hold the character U+0000")
	default:
		return nil
	}
}

// MarshalJSON implements json.Marshaler with the schema, its fields in a fixed order.
func (f Field) MarshalJSON() ([]byte, error) {
	type items struct {
		Type string   `json:"type"`
		Enum []string `json:"enum,omitempty"`
	}
	s := struct {
		Type        string          `json:"type"`
		Description string          `json:"description,omitempty"`
		Enum        []string        `json:"enum,omitempty"`
		Items       *items          `json:"items,omitempty"`
		Min         *float64        `json:"minimum,omitempty"`
		Max         *float64        `json:"maximum,omitempty"`
		MinLength   *int            `json:"minLength,omitempty"`
		MaxLength   *int            `json:"maxLength,omitempty"`
		MaxItems    *int            `json:"maxItems,omitempty"`
		Default     json.RawMessage `json:"default,omitempty"`
	}{f.Type, f.Description, f.Choices, nil, f.min, f.max, f.minLength, f.maxLength, f.most, f.Default}
	if f.Type == Array {
		s.Enum, s.Items = nil, &items{String, f.Choices}
	}
	return json.Marshal(s)
}

// Says describes the field in a few words: `text, "core"`.
func (f *Field) Says() string {
	what := map[string]string{String: "text", Number: "number", Integer: "whole number", Boolean: "yes or no", Array: "list of texts"}[f.Type]
	if f.Choices != nil {
		what += " of " + printable.OneLine(strings.Join(f.Choices, ", "))
	}
	return what
}

// TypeScript is the type of the values.
func (f *Field) TypeScript() string {
	switch f.Type {
	case Boolean:
		return "boolean"
	case Number, Integer:
		return "number"
	}
	t := "string"
	if f.Choices != nil {
		quoted := make([]string, len(f.Choices))
		for i, c := range f.Choices {
			text, _ := json.Marshal(c) // every string has a form
			quoted[i] = string(text)
		}
		t = strings.Join(quoted, " | ")
	}
	if f.Type == Array {
		return "readonly (" + t + ")[]"
	}
	return t
}

// secrets are words of names of what nobody should write into a form.
var secrets = lazyregexp.New(`(?i)(` +
	`passw[o0]?r?d|pass[^a-z]words?([^a-z]|$)|passphrase|passcode|` +
	`(token|secret|credential|mnemonic|(api|access|private|secret|ssh|encryption|recovery|signing)[^a-z]?key|` +
	`(recovery|backup|auth|authentication|authenticator|authorization|one[^a-z]?time|verification|confirmation|security|sms|login|access)[^a-z]?code|` +
	`(session|auth|login)[^a-z]?cookie|(recovery|seed|pass)[^a-z]?phrase|(credit|debit|bank)[^a-z]?card|card[^a-z]?number)s?([^a-z]|$)|` +
	`(^|[^a-z])(pwd|pin|otp|totp|mfa|2fa|tan|cvv|cvc|ssn|iban)s?([^a-z]|$)|(^|[^a-z])(bearer|jwt|authenticator|social[^a-z]?security)([^a-z]|$)|` +
	`code[^a-z]+(that[^a-z]+)?(we|they|you|i)[^a-z]+(sent|send|got|get|received|receive)([^a-z]|$))`)

var (
	camel = lazyregexp.New(`([a-z0-9])([A-Z])`)
	// spaced are single letters with something between them: "p a s s".
	spaced = lazyregexp.New(`(?i)\b[a-z]([ ._*-][a-z])+\b`)
	// alike are letters of other scripts that look like Latin ones.
	alike = strings.NewReplacer(
		"а", "a", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "і", "i", "ј", "j", "к", "k", "о", "o", "р", "p", "ѕ", "s", "т", "t", "ѵ", "v", "х", "x", "у", "y", "ԝ", "w",
		"А", "A", "В", "B", "С", "C", "Е", "E", "Н", "H", "І", "I", "Ј", "J", "К", "K", "М", "M", "О", "O", "Р", "P", "Ѕ", "S", "Т", "T", "Х", "X", "У", "Y",
		"α", "a", "ε", "e", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "τ", "t", "ω", "w",
		"Α", "A", "Β", "B", "Ε", "E", "Η", "H", "Ι", "I", "Κ", "K", "Μ", "M", "Ν", "N", "Ο", "O", "Ρ", "P", "Τ", "T", "Χ", "X", "Υ", "Y", "ı", "i", "ɡ", "g",
	)
)

// Secret reports whether a text names a secret: a password, token, key or code. It knows words of English, also with letters of other
// scripts that look the same, with accents, or with something between the letters.
func Secret(text string) bool {
	plain := alike.Replace(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return r
	}, norm.NFKD.String(text)))
	joined := spaced.ReplaceAllStringFunc(plain, func(s string) string { return separators.Replace(s) })
	return secrets.MatchString(camel.ReplaceAllString(plain, "${1}_${2}")) || secrets.MatchString(plain) || joined != plain && secrets.MatchString(joined)
}

var separators = strings.NewReplacer(" ", "", ".", "", "_", "", "*", "", "-", "")
