// Package trees has the words in which two kinds of capability talk about trees of files that they copy from one to the other: the
// directory of a workspace, and the work folder of a sandbox. Neither kind knows the other.
package trees

import (
	"encoding/binary"
	"io"
	"time"
)

// Recent is how long after a change another one may leave the times of a file as they are, because clocks of disks are coarse.
const Recent = 50 * time.Millisecond

// Kind distinguishes files, directories and links.
type Kind uint8

// The kinds.
const (
	File Kind = iota
	Directory
	Link
)

// String is a word for the kind.
func (k Kind) String() string { return [...]string{"file", "directory", "link"}[k] }

// Entry describes a file, a directory or a link of a tree.
type Entry struct {
	// Path is relative to the tree, with "/" between names and none in front.
	Path string
	Kind Kind
	// Mode has the permission bits, at most 0o777. Those of links mean nothing.
	Mode uint32
	// Size of a file, in bytes.
	Size int64
	// Stamp of a file changes whenever its content may have changed. It says nothing about the file of another tree.
	Stamp string
	// Changed is when the file last changed, in nanoseconds since 1970-01-01T00:00:00Z. It is 0 if Stamp shows every change.
	Changed int64
	// Recent is set if that was so recently that Stamp may not show another change.
	Recent bool
	// Linked is set if a file has other names too, by which it can change.
	Linked bool
	// Target of a link.
	Target string
}

// Stamp makes a stamp of numbers.
func Stamp(numbers ...int64) string {
	b := make([]byte, 0, 32)
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, uint64(n))
	}
	return string(b)
}

// Settle sets Recent, for an entry that nothing can have changed since it was seen.
func (e *Entry) Settle(now time.Time) {
	if e != nil && e.Changed != 0 {
		e.Recent = now.Sub(time.Unix(0, e.Changed)) < Recent
	}
}

// Equal reports whether two entries of one tree have the same kind, mode, content and target. Either may be nil, for nothing at a path.
func Equal(a, b *Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Stamp == b.Stamp && a.Target == b.Target && a.Size == b.Size && (a.Kind == Link || a.Mode == b.Mode)
}

// Change is a new state for one path of a tree.
type Change struct {
	// Path is what Entry.Path is.
	Path string
	// Before is what was at the path when the change was planned; nil for nothing. A tree makes no change where it finds something else.
	Before *Entry
	// After is what will be there; nil for nothing. A directory is removed only if it is empty. Once the change is made, it is what is
	// there then.
	After *Entry
	// Open opens the content of a file, and can be called again. It is nil if only the mode changes.
	Open func() (io.ReadCloser, error)
}
