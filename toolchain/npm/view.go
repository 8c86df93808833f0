package npm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

const (
	maxToken      = 1 << 20 // bytes of a text that npm writes
	maxNested     = 100
	maxKept       = 4 << 10 // bytes of a text that is kept
	maxSignatures = 16      // of a version
)

// metadata is what the registry says about a version.
type metadata struct {
	Published, Tarball, Integrity string
	Signatures                    []signature
	Unpacked                      int64 // bytes of its files, as the registry says
}

type signature struct{ KeyID, Sig string }

// answers are what `npm view` writes, by name and version.
type answers map[string]map[string]*metadata

// readAnswers reads what `npm view` writes about names in versions. It drops everything else, because the registry chose the rest, which
// may have tens of megabytes. A name is followed by spec in npm 11, and by nothing in npm 10.
func readAnswers(r io.Reader, names, versions []string, spec string) (answers, error) {
	in := &viewReader{in: r, versions: setOf(versions)}
	in.d = json.NewDecoder(in)
	all, known := answers{}, setOf(names)
	err := in.object(func(key string) error {
		name := strings.TrimSuffix(key, spec)
		if !known[name] {
			return in.skip()
		}
		if all[name] == nil {
			all[name] = map[string]*metadata{}
		}
		return in.oneOrMany(func() error {
			version, m, err := in.metadata()
			if err == nil && in.versions[version] {
				all[name][version] = m
			}
			return err
		})
	})
	return all, err
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// viewReader reads JSON without holding more than a text of it.
type viewReader struct {
	versions map[string]bool // that matter

	in   io.Reader
	read int64
	d    *json.Decoder
	next json.Token // already read, but belongs to the next value
}

// Read implements io.Reader.
func (v *viewReader) Read(p []byte) (int, error) {
	if v.read-v.d.InputOffset() > maxToken {
		return 0, fmt.Errorf("a text has more than %d bytes", maxToken)
	}
	n, err := v.in.Read(p)
	v.read += int64(n)
	return n, err
}

func (v *viewReader) token() (json.Token, error) {
	if t := v.next; t != nil {
		v.next = nil
		return t, nil
	}
	return v.d.Token()
}

// skip reads a value.
func (v *viewReader) skip() error {
	for depth := 0; ; {
		t, err := v.token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if depth++; depth > maxNested {
				return errors.New("it is nested too deep")
			}
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// text reads a text. Another value is none.
func (v *viewReader) text() (string, error) {
	t, err := v.token()
	if err != nil {
		return "", err
	}
	text, ok := t.(string)
	if !ok {
		v.next = t
		return "", v.skip()
	}
	if len(text) > maxKept {
		return "", nil
	}
	return strings.Clone(text), nil
}

// size reads a number of bytes. Another value is none.
func (v *viewReader) size() (int64, error) {
	t, err := v.token()
	if err != nil {
		return 0, err
	}
	if n, ok := t.(float64); ok {
		return int64(max(0, min(n, 1<<53))), nil
	}
	v.next = t
	return 0, v.skip()
}

// object reads an object; field reads the value of a field. Another value has no fields.
func (v *viewReader) object(field func(name string) error) error {
	t, err := v.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		v.next = t
		return v.skip()
	}
	for v.d.More() {
		t, err := v.d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string) // as all names are
		if err := field(name); err != nil {
			return err
		}
	}
	_, err = v.d.Token()
	return err
}

// oneOrMany reads a list; item reads each element. `npm view` writes it without brackets if it has one element.
func (v *viewReader) oneOrMany(item func() error) error {
	t, err := v.token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		v.next = t
		return item()
	}
	for v.d.More() {
		if err := item(); err != nil {
			return err
		}
	}
	_, err = v.d.Token()
	return err
}

// metadata reads the metadata of a version.
func (v *viewReader) metadata() (version string, m *metadata, err error) {
	m = &metadata{}
	times := map[string]string{}
	err = v.object(func(name string) (err error) {
		switch name {
		case "version":
			version, err = v.text()
		case "time": // of all versions, by version
			err = v.object(func(of string) (err error) {
				if !v.versions[of] {
					return v.skip()
				}
				times[of], err = v.text()
				return err
			})
		case "dist":
			err = v.object(func(name string) (err error) {
				switch name {
				case "tarball":
					m.Tarball, err = v.text()
				case "integrity":
					m.Integrity, err = v.text()
				case "unpackedSize":
					m.Unpacked, err = v.size()
				case "signatures":
					err = v.oneOrMany(func() error {
						s, err := v.signature()
						if len(m.Signatures) < maxSignatures {
							m.Signatures = append(m.Signatures, s)
						}
						return err
					})
				default:
					err = v.skip()
				}
				return err
			})
		default:
			err = v.skip()
		}
		return err
	})
	m.Published = times[version]
	return version, m, err
}

func (v *viewReader) signature() (s signature, err error) {
	err = v.object(func(name string) (err error) {
		switch name {
		case "keyid":
			s.KeyID, err = v.text()
		case "sig":
			s.Sig, err = v.text()
		default:
			err = v.skip()
		}
		return err
	})
	return s, err
}
