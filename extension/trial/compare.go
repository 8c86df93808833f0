package trial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/jsonform"
	"github.com/stilehost/stile/internal/printable"
)

const (
	maxValue = 200 // bytes of a value that are shown
	maxPath  = 300 // bytes of the path to it
)

// difference is the first place at which two JSON values differ.
type difference struct {
	// at is the path to the place, from the inside out: names of fields and, as int, indexes of lists.
	at             []any
	expected, came any
}

// absent represents a missing field or element, because nil is JSON's null.
type absent struct{}

// String returns one line. It is short even if the values are large.
func (d *difference) String() string {
	path := "result"
	for _, step := range slices.Backward(d.at) {
		if len(path) > maxPath {
			path += "..."
			break
		}
		switch step := step.(type) {
		case string:
			path = jsonform.Join(path, step)
		case int:
			path += fmt.Sprintf("[%d]", step)
		}
	}
	return fmt.Sprintf("%s: expected %s, got %s", path, shown(d.expected), shown(d.came))
}

func shown(v any) string {
	if v == any(absent{}) {
		return "nothing"
	}
	text, err := jsonform.Encode(v, "")
	if err != nil {
		return "a value that cannot be shown"
	}
	return printable.Short(string(text), maxValue)
}

// compare returns the first difference of two JSON texts, or nil if they are equal: numbers count by value, and the order of fields
// does not count. An error means that a text is not JSON.
func compare(expected, came []byte) (*difference, error) {
	a, err := decode(expected)
	if err != nil {
		return nil, err
	}
	b, err := decode(came)
	if err != nil {
		return nil, err
	}
	return differ(a, b), nil
}

func decode(text []byte) (v any, err error) {
	if err := json.Unmarshal(text, new(json.RawMessage)); err != nil { // a decoder would accept the first of several values
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return v, decoder.Decode(&v)
}

func differ(expected, came any) *difference {
	same := false
	switch a := expected.(type) {
	case map[string]any:
		if b, ok := came.(map[string]any); ok {
			return differObjects(a, b)
		}
	case []any:
		if b, ok := came.([]any); ok {
			return differLists(a, b)
		}
	case json.Number:
		b, ok := came.(json.Number)
		same = ok && sameNumber(a.String(), b.String())
	case string:
		b, ok := came.(string)
		same = ok && a == b
	case bool:
		b, ok := came.(bool)
		same = ok && a == b
	default:
		same = came == nil
	}
	if same {
		return nil
	}
	return &difference{nil, expected, came}
}

func differObjects(a, b map[string]any) *difference {
	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		expected, wanted := a[name]
		came, there := b[name]
		switch {
		case !wanted:
			return &difference{[]any{name}, absent{}, came}
		case !there:
			return &difference{[]any{name}, expected, absent{}}
		}
		if d := differ(expected, came); d != nil {
			d.at = append(d.at, name)
			return d
		}
	}
	return nil
}

func differLists(a, b []any) *difference {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return &difference{[]any{i}, absent{}, b[i]}
		case i >= len(b):
			return &difference{[]any{i}, a[i], absent{}}
		}
		if d := differ(a[i], b[i]); d != nil {
			d.at = append(d.at, i)
			return d
		}
	}
	return nil
}

// maxPower is how many digits of an exponent are read, which takes time that grows with their square.
const maxPower = 1000

// sameNumber compares JSON numbers exactly, without writing them out: 1e999999999 would take a gigabyte. Numbers whose exponents have more
// than maxPower digits are the same only if they are written the same.
func sameNumber(a, b string) bool {
	if long(a) || long(b) {
		return a == b
	}
	digitsA, exponentA := decimal(a)
	digitsB, exponentB := decimal(b)
	return digitsA == digitsB && (digitsA == "" || exponentA.Cmp(exponentB) == 0)
}

func long(number string) bool {
	power := strings.IndexAny(number, "eE")
	return power >= 0 && len(number)-power > maxPower
}

// decimal splits a JSON number: it is 0.DIGITS times ten to the exponent. The digits include a minus sign, and 0 has no
// digits.
func decimal(number string) (digits string, exponent *big.Int) {
	number, negative := strings.CutPrefix(strings.ToLower(number), "-")
	mantissa, power, _ := strings.Cut(number, "e")
	exponent, ok := new(big.Int).SetString(power, 10)
	if !ok { // there is none
		exponent = new(big.Int)
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	significant := strings.TrimLeft(whole+fraction, "0")
	exponent.Add(exponent, big.NewInt(int64(len(significant)-len(fraction))))
	digits = strings.TrimRight(significant, "0")
	if negative && digits != "" {
		digits = "-" + digits
	}
	return digits, exponent
}
