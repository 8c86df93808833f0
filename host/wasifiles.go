package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/stilehost/stile/abi"
)

// checkWASI checks a request's WASI against its env.
func checkWASI(w abi.WASI, env Env) error {
	return w.Check(func(name string) string {
		inside, _, err := unwrap(env[name])
		if err != nil {
			return ""
		}
		return inside.Interface()
	})
}

// served is the WASI of the call, or of the recording that it replays.
func (c *call) served() abi.WASI {
	if c.replay != nil {
		return c.replay.recording.WASI
	}
	return c.request.WASI
}

const (
	// maxRewrite bounds a file that is written in another place than its end, and how much zeros are added to one at once: a workspace
	// only replaces and extends files.
	maxRewrite = 16 * mib
	// maxWorldPath is the length of a path in bytes.
	maxWorldPath = 4096
	// maxListings is how many directories a call may read at a time, and listingPage how many entries each keeps (300 bytes each at most).
	maxListings = 16
	listingPage = 1000
	// maxBeside is how many large files of a directory are rewritten at a time.
	maxBeside = 100
	// maxHops is how many links lead to a file.
	maxHops = 16
)

// directory is a directory of a binding that the guest has opened. Descriptors and streams share it.
type directory struct {
	call    *call
	binding string
	rep     abi.Rep    // its handle; 0 until it is needed, or when it is dropped
	parent  *directory // nil for the root of the binding
	at      string     // in parent
	size    int        // bytes of its path from the root of the binding
	users   int
}

func (d *directory) hold() *directory { d.users++; return d }

// drop gives up one use. The last one drops the handle.
func (d *directory) drop() error {
	if d.users--; d.users > 0 {
		return nil
	}
	var err error
	if h := d.call.handles.open[d.rep]; d.rep != 0 && h != nil {
		err = d.call.handles.remove(d.rep).close()
	}
	d.rep = 0
	if d.parent != nil {
		if failed := d.parent.drop(); err == nil {
			err = failed
		}
	}
	return err
}

// handle is the handle of the directory. That of a binding's root is got when it is first needed.
func (d *directory) handle() (abi.Rep, *abi.Error, error) {
	if d.rep != 0 {
		return d.rep, nil, nil
	}
	c := d.call
	if err := c.openEnv(); err != nil {
		return 0, nil, err
	}
	v, failed, err := c.through(workspaceInterface+"#get", ownEnv, d.binding)
	if err != nil || failed != nil {
		return 0, failed, err
	}
	d.rep = v.(abi.Rep)
	return d.rep, nil, nil
}

// do calls a method of the directory.
func (d *directory) do(method string, args ...abi.Value) (abi.Value, *abi.Error, error) {
	rep, failed, err := d.handle()
	if err != nil || failed != nil {
		return nil, failed, err
	}
	return d.call.through(workspaceInterface+"#[method]directory."+method, append([]abi.Value{rep}, args...)...)
}

// through passes an operation of a binding through the gate, for WASI. Its error is apart from those that end the call.
func (c *call) through(name string, args ...abi.Value) (abi.Value, *abi.Error, error) {
	op := c.host.wasi[name]
	v, err := c.gate(op, args)
	if err != nil || op.fn.Result == nil || op.fn.Result.Kind != abi.KindResult {
		return v, nil, err
	}
	outcome := v.(abi.Variant)
	if outcome.Case == 0 {
		return outcome.Value, nil, nil
	}
	var failed *abi.Error
	if err := abi.Decode(op.fn.Result.Err, outcome.Value, &failed, nil); err != nil {
		return nil, nil, fmt.Errorf("decode the error of %s: %w", op.fn.Name, err)
	}
	if failed.Denial != nil {
		c.wasi().noteDenial(*failed.Denial)
	}
	return nil, failed, nil
}

// status is the record of this name in the workspace's interface.
type status struct {
	kind     uint32
	size     uint64
	modified uint64
}

// The cases of kind in the workspace's interface.
const (
	kindFile = iota
	kindDirectory
	kindLink
)

func statusOf(v abi.Value) status {
	fields := v.([]abi.Value)
	return status{fields[0].(abi.Variant).Case, fields[1].(uint64), fields[2].(uint64)}
}

func (d *directory) stat(at string) (status, *abi.Error, error) {
	v, failed, err := d.do("stat", at)
	if err != nil || failed != nil {
		return status{}, failed, err
	}
	return statusOf(v), nil, nil
}

// fault is a failure that WASI knows, by its case of error-code. It is empty if there is none.
type fault string

// The cases of the error-code of wasi:filesystem that are used.
const (
	faultBadDescriptor fault = "bad-descriptor"
	faultBusy          fault = "busy"
	faultExist         fault = "exist"
	faultTooLarge      fault = "file-too-large"
	faultNotSequence   fault = "illegal-byte-sequence"
	faultInvalid       fault = "invalid"
	faultIO            fault = "io"
	faultIsDirectory   fault = "is-directory"
	faultLoop          fault = "loop"
	faultNameTooLong   fault = "name-too-long"
	faultNoEntry       fault = "no-entry"
	faultNoMemory      fault = "insufficient-memory"
	faultNotDirectory  fault = "not-directory"
	faultNotEmpty      fault = "not-empty"
	faultUnsupported   fault = "unsupported"
	faultQuota         fault = "quota"
	faultNotPermitted  fault = "not-permitted"
	faultCrossDevice   fault = "cross-device"
)

