package box

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// thread is a thread of this process with mounts of its own. Programs that it starts see these mounts. They end when the thread has
// ended and no program sees them any more, also if this process is killed.
type thread struct{ do chan func() }

func newThread() (*thread, error) {
	t := &thread{make(chan func())}
	started := make(chan error)
	go t.serve(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("make mounts of its own: %w", err)
	}
	return t, nil
}

func (t *thread) serve(started chan error) {
	runtime.LockOSThread() // and never unlocked, so that the thread ends with the goroutine
	if unix.Gettid() == unix.Getpid() {
		// The first thread of a process never ends, and its mounts would not either. Another goroutine cannot be on it as long as this one is.
		next := make(chan error)
		go t.serve(next)
		err := <-next
		runtime.UnlockOSThread()
		started <- err
		return
	}
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	}
	started <- err
	if err != nil {
		return
	}
	for f := range t.do {
		f()
	}
}

// run runs f on the thread. f must return soon.
func (t *thread) run(f func() error) (err error) {
	done := make(chan struct{})
	t.do <- func() {
		defer close(done)
		err = f()
	}
	<-done
	return err
}

func (t *thread) end() { close(t.do) }
