package workspace

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/stilehost/stile/abi"
)

const (
	// maxPath is the longest path from the root of the workspace, in bytes.
	maxPath = 4096
	// maxName is the longest name between two slashes, in bytes.
	maxName = 255
)

// resolve turns a guest's path into a path below d: "" for d itself, else "/a/b". It resolves ".", ".." and repeated slashes in the
// text alone, before any link is followed.
func (d *Directory) resolve(operation, path string) (string, error) {
	if len(path) > maxPath {
		return "", abi.Errorf(abi.CodeInvalid, "path: %d bytes; at most %d", len(path), maxPath)
	}
	if !utf8.ValidString(path) {
		return "", abi.Errorf(abi.CodeInvalid, "path %q: not UTF-8", path)
	}
	if i := strings.IndexFunc(path, func(r rune) bool { return r == '\\' || unicode.IsControl(r) }); i >= 0 {
		r, _ := utf8.DecodeRuneInString(path[i:])
		return "", abi.Errorf(abi.CodeInvalid, "path %q: the character %q", path, r)
	}
	var names []string
	normal := d.normal(path)
	for name := range strings.SplitSeq(normal, "/") {
		switch name {
		case "", ".":
			continue
		case "..":
			if len(names) == 0 {
				return "", abi.Deny(abi.Denial{
					Operation: operation + " " + path,
					Reason:    "the path leaves the directory that was granted",
				})
			}
			names = names[:len(names)-1]
			continue
		}
		if err := d.checkName(name); err != nil {
			return "", abi.Errorf(abi.CodeInvalid, "path %q: %v", path, err)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "", nil
	}
	normal = "/" + strings.Join(names, "/")
	if size := len(d.base) + len(normal); size > maxPath {
		return "", abi.Errorf(abi.CodeInvalid, "path: %d bytes from the root of the workspace; at most %d", size, maxPath)
	}
	return normal, nil
}

// resolveFile is resolve for a path that must name a file.
func (d *Directory) resolveFile(operation, path string) (string, error) {
	normal, err := d.resolve(operation, path)
	if err != nil {
		return "", err
	}
	switch path[strings.LastIndexByte(path, '/')+1:] {
	case "", ".", "..":
		return "", abi.Errorf(abi.CodeInvalid, "path %q names a directory, not a file", path)
	}
	return normal, nil
}

// resolveEntry is resolve for a path that must name an entry below d, not d itself.
func (d *Directory) resolveEntry(operation, path string) (string, error) {
	normal, err := d.resolve(operation, path)
	if err == nil && normal == "" {
		err = abi.Errorf(abi.CodeInvalid, "%s %q: this is the directory itself; name something in it", operation, path)
	}
	return normal, err
}

// normal is the form of text in paths.
func (d *Directory) normal(text string) string {
	if d.exact {
		return text
	}
	return norm.NFC.String(text)
}

// checkName refuses names that a guest may not use.
func (d *Directory) checkName(name string) error {
	if d.exact && strings.HasPrefix(name, temporary) {
		return fmt.Errorf("names that begin with %q are reserved for the host", temporary)
	}
	return checkName(name)
}

// checkName refuses names that some disk would confuse or could not store.
func checkName(name string) error {
	first, _ := utf8.DecodeRuneInString(name)
	last, _ := utf8.DecodeLastRuneInString(name)
	switch {
	case len(name) > maxName:
		return fmt.Errorf("a name of %d bytes; at most %d", len(name), maxName)
	case unicode.IsSpace(first) || unicode.IsSpace(last):
		return fmt.Errorf("the name %q begins or ends with a space", name)
	case last == '.':
		return fmt.Errorf("the name %q ends with a dot", name)
	default:
		return nil
	}
}

// split separates a path other than "" into its directory and its last name.
func split(path string) (parent, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:i], path[i+1:]
}

// inside reports whether path is below directory.
func inside(path, directory string) bool { return strings.HasPrefix(path, directory+"/") }