// faults are what the errors of capabilities mean to a program.
var faults = map[abi.Code]fault{
	abi.CodeDenied: faultNotPermitted, abi.CodeRevoked: faultNotPermitted, abi.CodeExpired: faultNotPermitted, abi.CodeExhausted: faultQuota,
	abi.CodeTimedOut: faultIO, abi.CodeTooLarge: faultTooLarge, abi.CodeNotFound: faultNoEntry, abi.CodeAlreadyExists: faultExist,
	abi.CodeConflict: faultBusy, abi.CodeInvalid: faultInvalid, abi.CodeUnavailable: faultIO,
}

func faultOf(e *abi.Error) fault {
	if e == nil {
		return ""
	}
	if f, ok := faults[e.Code]; ok {
		return f
	}
	return faultIO
}

// checkPath says what is wrong with a path of a guest, before the workspace looks at it.
func checkPath(at string) fault {
	switch {
	case at == "":
		return faultNoEntry
	case at[0] == '/': // it would be outside of the descriptor
		return faultNotPermitted
	case len(at) > maxWorldPath:
		return faultNameTooLong
	case strings.IndexByte(at, 0) >= 0:
		return faultNotSequence
	default:
		return ""
	}
}

// endsAsDirectory reports whether a path can only name a directory.
func endsAsDirectory(at string) bool {
	last := at[strings.LastIndexByte(at, '/')+1:]
	return last == "" || last == "." || last == ".."
}

// entryPath is a path without slashes at its end.
func entryPath(at string) string { return strings.TrimRight(at, "/") }

// follow finds what a path leads to, through links if it should.
func (d *directory) follow(at string, links bool) (to string, s status, _ fault, _ error) {
	for range maxHops {
		s, failed, err := d.stat(at)
		if err != nil || failed != nil || s.kind != kindLink || !links {
			return at, s, faultOf(failed), err
		}
		v, failed, err := d.do("read-link", at)
		if err != nil || failed != nil {
			return at, s, faultOf(failed), err
		}
		target := v.(string)
		if f := checkPath(target); f != "" {
			return at, s, f, nil
		}
		at = path.Dir(path.Clean(at)) + "/" + target
		if names := strings.Split(at, "/"); slices.Contains(names, "..") { // what is above a directory depends on where it is
			last := len(names) - 1
			if names[last] == ".." {
				names, last = append(names, "."), last+1
			}
			place, f, err := d.place(names[:last])
			if err != nil || f != "" {
				return at, s, f, err
			}
			at = place + "/" + names[last]
		} // the workspace refuses what leads out of it
		if len(at) > maxWorldPath {
			return at, s, faultNameTooLong, nil
		}
	}
	return at, s, faultLoop, nil
}

