package typecheck

import (
	"cmp"
	"hash/maphash"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/internal/jslex"
)

const (
	// minTable is the size, in bytes, from which a file is shortened.
	minTable = 256 << 10
	// minRows is how many elements of an array always stay: it may be a tuple.
	minRows = 16
	// maxShapes bounds the shapes of elements that an array is compared with. A table has few.
	maxShapes = 1000
	// longText is the size, in bytes, of a string or template whose content is left out.
	longText = 1 << 10
)

// fit makes a source of as many bytes as are checked. It leaves out rows of tables that have the type of others, and if that is not enough, the largest
// files other than the entry, which it returns. What comes from these has the type any.
func fit(files map[string]string, entry string) (left []string, size int) {
	for name, text := range files {
		if len(text) >= minTable {
			files[name] = shortened(text, path.Ext(name) == ".json", jslex.IsJSX(name))
		}
		size += len(files[name])
	}
	largest := slices.SortedFunc(maps.Keys(files), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(files[b]), len(files[a])), cmp.Compare(a, b))
	})
	for _, name := range largest {
		if size <= maxSource {
			break
		}
		if name != entry {
			left = append(left, name)
			size -= len(files[name])
			delete(files, name)
		}
	}
	slices.Sort(left)
	return left, size
}

// cut is a part of a text that is left out.
type cut struct{ start, end int }

// frame is an open bracket of a text.
type frame struct {
	kind  byte
	start int // where it opens
	// element is where the current element begins, and count how many came before it.
	element, count int
	// parts are the values in the current element. It is plain if it consists of values that stand in the text, with names before them.
	parts int
	named bool
	plain bool
	shape uint64 // of the current element
	whole uint64 // of all elements
	pure  bool   // all of them are plain
	seen  map[uint64]bool
}

var shapeSeed = maphash.MakeSeed()

// mixed returns the shape of a value after others.
func mixed(shape uint64, next string) uint64 {
	return shape*1099511628211 + maphash.String(shapeSeed, next)
}

// shortened leaves out elements of arrays that have the same type as others before them, and the content of long strings. Lines stay where they are,
// except in JSON. From where the code cannot be read with certainty, all stays.
func shortened(text string, isJSON, jsx bool) string {
	var cuts []cut
	var open []*frame
	l := jslex.New(text, jsx)
	closed, as := 0, false // where the bracket opened that was closed last; whether "as" came last
	for {
		t, more := l.Next()
		if !more || l.Doubt != "" && l.DoubtAt <= int(t.Start) {
			break
		}
		if t.Kind == jslex.Comment {
			continue
		}
		start, end := int(t.Start), int(t.End)
		word := text[start:end]
		if as && word == "const" { // every value is a type
			for len(cuts) > 0 && cuts[len(cuts)-1].start > closed {
				cuts = cuts[:len(cuts)-1]
			}
		}
		as = t.Kind == jslex.Word && word == "as"
		var in *frame
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch {
		case t.Closes:
			if in == nil {
				return text
			}
			in.ends(-1, &cuts, text)
			open, closed = open[:len(open)-1], in.start
			if len(open) > 0 {
				open[len(open)-1].value(in.pure && (in.kind == '[' || in.kind == '{'), string(in.kind), in.whole)
			}
			if !t.Opens {
				continue
			}
			fallthrough
		case t.Opens:
			open = append(open, &frame{kind: text[end-1], start: start, element: end, plain: true, pure: true})
		case (t.Kind == jslex.String || t.Kind == jslex.Template) && len(word) > longText:
			if in == nil || in.kind != '[' || in.count < minRows { // its element may be left out as a whole
				cuts = append(cuts, cut{start + 1, end - 1})
			}
			if in != nil {
				in.value(true, "text", 0)
			}
		case in == nil:
		case word == "," && t.Kind == jslex.Mark:
			in.ends(end, &cuts, text)
		case word == ":" && t.Kind == jslex.Mark && in.kind == '{' && !in.named && in.parts == 1:
			in.named, in.parts, in.plain = true, 0, true
		case t.Kind == jslex.String || t.Kind == jslex.Template:
			in.name(word, "text")
		case t.Kind == jslex.Number:
			in.name(word, "number")
		case word == "true" || word == "false":
			in.name(word, "boolean")
		case word == "null" || word == "undefined":
			in.name(word, word)
		case t.Kind == jslex.Word && in.kind == '{' && !in.named:
			in.name(word, "")
		case word == "-" && in.parts == 0:
		default:
			in.plain = false
		}
	}
	var b strings.Builder
	at := 0
	for _, c := range cuts {
		b.WriteString(text[at:c.start])
		if !isJSON {
			b.WriteString(strings.Repeat("\n", strings.Count(text[c.start:c.end], "\n")))
		}
		at = c.end
	}
	b.WriteString(text[at:])
	return b.String()
}

// name adds a token that is a value, or the name of one.
func (f *frame) name(word, kind string) {
	if f.kind == '{' && !f.named {
		f.value(true, "name "+strings.Trim(word, `"'`), 0)
		return
	}
	f.value(true, kind, 0)
}

// value adds a value to the current element.
func (f *frame) value(plain bool, kind string, shape uint64) {
	f.plain = f.plain && plain
	f.parts++
	f.shape = mixed(f.shape, kind) ^ shape
}

// ends ends the current element. The next one begins at next, or there is none. One that has the type of another is left out.
func (f *frame) ends(next int, cuts *[]cut, text string) {
	plain := f.plain && f.parts == 1 && (f.kind == '[' || f.named) || f.parts == 0 && next < 0
	f.pure = f.pure && plain
	known := false
	if f.kind == '[' && f.count >= minRows && plain {
		if f.seen == nil {
			f.seen = map[uint64]bool{}
		}
		if known = f.seen[f.shape]; !known && len(f.seen) < maxShapes {
			f.seen[f.shape] = true
		}
		if known && next >= 0 {
			for len(*cuts) > 0 && (*cuts)[len(*cuts)-1].start >= f.element {
				*cuts = (*cuts)[:len(*cuts)-1]
			}
			if last := len(*cuts) - 1; last >= 0 && (*cuts)[last].end == f.element {
				(*cuts)[last].end = next
			} else {
				*cuts = append(*cuts, cut{f.element, next})
			}
		}
	}
	if f.parts > 0 && !known {
		f.whole = f.whole*31 + f.shape
	}
	f.count++
	f.element, f.parts, f.named, f.plain, f.shape = next, 0, false, true, 0
}
