package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stilehost/stile/extension"
	"github.com/stilehost/stile/extension/lifecycle"
	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/errkind"
	"github.com/stilehost/stile/toolchain"
)

// Limits of a folder. The lifecycle has its own limits for an extension.
const (
	maxDraftEntries = 2000 // files and folders to look at
)

// readDraft reads an extension from one source file, from a component, or from a folder: all its files except hidden ones and those in
// node_modules. It reads nothing outside the folder, wherever links lead, and refuses the folders in keep. If no manifest is named, it is
// manifest.json in the folder or beside the file, or NAME.json beside NAME.ts or NAME.wasm, which for a folder is the file that entryOf returns. used is the manifest that was read.
func readDraft(name, manifest string, keep ...string) (d lifecycle.Draft, used string, err error) {
	if manifest != "" {
		manifest = manifestFile(manifest)
	}
	info, err := os.Stat(name)
	if err != nil {
		return d, "", &usageError{err}
	}
	dir, file := filepath.Dir(name), ""
	var looked []string
	switch {
	case info.IsDir():
		dir = name
		looked = manifestsIn(dir)
		d.Files, err = readFolder(dir, manifest, firstOf(dir, looked), keep)
		if component := onlyComponent(d.Files); err == nil && component != "" {
			err = usagef("%s has no source but a component; name it: stile ext add %s", dir, line(filepath.Join(dir, component), 200))
		}
	case isComponent(name):
		file = filepath.Base(name)
		d.Component, err = readFile(name, maxComponent)
		d.Origin = "the file " + line(file, 200)
		looked = manifestsOf(file)
	default:
		var data []byte
		data, file, err = readSource(name, keep)
		d.Entry, d.Files = file, map[string][]byte{file: data}
		looked = manifestsOf(file)
	}
	switch {
	case err != nil:
		return d, "", err
	case manifest != "":
		d.Manifest, err = readFile(manifest, maxText)
		return d, manifest, err
	}
	if used = firstOf(dir, looked); used != "" {
		d.Manifest, _, err = readSource(filepath.Join(dir, used), keep) // no link leads out of the folder here
		return d, used, err
	}
	return d, "", usagef("%s has no %s; name a manifest with --manifest. For an extension with one tool, write: %s", dir, strings.Join(looked, " and no "), sampleManifest(name))
}

// manifestsOf are the names of the manifest beside a source file. The first that exists counts.
func manifestsOf(file string) []string {
	looked := []string{extension.ManifestFile}
	if own := strings.TrimSuffix(file, path.Ext(file)) + ".json"; own != extension.ManifestFile {
		looked = append(looked, own)
	}
	return looked
}

// manifestsIn are the names of the manifest in a folder.
func manifestsIn(dir string) []string {
	entry := entryOf(dir)
	if abs, err := filepath.Abs(entry); err == nil { // of "." too
		entry = abs
	}
	return manifestsOf(filepath.Base(entry))
}

// firstOf returns the first of some names that exists in a folder, or nothing.
func firstOf(dir string, names []string) string {
	for _, name := range names {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
	return ""
}

// manifestFile returns the manifest that a command line names: a file, or a folder with it.
func manifestFile(name string) string {
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return filepath.Join(name, cmp.Or(firstOf(name, manifestsIn(name)), extension.ManifestFile))
	}
	return name
}

// manifestThatBinds returns the manifest beside a source file if it binds a name.
func manifestThatBinds(file, name string) string {
	for _, beside := range manifestsOf(filepath.Base(file)) {
		beside = filepath.Join(filepath.Dir(file), beside)
		m, err := readManifest(beside)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && slices.ContainsFunc(m.Bindings, func(b extension.Binding) bool { return b.Name == name }) {
			return beside
		}
		break
	}
	return ""
}

// nameManifest adds the file's name to the problems of a manifest.
func nameManifest(err error, file string) error {
	if found, ok := errors.AsType[*extension.ProblemsError](err); ok {
		for i := range found.Problems {
			if p := &found.Problems[i]; p.File == extension.ManifestFile {
				p.File = file
			}
		}
	}
	return err
}