// place is where the directory that has these names is, without links on the way.
func (d *directory) place(names []string) (place string, _ fault, _ error) {
	todo, hops := names, 0
	for place = "."; len(todo) > 0; {
		next := path.Join(place, todo[0])
		todo = todo[1:]
		s, failed, err := d.stat(next)
		if err != nil || failed != nil {
			return "", faultOf(failed), err
		}
		if s.kind != kindLink {
			place = next
			continue
		}
		v, failed, err := d.do("read-link", next)
		if err != nil || failed != nil {
			return "", faultOf(failed), err
		}
		target := v.(string)
		if f := checkPath(target); f != "" {
			return "", f, nil
		}
		if hops++; hops > maxHops {
			return "", faultLoop, nil
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return place, "", nil
}

// parentThere is what is wrong with the directory in which something is to be made: a workspace would make it.
func (d *directory) parentThere(at string) (fault, error) {
	parent := path.Dir(path.Clean(at))
	if parent == "." || strings.HasPrefix(parent, "..") {
		return "", nil // it is there, or the workspace refuses it
	}
	_, s, f, err := d.follow(parent, true)
	if err == nil && f == "" && s.kind != kindDirectory {
		f = faultNotDirectory
	}
	return f, err
}

// descriptor is an open file, which is its path, or an open directory.
type descriptor struct {
	dir         *directory
	file        string // in dir; empty for the directory itself
	read, write bool
}

// Close implements [io.Closer].
func (d *descriptor) Close() error { return d.dir.drop() }

// Size implements [abi.Sized].
func (d *descriptor) Size() int { return d.dir.size + len(d.file) }

func (d *descriptor) isDirectory() bool { return d.file == "" }

// location names what is open, in the whole world of the call.
func (d *descriptor) location() string {
	parts := []string{d.file}
	for dir := d.dir; dir != nil; dir = dir.parent {
		parts = append(parts, dir.at)
	}
	slices.Reverse(parts)
	return d.dir.binding + "\x00/" + path.Join(parts...)
}

// filesystemFuncs are the functions of wasi:filesystem.
func filesystemFuncs(all map[string]worldFunc) {
	const (
		method = "wasi:filesystem/types#[method]descriptor."
		says   = "by the workspace that `wasi` names; without one, there are no files"
		never  = "refuses with unsupported: a workspace has no such thing"
		stat   = "result<record<enum,u64,u64,option<record<u64,u32>>,option<record<u64,u32>>,option<record<u64,u32>>>,enum>"
		done   = "result<_,enum>"
		hash   = "result<record<u64,u64>,enum>"
	)
	add := func(name, shape string, do func(o *fileOp) error) {
		run := func(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) { return c.onDescriptor(f, args, do) }
		all[method+name] = worldFunc{
			shape: "func(borrow<descriptor>" + shape, says: says, uses: workspaceInterface,
			through: func(c *call, _ answer, f *abi.Func, args []abi.Value) (abi.Value, error) { return run(c, f, args) },
		}
	}
	refused := func(name, shape string) {
		add(name, shape, func(o *fileOp) error { return o.fail(faultUnsupported) })
		f := all[method+name]
		f.says = never
		all[method+name] = f
	}
	add("read-via-stream", ",u64) -> result<own<input-stream>,enum>", readStream)
	add("write-via-stream", ",u64) -> result<own<output-stream>,enum>", func(o *fileOp) error { return o.writeStream(o.args[1].(uint64), false) })
	add("append-via-stream", ") -> result<own<output-stream>,enum>", func(o *fileOp) error { return o.writeStream(0, true) })
	add("advise", ",u64,u64,enum) -> "+done, doNothing)
	add("sync", ") -> "+done, doNothing)
	add("sync-data", ") -> "+done, doNothing)
	add("get-flags", ") -> result<flags,enum>", getFlags)
	add("get-type", ") -> result<enum,enum>", getType)
	add("set-size", ",u64) -> "+done, setSize)
	add("read", ",u64,u64) -> result<tuple<list<u8>,bool>,enum>", readAt)
	add("write", ",list<u8>,u64) -> result<u64,enum>", writeAt)
	add("read-directory", ") -> result<own<directory-entry-stream>,enum>", readDirectory)
	add("create-directory-at", ",string) -> "+done, createDirectory)
	add("stat", ") -> "+stat, func(o *fileOp) error { return o.stat(o.d.file, true) })
	add("stat-at", ",flags,string) -> "+stat, func(o *fileOp) error {
		return o.inDirectory(o.args[2].(string), func(at string) error { return o.stat(at, o.flag(1, "symlink-follow")) })
	})
	add("open-at", ",flags,string,flags,flags) -> result<own<descriptor>,enum>", openAt)
	add("readlink-at", ",string) -> result<string,enum>", readLink)
	add("remove-directory-at", ",string) -> "+done, removeDirectory)
	add("rename-at", ",string,borrow<descriptor>,string) -> "+done, renameAt)
	add("symlink-at", ",string,string) -> "+done, makeLink)
	add("unlink-file-at", ",string) -> "+done, unlinkFile)
	add("is-same-object", ",borrow<descriptor>) -> bool", sameObject)
	add("metadata-hash", ") -> "+hash, func(o *fileOp) error { return o.hash(o.d.file, true) })
	add("metadata-hash-at", ",flags,string) -> "+hash, func(o *fileOp) error {
		return o.inDirectory(o.args[2].(string), func(at string) error { return o.hash(at, o.flag(1, "symlink-follow")) })
	})
	refused("link-at", ",flags,string,borrow<descriptor>,string) -> "+done)
	refused("set-times", ",variant,variant) -> "+done)
	refused("set-times-at", ",flags,string,variant,variant) -> "+done)
	all["wasi:filesystem/preopens#get-directories"] = worldFunc{
		shape: "func() -> list<tuple<own<descriptor>,string>>", says: "the workspaces that `wasi` names, at their paths", uses: workspaceInterface, answer: preopens,
	}
	all["wasi:filesystem/types#[method]directory-entry-stream.read-directory-entry"] = worldFunc{
		shape: "func(borrow<directory-entry-stream>) -> result<option<record<enum,string>>,enum>", says: says, uses: workspaceInterface,
		through: func(c *call, _ answer, f *abi.Func, args []abi.Value) (abi.Value, error) {
			return readEntry(c, f, args)
		},
	}
	all["wasi:filesystem/types#filesystem-error-code"] = worldFunc{
		shape: "func(borrow<error>) -> option<enum>", says: "says what failed in a stream of a file", answer: filesystemErrorCode,
	}
}

// fileOp is one function of a descriptor at work.
type fileOp struct {
	c      *call
	f      *abi.Func
	args   []abi.Value
	d      *descriptor
	result abi.Value
}

// onDescriptor runs a function of a descriptor.
func (c *call) onDescriptor(f *abi.Func, args []abi.Value, do func(o *fileOp) error) (abi.Value, error) {
	h, err := c.handles.find(args[0].(abi.Rep), f.Params[0].Type.Resource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	d, ok := h.value.(*descriptor)
	if !ok {
		return nil, &TrapError{Reason: f.Name + " of a handle that leads nowhere"}
	}
	o := &fileOp{c: c, f: f, args: args, d: d}
	if err := do(o); err != nil {
		return nil, err
	}
	return o.result, nil
}

// ok sets the result.
func (o *fileOp) ok(v abi.Value) error { o.result = okResult(v); return nil }

// fail sets a failure as the result.
func (o *fileOp) fail(f fault) error { o.result = failure(o.f.Result, f); return nil }

// ended ends the operation after a step of it, if that has failed.
func (o *fileOp) ended(failed *abi.Error, err error) (bool, error) {
	if err == nil && failed != nil {
		return true, o.fail(faultOf(failed))
	}
	return err != nil, err
}

// did ends the operation after its last step.
func (o *fileOp) did(failed *abi.Error, err error) error {
	if over, err := o.ended(failed, err); over {
		return err
	}
	return o.ok(nil)
}

// failure is a failure in a result whose error is an enum. If the component knows no such case, it is the one that comes closest to a
// refusal.
func failure(t *abi.Type, f fault) abi.Value {
	if i, ok := caseOf(t.Err, string(f)); ok {
		return abi.Variant{Case: 1, Value: abi.Variant{Case: i}}
	}
	v, _ := refuse(t) // an enum has a zero value
	return v
}

// caseOf is the number of a case, whose names are the component's.
func caseOf(t *abi.Type, name string) (uint32, bool) {
	i := slices.IndexFunc(t.Cases, func(c abi.Case) bool { return c.Name == name })
	return uint32(max(i, 0)), i >= 0
}

// flag reports whether a flag is set in an argument.
func (o *fileOp) flag(arg int, name string) bool {
	i := slices.Index(o.f.Params[arg].Type.Labels, name)
	return i >= 0 && o.args[arg].(uint32)>>i&1 != 0
}

// inDirectory runs an operation on a path in the descriptor, which must be a directory.
func (o *fileOp) inDirectory(at string, do func(at string) error) error {
	if !o.d.isDirectory() {
		return o.fail(faultNotDirectory)
	}
	if f := checkPath(at); f != "" {
		return o.fail(f)
	}
	return do(at)
}

// preopens are a directory for each path at which WASI has one, in byte order.
func preopens(c *call, f *abi.Func, _ []abi.Value) (abi.Value, error) {
	list, mounts := []abi.Value{}, c.served().Filesystem
	paths := make([]string, 0, len(mounts))
	for at := range mounts {
		paths = append(paths, at)
	}
	slices.Sort(paths)
	for _, at := range paths {
		d := &directory{call: c, binding: mounts[at]}
		rep, err := c.addDescriptor(f.Result.Elem.Fields[0].Type.Resource, &descriptor{dir: d.hold(), read: true})
		if err != nil {
			return nil, err
		}
		list = append(list, []abi.Value{rep, at})
	}
	return list, nil
}

// addDescriptor makes a handle of something that uses a directory, which it gives up if there is no room for the handle.
func (c *call) addDescriptor(r *abi.Resource, value interface{ Close() error }) (abi.Rep, error) {
	rep, err := c.handles.addForeign(&handle{resource: r, value: value})
	if err != nil {
		_ = value.Close() // of handles in this call's table, which does not fail
	}
	return rep, err
}

func doNothing(o *fileOp) error { return o.ok(nil) }

func getFlags(o *fileOp) error {
	var v uint32
	for i, name := range o.f.Result.Ok.Labels {
		if name == "read" && o.d.read || name == "write" && o.d.write || name == "mutate-directory" && o.d.isDirectory() {
			v |= 1 << i
		}
	}
	return o.ok(v)
}

// typeNames are the cases of descriptor-type for the kinds of a workspace.
var typeNames = [...]string{kindFile: "regular-file", kindDirectory: "directory", kindLink: "symbolic-link"}

// typeOf is a case of descriptor-type.
func typeOf(t *abi.Type, kind uint32) abi.Value {
	i, _ := caseOf(t, typeNames[kind])
	return abi.Variant{Case: i}
}

func getType(o *fileOp) error {
	kind := uint32(kindFile)
	if o.d.isDirectory() {
		kind = kindDirectory
	}
	return o.ok(typeOf(o.f.Result.Ok, kind))
}

// stat is the status of a path in the descriptor's directory.
func (o *fileOp) stat(at string, links bool) error {
	_, s, f, err := o.d.dir.follow(at, links)
	if err != nil || f != "" {
		o.result = failure(o.f.Result, f)
		return err
	}
	if s.kind != kindDirectory && at != "" && strings.HasSuffix(at, "/") {
		return o.fail(faultNotDirectory)
	}
	const inSecond, inMillisecond = 1000, 1_000_000
	modified := abi.Variant{Case: 1, Value: []abi.Value{s.modified / inSecond, uint32(s.modified % inSecond * inMillisecond)}}
	return o.ok([]abi.Value{typeOf(o.f.Result.Ok.Fields[0].Type, s.kind), uint64(1), s.size, abi.Variant{}, modified, abi.Variant{}})
}

// hash is a number for a path: the same as long as it is the same path.
func (o *fileOp) hash(at string, links bool) error {
	to, _, f, err := o.d.dir.follow(at, links)
	if err != nil || f != "" {
		o.result = failure(o.f.Result, f)
		return err
	}
	sum := sha256.Sum256([]byte((&descriptor{dir: o.d.dir, file: to}).location()))
	return o.ok([]abi.Value{binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])})
}

func sameObject(o *fileOp) error {
	other, err := o.descriptor(1)
	if err == nil {
		o.result = o.d.location() == other.location()
	}
	return err
}

// descriptor is the descriptor in an argument.
func (o *fileOp) descriptor(arg int) (*descriptor, error) {
	h, err := o.c.handles.find(o.args[arg].(abi.Rep), o.f.Params[arg].Type.Resource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.f.Name, err)
	}
	d, ok := h.value.(*descriptor)
	if !ok {
		return nil, &TrapError{Reason: o.f.Name + " of a handle that leads nowhere"}
	}
	return d, nil
}

