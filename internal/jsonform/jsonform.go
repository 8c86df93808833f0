// Package jsonform strictly reads small JSON files that people and models write. It refuses unknown and duplicate fields. Each
// problem names its place in the text and what to write instead.
package jsonform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/lazyregexp"
	"github.com/stilehost/stile/internal/printable"
)

// Limits of a text.
const (
	maxText  = 256 << 10 // bytes
	maxDepth = 16        // values nested in each other
)

// Error is the first problem of a text.
type Error struct {
	// Path leads to the value, e.g. "bindings.github.http[0].path". It is empty for the whole text.
	Path string
	// Line and Column count from 1. A column is a character.
	Line, Column int
	// Message says what is wrong.
	Message string
	// Instead is what to write.
	Instead string
}

// In formats the error in one line. what names the text.
func (e *Error) In(what string) string {
	return fmt.Sprintf("%s line %d, column %d: %s; write %s", what, e.Line, e.Column, e.Problem(), e.Instead)
}

// Problem formats what is wrong, and where in the value.
func (e *Error) Problem() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// Node is a JSON value with its position. The value is a string, json.Number, bool, nil, []*Node or []Member.
type Node struct {
	Offset int
	Value  any

	parent *Node
	key    string // in an object
	index  int    // in a list
}

// Path leads to the value: see [Error.Path]. Nodes do not keep it, because the paths of a long list below long keys would take gigabytes.
func (n *Node) Path() string {
	if n.parent == nil {
		return ""
	}
	above := n.parent.Path()
	if _, listed := n.parent.Value.([]*Node); listed {
		return fmt.Sprintf("%s[%d]", above, n.index)
	}
	return Join(above, n.key)
}

// Member is a field of an object.
type Member struct {
	Key    string
	Offset int // of the key
	Value  *Node
}

// Reader reads a text. The first problem stays in Err, and every later method returns zero values, so the code that reads a text can
// follow its structure without checking errors. Only one goroutine may use it.
type Reader struct {
	// Err is the first problem, or nil.
	Err *Error
	// Kept are the problems that Keep moved out of Err, at most maxKept. Met is how many there were.
	Kept []*Error
	Met  int
	// All is set to read on after a problem: Next then does what Keep does.
	All bool

	what string
	text []byte
	dec  *json.Decoder
}

// New returns a reader of text. what names the text in problems, e.g. "manifest".
func New(what string, text []byte) *Reader { return &Reader{what: what, text: text} }

// Parse reads the whole text as one JSON value, refusing duplicate keys and deep nesting.
func (r *Reader) Parse() *Node {
	switch {
	case len(r.text) > maxText:
		r.FailAt(maxText, "", fmt.Sprintf("at most %d bytes", maxText), "the %s has %d bytes", r.what, len(r.text))
	case !utf8.Valid(r.text):
		r.FailAt(invalidByte(r.text), "", "UTF-8 text", "the text is not UTF-8")
	default:
		var raw json.RawMessage
		var syntax *json.SyntaxError
		if err := json.Unmarshal(r.text, &raw); errors.As(err, &syntax) {
			r.FailAt(int(syntax.Offset)-1, "", "one JSON object", "this is not JSON: %s", syntax)
		}
	}
	if r.Err != nil {
		return nil
	}
	r.dec = json.NewDecoder(bytes.NewReader(r.text))
	r.dec.UseNumber()
	return r.next(&Node{}, 1)
}

// next reads one value into n, whose place is known. The text is valid JSON, so no token fails.
func (r *Reader) next(n *Node, depth int) *Node {
	n.Offset = r.start()
	if depth > maxDepth {
		r.Fail(n, fmt.Sprintf("at most %d levels", maxDepth), "values are nested too deep")
		return n
	}
	token, _ := r.dec.Token()
	switch token {
	case json.Delim('['):
		items := []*Node{}
		n.Value = items // for the paths of its items
		for r.Err == nil && r.dec.More() {
			items = append(items, r.next(&Node{parent: n, index: len(items)}, depth+1))
		}
		n.Value = items
	case json.Delim('{'):
		members := []Member{}
		seen := map[string]bool{}
		for r.Err == nil && r.dec.More() {
			at := r.start()
			token, _ := r.dec.Token()
			key, _ := token.(string)
			below := &Node{parent: n, key: key}
			if seen[key] {
				r.FailAt(at, below.Path(), "each field once", "this field appears twice")
			}
			seen[key] = true
			members = append(members, Member{key, at, r.next(below, depth+1)})
		}
		n.Value = members
	default:
		n.Value = token
		return n
	}
	if r.Err == nil {
		_, _ = r.dec.Token() // the closing bracket
	}
	return n
}

// start is the offset of the next token.
func (r *Reader) start() int {
	rest := r.text[r.dec.InputOffset():]
	return len(r.text) - len(bytes.TrimLeft(rest, " \t\r\n,:"))
}

// Fail records a problem with n. instead says what to write.
func (r *Reader) Fail(n *Node, instead, format string, args ...any) {
	if r.Err != nil {
		return
	}
	r.FailAt(n.Offset, n.Path(), instead, format, args...)
}

