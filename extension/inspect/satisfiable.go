package inspect

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/printable"
)

// Unsatisfiable says why no value satisfies a schema, with a JSON pointer to the place in the schema. found is false if there is no such
// reason, which does not promise that a value exists: patterns, conditions and formats are not looked at. text is JSON Schema that the host
// has accepted. The time is linear in its length.
func Unsatisfiable(text string) (path, why string, found bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var document any
	if err := d.Decode(&document); err != nil {
		return "", "", false
	}
	c := &contradictions{document: document, known: map[string]kinds{}}
	if hasResource(document) {
		c.document = nil // no reference is followed
	}
	if o, ok := document.(map[string]any); ok {
		dialect, _ := o["$schema"].(string)
		c.refAlone = dialect != "" && !strings.Contains(dialect, "/2019-09/") && !strings.Contains(dialect, "/2020-12/")
	}
	if c.kinds(document, "") != none {
		return "", "", false
	}
	return printable.OneLine(c.path), printable.OneLine(c.why), true
}

// kinds is a set of the kinds of JSON values.
type kinds uint8

const (
	null kinds = 1 << iota
	boolean
	numbers
	texts
	lists
	objects

	none  kinds = 0
	every       = null | boolean | numbers | texts | lists | objects
)

// contradictions finds the kinds of values that a schema may admit: never fewer than it does.
type contradictions struct {
	document any
	refAlone bool             // in the dialect of the schema, nothing beside $ref counts
	known    map[string]kinds // by $ref
	path     string           // of the contradiction that was found last
	why      string
}

// empty notes why a schema, or one kind of its values, has none.
func (c *contradictions) empty(path, format string, args ...any) kinds {
	c.path, c.why = path, fmt.Sprintf(format, args...)
	return none
}

func (c *contradictions) kinds(schema any, path string) kinds {
	s, ok := schema.(map[string]any)
	if !ok {
		if schema == false {
			return c.empty(path, "false admits nothing")
		}
		return every
	}
	all := every
	// and takes the kinds away that another keyword does not admit. What is left of two that admit something is said here.
	and := func(more kinds, keyword string) bool {
		if more != none && all&more == none {
			c.empty(path, "no value is of the type that %s asks for and of that which the rest of the schema asks for", keyword)
		}
		all &= more
		return all != none
	}
	if ref, ok := s["$ref"].(string); ok && (!and(c.reference(ref), "$ref") || c.refAlone) {
		return all
	}
	if types, ok := s["type"]; ok && !and(typesNamed(types), "type") {
		return all
	}
	for _, name := range []string{"enum", "const"} {
		value, ok := s[name]
		if !ok {
			continue
		}
		values, listed := value.([]any)
		if name == "const" || !listed {
			values = []any{value}
		}
		if name == "enum" && listed && len(values) == 0 {
			return c.empty(path+"/enum", "the list of values is empty")
		}
		fit := none
		for _, v := range values {
			if k := kindOf(v); all&k != none && c.fits(s, v) {
				fit |= k
			}
		}
		if fit == none {
			return c.empty(path+"/"+name, "none of its values fits the rest of the schema")
		}
		all &= fit
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		branches, ok := s[name].([]any)
		if !ok {
			continue
		}
		either := none
		for i, branch := range branches {
			k := c.kinds(branch, path+"/"+name+"/"+strconv.Itoa(i))
			if name == "allOf" && !and(k, name) {
				return none
			}
			either |= k
		}
		if name != "allOf" && !and(either, name) {
			return none
		}
	}
	if not, ok := s["not"]; ok && admitsAll(not) {
		return c.empty(path+"/not", "everything is excluded")
	}
	for _, one := range []struct {
		kind kinds
		of   func(s map[string]any, path string) bool
	}{{numbers, c.number}, {texts, c.text}, {lists, c.list}, {objects, c.object}} {
		if all&one.kind != none && !one.of(s, path) {
			all &^= one.kind
		}
	}
	return all
}

func admitsAll(schema any) bool {
	o, ok := schema.(map[string]any)
	return schema == true || ok && len(o) == 0
}

// reference returns the kinds of what a $ref within the document names.
func (c *contradictions) reference(ref string) kinds {
	if k, ok := c.known[ref]; ok {
		return k
	}
	c.known[ref] = every // where it leads back to itself
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok || pointer != "" && pointer[0] != '/' {
		return every
	}
	at := c.document
	for _, step := range strings.Split(pointer, "/")[1:] {
		o, ok := at.(map[string]any)
		if !ok {
			return every
		}
		if at, ok = o[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]; !ok {
			return every
		}
	}
	k := c.kinds(at, pointer)
	c.known[ref] = k
	return k
}

// hasResource reports whether a document holds a $id, after which references may mean something else.
func hasResource(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if _, ok := v["$id"]; ok {
			return true
		}
		for _, one := range v {
			if hasResource(one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasResource)
	}
	return false
}

// typesNamed are the kinds that the keyword type names.
func typesNamed(types any) (all kinds) {
	list, ok := types.([]any)
	if !ok {
		list = []any{types}
	}
	for _, t := range list {
		switch t {
		case "null":
			all |= null
		case "boolean":
			all |= boolean
		case "number", "integer":
			all |= numbers
		case "string":
			all |= texts
		case "array":
			all |= lists
		case "object":
			all |= objects
		}
	}
	return all
}

// whole reports whether numbers can only be integers.
func whole(s map[string]any) bool {
	list, ok := s["type"].([]any)
	if !ok {
		list = []any{s["type"]}
	}
	return slices.Contains(list, any("integer")) && !slices.Contains(list, any("number"))
}

