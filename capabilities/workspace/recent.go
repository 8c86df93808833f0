package workspace

import "sync"

const (
	// recentBytes is how many bytes of small contents a store keeps in memory.
	recentBytes = 8 << 20
	// recentEach is what each of them takes besides its bytes.
	recentEach = 128
)

// recent are small contents of a store that were read recently. A content never changes, and no other ever has its number, so those of
// committed contents stay true whatever other processes write: a transaction that finds the number of a content in a node may take its
// bytes from here. It is safe for concurrent use. Nobody changes the bytes.
type recent struct {
	mu       sync.Mutex
	now, old map[int64][]byte // what was used since now was last full, and some of what was used before
	size     int              // of now
}

func (r *recent) get(content int64) ([]byte, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	bytes, has := r.now[content]
	if !has {
		if bytes, has = r.old[content]; has {
			r.add(content, bytes)
		}
	}
	return bytes, has
}

// put keeps a content that is committed, unless another program made it larger than a small one.
func (r *recent) put(content int64, bytes []byte) {
	if len(bytes) > chunkSize {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(content, bytes)
}

func (r *recent) add(content int64, bytes []byte) {
	if _, has := r.now[content]; has {
		return
	}
	size := recentEach + len(bytes)
	if r.now == nil || r.size+size > recentBytes/2 {
		r.old, r.now, r.size = r.now, map[int64][]byte{}, 0
	}
	r.now[content] = bytes
	r.size += size
}
