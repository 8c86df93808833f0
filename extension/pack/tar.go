package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// writeTar returns an archive of files in byte order of their names, with only their names and contents.
func writeTar(files map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := addFile(w, name, files[name]); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func addFile(w *tar.Writer, name string, content []byte) error {
	err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644})
	if err == nil {
		_, err = w.Write(content)
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", quote(name), err)
	}
	return nil
}

// readTar reads the files of an archive, and skips folders. It refuses other entries, and anything but zeros after the end. Errors
// call the archive whole.
func readTar(r io.Reader, whole string, maxEntries int, maxBytes int64) (map[string][]byte, error) {
	files := map[string][]byte{}
	r = io.LimitReader(r, maxBytes+int64(maxEntries+1)*tarOverhead+maxPadding+1)
	t := tar.NewReader(r)
	left := maxBytes
	for entries := 0; ; entries++ {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, &PartError{whole, fmt.Errorf("%w: %w", ErrFormat, err)}
		}
		part := whole + " entry " + quote(h.Name)
		wrong := checkPath(h.Name)
		_, twice := files[h.Name]
		switch {
		case entries == maxEntries:
			return nil, &PartError{whole, fmt.Errorf("%w: more than %d entries", ErrTooLarge, maxEntries)}
		case h.Typeflag == tar.TypeDir:
			continue
		case h.Typeflag != tar.TypeReg:
			return nil, &PartError{part, fmt.Errorf("%w: it is neither a file nor a folder", ErrFormat)}
		case wrong != nil:
			return nil, &PartError{part, wrong}
		case twice:
			return nil, &PartError{part, ErrDuplicate}
		case h.Size > left:
			return nil, &PartError{part, fmt.Errorf("%w: %d bytes, where %d are left of %d", ErrTooLarge, h.Size, left, maxBytes)}
		}
		left -= h.Size
		content := make([]byte, h.Size) // io.ReadAll would need several times as much
		files[h.Name] = content
		if _, err = io.ReadFull(t, content); err != nil {
			return nil, &PartError{part, fmt.Errorf("%w: %w", ErrFormat, err)}
		}
	}
	rest, err := io.ReadAll(io.LimitReader(r, maxPadding+1))
	switch {
	case err != nil:
		return nil, &PartError{whole, fmt.Errorf("%w: %w", ErrFormat, err)}
	case len(rest) > maxPadding || len(bytes.Trim(rest, "\x00")) > 0:
		return nil, &PartError{whole, fmt.Errorf("%w: data follows its end", ErrFormat)}
	default:
		return files, nil
	}
}

// maxPadding is the most zeros after the end of an archive. Programs write 10 KiB at a time.
const maxPadding = 64 * kib

// readSource reads the archive of the source. It must be exactly the archive that writeTar writes.
func readSource(b []byte, limits Limits) (map[string][]byte, error) {
	files, err := readTar(bytes.NewReader(b), "source", limits.Files, limits.Source)
	if err != nil {
		return nil, err
	}
	if same, err := writeTar(files); err != nil || !bytes.Equal(same, b) {
		return nil, &PartError{"source", errors.Join(fmt.Errorf("%w: it holds more than names and contents", ErrFormat), err)}
	}
	return files, nil
}
