package workspace

import (
	"cmp"
	"slices"
	"sync"
)

const (
	// listingBytes is how many bytes of directories a store keeps in memory, with what each directory and each of its entries takes.
	listingBytes = 4 << 20
	listingEach  = 256
)

// listings are the directories of workspaces that were listed completely, as they are at one version of each workspace. Each transaction on a
// workspace changes its version, in any process, and no version comes back: a transaction that finds the version of a listing in the database
// may use it. It is safe for concurrent use. Nobody changes a directory.
type listings struct {
	mu   sync.Mutex
	all  map[string]*listing // by the names of workspaces
	size int
}

type listing struct {
	version     int64
	directories map[string][]dirent // by their paths from the root of the workspace
}

func (l *listings) get(workspace string, version int64, directory string) (all []dirent, has bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if of := l.all[workspace]; of != nil && of.version == version {
		all, has = of.directories[directory]
	}
	return all, has
}

// put keeps a directory. If there is no room, it forgets all others.
func (l *listings) put(workspace string, version int64, directory string, all []dirent) {
	size := listingEach + len(workspace) + len(directory)
	for _, e := range all {
		size += listingEach + len(e.Name) + len(e.node.target)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.all[workspace]
	switch {
	case size > listingBytes, of != nil && of.version > version:
		return
	case l.all == nil || l.size+size > listingBytes:
		l.all, l.size, of = map[string]*listing{}, 0, nil
	}
	if of == nil {
		of = &listing{}
		l.all[workspace] = of
	}
	if of.version != version || of.directories == nil { // what it had still counts until there is no room
		of.version, of.directories = version, map[string][]dirent{}
	}
	if _, has := of.directories[directory]; !has {
		of.directories[directory] = all
		l.size += size
	}
}

// replaced is a file that got another content.
type replaced struct {
	full string // its path from the root of the workspace
	id   int64
	Status
	content int64
	bytes   []byte // of a small content
}

// follow says that a transaction of this process on a workspace of a version changed no nodes, except for a file that got another content.
func (l *listings) follow(workspace string, version int64, file *replaced) {
	l.mu.Lock()
	defer l.mu.Unlock()
	of := l.all[workspace]
	if of == nil || of.version != version {
		return
	}
	of.version++
	if file == nil {
		return
	}
	directory, name := split(file.full)
	all, has := of.directories[directory]
	if !has {
		return
	}
	at, has := slices.BinarySearchFunc(all, name, byName)
	if !has || all[at].node.id != file.id {
		of.directories = nil
		return
	}
	all = slices.Clone(all) // somebody may be reading it
	n := *all[at].node
	n.status.Size, n.status.Modified, n.bytes = file.Size, file.Modified, file.content
	all[at] = dirent{Entry{name, n.status}, &n}
	of.directories[directory] = all
}

func byName(e dirent, name string) int { return cmp.Compare(e.Name, name) }
