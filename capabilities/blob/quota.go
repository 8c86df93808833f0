package blob

import (
	"errors"
	"os"
	"sync"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/fair"
)

// memory bounds the bytes that the blobs of this process hold in memory, however many calls run. The rest is in a file.
var memory = NewQuota("", 64<<20)

// Quota bounds the bytes that any number of builders and blobs hold together. Bytes that are not in memory share one temporary file,
// which exists while it is needed. It is safe for concurrent use.
type Quota struct {
	name  string
	limit int64
	all   *Common // nil if the quota is no part of one
	user  string  // of all
	free  int64   // bytes that do not count toward all

	mu    sync.Mutex
	used  int64
	file  *os.File // nil while it is empty
	size  int64    // number of chunks in it, including free ones
	spare []int64  // free chunks
}

// NewQuota returns a quota of limit bytes. Errors call it by name, e.g. "blob store".
func NewQuota(name string, limit int64) *Quota { return &Quota{name: name, limit: limit} }

// Common is what the quotas of several users have together, such as those of all calls of a process. A user gets more only if as much
// remains as the user then has: one has at most half, and others always find something. It is safe for concurrent use.
type Common struct {
	name   string
	limit  int64
	budget *fair.Budget
}

// NewCommon returns limit bytes for several users. Errors call them by name.
func NewCommon(name string, limit int64) *Common {
	return &Common{name, limit, fair.NewBudget(limit)}
}

// Part returns a quota like [NewQuota] whose bytes also count toward c, for a user, except the first free ones. Without a user, there is no
// share, and the quota can have all of c.
func (c *Common) Part(user, name string, limit, free int64) *Quota {
	return &Quota{name: name, limit: limit, all: c, user: user, free: free}
}

// Free is how many bytes nobody has.
func (c *Common) Free() int64 { return c.budget.Free() }

func (c *Common) reserve(user string, n int64) error {
	switch {
	case c.budget.Take(user, n):
		return nil
	case user == "":
		return abi.Errorf(abi.CodeExhausted, "%s: %d bytes", c.name, c.limit)
	default:
		return abi.Errorf(abi.CodeExhausted, "%s: %d bytes, of which %s has at most half of what others leave", c.name, c.limit, user)
	}
}

// Reserve takes n bytes, or fails with abi.ErrExhausted and takes none.
func (q *Quota) Reserve(n int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if n > q.limit-q.used {
		return q.full()
	}
	if q.all != nil {
		if err := q.all.reserve(q.user, q.shared(q.used+n)-q.shared(q.used)); err != nil {
			return err
		}
	}
	q.used += n
	return nil
}

func (q *Quota) full() error {
	return &fullError{q, abi.Errorf(abi.CodeExhausted, "%s: %d bytes", q.name, q.limit)}
}

// fullError says which quota had too few bytes left.
type fullError struct {
	quota *Quota
	err   *abi.Error
}

func (e *fullError) Error() string { return e.err.Error() }
func (e *fullError) Unwrap() error { return e.err }

// IsFull reports whether an error of Reserve says that q itself, and not what it is part of or another quota, had too few bytes left.
func (q *Quota) IsFull(err error) bool {
	e, ok := errors.AsType[*fullError](err)
	return ok && e.quota == q
}

// AtLeast raises the limit to so many bytes, unless it is higher.
func (q *Quota) AtLeast(limit int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = max(q.limit, limit)
}

// Limit is how many bytes the quota has in all.
func (q *Quota) Limit() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit
}

// Release gives n bytes back.
func (q *Quota) Release(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= n
	if q.all != nil {
		q.all.budget.Give(q.user, q.shared(q.used+n)-q.shared(q.used))
	}
}

// shared is how many of so many bytes count toward all.
func (q *Quota) shared(used int64) int64 { return max(0, used-q.free) }

// Free is how many bytes Reserve has left. If the quota is part of a [Common], others may have taken them.
func (q *Quota) Free() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit - q.used
}

// Quotas are quotas that the same bytes count toward.
type Quotas []*Quota

// Reserve takes n bytes of each quota, or fails with abi.ErrExhausted and takes none.
func (all Quotas) Reserve(n int64) error {
	for i, q := range all {
		if err := q.Reserve(n); err != nil {
			all[:i].Release(n)
			return err
		}
	}
	return nil
}

// Release gives n bytes back to each quota.
func (all Quotas) Release(n int64) {
	for _, q := range all {
		q.Release(n)
	}
}

// take returns a chunk of the file. The file stays open until every chunk is given back.
func (q *Quota) take(dir string) (file *os.File, chunk int64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.file == nil {
		if q.file, err = nameless(dir); err != nil {
			return nil, 0, fileError(err)
		}
	}
	if n := len(q.spare); n > 0 {
		chunk, q.spare = q.spare[n-1], q.spare[:n-1]
	} else {
		chunk = q.size
		q.size++
	}
	return q.file, chunk, nil
}

func (q *Quota) giveBack(chunks []int64) error {
	if len(chunks) == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.spare = append(q.spare, chunks...)
	if int64(len(q.spare)) < q.size {
		return nil
	}
	file := q.file
	q.file, q.size, q.spare = nil, 0, nil
	return fileError(file.Close())
}

// nameless makes a temporary file that disappears with its last descriptor.
func nameless(dir string) (*os.File, error) {
	file, err := os.CreateTemp(dir, "stile-blob-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// chunkSize is the unit in which the file is shared.
const chunkSize = 64 << 10

// spilled is a sequence of bytes in the file of a quota. Callers read only bytes
// that were written here, because a chunk may contain older bytes of others.
type spilled struct {
	quota  *Quota
	dir    string
	file   *os.File
	chunks []int64 // where the bytes are; nil if there are none
	gone   int     // chunks before these, which were given back
}

// write writes p at an offset. Everything before the offset must have been written.
func (s *spilled) write(p []byte, offset int64) (err error) {
	for int64(s.gone+len(s.chunks))*chunkSize < offset+int64(len(p)) {
		file, chunk, err := s.quota.take(s.dir)
		if err != nil {
			return err
		}
		s.file, s.chunks = file, append(s.chunks, chunk)
	}
	_, err = s.each(p, offset, s.file.WriteAt)
	return fileError(err)
}

// ReadAt implements io.ReaderAt.
func (s *spilled) ReadAt(p []byte, offset int64) (int, error) {
	return s.each(p, offset, s.file.ReadAt)
}

// each calls a function for each part of p that lies in one chunk.
func (s *spilled) each(p []byte, offset int64, do func([]byte, int64) (int, error)) (done int, err error) {
	for done < len(p) {
		in := offset % chunkSize
		part := p[done:][:min(int64(len(p)-done), chunkSize-in)]
		at := int(offset/chunkSize) - s.gone
		if at < 0 {
			return done, errDropped
		}
		n, err := do(part, s.chunks[at]*chunkSize+in)
		done += n
		if err != nil {
			return done, err
		}
		offset += int64(n)
	}
	return done, nil
}

// dropBefore gives back the chunks before an offset, except the last one, so that the file stays open.
func (s *spilled) dropBefore(offset int64) error {
	n := min(int(offset/chunkSize)-s.gone, len(s.chunks)-1)
	if n <= 0 {
		return nil
	}
	dropped := s.chunks[:n]
	s.chunks, s.gone = s.chunks[n:], s.gone+n
	return s.quota.giveBack(dropped)
}

func (s *spilled) close() error {
	chunks := s.chunks
	s.chunks = nil
	return s.quota.giveBack(chunks)
}
