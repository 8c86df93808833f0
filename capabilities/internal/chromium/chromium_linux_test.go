package chromium

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == "as-parent" {
		b, err := Start(context.Background(), Options{Network: "/proc/self/ns/net"})
		if err == nil {
			err = b.Call(context.Background(), "", "Target.createTarget", map[string]any{"url": "about:blank"}, nil)
		}
		if err != nil {
			panic(err)
		}
		fmt.Println(b.Pid())
		<-time.After(2 * time.Minute)
		os.Exit(1)
	}
}

// gone waits until processes have ended, and were reaped.
func gone(t *testing.T, pids []int) {
	t.Helper()
	end := time.After(10 * time.Second)
	for _, pid := range pids {
		for {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
				break
			}
			select {
			case <-end:
				t.Fatalf("process %d is left", pid)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
}

// TestNothingIsLeft ends browsers, and programs that have one, in every way.
func TestNothingIsLeft(t *testing.T) {
	t.Run("closed", func(t *testing.T) {
		b := started(t, Options{})
		newPage(t, b, "about:blank")
		all := below(b.Pid())
		if len(all) < 4 {
			t.Errorf("a browser of %d processes", len(all))
		}
		_ = b.Close()
		gone(t, all)
	})
	t.Run("crashed", func(t *testing.T) {
		b := started(t, Options{})
		newPage(t, b, "about:blank")
		all := below(b.Pid())
		p, err := os.FindProcess(b.Pid())
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		<-b.Done()
		gone(t, all)
	})
	t.Run("killed with its parent", func(t *testing.T) {
		dir := t.TempDir()
		parent := exec.CommandContext(t.Context(), os.Args[0], "as-parent")
		parent.Env = append(os.Environ(), "TMPDIR="+dir)
		out, err := parent.StdoutPipe()
		if err == nil {
			err = parent.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if _, err := fmt.Fscan(out, &pid); err != nil {
			t.Fatal(err)
		}
		all := below(pid)
		if len(all) < 4 {
			t.Errorf("a browser of %d processes", len(all))
		}
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = parent.Wait()
		gone(t, all[1:]) // whoever adopts the first one reaps it
		eventuallyEnded(t, pid)
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	})
}

// eventuallyEnded waits until a process has ended, reaped or not.
func eventuallyEnded(t *testing.T, pid int) {
	t.Helper()
	for range 2000 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Errorf("process %d is left", pid)
}

// TestConfined checks what a browser can reach of this machine.
func TestConfined(t *testing.T) {
	b := started(t, Options{})
	newPage(t, b, "about:blank")
	for _, pid := range below(b.Pid()) {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		for _, want := range []string{"\nUid:\t65534\t65534\t65534\t65534\n", "\nGid:\t65534\t65534\t65534\t65534\n", "\nNoNewPrivs:\t1\n", "\nGroups:\t \n"} {
			if !strings.Contains(string(status), want) {
				t.Errorf("process %d has not %q:\n%s", pid, want, status)
			}
		}
	}
	if err := sandboxed(b.Pid()); err != nil {
		t.Error(err)
	}
	for _, space := range []string{"mnt", "pid", "ipc", "uts"} {
		own, err := os.Readlink("/proc/self/ns/" + space)
		if err != nil {
			t.Fatal(err)
		}
		if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", b.Pid(), space)); err != nil || its == own {
			t.Errorf("namespace %s: %s, %v", space, its, err)
		}
	}
	root := fmt.Sprintf("/proc/%d/root", b.Pid())
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), "bin dev etc lib lib64 old proc tmp usr var"; got != want {
		t.Errorf("its file system has %s, want %s", got, want)
	}
	for _, path := range []string{"/old", "/home", "/root", "/etc/shadow", "/etc/hosts", "/run", "/var/lib", "/sys"} {
		if entries, err := os.ReadDir(root + path); err == nil && len(entries) > 0 {
			t.Errorf("it sees %s", path)
		}
	}
	for path, want := range map[string]string{"/usr/x": "read-only file system", "/tmp/stile/x": ""} {
		err := os.WriteFile(root+path, nil, 0o600)
		if got := fmt.Sprint(err); want != "" && !strings.HasSuffix(got, want) || want == "" && err != nil {
			t.Errorf("writing %s: %v", path, err)
		}
	}
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", b.Pid()))
	if err != nil {
		t.Fatal(err)
	}
	for variable := range strings.SplitSeq(strings.TrimSuffix(string(environ), "\x00"), "\x00") {
		switch name, _, _ := strings.Cut(variable, "="); name {
		case "HOME", "TMPDIR", "PATH", "LANG", "FONTCONFIG_PATH", "TZ":
		default:
			t.Errorf("it has the variable %s", variable)
		}
	}
	page := newPage(t, b, "about:blank")
	var r struct{ ErrorText string }
	if err := b.Call(t.Context(), page, "Page.navigate", map[string]any{"url": "file:///home/"}, &r); err != nil || r.ErrorText == "" {
		t.Errorf("a file of this machine: %+v, %v", r, err)
	}
	// Files that it writes are on a disk of its own, where nothing leads out.
	dir := b.Folder("d")
	if err := b.cell.do(func() error {
		return joined(os.Mkdir(dir, 0o755), os.WriteFile(dir+"/file", []byte("x"), 0o600), os.Symlink("/etc/passwd", dir+"/link"), os.Mkdir(dir+"/sub", 0o700))
	}); err != nil {
		t.Fatal(err)
	}
	for name, ok := range map[string]bool{"file": true, "link": false, "sub": false, "none": false} {
		f, err := b.Open(filepath.Join(dir, name))
		if (err == nil) != ok {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = f.Close()
		}
	}
	if err := b.RemoveAll(dir); err != nil {
		t.Error(err)
	}
}

func joined(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestBusyYields has a browser compute, and then stop.
func TestBusyYields(t *testing.T) {
	var u usage
	took := time.Duration(0)
	until := func(each time.Duration, busy bool) (looks int) {
		for ; u.busy != busy && looks < 1000; looks++ {
			took += each
			if changed := u.look(took); changed != (u.busy == busy) {
				t.Fatalf("after %d looks: changed %v, busy %v", looks, changed, u.busy)
			}
		}
		return looks
	}
	if n := until(watchEvery, true); n != int(busyTime/watchEvery)+1 { // one processor
		t.Errorf("it yields after %d looks", n)
	}
	if n := until(watchEvery/4, false); n > len(u.past) {
		t.Errorf("it is busy for %d looks more", n)
	}
	if u.look(took / 2); u.took != took { // a process that has ended may be missing
		t.Errorf("%v is less than %v", u.took, took)
	}

	b := started(t, Options{})
	newPage(t, b, "data:text/html,<script>for (let i = 0; i < 4; i++) new Worker(URL.createObjectURL(new Blob(['while (true);'])))</script>")
	for before := processorOf(b.Pid()); processorOf(b.Pid()) < before+500*time.Millisecond; {
		<-time.After(5 * time.Millisecond)
	}
	group := func() string {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", b.Pid()))
		if err != nil {
			return "none"
		}
		return string(text)
	}
	lowPriority(b.Pid(), true)
	if g := group(); g != "none" && !strings.HasSuffix(g, " nice 19\n") {
		t.Errorf("group %q", g)
	}
	_, pages := memoryOf(b.Pid())
	for _, p := range pages {
		threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid))
		for _, name := range threads {
			stat, err := os.ReadFile(name)
			if err != nil {
				continue
			}
			_, rest, _ := strings.Cut(string(stat), ") ")
			if nice := strings.Fields(rest)[16]; nice != "19" {
				t.Errorf("%s: nice %s", name, nice)
			}
		}
	}
	<-time.After(150 * time.Millisecond) // the system refuses to change a group more often
	if lowPriority(b.Pid(), false); !strings.HasSuffix(group(), " nice 0\n") && group() != "none" {
		t.Errorf("afterwards group %q", group())
	}
}
