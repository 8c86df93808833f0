package box

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Points are the folders that a root file system must have for a box to use it.
var Points = []string{"proc", "sys", "dev", "tmp", "run", "work", "home", "var/tmp"}

// CheckPath refuses a folder of this machine that a box must not show.
func CheckPath(path string, private []string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" {
		return errors.New("it is not the absolute, clean path of a folder")
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return errors.New(reason(err))
	}
	if real != path {
		return fmt.Errorf("it leads over a link, to %s: name that", real)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return errors.New("it is no folder")
	}
	within := func(path, folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") }
	for _, secret := range append([]string{"/proc", "/sys", "/dev", "/run", "/tmp", "/var/run", "/boot", "/etc"}, private...) {
		if within(path, secret) || within(secret, path) {
			return fmt.Errorf("it is, contains or is in %s", secret)
		}
	}
	for _, p := range Points {
		if within(path, "/"+p) || within("/"+p, path) {
			return fmt.Errorf("a sandbox has a %s of its own", "/"+p)
		}
	}
	return nil
}

// reason is an error without the name of a file.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
