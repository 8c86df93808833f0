package secret

import (
	"errors"
	"io"

	"github.com/stilehost/stile/internal/private"
)

// openPrivate makes a folder if it is missing, and refuses one that others can write to.
func openPrivate(dir string) error {
	root, err := private.OpenFolder(dir)
	if err != nil {
		return access(err)
	}
	return root.Close()
}

// access makes an *[AccessError] of the refusal of a file or folder.
func access(err error) error {
	if open, ok := errors.AsType[*private.Error](err); ok {
		return (*AccessError)(open)
	}
	return err
}

// readPrivate reads a file that only this user can access. It reads at most one byte more than the limit.
func readPrivate(path string, most int64) ([]byte, error) {
	f, err := private.OpenFile(path)
	if err != nil {
		return nil, access(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	text := make([]byte, min(max(info.Size(), 0), most)+1) // io.ReadAll would need several times as much memory
	n, err := io.ReadFull(f, text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return text[:n], err
}
