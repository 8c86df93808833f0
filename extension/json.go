package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	maxManifest = 256 << 10 // bytes of a manifest's text
	maxDepth    = 16        // values nested in each other
)

// node is a JSON value that knows where it stands. Its value is a string, json.Number, bool, nil, []*node or []member.
type node struct {
	offset int
	path   string
	value  any
}

type member struct {
	key    string
	offset int // of the key
	value  *node
}

// reader takes a manifest apart. The first problem stays in err; every method after it returns zero values, so that the
// code that walks a manifest reads like the manifest.
type reader struct {
	text []byte
	dec  *json.Decoder
	err  *ManifestError
}

// parse reads the whole text as one JSON value, refusing duplicate keys and deep nesting.
func (r *reader) parse() *node {
	switch {
	case len(r.text) > maxManifest:
		r.failAt(maxManifest, "", fmt.Sprintf("at most %d bytes", maxManifest), "the manifest has %d bytes", len(r.text))
	case !utf8.Valid(r.text):
		r.failAt(invalidByte(r.text), "", "UTF-8 text", "these bytes are not UTF-8")
	default:
		var raw json.RawMessage
		var syntax *json.SyntaxError
		if err := json.Unmarshal(r.text, &raw); errors.As(err, &syntax) {
			r.failAt(int(syntax.Offset)-1, "", "one JSON object", "this is not JSON: %s", syntax)
		}
	}
	if r.err != nil {
		return nil
	}
	r.dec = json.NewDecoder(bytes.NewReader(r.text))
	r.dec.UseNumber()
	return r.next("", 1)
}

// next reads one value. The text is known to be JSON, so no token fails.
func (r *reader) next(path string, depth int) *node {
	n := &node{offset: r.start(), path: path}
	if depth > maxDepth {
		r.fail(n, fmt.Sprintf("at most %d levels", maxDepth), "values are nested too deep")
		return n
	}
	token, _ := r.dec.Token()
	switch token {
	case json.Delim('['):
		items := []*node{}
		for r.err == nil && r.dec.More() {
			items = append(items, r.next(fmt.Sprintf("%s[%d]", path, len(items)), depth+1))
		}
		n.value = items
	case json.Delim('{'):
		members := []member{}
		seen := map[string]bool{}
		for r.err == nil && r.dec.More() {
			at := r.start()
			token, _ := r.dec.Token()
			key, _ := token.(string)
			below := join(path, key)
			if seen[key] {
				r.failAt(at, below, "each field once", "this field is here twice")
			}
			seen[key] = true
			members = append(members, member{key, at, r.next(below, depth+1)})
		}
		n.value = members
	default:
		n.value = token
		return n
	}
	if r.err == nil {
		_, _ = r.dec.Token() // the closing bracket
	}
	return n
}

// start is the offset of the next token.
func (r *reader) start() int {
	rest := r.text[r.dec.InputOffset():]
	return len(r.text) - len(bytes.TrimLeft(rest, " \t\r\n,:"))
}

// fail records a problem with n. instead says what to write.
func (r *reader) fail(n *node, instead, format string, args ...any) {
	r.failAt(n.offset, n.path, instead, format, args...)
}

func (r *reader) failAt(offset int, path, instead, format string, args ...any) {
	if r.err != nil {
		return
	}
	before := r.text[:min(max(offset, 0), len(r.text))]
	line := bytes.LastIndexByte(before, '\n') + 1
	r.err = &ManifestError{
		Path:    path,
		Line:    bytes.Count(before, []byte{'\n'}) + 1,
		Column:  utf8.RuneCount(before[line:]) + 1,
		Message: fmt.Sprintf(format, args...),
		Instead: instead,
	}
}

// fields returns the members of an object by name. Every name must be known; those in need must be there.
func (r *reader) fields(n *node, example string, known []string, need ...string) map[string]*node {
	found := map[string]*node{}
	for _, m := range r.members(n, example) {
		if !slices.Contains(known, m.key) {
			instead := "one of " + strings.Join(known, ", ")
			if near := nearest(m.key, known); near != "" {
				instead = quote(near)
			}
			r.failAt(m.offset, m.value.path, instead, "there is no such field")
		}
		found[m.key] = m.value
	}
	for _, name := range need {
		if found[name] == nil && r.err == nil {
			r.fail(n, example, "the field %s is missing", quote(name))
		}
	}
	return found
}

func (r *reader) members(n *node, example string) []member {
	members, ok := n.value.([]member)
	if !ok && r.err == nil {
		r.fail(n, example, "%s where an object belongs", n.what())
	}
	return members
}

// items returns the elements of an array that has at least one and at most limit.
func (r *reader) items(n *node, limit int, example string) []*node {
	items, ok := n.value.([]*node)
	switch {
	case r.err != nil:
	case !ok:
		r.fail(n, example, "%s where a list belongs", n.what())
	case len(items) == 0:
		r.fail(n, example, "the list is empty")
	case len(items) > limit:
		r.fail(items[limit], fmt.Sprintf("at most %d", limit), "the list has %d elements", len(items))
	}
	return items
}

func (r *reader) str(n *node, example string) string {
	s, ok := n.value.(string)
	if !ok && r.err == nil {
		r.fail(n, example, "%s where text belongs", n.what())
	}
	return s
}

func (n *node) what() string {
	switch v := n.value.(type) {
	case string:
		return "text"
	case json.Number:
		return "a number"
	case bool:
		return strconv.FormatBool(v)
	case []*node:
		return "a list"
	case []member:
		return "an object"
	default:
		return "null"
	}
}

// plain gives the value as encoding/json would decode it.
func (n *node) plain() any {
	switch v := n.value.(type) {
	case []*node:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = item.plain()
		}
		return list
	case []member:
		object := make(map[string]any, len(v))
		for _, m := range v {
			object[m.key] = m.value.plain()
		}
		return object
	default:
		return v
	}
}

// join is the path of a field: a.b, or a["b c"] where b is not a plain word.
func join(path, key string) string {
	switch {
	case !plainWord.MatchString(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// quote shows text from a stranger: short, and with everything escaped that a terminal would act on.
func quote(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	return strconv.Quote(s)
}

func invalidByte(text []byte) int {
	for i := 0; i < len(text); {
		c, size := utf8.DecodeRune(text[i:])
		if c == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(text)
}

// nearest returns the known name that is at most a third of its letters away from name, or nothing.
func nearest(name string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		if len(name) > 2*len(k)+2 {
			continue
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least && d <= (len(k)+2)/3 {
			best, least = k, d
		}
	}
	return best
}

// distance is the number of letters to insert, remove or replace to turn a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
