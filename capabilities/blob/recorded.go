package blob

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/stilehost/stile/capability/double"
	"github.com/stilehost/stile/internal/wordtext"
)

// Content is the content of a body or a file that a recorded call read in pieces from the start.
type Content struct {
	at      int // the operation that returned it
	ignored bool
	ended   bool    // the call read all of it
	size    *uint64 // nil if the call did not ask
	bytes   []byte
	keep    func(text string) error
}

// NewContent makes the content that an operation returned. keep, which may be nil, is called with all of it.
func NewContent(at int, keep func(text string) error) *Content { return &Content{at: at, keep: keep} }

// NewUnread makes a content that the call need not have read, unless it asks for a part or all of it.
func NewUnread(at int) *Content { return &Content{at: at, ignored: true} }

// ErrNotText is the error of bytes that a test cannot contain.
var ErrNotText = errors.New("the content is not text, and a test can hold only text")

// Text returns all of it. seen is false if the call read nothing. The error is a *[double.StepError] if the call read only a part.
func (c *Content) Text() (text string, seen bool, err error) {
	if !c.ended && !c.ignored {
		return "", false, &double.StepError{
			At: c.at, Err: errors.New("the call did not read all of it, so the recording does not have the rest"),
		}
	}
	return string(c.bytes), c.ended, nil
}

// Whole records that the call read all of it.
func (c *Content) Whole(all []byte) error {
	if c.ended && !bytes.Equal(all, c.bytes) {
		return errors.New("it differs from what the call read before")
	}
	c.bytes, c.ignored = all, false
	return c.end()
}

// Blob represents a blob of all of it.
func (c *Content) Blob() double.Learner { return part{c, 0, true} }

// BlobFrom represents a blob, returned by an operation, of the content from an offset on.
func (c *Content) BlobFrom(at int, offset uint64, all bool) double.Learner {
	c.at, c.ignored = at, false
	return part{c, offset, all}
}

// add records the bytes at an offset.
func (c *Content) add(offset uint64, b []byte) error {
	have := uint64(len(c.bytes))
	if offset > have {
		return errors.New("the call did not read it from its start")
	}
	if end := offset + uint64(len(b)); end > have {
		c.bytes = append(slices.Clip(c.bytes), b[have-offset:]...)
	}
	if len(c.bytes) > double.MaxRecorded {
		return fmt.Errorf("it has more than %d bytes", double.MaxRecorded)
	}
	return nil
}

// end passes on the content that was seen, once it is complete.
func (c *Content) end() error {
	switch {
	case c.ended:
		return nil
	case !utf8.Valid(c.bytes):
		return ErrNotText
	}
	c.ended = true
	if c.keep == nil {
		return nil
	}
	return c.keep(string(c.bytes))
}

// part is a handle on the content from an offset on, either complete or not.
type part struct {
	*Content
	offset uint64
	all    bool
}

// Learn implements [double.Learner].
func (p part) Learn(o double.Operation) (double.Learner, error) {
	if o.Failed != "" {
		return nil, fmt.Errorf("it failed: %s", o.Failed)
	}
	switch o.Method {
	case "text":
		if p.all {
			return nil, p.Whole([]byte(o.Value.(string)))
		}
		return nil, double.ErrUnanswered
	case "bytes", "packed":
		b, plain := o.Value.([]byte)
		if !plain {
			b, _ = wordtext.Unpack(o.Value.(string))
		}
		offset := o.Args[0].(uint64)
		if err := p.add(p.offset+offset, b); err != nil {
			return nil, err
		}
		if o.Args[1].(uint32) > 0 && len(b) == 0 && p.offset+offset == uint64(len(p.bytes)) {
			return nil, p.end()
		}
	case "size":
		if size := o.Value.(uint64); p.all {
			p.size = &size
		}
	}
	if p.size != nil && *p.size == uint64(len(p.bytes)) {
		return nil, p.end()
	}
	return nil, nil
}