func openAt(o *fileOp) error {
	return o.inDirectory(o.args[2].(string), func(at string) error {
		follow, create, exclusive := o.flag(1, "symlink-follow"), o.flag(3, "create"), o.flag(3, "exclusive")
		truncate, write := o.flag(3, "truncate"), o.flag(4, "write")
		directory := o.flag(3, "directory") || endsAsDirectory(at)
		if directory && (create || truncate) {
			return o.fail(faultInvalid)
		}
		to, s, f, err := o.d.dir.follow(at, follow && (!create || !exclusive))
		switch {
		case err != nil:
			return err
		case f == faultNoEntry && create:
			return o.create(to, exclusive)
		case f != "":
			return o.fail(f)
		case create && exclusive:
			return o.fail(faultExist)
		case s.kind == kindDirectory && (create || truncate || write):
			return o.fail(faultIsDirectory)
		case s.kind == kindDirectory:
			return o.openDirectory(to)
		case directory:
			return o.fail(faultNotDirectory)
		case s.kind == kindLink:
			return o.fail(faultLoop)
		case truncate && s.size > 0:
			if over, err := o.ended(o.d.dir.just("write-bytes", to, []byte{})); over {
				return err
			}
		}
		return o.openFile(to)
	})
}

// just is do for a method whose result does not matter.
func (d *directory) just(method string, args ...abi.Value) (*abi.Error, error) {
	_, failed, err := d.do(method, args...)
	return failed, err
}

