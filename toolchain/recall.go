package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"io/fs"
	"sync"

	"github.com/stilehost/stile/internal/sha256hex"
)

// A build's result is kept by the digest of its input, and finding that digest takes most of a build: unpacking and rewriting the
// engine, bundling the prelude, bundling the source. So the steps on the way are cached too. They depend on the code of this
// program, which is part of each key, and on the source's files, which are read and compared.

// recalled is a text that make produces from this program's code alone.
func (t *Toolchain) recalled(ctx context.Context, what string, make func() (string, error)) (string, error) {
	build := func() ([]byte, error) {
		text, err := make()
		return []byte(text), err
	}
	var text []byte
	var err error
	if program() == "" {
		text, err = build()
	} else {
		text, err = t.cached(ctx, "recalled", sha256hex.Of([]byte(what+"\n"+program())), build)
	}
	return string(text), err
}

// bundleOnce is [bundle], or its last result for the same entry if all files that it looked for are unchanged. Only a bundle without
// problems is kept.
func (t *Toolchain) bundleOnce(ctx context.Context, s Source) (*bundled, error) {
	if s.Found != nil && s.Found.bundle != nil {
		return s.Found.bundle, nil
	}
	s.node = func() (fs.FS, error) {
		modules, err := t.engineModules(ctx)
		return nodeFiles(modules), err
	}
	entry, err := readAtMost(s.FS, s.Entry, MaxSource)
	if t.cache == nil || program() == "" || err != nil || s.Absent {
		return bundle(ctx, s, t.bundler)
	}
	key := sha256hex.Of([]byte(program() + "\n" + sha256hex.Of([]byte(s.Entry)) + sha256hex.Of(entry)))
	if encoded, ok, _ := t.cache.Get("bundle", key); ok {
		if b, ok := recallBundle(encoded, s.FS); ok {
			return b, nil
		}
	}
	w := &witness{files: s.FS, saw: map[string]string{}}
	s.FS = w
	b, err := bundle(ctx, s, t.bundler)
	if err != nil {
		return nil, err
	}
	if encoded, ok := w.encode(b); ok {
		if err := t.cache.Put("bundle", key, encoded); err != nil {
			t.log.Warn("a bundle is not kept", "error", err)
		}
	}
	return b, nil
}

// keptBundle is the form in which a bundle is kept.
type keptBundle struct {
	Saw             map[string]string // of each name that was looked for, see witness
	Code, SourceMap []byte
	Files           map[string][]byte // digests
}

func (w *witness) encode(b *bundled) ([]byte, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.doubt {
		return nil, false
	}
	kept := keptBundle{w.saw, b.code, b.sourceMap, map[string][]byte{}}
	for _, f := range b.files {
		kept.Files[f.path] = f.sha256[:]
	}
	encoded, err := json.Marshal(kept)
	return encoded, err == nil
}

// recallBundle returns the stored bundle if its files are unchanged.
func recallBundle(encoded []byte, files fs.FS) (*bundled, bool) {
	var kept keptBundle
	if json.Unmarshal(encoded, &kept) != nil {
		return nil, false
	}
	var size int64
	for name, saw := range kept.Saw {
		if saw == sawMissing || saw == sawFile || saw == sawFolder {
			if now, sure := stateOf(fs.Stat(files, name)); !sure || now != saw {
				return nil, false
			}
			continue
		}
		content, err := readAtMost(files, name, MaxSource-size)
		if size += int64(len(content)); err != nil || sha256hex.Of(content) != saw {
			return nil, false
		}
	}
	b := &bundled{code: kept.Code, sourceMap: kept.SourceMap}
	for name, sum := range kept.Files {
		f := sourceFile{path: name}
		if copy(f.sha256[:], sum) != len(f.sha256) {
			return nil, false
		}
		b.files = append(b.files, f)
	}
	b.arrange()
	return b, true
}

// What a name was when it was looked up: one of these, or the digest of its content.
const (
	sawMissing = "missing"
	sawFile    = "file"
	sawFolder  = "folder"
)

// stateOf says what a name is. It is unsure about names that the tree refuses, and about anything but files and folders.
func stateOf(info fs.FileInfo, err error) (saw string, sure bool) {
	switch {
	case err == nil && info.Mode().IsRegular():
		return sawFile, true
	case err == nil && info.IsDir():
		return sawFolder, true
	default:
		return sawMissing, err != nil && missing(err)
	}
}

// witness is a source tree that records what was looked for and what was found.
type witness struct {
	files fs.FS

	mu    sync.Mutex
	saw   map[string]string
	doubt bool // something is uncertain, or changed meanwhile
}

func (w *witness) note(name, saw string, sure bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.saw[name]
	switch {
	case !sure:
		w.doubt = true
	case before == "", before == sawFile && saw != sawMissing && saw != sawFolder:
		w.saw[name] = saw
	case before != saw && (saw != sawFile || before == sawMissing || before == sawFolder):
		w.doubt = true
	}
}

// Stat implements [fs.StatFS].
func (w *witness) Stat(name string) (fs.FileInfo, error) {
	info, err := fs.Stat(w.files, name)
	saw, sure := stateOf(info, err)
	w.note(name, saw, sure)
	return info, err
}

// Open implements [fs.FS].
func (w *witness) Open(name string) (fs.File, error) {
	f, err := w.files.Open(name)
	if err != nil {
		w.note(name, sawMissing, missing(err))
		return nil, err
	}
	return &witnessed{File: f, witness: w, name: name, sum: sha256.New()}, nil
}

// witnessed is a file whose content is recorded once all of it was read.
type witnessed struct {
	fs.File
	witness *witness
	name    string
	sum     hash.Hash
	whole   bool
}

func (f *witnessed) Read(b []byte) (int, error) {
	n, err := f.File.Read(b)
	f.sum.Write(b[:n])
	if errors.Is(err, io.EOF) && !f.whole {
		f.whole = true
		f.witness.note(f.name, hex.EncodeToString(f.sum.Sum(nil)), true)
	}
	return n, err
}

func (f *witnessed) Close() error {
	if !f.whole {
		f.witness.note(f.name, "", false)
	}
	return f.File.Close()
}