// sampleManifest is a manifest to start from.
func sampleManifest(source string) string {
	word := "hello"
	if abs, err := filepath.Abs(source); err == nil {
		base := filepath.Base(abs)
		base = strings.ToLower(strings.TrimSuffix(base, filepath.Ext(base)))
		if name := strings.Trim(notInNames.ReplaceAllString(base, "-"), "-0123456789"); name != "" {
			word = name
		}
	}
	return fmt.Sprintf(`{"name": "%s", "version": "1.0.0", "description": "What it does", "tools": ["%s"]}`, word, strings.ReplaceAll(word, "-", "_"))
}

// isComponent reports whether a file is to be added as a component: WebAssembly by its content or its name.
func isComponent(name string) bool { return filepath.Ext(name) == ".wasm" || isWasm(name) }

// onlyComponent returns a component of a folder that has no source files, or nothing.
func onlyComponent(files map[string][]byte) (component string) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case slices.Contains(lifecycle.EntryEndings(), path.Ext(name)):
			return ""
		case path.Ext(name) == ".wasm" && component == "":
			component = name
		}
	}
	return component
}

// nameComponent adds the file's name to the problem of a component.
func nameComponent(err error, file string) error {
	found, ok := errors.AsType[*extension.ProblemsError](err)
	if ok && errkind.Is[*lifecycle.ComponentError](err) {
		for i := range found.Problems {
			found.Problems[i].File = file
		}
	}
	return err
}

// readSource reads one file.
func readSource(name string, keep []string) (data []byte, entry string, err error) {
	source, tree, err := toolchain.Open(name, keep...)
	if err != nil {
		return nil, "", &usageError{err}
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if data, err = readPart(source.FS, source.Entry, extension.MaxSource); err != nil {
		return nil, "", &usageError{err}
	}
	return data, source.Entry, nil
}

// readFolder reads the files of a folder, without the manifest: the file that is named, or else the folder's own.
func readFolder(dir, manifest, own string, keep []string) (files map[string][]byte, err error) {
	skip, err := os.Stat(manifest)
	if manifest == "" {
		skip, err = nil, nil
	}
	if err != nil {
		return nil, &usageError{err}
	}
	tree, closer, err := toolchain.OpenFolder(dir, keep...)
	if err != nil {
		return nil, &usageError{err}
	}
	defer func() { err = errors.Join(err, closer.Close()) }()
	files = map[string][]byte{}
	room := int64(extension.MaxSource)
	err = fs.WalkDir(&fewEntries{FS: tree, dir: dir, left: maxDraftEntries}, ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(base, "."), entry.IsDir() && base == "node_modules":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return nil
		case skip == nil && name == own:
			return nil
		}
		info, err := fs.Stat(tree, name)
		switch {
		case err != nil && entry.Type()&fs.ModeSymlink != 0:
			return fmt.Errorf("%s: a link must not lead out of the folder, to a hidden name or to nothing; replace it with a copy of the file", filepath.Join(dir, name))
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file", filepath.Join(dir, name))
		case skip != nil && os.SameFile(info, skip):
			return nil
		}
		if large := extension.TooLarge(len(files)+1, 0); large != nil {
			return fmt.Errorf("%s: %s", dir, large.Text)
		}
		files[name], err = readPart(tree, name, room)
		room -= int64(len(files[name]))
		return err
	})
	if err != nil {
		return nil, &usageError{err}
	}
	return files, nil
}

// fewEntries is a tree whose folders are read only until they hold more files and folders than a draft may have. To read all of a folder
// takes some 350 bytes for each.
type fewEntries struct {
	fs.FS
	dir  string
	left int
}

// ReadDir implements fs.ReadDirFS.
func (t *fewEntries) ReadDir(name string) (entries []fs.DirEntry, err error) {
	f, err := t.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	folder, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
	}
	for len(entries) <= t.left {
		some, err := folder.ReadDir(t.left + 1 - len(entries))
		entries = append(entries, some...)
		if errors.Is(err, io.EOF) {
			t.left -= len(entries)
			slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s holds more than %d files and folders: put the extension into a folder of its own", t.dir, maxDraftEntries)
}

// readPart reads a file of an extension, of at most limit bytes.
func readPart(tree fs.FS, name string, limit int64) ([]byte, error) {
	data, err := bounded.ReadFile(tree, name, limit)
	if errors.Is(err, bounded.ErrTooLarge) {
		err = fmt.Errorf("%s: %s", name, extension.TooLarge(0, extension.MaxSource+1).Text)
	}
	return data, err
}