// create makes an empty file, unless somebody else has made it meanwhile.
func (o *fileOp) create(at string, exclusive bool) error {
	f, err := o.d.dir.parentThere(at)
	if err != nil {
		return err
	}
	if f != "" {
		return o.fail(f)
	}
	_, failed, err := o.d.dir.do("replace", at, "", abi.Variant{})
	switch {
	case err != nil:
		return err
	case failed == nil || failed.Code == abi.CodeConflict && !exclusive:
		return o.openFile(at)
	case failed.Code == abi.CodeConflict:
		return o.fail(faultExist)
	default:
		return o.fail(faultOf(failed))
	}
}

func (o *fileOp) openFile(at string) error {
	d := &descriptor{dir: o.d.dir.hold(), file: path.Clean(at), read: o.flag(4, "read"), write: o.flag(4, "write")}
	rep, err := o.c.addDescriptor(o.f.Result.Ok.Resource, d)
	if err != nil {
		return err
	}
	return o.ok(rep)
}

// openDirectory gets a handle of its own for a directory, so that no path leads out of it.
func (o *fileOp) openDirectory(at string) error {
	v, failed, err := o.d.dir.do("subdirectory", at)
	if over, err := o.ended(failed, err); over {
		return err
	}
	at = path.Clean(at)
	sub := &directory{call: o.c, binding: o.d.dir.binding, rep: v.(abi.Rep), parent: o.d.dir.hold(), at: at, size: o.d.dir.size + 1 + len(at)}
	rep, err := o.c.addDescriptor(o.f.Result.Ok.Resource, &descriptor{dir: sub.hold(), read: true})
	if err != nil {
		return err
	}
	return o.ok(rep)
}

func createDirectory(o *fileOp) error {
	return o.inDirectory(o.args[1].(string), func(at string) error {
		_, failed, err := o.d.dir.stat(entryPath(at))
		switch {
		case err != nil:
			return err
		case failed == nil:
			return o.fail(faultExist)
		case failed.Code != abi.CodeNotFound:
			return o.fail(faultOf(failed))
		}
		f, err := o.d.dir.parentThere(at)
		if err != nil || f != "" {
			o.result = failure(o.f.Result, f)
			return err
		}
		return o.did(o.d.dir.just("make-directory", at))
	})
}

func unlinkFile(o *fileOp) error {
	return o.inDirectory(o.args[1].(string), func(at string) error {
		s, failed, err := o.d.dir.stat(at)
		switch over, err := o.ended(failed, err); {
		case over:
			return err
		case s.kind == kindDirectory:
			return o.fail(faultIsDirectory)
		case endsAsDirectory(at):
			return o.fail(faultNotDirectory)
		}
		return o.did(o.d.dir.just("remove", at, false))
	})
}

