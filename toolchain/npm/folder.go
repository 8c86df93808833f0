package npm

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// folder is a temporary folder of npm's. Its lock is held as long as it is in use: one whose lock is free belongs to a process
// that was killed.
type folder struct {
	name string
	lock *flock.Flock
}

const (
	folderPrefix = "stile-npm-"
	folderLock   = ".lock"
	folderAge    = time.Minute // more than there is between the making of a folder and its lock
)

func makeFolder() (*folder, error) {
	name, err := os.MkdirTemp("", folderPrefix)
	if err != nil {
		return nil, err
	}
	f := &folder{name, flock.New(filepath.Join(name, folderLock), flock.SetPermissions(0o600))}
	if err := f.lock.Lock(); err != nil {
		return nil, errors.Join(err, f.remove())
	}
	return f, nil
}

func (f *folder) remove() error { return errors.Join(os.RemoveAll(f.name), f.lock.Close()) }

// sweepFolders removes this user's unused folders, because they may contain a login.
func sweepFolders() error {
	entries, err := os.ReadDir(os.TempDir())
	if err != nil {
		return err
	}
	var failed error
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < folderAge {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || int(stat.Uid) != os.Geteuid() {
			continue
		}
		name := filepath.Join(os.TempDir(), e.Name())
		f := &folder{name, flock.New(filepath.Join(name, folderLock), flock.SetPermissions(0o600))}
		held, err := f.lock.TryLock()
		if held {
			err = errors.Join(err, f.remove())
		} else {
			err = errors.Join(err, f.lock.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another process was faster
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
