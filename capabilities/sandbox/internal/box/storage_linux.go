package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Storage of a box.
const (
	inMemory = "memory"
	onDisk   = "disk"
)

// mountFiles mounts an empty file system of a limited size at a folder, for the calling thread. It goes away with the last mount of it.
func mountFiles(ctx context.Context, storage, dir, at string, l Limits) (used string, err error) {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOATIME
	if storage != inMemory {
		err := mountImage(ctx, filepath.Join(dir, "files.ext4"), at, l, flags)
		if err == nil || storage == onDisk {
			return onDisk, err
		}
	}
	return inMemory, unix.Mount("tmpfs", at, "tmpfs", flags, fmt.Sprintf("size=%d,nr_inodes=%d,mode=755", l.Disk, l.Files))
}

// mountImage mounts a new ext4 file system in a file. The file has no name once it is mounted, and the loop device goes with the mount.
func mountImage(ctx context.Context, image, at string, l Limits, flags uintptr) error {
	file, err := os.OpenFile(image, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	defer func() { _ = os.Remove(image) }()
	if err := file.Truncate(l.Disk); err != nil {
		return err
	}
	// Without a journal: after a crash nobody wants the files.
	mkfs := exec.CommandContext(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal,^resize_inode", "-E", "lazy_itable_init=1",
		"-N", strconv.FormatInt(l.Files, 10), image)
	mkfs.Env = []string{searchPath}
	if out, err := mkfs.CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %.200s", err, out)
	}
	device, err := attach(file)
	if err != nil {
		return err
	}
	defer device.Close()
	return unix.Mount(device.Name(), at, "ext4", flags, "noinit_itable,errors=remount-ro")
}

// attach connects a file to a free loop device, until nothing has the device open.
func attach(file *os.File) (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range 64 { // others may be faster
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a loop device: %w", err)
		}
		name := fmt.Sprintf("/dev/loop%d", n)
		if err := unix.Mknod(name, unix.S_IFBLK|0o600, int(unix.Mkdev(7, uint32(n)))); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
		device, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		config := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		switch err := unix.IoctlLoopConfigure(int(device.Fd()), &config); {
		case err == nil:
			return device, nil
		case !errors.Is(err, unix.EBUSY):
			return nil, errors.Join(fmt.Errorf("use a loop device: %w", err), device.Close())
		}
		device.Close()
	}
	return nil, errors.New("no loop device is free")
}
