package sandbox

import (
	"context"
	"errors"
	"io/fs"

	"github.com/stilehost/stile/abi"
)

// Changes is the record `changes`.
type Changes struct {
	Added, Changed, Removed []string
	Conflicts, Skipped      []Note
	Omitted                 uint32
}

// maxListed is how many entries each list of Changes has.
const maxListed = 1000

func (c *Changes) list(to *[]string, path string) {
	if len(*to) >= maxListed {
		c.Omitted++
		return
	}
	*to = append(*to, path)
}

func (c *Changes) note(to *[]Note, path, reason string) {
	if len(*to) >= maxListed {
		c.Omitted++
		return
	}
	*to = append(*to, Note{validText(path), reason})
}

// Transfer is a copy under way: the resource `transfer`. It is safe for concurrent use. Its holder closes it.
type Transfer struct {
	cancel  context.CancelFunc
	done    abi.Pollable
	changes Changes
	err     error
}

// Push is the method `push`.
func (s *Sandbox) Push(ctx context.Context, directory Directory, to string) (*Transfer, error) {
	folder, err := inWork("push to", to)
	if err != nil {
		return nil, err
	}
	return s.transfer(ctx, directory, folder, true)
}

// Pull is the method `pull`.
func (s *Sandbox) Pull(ctx context.Context, directory Directory, from string) (*Transfer, error) {
	folder, err := inWork("pull from", from)
	if err != nil {
		return nil, err
	}
	if err := directory.Writable("pull from /" + folder); err != nil {
		return nil, err
	}
	return s.transfer(ctx, directory, folder, false)
}

func (s *Sandbox) transfer(ctx context.Context, directory Directory, folder string, in bool) (*Transfer, error) {
	if err := s.begin(0); err != nil {
		return nil, err
	}
	t := &Transfer{}
	var stop func() bool
	ctx, t.cancel = context.WithCancel(ctx)
	stop = context.AfterFunc(s.ctx, t.cancel) //nolint:contextcheck // it ends with the sandbox too
	go func() {
		defer s.end(0)
		defer t.done.SetReady()
		defer t.cancel()
		defer stop()
		t.err = s.copy(ctx, directory, folder, in, &t.changes)
	}()
	return t, nil
}

// copy makes one copy, into the sandbox or out of it, while all processes stand still, one copy at a time.
func (s *Sandbox) copy(ctx context.Context, directory Directory, folder string, in bool, changes *Changes) error {
	m, err := s.open(ctx, in)
	if err != nil {
		return err
	}
	s.held.copying.Lock()
	defer s.held.copying.Unlock()
	at := place{directory.Place(), folder}
	if s.held.synced[at] == nil {
		s.held.synced[at] = &history{}
	}
	one := &copier{
		ctx: ctx, outside: directory, inside: below{m.tree(), folder}, history: s.held.synced[at], changes: changes,
		allowed: s.grant.allowed, most: s.grant.limits.Disk,
	}
	err = m.still(func() error {
		s.held.touch(m.tree(), false)
		defer s.held.touch(m.tree(), true)
		defer one.settle()
		if in {
			return push(one)
		}
		return pull(one)
	})
	if err == nil && !in {
		s.held.saved(folder)
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	if _, ok := errors.AsType[*abi.Error](err); ok {
		return err
	}
	s.grant.log.Error("a copy of a sandbox", "error", err)
	return copyError(err)
}

// touch has all histories know what may have changed in the tree. own is set if only a copy has changed it since the last time.
func (h *held) touch(t tree, own bool) {
	f, ok := t.(followed)
	if !ok {
		return
	}
	paths, known := f.Touched(own)
	for at, one := range h.synced {
		one.touch(at.folder, paths, known)
	}
}

// copyError says what went wrong in the sandbox, without names of the machine.
func copyError(err error) error {
	if full(err) {
		return abi.Errorf(abi.CodeExhausted, "the sandbox's disk is full; the option disk of the binding raises its size")
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return abi.Errorf(abi.CodeUnavailable, "%.200q in the sandbox: %v", e.Path, e.Err)
	}
	return abi.Errorf(abi.CodeUnavailable, "the copy failed")
}

// Quick implements [abi.Quick].
func (*Transfer) Quick() []string { return []string{"transfer.subscribe"} }

// Lists implements [abi.Bounded].
func (*Transfer) Lists() map[string]int {
	return map[string]int{
		"transfer.take.result.added": maxListed, "transfer.take.result.changed": maxListed, "transfer.take.result.removed": maxListed,
		"transfer.take.result.conflicts": maxListed, "transfer.take.result.skipped": maxListed,
	}
}

// Subscribe is the method `subscribe`.
func (t *Transfer) Subscribe(context.Context) *abi.Pollable { return &t.done }

// Take waits until the copy is made.
func (t *Transfer) Take(ctx context.Context) (Changes, error) {
	if err := t.done.Wait(ctx); err != nil {
		return Changes{}, err
	}
	return t.changes, t.err
}

// Close ends the copy, and returns when it has ended. What was copied stays.
func (t *Transfer) Close() error {
	t.cancel()
	<-t.done.Done()
	return nil
}
