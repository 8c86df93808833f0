package workspace

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/capability/double"
)

// recorded is a directory of a recorded call, by its path in the workspace of a binding.
type recorded struct {
	*recordedFiles
	at string
}

type recordedFiles struct {
	*double.Entries
	contents []*blob.Content
}

func newRecorded(_ *double.Recording, binding string) double.Answerer {
	return recorded{&recordedFiles{Entries: double.NewEntries(binding)}, "/"}
}

// Answers implements [double.Answerer].
func (f *recordedFiles) Answers() (any, error) {
	for _, c := range f.contents {
		if _, _, err := c.Text(); err != nil {
			return nil, err
		}
	}
	return f.Entries.Answers()
}

// Learn implements [double.Learner].
func (d recorded) Learn(o double.Operation) (double.Learner, error) {
	if o.Method == "read-only" {
		return d, nil
	}
	if !slices.Contains([]string{
		"read", "read-lines", "read-bytes", "read-blob", "write", "write-bytes", "write-blob", "append", "append-bytes", "edit", "stat", "remove",
		"make-directory", "subdirectory",
	}, o.Method) {
		return nil, double.ErrUnanswered
	}
	name := path.Join("/", d.at, o.Args[0].(string))
	_, seen := d.Now(name)
	switch {
	case o.Failed == "":
	case o.Failed == "not-found":
		return nil, d.See(name, nil)
	case o.Failed == "denied", seen && slices.Contains([]string{"read-lines", "read-bytes", "edit"}, o.Method):
		return nil, nil // a test fails in the same way, because of the manifest or the known content
	default:
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	}
	switch o.Method {
	case "subdirectory":
		return recorded{d.recordedFiles, name}, nil
	case "make-directory":
		return nil, nil
	case "read-blob":
		content := blob.NewContent(o.At, func(text string) error { return d.See(name, &text) })
		d.contents = append(d.contents, content)
		return content.Blob(), nil
	default:
		return nil, d.file(name, o.At, o.Method, o.Args, o.Value)
	}
}

// file learns from a successful operation on a file.
func (f *recordedFiles) file(name string, at int, method string, args []abi.Value, value abi.Value) error {
	before, seen := f.Now(name)
	switch method {
	case "read":
		return f.See(name, new(value.(string)))
	case "read-lines":
		f.Depend(at, name)
	case "read-bytes":
		b := value.([]byte)
		if args[1].(uint64) > 0 || len(b) >= int(min(args[2].(uint32), math.MaxInt32)) {
			f.Depend(at, name)
			return nil
		}
		if !utf8.Valid(b) {
			return blob.ErrNotText
		}
		return f.See(name, new(string(b)))
	case "write":
		f.Put(name, double.Entry{Text: args[1].(string)})
	case "write-bytes":
		f.Put(name, double.Entry{Text: string(args[1].([]byte))})
	case "write-blob":
		f.Put(name, double.Entry{Changed: true})
	case "append":
		f.Put(name, double.Entry{Text: before.Text + args[1].(string), Changed: before.Changed})
	case "append-bytes":
		f.Put(name, double.Entry{Text: before.Text + string(args[1].([]byte)), Changed: before.Changed})
	case "edit":
		if !seen {
			return double.ErrPartly
		}
		f.Put(name, double.Entry{Changed: true})
	case "remove":
		if !seen {
			return double.ErrPartly
		}
		return f.Remove(name)
	default: // stat
		return errors.New("its answer contains the time of a change, which differs in a test")
	}
	return nil
}