func removeDirectory(o *fileOp) error {
	return o.inDirectory(o.args[1].(string), func(at string) error {
		at = entryPath(at)
		if endsAsDirectory(at) {
			return o.fail(faultInvalid)
		}
		s, failed, err := o.d.dir.stat(at)
		switch over, err := o.ended(failed, err); {
		case over:
			return err
		case s.kind != kindDirectory:
			return o.fail(faultNotDirectory)
		}
		return o.removeEmpty(o.d.dir, at, nil)
	})
}

// removeEmpty removes a directory, and then does something else.
func (o *fileOp) removeEmpty(d *directory, at string, then func() error) error {
	switch failed, err := d.just("remove", at, false); {
	case err != nil:
		return err
	case failed != nil && failed.Code == abi.CodeInvalid:
		return o.fail(faultNotEmpty)
	case failed != nil:
		return o.fail(faultOf(failed))
	case then != nil:
		return then()
	default:
		return o.ok(nil)
	}
}

func makeLink(o *fileOp) error {
	return o.inDirectory(o.args[2].(string), func(at string) error {
		target := o.args[1].(string)
		if f := checkPath(target); f != "" {
			return o.fail(f)
		}
		f, err := o.d.dir.parentThere(at)
		if err != nil || f != "" {
			o.result = failure(o.f.Result, f)
			return err
		}
		return o.did(o.d.dir.just("make-link", at, target))
	})
}

func readLink(o *fileOp) error {
	return o.inDirectory(o.args[1].(string), func(at string) error {
		v, failed, err := o.d.dir.do("read-link", at)
		if over, err := o.ended(failed, err); over {
			return err
		}
		return o.ok(v)
	})
}

// upTo are the directories from d up to the root of its binding.
func (d *directory) upTo() (all []*directory) {
	for ; d != nil; d = d.parent {
		all = append(all, d)
	}
	return all
}

// in is a path in d as one in a directory above it.
func (d *directory) in(above *directory, at string) string {
	for ; d != above; d = d.parent {
		at = d.at + "/" + at
	}
	return at
}

// shared is a directory in which both paths are, and the paths in it. It is nil if there is none, or if a link is on the way.
func (o *fileOp) shared(from *directory, old string, to *directory, new string) (_ *directory, _, _ string, _ error) {
	if from == to {
		return from, old, new, nil
	}
	above := to.upTo()
	for _, d := range from.upTo() {
		if !slices.Contains(above, d) {
			continue
		}
		if max(from.size-d.size+len(old), to.size-d.size+len(new)) > maxWorldPath {
			break
		}
		old, new = path.Clean(from.in(d, old)), path.Clean(to.in(d, new))
		for _, at := range []string{old, new} {
			for i := range len(at) {
				if at[i] != '/' {
					continue
				}
				s, failed, err := d.stat(at[:i])
				if err != nil || failed != nil || s.kind != kindDirectory {
					return nil, "", "", err
				}
			}
		}
		return d, old, new, nil
	}
	return nil, "", "", nil
}

func renameAt(o *fileOp) error {
	to, err := o.descriptor(2)
	if err != nil {
		return err
	}
	new := o.args[3].(string)
	if !to.isDirectory() {
		return o.fail(faultNotDirectory)
	}
	if f := checkPath(new); f != "" {
		return o.fail(f)
	}
	return o.inDirectory(o.args[1].(string), func(old string) error {
		directories := endsAsDirectory(old) || endsAsDirectory(new)
		old, new := entryPath(old), entryPath(new)
		for _, p := range []struct {
			d  *directory
			at string
		}{{o.d.dir, old}, {to.dir, new}} {
			if endsAsDirectory(p.at) {
				return o.fail(faultInvalid)
			}
			if outside := path.Clean(p.at); outside == ".." || strings.HasPrefix(outside, "../") {
				return o.did(p.d.just("stat", p.at)) // is denied, with a text that says why
			}
		}
		d, old, new, err := o.shared(o.d.dir, old, to.dir, new)
		switch {
		case err != nil:
			return err
		case d == nil:
			return o.fail(faultCrossDevice)
		}
		return o.rename(d, old, new, directories)
	})
}

// rename gives a file or directory another path in a directory. What has that path is replaced, as in any file system; a workspace does not.
func (o *fileOp) rename(d *directory, old, new string, directories bool) error {
	s, failed, err := d.stat(old)
	if over, err := o.ended(failed, err); over {
		return err
	}
	if directories && s.kind != kindDirectory {
		return o.fail(faultNotDirectory)
	}
	there, failed, err := d.stat(new)
	move := func() error { return o.did(d.just("move", old, new)) }
	switch {
	case err != nil:
		return err
	case failed != nil && failed.Code == abi.CodeNotFound:
		f, err := d.parentThere(new)
		if err != nil || f != "" {
			o.result = failure(o.f.Result, f)
			return err
		}
		return move()
	case failed != nil:
		return o.fail(faultOf(failed))
	case path.Clean(old) == path.Clean(new):
		return o.ok(nil)
	case s.kind == kindDirectory && there.kind != kindDirectory:
		return o.fail(faultNotDirectory)
	case s.kind != kindDirectory && there.kind == kindDirectory:
		return o.fail(faultIsDirectory)
	case s.kind == kindDirectory:
		return o.removeEmpty(d, new, move)
	case s.kind == kindLink || there.kind == kindLink:
		if over, err := o.ended(d.just("remove", new, false)); over {
			return err
		}
		return move()
	}
	if over, err := o.ended(d.replaceBy(new, old)); over { // nobody finds the path without a file
		return err
	}
	return o.did(d.just("remove", old, false))
}

