package pull

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// layersDir is where layers are kept, in the folder of images, from a pull that did not end until one that does. Each is a file, as far as the
// registry has sent it, and named by the digest that all of it must have. Nothing of that is believed: whoever unpacks it checks the digest.
const layersDir = ".layers"

// keptFor is how long a layer is kept that no pull wants.
const keptFor = 24 * time.Hour

// kept are the layers of one pull. It is used by one goroutine.
type kept struct {
	dir   string
	off   bool // nothing more is kept
	open  map[string]*keptLayer
	bytes int64 // that came from earlier pulls
}

// keptLayer is a layer that is kept, and locked: another pull of it keeps nothing.
type keptLayer struct {
	file *os.File
	lock *flock.Flock
}

// newKept removes what nobody has wanted for a while.
func newKept(images string) *kept {
	k := &kept{dir: filepath.Join(images, layersDir), open: map[string]*keptLayer{}}
	entries, _ := os.ReadDir(k.dir) // there may be none
	for _, e := range entries {
		at := filepath.Join(k.dir, e.Name())
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < keptFor {
			continue
		}
		_ = k.remove(at) // the next pull tries again
	}
	return k
}

// remove removes a layer that no pull has open.
func (k *kept) remove(at string) error {
	if _, err := os.Lstat(at); err != nil {
		return err
	}
	lock := flock.New(at)
	if !locked(lock) {
		return lock.Close()
	}
	return errors.Join(os.Remove(at), lock.Close())
}

func locked(l *flock.Flock) bool {
	ok, err := l.TryLock()
	return ok && err == nil
}

// layer opens what is kept of a layer. It is nil if nothing can be kept of it, as when another pull does.
func (k *kept) layer(d v1.Descriptor) (file *os.File, has int64) {
	name := d.Digest.Encoded()
	at := filepath.Join(k.dir, name)
	if k.off {
		_ = k.remove(at) // it may be damaged
		return nil, 0
	}
	if os.MkdirAll(k.dir, 0o700) != nil {
		return nil, 0
	}
	one := k.open[name]
	if one == nil {
		lock := flock.New(at, flock.SetPermissions(0o600))
		if !locked(lock) {
			_ = lock.Close()
			return nil, 0
		}
		file, err := os.OpenFile(at, os.O_RDWR, 0)
		if err != nil {
			_ = lock.Close()
			return nil, 0
		}
		one = &keptLayer{file, lock}
		k.open[name] = one
	}
	has, err := one.file.Seek(0, io.SeekEnd)
	if err != nil || has > d.Size {
		has = 0
		err = one.file.Truncate(0)
	}
	if err != nil {
		return nil, 0
	}
	k.bytes += has
	return one.file, has
}

// close lets go of all layers. Unless they stay for another pull, it removes them.
func (k *kept) close(stay bool) error {
	var errs []error
	for name, one := range k.open {
		if info, err := one.file.Stat(); !stay || err == nil && info.Size() == 0 {
			errs = append(errs, os.Remove(filepath.Join(k.dir, name)))
		}
		errs = append(errs, one.file.Close(), one.lock.Close())
	}
	clear(k.open)
	_ = os.Remove(k.dir) // if it is empty
	return errors.Join(errs...)
}
