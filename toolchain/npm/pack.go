package npm

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stilehost/stile/internal/bounded"
	"github.com/stilehost/stile/internal/printable"
)

// listName is the name of the list of packages in the archive of a lock's packages.
const listName = "node_modules/.packages.json"

// maxManifest is the largest package.json of a package.
const maxManifest = 1 << 20

// packing names the rules for making archives. Archives made by other rules are packed again.
const packing = "packing 3"

// pack makes the archive from what npm unpacked: files that code can need, types on request, and the list of packages.
func (c *Client) pack(w *workplace, packages []located, types bool) ([]byte, error) {
	files, err := fs.Sub(w.root.FS(), projectDir)
	if err != nil {
		return nil, err
	}
	owner := make(map[string]*located, len(packages))
	for i := range packages {
		owner[packages[i].at] = &packages[i]
	}
	count, left := 0, c.o.MaxBytes
	typeFiles, typeBytes := 0, int64(maxTypeBytes)
	return writeZip(func(z *zip.Writer) error {
		err := fs.WalkDir(files, modules, func(name string, entry fs.DirEntry, err error) error {
			if err != nil {
				return unreadable(err)
			}
			if entry.IsDir() || name == "node_modules/.package-lock.json" {
				return nil
			}
			p := ownerOf(name, owner)
			if p == nil || !entry.Type().IsRegular() || !plainName(name) {
				return badFile(name)
			}
			if within, _ := strings.CutPrefix(name, p.at); strings.Contains(within, "/"+modules+"/") {
				p.smuggles()
				return nil
			}
			if !needed(name) {
				if !types || !declares(name) || typeFiles == maxTypeFiles {
					return nil
				}
				data, err := bounded.ReadFile(files, name, min(maxTypeFile, typeBytes))
				if errors.Is(err, bounded.ErrTooLarge) {
					return nil
				} else if err != nil {
					return unreadable(err)
				}
				typeFiles++
				typeBytes -= int64(len(data))
				return addFile(z, name, data)
			}
			data, err := bounded.ReadFile(files, name, left)
			large := errors.Is(err, bounded.ErrTooLarge)
			if err != nil && !large {
				return unreadable(err)
			}
			if count++; count > c.o.MaxFiles {
				return tooLarge(fmt.Sprintf("the packages have more than %d files", c.o.MaxFiles), fmt.Sprint(c.o.MaxFiles))
			}
			if left -= int64(len(data)); large {
				return tooLarge(fmt.Sprintf("the packages have more than %d KiB", c.o.MaxBytes>>10), fmt.Sprintf("%d KiB", c.o.MaxBytes>>10))
			}
			p.Size += int64(len(data))
			if name == p.at+"/package.json" {
				if len(data) > maxManifest { // decoded, it takes many times its bytes
					return tooLarge(fmt.Sprintf("the package.json of %s@%s has more than %d KiB", p.Name, p.Version, maxManifest>>10), fmt.Sprintf("%d KiB", maxManifest>>10))
				}
				p.readManifest(data)
			}
			return addFile(z, name, data)
		})
		if err != nil {
			return err
		}
		for _, p := range packages {
			if p.Size == 0 {
				return clientError("npm did not install "+p.Name, "Try again.", nil)
			}
		}
		return addFile(z, listName, encode(list(packages)))
	})
}

// list names each package once, even if it is in several places.
func list(packages []located) []Package {
	all := make([]Package, 0, len(packages))
	for _, p := range slices.SortedStableFunc(slices.Values(packages), func(a, b located) int { return byName(a.Package, b.Package) }) {
		if n := len(all); n > 0 && byName(all[n-1], p.Package) == 0 {
			all[n-1].Size += p.Size
			all[n-1].Direct = all[n-1].Direct || p.Direct
			continue
		}
		all = append(all, p.Package)
	}
	return all
}

// ownerOf is the package that a file belongs to.
func ownerOf(name string, owner map[string]*located) *located {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if p, ok := owner[dir]; ok {
			return p
		}
	}
	return nil
}

// smuggles reports that a package contains other packages without declaring them. They are left out, so that only listed packages
// run.
func (p *located) smuggles() {
	const warning = "It brings a folder node_modules in its archive, which is left out."
	if !slices.Contains(p.Warnings, warning) {
		p.Warnings = append(p.Warnings, warning)
	}
}

// plainName admits names that mean the same to everything that reads the archive.
func plainName(name string) bool {
	return fs.ValidPath(name) && utf8.ValidString(name) && !strings.ContainsAny(name, `\:`) && !strings.ContainsFunc(name, unicode.IsControl)
}

func badFile(name string) error {
	return authors(fmt.Sprintf("a package has %s, which is not a plain file of it", quote(name)), anotherPackage)
}

// needed leaves out types, maps and documents; licences stay.
func needed(name string) bool {
	base := strings.ToLower(path.Base(name))
	for _, suffix := range []string{".map", ".d.ts", ".d.mts", ".d.cts", ".flow", ".md", ".markdown", ".tsbuildinfo"} {
		if strings.HasSuffix(base, suffix) {
			return strings.HasPrefix(base, "licen")
		}
	}
	return true
}

// declares reports whether a file holds type declarations.
func declares(name string) bool {
	return strings.HasSuffix(name, ".d.ts") || strings.HasSuffix(name, ".d.mts") || strings.HasSuffix(name, ".d.cts")
}

// What is kept of type declarations at most. They are no part of what may run, so what is beyond it is left out, and they do not count
// towards the limits of code.
const (
	maxTypeFile  = 4 << 20
	maxTypeBytes = 64 << 20
	maxTypeFiles = 20_000
)

// readManifest takes the licence from a package's package.json, and says where it calls itself something else.
func (p *located) readManifest(text []byte) {
	var m struct {
		Name, Version string
		License       any
		Licenses      any
	}
	_ = json.Unmarshal(bytes.TrimPrefix(text, []byte("\uFEFF")), &m) // invalid JSON has no licence
	if m.Name != p.Name || m.Version != p.Version {
		p.Warnings = append(p.Warnings, fmt.Sprintf("Its package.json calls it %s.", quote(m.Name+"@"+m.Version)))
	}
	p.License = licenceText(m.License)
	if p.License == "" {
		p.License = licenceText(m.Licenses)
	}
	if p.License == "" {
		p.Warnings = append(p.Warnings, "It names no licence.")
	}
}

func licenceText(v any) string { return printable.Short(strings.Join(licences(nil, v), " OR "), 200) }

// licences reads the three possible forms: a text, {"type": text} and a list of those. It adds their first texts to all.
func licences(all []string, v any) []string {
	const most, longest = 50, 1000 // bytes
	switch v := v.(type) {
	case string:
		if text := strings.Join(strings.Fields(printable.Cut(v, longest)), " "); text != "" && len(all) < most {
			all = append(all, text)
		}
	case map[string]any:
		return licences(all, v["type"])
	case []any:
		for _, one := range v {
			if len(all) == most {
				break
			}
			all = licences(all, one)
		}
	}
	return all
}

func writeZip(add func(w *zip.Writer) error) ([]byte, error) {
	var archive bytes.Buffer
	w := zip.NewWriter(&archive)
	if err := add(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}

func addFile(w *zip.Writer, name string, content []byte) error {
	f, err := w.Create(name)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return err
}