// replaceBy gives a file the content of another, in one step.
func (d *directory) replaceBy(at, other string) (*abi.Error, error) {
	v, failed, err := d.do("read-blob", other)
	if err != nil || failed != nil {
		return failed, err
	}
	content := v.(abi.Rep)
	failed, err = d.just("write-blob", at, content)
	if h := d.call.handles.open[content]; h != nil {
		if closed := d.call.handles.remove(content).close(); err == nil {
			err = closed
		}
	}
	return failed, err
}

func readAt(o *fileOp) error {
	length, offset := o.args[1].(uint64), o.args[2].(uint64)
	b, f, err := o.c.readFile(o.d, offset, length)
	if err != nil || f != "" {
		o.result = failure(o.f.Result, f)
		return err
	}
	return o.ok([]abi.Value{b, uint64(len(b)) < min(length, abi.MaxBytes)})
}

// readFile reads at most as much as one operation returns.
func (c *call) readFile(d *descriptor, offset, length uint64) ([]byte, fault, error) {
	switch {
	case d.isDirectory():
		return nil, faultIsDirectory, nil
	case !d.read:
		return nil, faultBadDescriptor, nil
	}
	v, failed, err := d.dir.do("read-bytes", d.file, offset, uint32(min(length, abi.MaxBytes)))
	if err != nil || failed != nil {
		return nil, faultOf(failed), err
	}
	return v.([]byte), "", nil
}

func writeAt(o *fileOp) error {
	data := o.args[1].([]byte)
	f, err := o.c.writeFile(o.d, o.args[2].(uint64), data)
	if err != nil || f != "" {
		o.result = failure(o.f.Result, f)
		return err
	}
	return o.ok(uint64(len(data)))
}

// writable says why a descriptor cannot be written.
func (d *descriptor) writable() fault {
	switch {
	case d.isDirectory():
		return faultIsDirectory
	case !d.write:
		return faultBadDescriptor
	default:
		return ""
	}
}

// appendFile writes at the end of a file.
func (c *call) appendFile(d *descriptor, data []byte) (fault, error) {
	if f := d.writable(); f != "" {
		return f, nil
	}
	failed, err := d.dir.just("append-bytes", d.file, data)
	return faultOf(failed), err
}

// writeFile writes in a file. At the file's end, it is extended; elsewhere, the file is replaced.
func (c *call) writeFile(d *descriptor, offset uint64, data []byte) (fault, error) {
	if f := d.writable(); f != "" {
		return f, nil
	}
	s, failed, err := d.dir.stat(d.file)
	switch {
	case err != nil || failed != nil:
		return faultOf(failed), err
	case s.kind != kindFile:
		return faultIO, nil // something else has its path by now
	case len(data) == 0:
		return "", nil
	case offset >= s.size:
		return d.extend(s.size, offset, data)
	}
	end := offset + uint64(len(data))
	return d.rewrite(max(s.size, end), []span{{from: 0, to: offset}, {data: data}, {from: end, to: max(s.size, end)}})
}

// extend adds data at an offset beyond the end of the file, after zeros.
func (d *descriptor) extend(size, offset uint64, data []byte) (fault, error) {
	if offset-size > maxRewrite {
		return faultTooLarge, nil
	}
	for size < offset || len(data) > 0 {
		zeros := min(offset-size, abi.MaxBytes)
		piece := make([]byte, zeros, zeros+uint64(len(data)))
		if size += zeros; size == offset {
			n := min(len(data), int(abi.MaxBytes-zeros))
			piece, data = append(piece, data[:n]...), data[n:]
			size += uint64(n)
			offset = size
		}
		failed, err := d.dir.just("append-bytes", d.file, piece)
		if err != nil || failed != nil {
			return faultOf(failed), err
		}
	}
	return "", nil
}

// span is a part of a file that is written again: of the file as it was, or other data.
type span struct {
	from, to uint64
	data     []byte
}

// rewrite gives a file another content of a size. A large one is written beside the file first, in pieces, so that the file is always
// whole, and so that no more than a piece is in memory.
func (d *descriptor) rewrite(size uint64, spans []span) (fault, error) {
	var piece bytes.Buffer
	switch {
	case size > maxRewrite:
		return faultTooLarge, nil
	case size <= abi.MaxBytes:
		f, err := d.pieces(spans, &piece, nil)
		if err != nil || f != "" {
			return f, err
		}
		failed, err := d.dir.just("write-bytes", d.file, piece.Bytes())
		return faultOf(failed), err
	}
	beside, f, err := d.beside()
	if err != nil || f != "" {
		return f, err
	}
	put := func() (fault, error) {
		failed, err := d.dir.just("append-bytes", beside, bytes.Clone(piece.Bytes()))
		piece.Reset()
		return faultOf(failed), err
	}
	f, err = d.pieces(spans, &piece, put)
	if err == nil && f == "" {
		f, err = put()
	}
	if err == nil && f == "" {
		var failed *abi.Error
		failed, err = d.dir.replaceBy(d.file, beside)
		f = faultOf(failed)
	}
	if err != nil {
		return "", err
	}
	if failed, err := d.dir.just("remove", beside, false); err != nil || f != "" {
		return f, err
	} else {
		return faultOf(failed), nil
	}
}

