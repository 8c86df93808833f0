package workspace

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/internal/stores"
)

const (
	// slice is how long one call of Find or Grep works before it returns the results so far and a cursor.
	slice = 20 * time.Millisecond
	// leastWork is how many steps a call always works: some milliseconds. A step looks at one instruction of a glob or a regular
	// expression for one byte.
	leastWork = 64 << 10
	// entryWork is how many steps reading an entry, or a KiB of a file, counts.
	entryWork = 256
	// walkPage is how many entries are read at once. leastPage is how many if many are held already.
	walkPage  = 4096
	leastPage = 64
	// maxFound is how many bytes of paths fill a page of Find, and perText what each text of a page takes besides.
	maxFound = 1 << 20
	perText  = 64
)

// Found is a part of the result of [Directory.Find]. Cursor is set if there may be more.
type Found struct {
	Paths  []string
	Cursor *string
}

// Find returns the paths below d that match a glob, a directory before its content and names in byte order: at most limit, at most
// 1,000, and about 1 MiB. `*` and `?` stand for characters other than a slash, `**` between slashes for any number of directories, `[a-z]` for a
// character, `{a,b}` for either. A glob without a slash matches the last name of a path. Find also returns directories and links,
// and does not follow links. A call ends after some work, perhaps without a path; cursor continues after an earlier page. Paths that
// do not change meanwhile are found exactly once.
func (d *Directory) Find(ctx context.Context, pattern string, limit uint32, cursor *string) (Found, error) {
	from, err := d.place("find", limit, cursor)
	if err != nil {
		return Found{}, err
	}
	limit = min(limit, maxEntries)
	var found Found
	err = abi.WithinRoom(ctx, func(room int64) (int64, error) {
		found = Found{}
		size := int64(0)
		err := d.search(ctx, "find", func(o *op) error {
			g, err := d.globs(pattern) // here, so that what waits holds no pattern
			if err == nil {
				err = checkGlobs(g)
			}
			if err != nil {
				return err
			}
			w := walk{op: o, budget: d.budget()}
			return w.run(g.all[0].prefix, from.path, func(path string, _ []dirent) error {
				if g.match(path) {
					found.Paths = append(found.Paths, path[1:])
					size += perText + int64(len(path))
				}
				if size > room {
					return errPageFull
				}
				if len(found.Paths) == int(limit) || size >= maxFound || w.spent(entryWork+len(path)*g.program) {
					found.Cursor = place{path: path}.cursor()
					return errPageFull
				}
				return nil
			})
		})
		if size > room {
			found, size = Found{}, maxFound+perText+maxPath
		}
		return size, err
	})
	if err != nil {
		return Found{}, err
	}
	return found, nil
}

// place is where a page ended: after a path, or in the file of that path if line is set.
type place struct {
	path   string
	offset int64 // of a line
	line   int64 // its number, from 1
	from   int64 // the number of the first line to search; those before it are context
}

func (p place) cursor() *string {
	return new(base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %d %d %s", p.offset, p.line, p.from, p.path)))
}

// place checks a limit and reads a cursor. Both come from the guest. What a cursor names is checked like any path.
func (d *Directory) place(operation string, limit uint32, cursor *string) (place, error) {
	if limit == 0 {
		return place{}, stores.ErrNoLimit
	}
	if cursor == nil {
		return place{}, nil
	}
	var p place
	if text, err := base64.RawURLEncoding.Strict().DecodeString(*cursor); err == nil && len(text) < 2*maxPath {
		numbers, path, _ := strings.Cut(string(text), "/")
		_, err := fmt.Sscanf(numbers, "%d %d %d ", &p.offset, &p.line, &p.from)
		normal, denied := d.resolve(operation, path)
		p.path = "/" + path
		if err == nil && denied == nil && normal == p.path && p.offset >= 0 && p.line >= 0 && p.from >= p.line {
			return p, nil
		}
	}
	return place{}, abi.Errorf(abi.CodeInvalid, "cursor: not from an earlier page of this search")
}

// budget is how much one call works.
type budget struct {
	end  time.Time
	work int
}

func (d *Directory) budget() budget { return budget{end: time.Now().Add(cmp.Or(d.slice, slice))} }

// spent adds steps and reports whether that is enough.
func (b *budget) spent(work int) bool {
	b.work += work
	return b.work >= leastWork && time.Now().After(b.end)
}

var errPageFull = errors.New("the page is full")

// nextPage is how many entries to read at once if this many of the directories above are held, so that there are never many more
// than four pages.
func nextPage(held int) int { return min(walkPage, max(leastPage, 2*walkPage-held/2)) }

// walk visits a directory and everything below it.
type walk struct {
	*op
	budget
	visit func(path string, next []dirent) error
	held  int // entries of the directories on the way
}

// run visits everything below a directory: a directory before its content, names in byte order. It begins after a path, if set, and
// ends when visit returns errPageFull. visit has the entry at the path, and those after it in the same directory, as far as they are known.
func (w *walk) run(directory, after string, visit func(path string, next []dirent) error) error {
	w.visit = visit
	for end := range len(directory) + 1 { // a link on the way ends the walk, as it would below the directory
		if end < len(directory) && directory[end] != '/' {
			continue
		}
		n, err := w.lookup(directory[:end])
		if err != nil || n == nil || !n.is(KindDirectory) {
			return err
		}
	}
	var behind []string
	if inside(after, directory) {
		behind = names(after[len(directory):])
	} else if after > directory {
		return nil
	}
	if err := w.below(directory, behind); !errors.Is(err, errPageFull) {
		return err
	}
	return nil
}

func (w *walk) below(directory string, after []string) error {
	name := ""
	if len(after) > 0 {
		name = after[0]
		n, err := w.lookup(directory + "/" + name)
		if err == nil && n != nil && n.is(KindDirectory) {
			err = w.below(directory+"/"+name, after[1:])
		}
		if err != nil {
			return err
		}
	}
	for {
		size := nextPage(w.held)
		page, err := w.entries(directory, name, size)
		if errors.Is(err, abi.ErrNotFound) { // on disk: it has gone meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		w.held += len(page)
		for i, e := range page {
			if err := w.ctx.Err(); err != nil {
				return err
			}
			name = e.Name
			path := directory + "/" + name
			if w.base+len(path) > maxPath {
				continue // on disk: no operation could name it
			}
			if err := w.visit(path, page[i:]); err != nil {
				return err
			}
			if e.Status.Kind == KindDirectory {
				if err := w.below(path, nil); err != nil {
					return err
				}
			}
		}
		w.held -= len(page)
		if len(page) < size {
			return nil
		}
	}
}
