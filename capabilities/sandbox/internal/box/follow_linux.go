package box

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// follower knows what changes in the file system of a box, because the kernel says it: fanotify. The kernel keeps at most
// fs.fanotify.max_queued_events of what it says, 16,384 by default, and then says that there was more.
//
// A write through a mapping of a file is not said when it happens. The kernel says when the last user of a file that was open for writing lets
// go of it, and a mapping is a user. So nothing is known while processes run, or if some ran at the last question: they can have such files.
// Names are the other gap. A file that has several can be changed by a name that is gone when the question comes, so what happens to the names
// of a file, other than its first and its last, makes everything unknown.
type follower struct {
	events *os.File
	top    string // the working tree, as the kernel spells it
	// buffer has a part of what the kernel says.
	buffer []byte
	// alone is set if no process ran at the last question.
	alone bool
}

// follow begins. It is nil where the kernel cannot do it.
func follow(work *os.File) *follower {
	group, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK|unix.FAN_REPORT_FID|unix.FAN_REPORT_DFID_NAME, unix.O_RDONLY)
	if err != nil {
		return nil
	}
	events := os.NewFile(uintptr(group), "events")
	const what = unix.FAN_CREATE | unix.FAN_DELETE | unix.FAN_MOVED_FROM | unix.FAN_MOVED_TO | unix.FAN_MODIFY | unix.FAN_CLOSE_WRITE | unix.FAN_ATTRIB | unix.FAN_ONDIR
	err = unix.FanotifyMark(group, unix.FAN_MARK_ADD|unix.FAN_MARK_FILESYSTEM, what, int(work.Fd()), "")
	top, err2 := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", work.Fd()))
	if errors.Join(err, err2) != nil {
		_ = events.Close() // nothing was written
		return nil
	}
	return &follower{events: events, top: top, buffer: make([]byte, 64<<10)}
}

// Touched returns the paths of the working tree at which something may have changed since it was last asked, and those below which everything
// may have, with true. known reports whether that is all. own is set if only this process has changed the tree since then. Nobody else may ask
// at the same time.
func (t *Tree) Touched(own bool) (paths map[string]bool, known bool) {
	f := t.box.follower
	if f == nil {
		return nil, false
	}
	before := f.alone
	f.alone = t.box.cgroups.processes(t.box.cgroup) == 1 // the first one, which has no files
	paths, known = f.read(int(t.top.Fd()), own)
	return paths, known && before && f.alone
}

// maxPaths is how many paths are told apart, which can have 4 KiB each. If more may have changed, nothing is known.
const maxPaths = 4096

// read takes all that the kernel has to say.
func (f *follower) read(mount int, own bool) (paths map[string]bool, known bool) {
	paths, known = map[string]bool{}, true
	folders := map[string]string{} // by their handles
	for {
		n, err := unix.Read(int(f.events.Fd()), f.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			return paths, known && errors.Is(err, unix.EAGAIN)
		}
		for rest := f.buffer[:n]; len(rest) > 0 && known; {
			var e event
			if e, rest, known = nextEvent(rest); known {
				known = f.note(mount, e, own, folders, paths) && len(paths) <= maxPaths
			}
		}
	}
}

// event is what happened to a name in a folder, or to a file.
type event struct {
	mask         uint64
	folder, file []byte // handles with their kinds
	name         string
}

// nextEvent reads one event. ok is false if the kernel lost some, or speaks in another way.
func nextEvent(b []byte) (e event, rest []byte, ok bool) {
	const head, record, handle, longest = 24, 12, 8, 128 // bytes of the structs before what varies, and of the longest handle
	order := binary.NativeEndian
	if len(b) < head {
		return e, nil, false
	}
	size := order.Uint32(b)
	from := order.Uint16(b[6:])
	e.mask = order.Uint64(b[8:])
	if int(size) > len(b) || size < head || from < head || uint32(from) > size || b[4] != unix.FANOTIFY_METADATA_VERSION || e.mask&unix.FAN_Q_OVERFLOW != 0 {
		return e, nil, false
	}
	for r := b[from:size]; len(r) >= record+handle; {
		length := int(order.Uint16(r[2:]))
		bytes := int(order.Uint32(r[record:]))
		end := record + handle + bytes
		if length > len(r) || bytes > longest || end > length {
			return e, nil, false
		}
		switch r[0] {
		case unix.FAN_EVENT_INFO_TYPE_DFID_NAME:
			e.folder = r[record:end]
			e.name, _, _ = strings.Cut(string(r[end:length]), "\x00")
		case unix.FAN_EVENT_INFO_TYPE_DFID:
			e.folder, e.name = r[record:end], "."
		case unix.FAN_EVENT_INFO_TYPE_FID:
			e.file = r[record:end]
		}
		r = r[length:]
	}
	return e, b[size:], true
}

// note adds what an event is about. It reports whether that is a path.
func (f *follower) note(mount int, e event, own bool, folders map[string]string, paths map[string]bool) bool {
	if e.folder == nil {
		if own {
			return true // a file that was written without a name, and then got one
		}
		// The number of a file's names changed. If it still has one, another may have been there meanwhile.
		at, _, err := f.find(mount, e.file)
		return err == nil && at == ""
	}
	folder, seen := folders[string(e.folder)]
	if !seen {
		var err error
		var gone bool
		if folder, gone, err = f.find(mount, e.folder); err != nil {
			return false
		}
		if gone {
			folder = ""
		}
		folders[string(e.folder)] = folder
	}
	if folder == "" {
		return true // that it is gone was said of the folder above
	}
	at := filepath.Clean(folder + "/" + e.name)
	if at == f.top {
		return e.mask&(unix.FAN_CREATE|unix.FAN_MOVED_TO|unix.FAN_MOVED_FROM|unix.FAN_DELETE) == 0
	}
	if p, below := strings.CutPrefix(at, f.top+"/"); below {
		paths[p] = paths[p] || e.mask&(unix.FAN_CREATE|unix.FAN_MOVED_TO) != 0
	}
	return true
}

// find returns where the file or folder of a handle is now. at is empty if it is gone.
func (f *follower) find(mount int, handle []byte) (at string, gone bool, err error) {
	order := binary.NativeEndian
	fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(int32(order.Uint32(handle[4:])), handle[8:]), unix.O_PATH|unix.O_CLOEXEC)
	if errors.Is(err, unix.ESTALE) {
		return "", true, nil
	}
	if err != nil {
		return "", false, err
	}
	defer func() { _ = unix.Close(fd) }()
	var s unix.Stat_t
	if err := unix.Fstat(fd, &s); err != nil {
		return "", false, err
	}
	if s.Nlink == 0 {
		return "", true, nil
	}
	at, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return at, false, err
}

func (f *follower) close() error {
	if f == nil {
		return nil
	}
	return f.events.Close()
}