func kindOf(v any) kinds {
	switch v.(type) {
	case nil:
		return null
	case bool:
		return boolean
	case json.Number:
		return numbers
	case string:
		return texts
	case []any:
		return lists
	default:
		return objects
	}
}

// fits reports whether a value may satisfy what the schema says of its kind.
func (c *contradictions) fits(s map[string]any, v any) bool {
	switch v := v.(type) {
	case json.Number:
		n, ok := rational(v)
		low, lowOpen, high, highOpen := bounds(s)
		return !ok || (low == nil || n.Cmp(low) > 0 || n.Cmp(low) == 0 && !lowOpen) && (high == nil || n.Cmp(high) < 0 || n.Cmp(high) == 0 && !highOpen) && (!whole(s) || n.IsInt())
	case string:
		n := utf8.RuneCountInString(v)
		return n >= count(s, "minLength", 0) && n <= count(s, "maxLength", math.MaxInt)
	case []any:
		return len(v) >= count(s, "minItems", 0) && len(v) <= count(s, "maxItems", math.MaxInt)
	case map[string]any:
		for _, name := range required(s) {
			if _, ok := v[name]; !ok {
				return false
			}
		}
	}
	return true
}

// rational reads a number. The host has bounded its size.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return nil, false
	}
	return new(big.Rat).SetString(string(n))
}

// bounds are the bounds of numbers, nil if there are none, and whether they are excluded.
func bounds(s map[string]any) (low *big.Rat, lowOpen bool, high *big.Rat, highOpen bool) {
	low, _ = rational(s["minimum"])
	if open, ok := rational(s["exclusiveMinimum"]); ok && (low == nil || open.Cmp(low) >= 0) {
		low, lowOpen = open, true
	}
	high, _ = rational(s["maximum"])
	if open, ok := rational(s["exclusiveMaximum"]); ok && (high == nil || open.Cmp(high) <= 0) {
		high, highOpen = open, true
	}
	return low, lowOpen, high, highOpen
}

func (c *contradictions) number(s map[string]any, path string) bool {
	low, lowOpen, high, highOpen := bounds(s)
	if low == nil || high == nil {
		return true
	}
	if by := low.Cmp(high); by > 0 || by == 0 && (lowOpen || highOpen) {
		c.empty(path, "the minimum %s is above what the maximum %s leaves", decimal(low), decimal(high))
		return false
	}
	if whole(s) {
		first := new(big.Int).Div(low.Num(), low.Denom()) // rounded down
		if f := new(big.Rat).SetInt(first); f.Cmp(low) < 0 || f.Cmp(low) == 0 && lowOpen {
			first.Add(first, big.NewInt(1))
		}
		if by := new(big.Rat).SetInt(first).Cmp(high); by > 0 || by == 0 && highOpen {
			c.empty(path, "there is no integer between the minimum %s and the maximum %s", decimal(low), decimal(high))
			return false
		}
	}
	return true
}

func decimal(r *big.Rat) string { return printable.Short(r.RatString(), 40) }

// count is a keyword's number of things.
func count(s map[string]any, keyword string, otherwise int) int {
	n, ok := rational(s[keyword])
	if !ok || !n.IsInt() || !n.Num().IsInt64() {
		return otherwise
	}
	return int(min(n.Num().Int64(), math.MaxInt))
}

// between reports whether a count has room between two keywords.
func (c *contradictions) between(s map[string]any, path, least, most string) bool {
	low, high := count(s, least, 0), count(s, most, math.MaxInt)
	if low > high {
		c.empty(path, "%s %d is above %s %d", least, low, most, high)
	}
	return low <= high
}

func (c *contradictions) text(s map[string]any, path string) bool {
	return c.between(s, path, "minLength", "maxLength")
}

func (c *contradictions) list(s map[string]any, path string) bool {
	if !c.between(s, path, "minItems", "maxItems") {
		return false
	}
	least := count(s, "minItems", 0)
	prefix, _ := s["prefixItems"].([]any)
	for i, one := range prefix {
		if i < least && c.kinds(one, path+"/prefixItems/"+strconv.Itoa(i)) == none {
			return false
		}
	}
	items, ok := s["items"]
	if _, listed := items.([]any); !ok || listed || least <= len(prefix) {
		return true
	}
	return c.kinds(items, path+"/items") != none
}

func required(s map[string]any) (names []string) {
	list, _ := s["required"].([]any)
	for _, v := range list {
		if name, ok := v.(string); ok {
			names = append(names, name)
		}
	}
	return names
}

func (c *contradictions) object(s map[string]any, path string) bool {
	if !c.between(s, path, "minProperties", "maxProperties") {
		return false
	}
	properties, _ := s["properties"].(map[string]any)
	patterns, _ := s["patternProperties"].(map[string]any)
	names := required(s)
	if most := count(s, "maxProperties", math.MaxInt); len(names) > most {
		slices.Sort(names)
		if n := len(slices.Compact(names)); n > most {
			c.empty(path, "%d properties are required, and maxProperties is %d", n, most)
			return false
		}
	}
	other, ok := s["additionalProperties"]
	forbidden := ok && len(names) > 0 && c.kinds(other, path+"/additionalProperties") == none
	for _, name := range names {
		at := path + "/properties/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if property, ok := properties[name]; ok {
			if c.kinds(property, at) == none {
				c.why = fmt.Sprintf("the property %s is required, and no value of it is possible: %s", quote(name), c.why)
				return false
			}
		} else if forbidden && len(patterns) == 0 {
			c.empty(path+"/required", "the property %s is required, and additionalProperties forbids it", quote(name))
			return false
		}
	}
	return true
}
