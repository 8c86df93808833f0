package box

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTouched asks what has changed in a tree, after programs have changed it in every way that the kernel has.
func TestTouched(t *testing.T) {
	const unknown = "unknown"
	each(t, func(t *testing.T, o Options) {
		b := start(t, o, Root{}, Limits{Memory: 512 << 20, Disk: 256 << 20, Files: 40_000, Processes: 128, CPU: 1})
		tree := b.Tree()
		carry(t, b)
		sh(t, b, "mkdir -p d/e f; echo a > a; echo b > d/b; echo c > d/e/c; echo g > f/g")
		if paths, known := tree.Touched(false); known {
			t.Errorf("nothing was asked before, and %v is known", paths)
		}
		for _, c := range []struct{ script, want string }{
			{"cat a; ls -R; stat a; git status", ""},
			{"echo x > new", "new/"},
			{"echo x >> a; : > d/b", "a d/b"},
			{"truncate -s 5 a; dd if=/dev/zero of=d/b bs=1 count=1 seek=3 conv=notrunc; chmod 700 d/e/c; chmod 700 d; touch f/g; ln -s a link", "a d d/b d/e/c f/g link/"},
			{"rm new link; echo y > .a; mv .a a", ".a/ a/ link new"},
			{"mkdir -p n/m && echo 1 > n/m/o", "n/ n/m/ n/m/o/"},
			{"mv n o; echo 2 >> o/m/o; rm -r f", "f n o/ o/m/o"},
			{"mv o/m q; rm -r o; mkdir o; echo 3 > o/p", "o/ o/p/ q/"},
			{"echo x > /tmp/x; echo y > /home/y; mkdir /var/tmp/z", ""},
			{"truncate -s 4096 a", "a"},
			{"./program map a", "a"},
			{"./program truncate a", "a"},
			{"./program exchange q d", "d/ q/"},
			{"./program exchange q d; ./program unnamed", unknown},
			{"echo after >> a", "a"},
			{"./program linked a; echo x >> a", unknown}, // by a name that is gone
			{"ln a b; rm b", unknown},
			{"ln a b", unknown},
			{"rm b", unknown},
			{"echo x >> a; setsid sleep 1000 & exit 0", "a"}, // ended with its command
			{"cd o; seq 5000 | xargs touch", unknown},        // more than maxPaths
			{"cd o; seq 20000 | xargs touch", unknown},       // more than the kernel keeps
			{"rm -r o", unknown},
			{"", ""},
		} {
			script := strings.ReplaceAll(c.script, "./program ", "STILE_TEST_ROLE=change ./program ")
			if got := sh(t, b, script+"\n"); got.Code != 0 && !strings.Contains(script, "git") {
				t.Fatalf("%s: %+v", script, got)
			}
			paths, known := tree.Touched(false)
			got := unknown
			if known {
				got = written(paths)
			}
			if got != c.want && (c.want != unknown || known) {
				t.Errorf("%s: got %s, want %s", c.script, got, c.want)
			}
		}
		// Files that a program has open.
		reader, writer, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		running := make(chan struct{})
		done := make(chan error, 1)
		go func() {
			_, err := b.Run(t.Context(), Process{
				Args: []string{"/bin/sh", "-c", "exec 3>>a; echo; read x; echo more >&3"}, Stdin: reader,
				Output: func(Stream, []byte) { close(running) },
			})
			done <- err
		}()
		<-running
		if _, known := tree.Touched(false); known {
			t.Error("a program runs, and all is known")
		}
		_ = writer.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, known := tree.Touched(false); known {
			t.Error("a program ran at the last question, and all is known")
		}
		// What the host itself does.
		if err := tree.Write("a", 0o644, strings.NewReader("host")); err != nil {
			t.Fatal(err)
		}
		if paths, known := tree.Touched(true); !known || written(paths) != "a/" {
			t.Errorf("after a write of the host: %s, %v", written(paths), known)
		}
	})
}

func written(paths map[string]bool) string {
	var all []string
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		if paths[p] {
			p += "/"
		}
		if !strings.HasPrefix(p, "#") { // what the kernel calls a file without a name
			all = append(all, p)
		}
	}
	return strings.Join(all, " ")
}

// change changes files of the working folder in ways that no common program has.
func change(args []string) error {
	open := func(name string, flags int) (*os.File, error) { return os.OpenFile(name, flags, 0o644) }
	switch args[0] {
	case "map":
		f, err := open(args[1], os.O_RDWR)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		_ = f.Close()
		copy(m, "mapped")
		return nil // and it ends with the mapping
	case "truncate":
		return os.Truncate(args[1], 3)
	case "exchange":
		return unix.Renameat2(unix.AT_FDCWD, args[1], unix.AT_FDCWD, args[2], unix.RENAME_EXCHANGE)
	case "unnamed":
		f, err := open(".", unix.O_TMPFILE|os.O_WRONLY)
		if err != nil {
			return err
		}
		if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.AT_FDCWD, "named", unix.AT_SYMLINK_FOLLOW); err != nil {
			return err
		}
		_, err = f.WriteString("later")
		return err
	case "linked":
		if err := os.Link(args[1], "second"); err != nil {
			return err
		}
		f, err := open("second", os.O_WRONLY|os.O_APPEND)
		if err != nil {
			return err
		}
		if err := os.Remove("second"); err != nil {
			return err
		}
		_, err = f.WriteString("by its second name")
		return err
	default:
		return fmt.Errorf("no such change: %s", args[0])
	}
}

// FuzzEvents reads what a kernel could say.
func FuzzEvents(f *testing.F) {
	one := make([]byte, 24, 64)
	binary.NativeEndian.PutUint32(one, 24+44)
	one[4] = unix.FANOTIFY_METADATA_VERSION
	binary.NativeEndian.PutUint16(one[6:], 24)
	binary.NativeEndian.PutUint64(one[8:], unix.FAN_CREATE)
	record := make([]byte, 44)
	record[0] = unix.FAN_EVENT_INFO_TYPE_DFID_NAME
	binary.NativeEndian.PutUint16(record[2:], 44)
	binary.NativeEndian.PutUint32(record[12:], 8)
	copy(record[28:], "name\x00")
	whole := append(one, record...)
	f.Add(whole)
	f.Add(bytes.Repeat(whole, 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		for rest, ok := b, true; ok && len(rest) > 0; {
			before := len(rest)
			var e event
			if e, rest, ok = nextEvent(rest); ok && (len(rest) >= before || len(e.name) > before) {
				t.Errorf("%d of %d bytes are left, and %q", len(rest), before, e.name)
			}
		}
	})
}
