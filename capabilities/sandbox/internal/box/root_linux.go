package box

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// programFolders are where the programs of a machine are. On most machines all but the first are links into it.
var programFolders = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// programFiles are what programs need of /etc: names of libraries, certificates of authorities, and which program a name stands for.
var programFiles = []string{
	"/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/protocols",
	"/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
}

// etc are the files of /etc that a box has of its own.
var etc = map[string]string{
	"passwd": "root:x:0:0:root:" + Home + ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group":  "root:x:0:\nnogroup:x:65534:\n",
	"hosts":  "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n", "hostname": "sandbox\n",
	"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n", "shells": "/bin/sh\n",
}

// mount puts the root at a folder, for the calling thread, and returns the folders of this machine to be mounted in it.
func (r Root) mount(at string) (programs []string, err error) {
	if r.Dir != "" {
		if err := unix.Mount(r.Dir, at, "", unix.MS_BIND, ""); err != nil {
			return nil, err
		}
		return nil, unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,nr_inodes=1024,mode=755"); err != nil {
		return nil, err
	}
	for _, p := range Points {
		if err := os.MkdirAll(filepath.Join(at, p), 0o755); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(at, "etc"), 0o755); err != nil {
		return nil, err
	}
	for name, text := range etc {
		if err := os.WriteFile(filepath.Join(at, "etc", name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	for _, p := range append(append(programFolders, programFiles...), r.Paths...) {
		mounted, err := show(at, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		if mounted {
			programs = append(programs, p)
		}
	}
	return programs, nil
}

// complete mounts at the root what the runtime mounts otherwise: folders of this machine, those of the box's file system, and other files.
func complete(root, files string, programs []string, others []mount) error {
	// Nothing that the machine mounts later gets there.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""); err != nil {
		return err
	}
	top, err := os.Open(root)
	if err != nil {
		return err
	}
	defer top.Close()
	for _, p := range programs {
		if err := bind(top, p, p, unix.MS_RDONLY); err != nil {
			return err
		}
	}
	for _, p := range places {
		if err := bind(top, filepath.Join(files, p.source), p.destination, 0); err != nil {
			return err
		}
	}
	for _, m := range others {
		if amongDevices(m) {
			continue
		}
		if err := bind(top, m.Source, m.Destination, unix.MS_RDONLY|unix.MS_NOEXEC); err != nil {
			return err
		}
	}
	return nil
}

// amongDevices reports whether a file is to be seen among the devices, which an engine makes itself.
func amongDevices(m mount) bool { return strings.HasPrefix(m.Destination, "/dev/") }

// bind mounts a file or folder at a path in a root, where a link does not lead out.
func bind(top *os.File, from, to string, flags uintptr) error {
	for _, do := range []func(at string) error{
		func(at string) error { return unix.Mount(from, at, "", unix.MS_BIND, "") },
		func(at string) error {
			return unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV|flags, "")
		},
	} {
		fd, err := within(top, to)
		if err == nil {
			err = errors.Join(do(fmt.Sprintf("/proc/self/fd/%d", fd)), unix.Close(fd))
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", to, err)
		}
	}
	return nil
}

func within(top *os.File, path string) (int, error) {
	return unix.Openat2(int(top.Fd()), strings.TrimPrefix(path, "/"), &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
}

// tops reports whether something at the top of a root is in a box of an engine: all but devices, pipes and sockets.
func tops(e fs.DirEntry) bool { return (e.IsDir() || e.Type().IsRegular()) && !reserved(e) }

// reserved reports whether a box of an engine has a program of its own in the place of something.
func reserved(e fs.DirEntry) bool { return "/"+e.Name() == engineInit || "/"+e.Name() == engineLaunch }

// skeleton makes the container's first root: the names at the top of a root, with nothing in them, and the first process. What engines
// mount has its places.
func skeleton(root, at string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	if len(entries) > maxTop {
		return fmt.Errorf("%d names at the top; at most %d", len(entries), maxTop)
	}
	for _, e := range entries {
		name := filepath.Join(at, e.Name())
		switch {
		case reserved(e):
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(filepath.Join(root, e.Name()))
			if err == nil {
				err = os.Symlink(target, name)
			}
			if err != nil {
				return err
			}
		case !tops(e):
		case e.IsDir():
			err = os.Mkdir(name, 0o755)
		default:
			err = os.WriteFile(name, nil, 0o644)
		}
		if err != nil {
			return err
		}
	}
	for _, folder := range []string{"proc", "dev", "sys", "etc", "run"} {
		if info, err := os.Lstat(filepath.Join(at, folder)); err != nil || !info.IsDir() {
			if err := os.Mkdir(filepath.Join(at, folder), 0o755); err != nil {
				return fmt.Errorf("/%s is not a folder: %w", folder, err)
			}
		}
	}
	for _, file := range usualMounts[1:] {
		if err := os.WriteFile(filepath.Join(at, file), nil, 0o644); err != nil {
			return err
		}
	}
	program, err := os.ReadFile(initFile)
	if err != nil {
		return err
	}
	return errors.Join(writeProgram(at+engineInit, program, 0o555), writeProgram(at+engineLaunch, program, 0o111))
}

// maxTop bounds the names at the top of a root.
const maxTop = 256

// archive is a skeleton as a tar file, and a name for it.
func archive(dir string) (content []byte, digest string, err error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, "", err
	}
	var add func(at string, e fs.DirEntry) error
	add = func(at string, e fs.DirEntry) error {
		info, err := e.Info()
		if err != nil {
			return err
		}
		h := &tar.Header{Name: at, Mode: int64(info.Mode().Perm()), Typeflag: tar.TypeDir}
		full := filepath.Join(dir, at)
		var text []byte
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			h.Typeflag = tar.TypeSymlink
			h.Linkname, err = os.Readlink(full)
		case !info.IsDir():
			h.Typeflag = tar.TypeReg
			text, err = os.ReadFile(full)
			h.Size = int64(len(text))
		}
		if err = errors.Join(err, w.WriteHeader(h)); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil || !info.IsDir() {
			return err
		}
		below, err := os.ReadDir(full)
		for _, e := range below {
			err = errors.Join(err, add(at+"/"+e.Name(), e))
		}
		return err
	}
	for _, e := range entries {
		if err := add(e.Name(), e); err != nil {
			return nil, "", err
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(b.Bytes())
	return b.Bytes(), hex.EncodeToString(sum[:12]), nil
}

// show makes a place for a folder or file of this machine, or a copy of a link.
func show(at, path string) (mounted bool, err error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	inside := filepath.Join(at, path)
	if err := os.MkdirAll(filepath.Dir(inside), 0o755); err != nil {
		return false, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return false, err
		}
		return false, os.Symlink(target, inside)
	case info.IsDir():
		return true, os.MkdirAll(inside, 0o755)
	case info.Mode().IsRegular():
		return true, os.WriteFile(inside, nil, 0o644)
	default:
		return false, nil
	}
}
