package trial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/kv"
	"github.com/stilehost/stile/capabilities/workspace"
	"github.com/stilehost/stile/extension"
)

// maxKept is how many bytes a test can keep in one workspace, as much again in what it replaced, and in one bucket.
const maxKept = 16 << 20

// files are the stores of one test, in a temporary folder that is made when the first is needed.
type files struct {
	dir        string
	workspaces *workspace.Store
	buckets    *kv.Store
}

func (f *files) open(ctx context.Context, clock *virtualClock) (err error) {
	if f.dir != "" {
		return nil
	}
	if f.dir, err = os.MkdirTemp("", "stile-trial-"); err != nil {
		return err
	}
	if f.workspaces, err = workspace.Open(ctx, filepath.Join(f.dir, extension.WorkspaceFile), workspace.Options{
		Bytes: maxKept, HistoryBytes: maxKept, Files: 1000, Snapshots: 4, BlobBytes: 4 * maxKept, Now: clock.time,
	}); err != nil {
		return err
	}
	f.buckets, err = kv.Open(ctx, filepath.Join(f.dir, extension.KVFile), kv.Options{BucketBytes: maxKept})
	return err
}

// fault is what of this machine failed, e.g. a full disk, while the test used the stores.
func (f *files) fault() (err error) {
	if f.workspaces != nil {
		err = f.workspaces.Fault()
	}
	if f.buckets != nil {
		err = errors.Join(err, f.buckets.Fault())
	}
	return err
}

func (f *files) close() error {
	if f.dir == "" {
		return nil
	}
	var errs []error
	if f.workspaces != nil {
		errs = append(errs, f.workspaces.Close())
	}
	if f.buckets != nil {
		errs = append(errs, f.buckets.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(f.dir))...)
}

// directory makes a directory with the files that are in the test, by their paths in it.
func (e *environment) directory(ctx context.Context, g extension.Workspace, raw json.RawMessage) (abi.Capability, error) {
	stubs, err := members[string](e, raw, `{"/notes/a.md": "text"}`)
	if err != nil {
		return nil, err
	}
	if err := e.files.open(ctx, e.clock); err != nil {
		return nil, err
	}
	d, err := e.files.workspaces.Workspace(g.Store).Sub(g.Path)
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(stubs)) {
		if err := e.kept(path, d.Write(ctx, path, stubs[path])); err != nil {
			return nil, err
		}
	}
	if g.Access != extension.ReadWrite {
		d = d.AsReadOnly()
	}
	return d, nil
}

// bucket makes a bucket with the values that are in the test.
func (e *environment) bucket(ctx context.Context, g extension.KV, raw json.RawMessage) (abi.Capability, error) {
	stubs, err := members[string](e, raw, `{"key": "value"}`)
	if err != nil {
		return nil, err
	}
	if err := e.files.open(ctx, e.clock); err != nil {
		return nil, err
	}
	bucket := e.files.buckets.Bucket(g.Store)
	for _, key := range slices.Sorted(maps.Keys(stubs)) {
		if err := e.kept(key, bucket.Set(ctx, key, stubs[key])); err != nil {
			return nil, err
		}
	}
	return bucket, nil
}

// kept says whose fault it is that something could not be written.
func (e *environment) kept(name string, err error) error {
	if known, ok := errors.AsType[*abi.Error](err); ok && known.Code != abi.CodeUnavailable {
		return e.wrong(fmt.Sprintf("[%s]: %s", quoted(name), abi.PrintableCut(known.Error(), maxValue)), "another name")
	}
	return err
}
