package trial

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
)

// stored is what a bucket or a workspace held, by keys or paths: at first, as far as the call saw it, and now.
type stored struct {
	first map[string]string
	now   map[string]state
	// partly are the operations that depended on an entry of which the call saw nothing whole so far.
	partly map[string]int
}

// state is what is known of an entry: that it is absent, its text, or, after it was changed in place, only that it is there.
type state struct {
	absent, changed bool
	text            string
}

func known(text *string) state {
	if text == nil {
		return state{absent: true}
	}
	return state{text: *text}
}

var (
	errPartly = errors.New("the call depended on what was there, and did not read all of it before it wrote")
	errOther  = errors.New("it is not what the call left there: something else changed it meanwhile")
)

// see learns what an entry holds, nil for none.
func (s *stored) see(name string, text *string) error {
	before, seen := s.now[name]
	switch {
	case !seen:
		if text != nil {
			s.first[name] = *text
		}
		delete(s.partly, name)
	case before.changed && text != nil:
	case before != known(text):
		return errOther
	}
	s.now[name] = known(text)
	return nil
}

// part notes that an operation depended on an entry.
func (s *stored) part(at int, name string) {
	if _, seen := s.now[name]; !seen {
		s.partly[name] = at
	}
}

// bucket learns from an operation of a bucket.
func (s *stored) bucket(at int, method string, args []abi.Value, value abi.Value, failed string) error {
	text := func(i int) string { return args[i].(string) }
	switch {
	case failed == "denied":
		return nil
	case failed == "invalid":
		if method == "increment" {
			s.part(at, text(0))
		}
		return nil
	case failed != "":
		return fmt.Errorf("it failed: %s", failed)
	}
	switch method {
	case "get":
		return s.see(text(0), optional(value))
	case "set":
		s.now[text(0)] = state{text: text(1)}
	case "delete":
		if !value.(bool) {
			return s.see(text(0), nil)
		}
		return s.remove(text(0))
	case "increment":
		return s.increment(text(0), args[1].(int64), value.(int64))
	case "compare-and-set":
		if !value.(bool) {
			s.part(at, text(0))
			return nil
		}
		err := s.see(text(0), optional(args[1]))
		s.now[text(0)] = known(optional(args[2]))
		return err
	case "list":
		page := value.([]abi.Value)
		if optional(page[1]) != nil {
			return errors.New("there was more than it gave, and a test has only what the call saw")
		}
		for _, entry := range page[0].([]abi.Value) {
			fields := entry.([]abi.Value)
			value := fields[1].(string)
			if err := s.see(fields[0].(string), &value); err != nil {
				return err
			}
		}
	default:
		return errUnanswered
	}
	return nil
}

// remove learns that an entry was there and is not any more. Its text does not matter, because nobody saw it.
func (s *stored) remove(name string) error {
	before, seen := s.now[name]
	if before.absent {
		return errOther
	}
	if !seen {
		s.first[name] = ""
	}
	s.now[name] = state{absent: true}
	return nil
}

func (s *stored) increment(name string, delta, sum int64) error {
	before := sum - delta
	if (delta > 0) != (before < sum) && delta != 0 {
		return fmt.Errorf("the sum %d is none of %d", sum, delta)
	}
	if old, seen := s.now[name]; !seen {
		var text *string
		if before != 0 {
			text = new(strconv.FormatInt(before, 10))
		}
		if err := s.see(name, text); err != nil {
			return err
		}
	} else if n, err := strconv.ParseInt(old.text, 10, 64); (err != nil || n != before) && (!old.absent || before != 0) {
		return errOther
	}
	s.now[name] = state{text: strconv.FormatInt(sum, 10)}
	return nil
}

// optional is an option<string>.
func optional(v abi.Value) *string {
	o := v.(abi.Variant)
	if o.Case == 0 {
		return nil
	}
	return new(o.Value.(string))
}

// directory is a directory of a workspace, by its path there.
type directory struct {
	*stored
	at string
}

// directory learns from an operation of a directory.
func (c *converter) directory(d directory, method string, args []abi.Value, value abi.Value, failed string) error {
	if method == "read-only" {
		c.objects[value.(abi.Rep)] = d
		return nil
	}
	if !slices.Contains([]string{
		"read", "read-lines", "read-bytes", "read-blob", "write", "write-bytes", "write-blob", "append", "append-bytes", "edit", "stat", "remove",
		"make-directory", "subdirectory",
	}, method) {
		return errUnanswered
	}
	name := path.Join("/", d.at, args[0].(string))
	_, seen := d.now[name]
	switch {
	case failed == "":
	case failed == "not-found":
		return d.see(name, nil)
	case failed == "denied", seen && slices.Contains([]string{"read-lines", "read-bytes", "edit"}, method):
		return nil // as a test does, by the manifest or by what is known
	default:
		return fmt.Errorf("it failed: %s", failed)
	}
	switch method {
	case "subdirectory":
		c.objects[value.(abi.Rep)] = directory{d.stored, name}
	case "make-directory":
	case "read-blob":
		content := c.content(func(text string) error { return d.see(name, &text) })
		c.objects[value.(abi.Rep)] = part{content: content, all: true}
	default:
		return d.file(c.at, name, method, args, value)
	}
	return nil
}

// file learns from an operation of a file that did not fail.
func (s *stored) file(at int, name, method string, args []abi.Value, value abi.Value) error {
	before, seen := s.now[name]
	switch method {
	case "read":
		return s.see(name, new(value.(string)))
	case "read-lines":
		s.part(at, name)
	case "read-bytes":
		b := value.([]byte)
		if args[1].(uint64) > 0 || len(b) >= int(min(args[2].(uint32), math.MaxInt32)) {
			s.part(at, name)
			return nil
		}
		if !utf8.Valid(b) {
			return errNoText
		}
		return s.see(name, new(string(b)))
	case "write":
		s.now[name] = state{text: args[1].(string)}
	case "write-bytes":
		s.now[name] = state{text: string(args[1].([]byte))}
	case "write-blob":
		s.now[name] = state{changed: true}
	case "append":
		s.now[name] = state{text: before.text + args[1].(string), changed: before.changed}
	case "append-bytes":
		s.now[name] = state{text: before.text + string(args[1].([]byte)), changed: before.changed}
	case "edit":
		if !seen {
			return errPartly
		}
		s.now[name] = state{changed: true}
	case "remove":
		if !seen {
			return errPartly
		}
		return s.remove(name)
	default: // stat
		return errors.New("it gave what a test chooses, when the file was changed")
	}
	return nil
}