// beside makes an empty file that nobody else uses, in the directory of the descriptor's file.
func (d *descriptor) beside() (string, fault, error) {
	for n := range maxBeside {
		at := path.Join(path.Dir(d.file), fmt.Sprintf("stile-rewrite-%d", n))
		_, failed, err := d.dir.do("replace", at, "", abi.Variant{})
		if err != nil || failed == nil || failed.Code != abi.CodeConflict {
			return at, faultOf(failed), err
		}
	}
	return "", faultBusy, nil
}

// pieces joins spans in a buffer. It calls put when the buffer is full.
func (d *descriptor) pieces(spans []span, piece *bytes.Buffer, put func() (fault, error)) (fault, error) {
	for _, s := range spans {
		for s.from < s.to || len(s.data) > 0 {
			room := uint64(abi.MaxBytes - piece.Len())
			if room == 0 {
				if f, err := put(); err != nil || f != "" {
					return f, err
				}
				continue
			}
			if n := min(room, uint64(len(s.data))); n > 0 {
				piece.Write(s.data[:n])
				s.data = s.data[n:]
				continue
			}
			v, failed, err := d.dir.do("read-bytes", d.file, s.from, uint32(min(room, s.to-s.from)))
			if err != nil || failed != nil {
				return faultOf(failed), err
			}
			got := v.([]byte)
			if len(got) == 0 { // it has become shorter
				break
			}
			piece.Write(got)
			s.from += uint64(len(got))
		}
	}
	return "", nil
}

func setSize(o *fileOp) error {
	f, err := o.c.setFileSize(o.d, o.args[1].(uint64))
	if err != nil || f != "" {
		o.result = failure(o.f.Result, f)
		return err
	}
	return o.ok(nil)
}

func (c *call) setFileSize(d *descriptor, size uint64) (fault, error) {
	if f := d.writable(); f != "" {
		return f, nil
	}
	s, failed, err := d.dir.stat(d.file)
	switch {
	case err != nil || failed != nil:
		return faultOf(failed), err
	case s.kind != kindFile:
		return faultIO, nil
	case size == s.size:
		return "", nil
	case size > s.size:
		return d.extend(s.size, size, nil)
	default:
		return d.rewrite(size, []span{{from: 0, to: size}})
	}
}

// listing is a directory that the guest reads. It keeps one page.
type listing struct {
	dir     *directory
	entries []listed
	cursor  abi.Value // option<string>
	ended   bool
}

type listed struct {
	name string
	kind uint32
}

// Size implements [abi.Sized].
func (l *listing) Size() int { return l.dir.size }

// Close implements [io.Closer].
func (l *listing) Close() error {
	l.dir.call.world.listings--
	return l.dir.drop()
}

// readDirectory begins a listing. Its first page is read at once, so that a directory that cannot be read fails here.
func readDirectory(o *fileOp) error {
	if !o.d.isDirectory() {
		return o.fail(faultNotDirectory)
	}
	w := o.c.wasi()
	if w.listings >= maxListings {
		return o.fail(faultNoMemory)
	}
	l := &listing{dir: o.d.dir, cursor: abi.Variant{}}
	if over, err := o.ended(l.next()); over {
		return err
	}
	w.listings++
	l.dir.hold()
	rep, err := o.c.addDescriptor(o.f.Result.Ok.Resource, l)
	if err != nil {
		return err
	}
	return o.ok(rep)
}

// next reads a page.
func (l *listing) next() (*abi.Error, error) {
	v, failed, err := l.dir.do("list", "", uint32(listingPage), l.cursor)
	if err != nil || failed != nil {
		return failed, err
	}
	page := v.([]abi.Value)
	l.cursor, l.ended = page[1], page[1].(abi.Variant).Case == 0
	for _, e := range page[0].([]abi.Value) {
		fields := e.([]abi.Value)
		l.entries = append(l.entries, listed{fields[0].(string), statusOf(fields[1]).kind})
	}
	return nil, nil
}

func readEntry(c *call, f *abi.Func, args []abi.Value) (abi.Value, error) {
	h, err := c.handles.find(args[0].(abi.Rep), f.Params[0].Type.Resource)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	l, ok := h.value.(*listing)
	if !ok {
		return nil, &TrapError{Reason: f.Name + " of a handle that leads nowhere"}
	}
	for len(l.entries) == 0 {
		if l.ended {
			return okResult(abi.Variant{}), nil
		}
		if failed, err := l.next(); err != nil || failed != nil {
			return failure(f.Result, faultOf(failed)), err
		}
	}
	e := l.entries[0]
	if l.entries = l.entries[1:]; len(l.entries) == 0 {
		l.entries = nil
	}
	entry := f.Result.Ok.Elem
	return okResult(abi.Variant{Case: 1, Value: []abi.Value{typeOf(entry.Fields[0].Type, e.kind), e.name}}), nil
}
