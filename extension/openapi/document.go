package openapi

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/stilehost/stile/extension"
)

// document is a decoded document.
type document struct {
	root    map[string]any
	v2      bool // Swagger 2.0
	server  server
	own     []server // those that the document names
	tags    []string // of all operations, in their order
	reasons map[string]*LeftOut
	spent   int // values that were visited
}

// maxWork is how many values converting a document visits at most, steps of references and pieces of text included. Visiting so many takes
// some seconds. Only tests change it.
var maxWork = 50_000_000

const (
	// parameterWork is for a parameter of an operation, as often as it is built, and for a variable of a server.
	parameterWork = 20
	// proseWork is how many bytes of text are a value.
	proseWork = 8
)

// tooMuch reports whether that were too many.
func (d *document) tooMuch() bool { return d.spent > maxWork }

// prose is like the function, and spends what that takes.
func (d *document) prose(s string, most int) string {
	s = cutProse(s, most)
	d.spend(len(s) / proseWork)
	return prose(s, most)
}

// keys are the first keys of an object in byte order, at most so many.
func (d *document) keys(m map[string]any, most int) []string {
	if !d.spend(len(m) * bits.Len(uint(len(m)))) { // they are sorted
		return nil
	}
	keys := slices.Sorted(maps.Keys(m))
	return keys[:min(len(keys), most)]
}

// spend counts visited values, and reports whether there may be so many.
func (d *document) spend(values int) bool {
	d.spent += values
	return d.spent <= maxWork
}

func (d *document) readVersion() error {
	version := cmp.Or(str(d.root["openapi"]), str(d.root["swagger"]))
	d.v2 = d.root["openapi"] == nil
	major, _, _ := strings.Cut(version, ".")
	switch {
	case version == "":
		return &DocumentError{Text: `the document has neither "openapi" nor "swagger"`, Fix: "is it an OpenAPI document?"}
	case d.v2 && major != "2", !d.v2 && major != "3":
		return &DocumentError{Text: fmt.Sprintf("version %s is not known", quoted(version)), Fix: "versions 2.0, 3.0 and 3.1 are"}
	}
	return nil
}

// maxHops is how many references lead to a value at most.
const maxHops = 32

// resolve follows references within the document. A reference to anything else is never followed.
func (d *document) resolve(v any) (fields map[string]any, ok bool) {
	for range maxHops {
		fields = object(v)
		ref, is := fields["$ref"].(string)
		if !is {
			return fields, fields != nil
		}
		if v, ok = d.pointer(ref); !ok {
			return nil, false
		}
	}
	return nil, false
}

// pointer finds the value of a reference such as "#/components/schemas/Pet".
func (d *document) pointer(ref string) (any, bool) {
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok || len(rest) > 2000 {
		return nil, false
	}
	if !d.spend(1 + strings.Count(rest, "/")) {
		return nil, false
	}
	var at any = d.root
	for step := range strings.SplitSeq(rest, "/") {
		if decoded, err := url.PathUnescape(step); err == nil {
			step = decoded
		}
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			if at, ok = v[step]; !ok {
				return nil, false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			at = v[i]
		default:
			return nil, false
		}
	}
	return at, true
}

// methods are those that an operation can have, in the order in which tools get their names.
var methods = []string{"get", "put", "post", "delete", "options", "head", "patch"}

// operation is an operation on its way to a tool. The exported fields are its row in the table.
type operation struct {
	Name        string      `json:"name"`
	Method      string      `json:"method"`
	Path        string      `json:"path"`
	Parameters  []parameter `json:"parameters,omitempty"`
	Body        string      `json:"body,omitempty"`  // json, form, deep, text or multipart
	Whole       bool        `json:"whole,omitempty"` // the body is the field body, not all that no parameter takes
	Description string      `json:"description"`
	Input       any         `json:"input"`

	id, tag string
	given   map[string]any
	shared  []any // parameters of the path
}

