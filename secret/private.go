package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// openPrivate makes a folder if it is missing, and refuses one that others can write to.
func openPrivate(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	return private(dir, info, 0o022)
}

// private refuses a file that belongs to somebody else or grants others any of the forbidden permissions.
func private(path string, info fs.FileInfo, forbidden fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is unknown", path)
	}
	if me := os.Geteuid(); int(stat.Uid) != me {
		return &AccessError{path, fmt.Sprintf("belongs to user %d and not to user %d, who runs this", stat.Uid, me), "choose another folder"}
	}
	if info.Mode().Perm()&forbidden != 0 {
		return &AccessError{path, fmt.Sprintf("has mode %04o, which lets other users in", info.Mode().Perm()), "chmod go-rwx " + path}
	}
	return nil
}

// readPrivate reads a file that only this user can access. It reads at most one byte more than the limit. It follows no link, and
// does not block on a pipe.
func readPrivate(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	irregular := &AccessError{path, "is not a regular file", "move it away, and restore the right file or folder"}
	if errors.Is(err, syscall.ELOOP) {
		return nil, irregular
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregular
	}
	if err := private(path, info, 0o077); err != nil {
		return nil, err
	}
	text := make([]byte, min(max(info.Size(), 0), most)+1) // io.ReadAll would need several times as much memory
	n, err := io.ReadFull(f, text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return text[:n], err
}