// FailAt is Fail for a problem at an offset.
func (r *Reader) FailAt(offset int, path, instead, format string, args ...any) {
	if r.Err != nil {
		return
	}
	line, column := r.Place(offset)
	r.Err = &Error{
		Path:    path,
		Line:    line,
		Column:  column,
		Message: fmt.Sprintf(format, args...),
		Instead: instead,
	}
}

// maxKept is how many problems of a text are worth telling at once.
const maxKept = 20

// Keep moves the problem in Err, if there is one, to Kept, so that the next part of the text is read. It reports whether there was none.
func (r *Reader) Keep() bool {
	if r.Err == nil {
		return true
	}
	r.Met++
	if len(r.Kept) < maxKept {
		r.Kept = append(r.Kept, r.Err)
	}
	r.Err = nil
	return false
}

// Next begins the next part of a text: with All, a problem of the last one does not end the reading.
func (r *Reader) Next() {
	if r.All {
		r.Keep()
	}
}

// Line returns the line, counted from 1, of an offset.
func (r *Reader) Line(offset int) int {
	return bytes.Count(r.text[:min(max(offset, 0), len(r.text))], []byte{'\n'}) + 1
}

// Place returns the line and the column, counted from 1, of an offset. A column is a character.
func (r *Reader) Place(offset int) (line, column int) {
	before := r.text[:min(max(offset, 0), len(r.text))]
	return r.Line(offset), utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
}

// Fields returns the members of an object by name. Every name must be known, and every name in need must be present. With All, it tells each
// that is not; the last of these problems stays in Err.
func (r *Reader) Fields(n *Node, example string, known []string, need ...string) map[string]*Node {
	found := map[string]*Node{}
	members := r.Members(n, example)
	if r.Err != nil {
		return found
	}
	for _, m := range members {
		r.Known(m, known)
		found[m.Key] = m.Value
	}
	for _, name := range need {
		if found[name] == nil {
			r.Next()
			r.Missing(n, name, example)
		}
	}
	return found
}

// Known records a problem if no known field has the name of a member.
func (r *Reader) Known(m Member, known []string) {
	if slices.Contains(known, m.Key) {
		return
	}
	r.Next()
	instead := "one of " + strings.Join(known, ", ")
	if near := Nearest(m.Key, known); near != "" {
		instead = Quote(near)
	}
	r.FailAt(m.Offset, m.Value.Path(), instead, "there is no such field")
}

// Missing records that an object has no field of a name.
func (r *Reader) Missing(n *Node, name, example string) {
	r.Fail(n, example, "the field %s is missing", Quote(name))
}

// Members returns the fields of an object, in the order of the text.
func (r *Reader) Members(n *Node, example string) []Member {
	members, ok := n.Value.([]Member)
	if !ok && r.Err == nil {
		r.Fail(n, example, "%s where an object belongs", n.What())
	}
	if r.Err != nil {
		return nil
	}
	return members
}

// Items returns the elements of an array that has at least one and at most limit.
func (r *Reader) Items(n *Node, limit int, example string) []*Node {
	items, ok := n.Value.([]*Node)
	switch {
	case r.Err != nil:
	case !ok:
		r.Fail(n, example, "%s where a list belongs", n.What())
	case len(items) == 0:
		r.Fail(n, example, "the list is empty")
	case len(items) > limit:
		r.Fail(items[limit], fmt.Sprintf("at most %d", limit), "the list has %d elements", len(items))
	}
	if r.Err != nil {
		return nil
	}
	return items
}

// Text returns text.
func (r *Reader) Text(n *Node, example string) string {
	s, ok := n.Value.(string)
	if !ok && r.Err == nil {
		r.Fail(n, example, "%s where text belongs", n.What())
	}
	return s
}

// What describes the kind of value that n is, e.g. "a list".
func (n *Node) What() string {
	switch v := n.Value.(type) {
	case string:
		return "text"
	case json.Number:
		return "a number"
	case bool:
		return strconv.FormatBool(v)
	case []*Node:
		return "a list"
	case []Member:
		return "an object"
	default:
		return "null"
	}
}

// Plain returns the value as encoding/json would decode it.
func (n *Node) Plain() any {
	switch v := n.Value.(type) {
	case []*Node:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = item.Plain()
		}
		return list
	case []Member:
		object := make(map[string]any, len(v))
		for _, m := range v {
			object[m.Key] = m.Value.Plain()
		}
		return object
	default:
		return v
	}
}

// Join returns the path of a field: a.b, or a["b c"] if b is not a plain word.
func Join(path, key string) string {
	switch {
	case !plainWord.MatchString(key):
		return path + "[" + Quote(key) + "]"
	case path == "":
		return key
	default:
		return path + "." + key
	}
}

var plainWord = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// Quote formats untrusted text: it shortens the text, and escapes everything that a reader does not see or that a terminal acts on.
func Quote(s string) string {
	const most = 80
	if utf8.RuneCountInString(s) > most {
		s = string([]rune(s)[:most]) + "..."
	}
	return printable.Text(strconv.Quote(s))
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

// Nearest returns the known name closest to name if at most a third of its letters differ. Otherwise it returns "".
func Nearest(name string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		if apart := max(len(name)-len(k), len(k)-len(name)); apart >= least || apart > (len(k)+2)/3 {
			continue // the distance is no less
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