// operations lists the operations that the options choose, by path and method.
func (d *document) operations(name string, o Options) (all []*operation) {
	paths := object(d.root["paths"])
	var listed []*operation
	known := map[string]bool{}
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		item := object(paths[p])
		if _, is := item["$ref"]; is {
			var ok bool
			if item, ok = d.resolve(item); !ok {
				d.leaveOut("the path is not in the document", p)
				continue
			}
		}
		for _, method := range methods {
			given := object(item[method])
			if given == nil {
				continue
			}
			// Documents tell operations of one path apart by a fragment, which is no part of a request.
			sent, _, _ := strings.Cut(p, "#")
			op := &operation{Method: strings.ToUpper(method), Path: sent, given: given, shared: list(item["parameters"]), id: cmp.Or(str(given["operationId"]), strings.ToLower(method)+" "+p)}
			if tags := list(given["tags"]); len(tags) > 0 {
				op.tag = prose(str(tags[0]), 60)
			}
			if op.tag != "" && !known[op.tag] {
				known[op.tag] = true
				d.tags = append(d.tags, op.tag)
			}
			if !d.spend(len(op.shared) + len(list(given["tags"]))) {
				return nil
			}
			switch reason := d.unusable(op, item); {
			case reason != "":
				d.leaveOut(reason, op.Method+" "+p)
			case tagged(given, o.Tags):
				listed = append(listed, op)
			}
		}
	}
	named := newNames(extension.MaxToolName - len(numbered(name, MaxExtensions)) - 1)
	for _, op := range listed {
		op.Name = named.of(op)
		if included(op, o.Include) {
			all = append(all, op)
		}
	}
	return all
}

func tagged(given map[string]any, want []string) bool {
	return len(want) == 0 || slices.ContainsFunc(list(given["tags"]), func(tag any) bool {
		return slices.ContainsFunc(want, func(w string) bool { return strings.EqualFold(w, str(tag)) })
	})
}

func included(o *operation, globs []string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(glob string) bool {
		subject := o.Name
		if strings.Contains(glob, "/") {
			subject = o.Path
		}
		ok, err := path.Match(glob, subject)
		if rest, all := strings.CutSuffix(glob, "/**"); all && !ok {
			ok = subject == rest || strings.HasPrefix(subject, rest+"/")
		}
		return ok && err == nil
	})
}

// leaveOut notes why an operation does not become a tool.
func (d *document) leaveOut(reason, what string) {
	l := d.reasons[reason]
	if l == nil {
		l = &LeftOut{Reason: reason, First: prose(what, 100)}
		d.reasons[reason] = l
	}
	l.Count++
}

const maxPath = 1000

// unusable says why an operation cannot be called with the binding.
func (d *document) unusable(o *operation, item map[string]any) string {
	switch {
	case !validPath(o.Path):
		return "its path is not a plain path"
	case d.tooMuch(): // and the document is refused
		return ""
	case o.given["servers"] != nil && !d.sameServer(o.given["servers"]), item["servers"] != nil && o.given["servers"] == nil && !d.sameServer(item["servers"]):
		return "it is on another server"
	default:
		return ""
	}
}

// validPath reports whether a path of a document stays below the server's prefix: segments of visible ASCII without dot segments, queries,
// fragments or encodings, and whole templates.
func validPath(p string) bool {
	if len(p) > maxPath || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") {
		return false
	}
	for _, c := range []byte(p) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`\?#%"<>^|`+"`", c) >= 0 {
			return false
		}
	}
	segments := strings.Split(p[1:], "/")
	for i, segment := range segments {
		if segment == "." || segment == ".." || segment == "" && i < len(segments)-1 {
			return false
		}
		plain := segment
		for {
			before, rest, open := strings.Cut(plain, "{")
			name, after, closed := strings.Cut(rest, "}")
			if strings.Contains(before, "}") || open && (!closed || name == "" || strings.Contains(name, "{")) {
				return false
			}
			if !open {
				break
			}
			plain = after
		}
	}
	return true
}

// placeholders are the names in a path's templates.
func placeholders(p string) (names []string) {
	for {
		_, rest, open := strings.Cut(p, "{")
		name, after, _ := strings.Cut(rest, "}")
		if !open {
			return names
		}
		names, p = append(names, name), after
	}
}
