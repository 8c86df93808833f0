package durable

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/lease"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

// File is the name of the file in [Options.Dir].
const File = "runs.db"

// Options configure [Open].
type Options struct {
	// Dir is the folder of the file. It must exist, and only its owner may have access.
	Dir string
	// Key is the owner's key, of [KeySize] bytes.
	Key []byte
	// Host runs the calls of components. Without it, this process works on no runs of components.
	Host *host.Host
	// Request returns the authority of a run, each time when it goes on. An error parks the run, unless it is the end of ctx.
	Request func(ctx context.Context, run Info) (Authority, error)
	// Functions are the Go code of runs, by name. This process works on runs of these, beside those of components.
	Functions map[string]Function
	// Live is how many runs may be live or wait with memory in this process. Default 100.
	Live int
	// Idle is how long a run waits before it sleeps. Default 1 s.
	Idle time.Duration
	// Crashes is how many processes a run may outlive without sleeping or ending before it is parked. From half of them on, a process has one such run at a time, so that
	// others are not parked with the one that crashes it. Default 5.
	Crashes int
	// MaxEnded is how many runs are kept that have ended, and MaxEndedBytes how many bytes their inputs and results take. Those that ended first are
	// removed, and their keys forgotten. Of those of one [Spec.Whose], a tenth of that is kept. Default 10,000 runs and 256 MiB.
	MaxEnded      int
	MaxEndedBytes int64
	// MaxAsleepBytes is how many bytes the states of sleeping runs of one [Spec.Whose] take, with those of their children. A run that would sleep with more ends
	// with the limit "disk". Default 1 GiB.
	MaxAsleepBytes int64
	// MaxLogBytes is how long the log of a run may grow until the run sleeps, as it is on the disk. A run that goes beyond it ends with the limit "disk". Default 256 MiB.
	MaxLogBytes int64
	// URL is what addresses of mailboxes begin with, up to their tokens, such as "https://hooks.example.com/signals/". Whatever serves it calls
	// [Runs.Post]. Default: mailboxes have no addresses.
	URL string
	// Secret returns the secret of a name, for addresses whose posts must be signed. It is called for each post. If it fails, the post is refused. Default: all such
	// posts are.
	Secret func(ctx context.Context, name string) (string, error)
	// Now is the wall clock, by which runs sleep and end. Default [time.Now].
	Now func() time.Time
	// Logger receives what is not reported to anybody. Default: nothing is logged.
	Logger *slog.Logger
}

// Authority is what a run may do at a time.
type Authority struct {
	// Request has the env, vars, limits and approved definitions. It sets neither tool nor input. After an error of its Begin, the run goes on from
	// where it was, with new authority.
	Request host.Request
	// Context, if not nil, is what the call runs under. It must end with the context that [Options.Request] got. If it ends before that, the authority was
	// taken away: the call ends, and the run is parked with the cause.
	Context context.Context
	// Release, if not nil, is called when the call is over, whether the run goes on later or not.
	Release func()
	// Caller, if not nil, says what the parent of a child gets of an error with which it ended: nil if nothing better than [Result.Err] is known. If the authority of a child
	// that has a Caller is taken away, the child ends with the cause instead of being parked.
	Caller func(error) *abi.Error
	// Ended, if not nil, is called after that if the run has ended, with the result of its call.
	Ended func(host.Result, error)
}

// DefaultDeadline is how long a run may take.
const DefaultDeadline = 30 * 24 * time.Hour

// Runs is a store of runs, and what works on them. It is safe for concurrent use. Its opener closes it.
type Runs struct {
	o         Options
	db        *sqlite.DB
	sealer    *sealer
	owner     string           // the name of holder
	secret    string           // of [abi.Once.Key]
	addresses []*regexp.Regexp // of mailboxes, as they are in texts for people
	holder    *lease.Holder
	log       *slog.Logger
	now       func() time.Time

	functions []string // the names of Options.Functions, and "" for components if there is a host

	base   context.Context // never ends
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	all    sync.WaitGroup
	poke   chan struct{}
	ended  atomic.Int64 // runs that ended since the last look for what is to be removed
	untidy chan struct{}

	mu       sync.Mutex
	active   map[int64]*active
	seats    map[*seat]struct{} // for runs that become active in the transaction that writes them down
	changed  chan struct{}      // closed when a run of this process ends or sleeps
	waits    map[string]*wait   // for runs, by name
	working  bool
	draining bool     // this process takes no more runs
	only     []string // the runs that this process works on; nil for all
	codes    map[string]*code
	watches  map[watched]map[*watch]struct{}

	writer writer
}

// Open opens the store, and makes its file if there is none. It works on no run until [Runs.Work].
func Open(ctx context.Context, o Options) (*Runs, error) {
	o.MaxEnded, o.MaxEndedBytes = cmp.Or(o.MaxEnded, 10_000), cmp.Or(o.MaxEndedBytes, 256<<20)
	o.MaxAsleepBytes, o.MaxLogBytes = cmp.Or(o.MaxAsleepBytes, 1<<30), cmp.Or(o.MaxLogBytes, 256<<20)
	o.Live, o.Idle, o.Crashes = cmp.Or(o.Live, 100), cmp.Or(o.Idle, time.Second), cmp.Or(o.Crashes, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := newSealer(o.Key)
	if err != nil {
		return nil, err
	}
	db, err := o.reserved().Open(ctx, filepath.Join(o.Dir, File), schema)
	if err != nil {
		return nil, err
	}
	holder, err := lease.New(o.Dir)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	r := &Runs{
		o: o, db: db, sealer: s, owner: holder.Name, holder: holder, log: o.Logger, now: o.Now, poke: make(chan struct{}, 1), untidy: make(chan struct{}, 1),
		active: map[int64]*active{}, seats: map[*seat]struct{}{}, changed: make(chan struct{}), waits: map[string]*wait{}, codes: map[string]*code{}, watches: map[watched]map[*watch]struct{}{},
	}
	if err := lease.Sweep(o.Dir); err != nil {
		o.Logger.Warn("files of processes that have ended are not removed", "error", err)
	}
	r.functions = slices.AppendSeq([]string{}, maps.Keys(o.Functions))
	if o.Host != nil {
		r.functions = append(r.functions, "")
	}
	r.addresses = addressesIn(o.URL)
	mac := hmac.New(sha256.New, o.Key)
	_, _ = mac.Write([]byte("stile runs: keys of operations")) // it never fails
	r.secret = string(mac.Sum(nil))
	r.writer.runs = r
	r.base = context.WithoutCancel(ctx)
	r.ctx, r.cancel = context.WithCancel(r.base)
	if err := o.reserved().Fill(); err != nil {
		o.Logger.Warn("hold room for cancelling and removing runs on a full disk", "error", err)
	}
	return r, nil
}

// Close ends the calls of this process. Their runs go on in the next. It waits for them, and for work in progress.
func (r *Runs) Close() error {
	r.mu.Lock()
	r.cancel() // no run is reserved after that
	r.mu.Unlock()
	r.all.Wait()
	r.writer.close()
	r.mu.Lock()
	codes := r.codes
	r.codes = nil
	r.mu.Unlock()
	var errs []error
	for _, c := range codes {
		errs = append(errs, c.close())
	}
	ctx := r.base
	if err := r.db.Update(ctx, func(c *sqlite.Conn) error {
		_, err := c.Exec(ctx, `DELETE FROM owner WHERE name = ?`, r.owner)
		return err
	}); err != nil { // its lock is free, so others see that it has ended
		r.log.Warn("a process could not be taken off the list of those that work on runs", "error", err)
	}
	err := errors.Join(append(errs, r.db.Close(), r.holder.Close())...)
	_ = r.o.reserved().Fill() // takes back what an open store takes on a full disk; the next process warns of what is missing
	return err
}

// reserved is disk space with which a person can look at runs, and cancel and remove them, on a full disk.
func (o Options) reserved() sqlite.Reserve {
	return sqlite.Reserve(filepath.Join(o.Dir, "runs.reserve"))
}

// insist changes the store for a person: on a full disk, with what is reserved.
func (r *Runs) insist(change func() error) error {
	err := change()
	for errors.Is(err, abi.ErrUnavailable) && r.o.reserved().Free() {
		err = change()
	}
	return err
}

// updateInsisting is an Update for a person.
func (r *Runs) updateInsisting(ctx context.Context, f func(*sqlite.Conn) error) error {
	return r.insist(func() error { return r.db.Update(ctx, f) })
}

// Spec is a run to start.
type Spec struct {
	// Key, if not empty, names the run for whoever starts it: to start it again finds the same run.
	Key string
	// Component is the code, and Modules the core modules that it imports.
	Component Code
	Modules   Modules
	Tool      string
	// Function, instead of a component and a tool, is the name of Go code. The run goes on in processes that have it among [Options.Functions].
	Function string
	// Input is JSON. An empty one means `{}`.
	Input []byte
	// Target is for [Options.Request]: where the authority of the run comes from.
	Target string
	// Pinned is for [Options.Request] too. A run of the same key may have another.
	Pinned string
	// Whose, if not empty, says who starts it, who may have at most Most runs that have not ended. [Runs.ListOf] finds them.
	Whose string
	Most  int
	// Deadline is how long the run may take. Default [DefaultDeadline].
	Deadline time.Duration
	// Retry says whether the run begins again when it fails. Default: it does not.
	Retry Retry
}

// Code is a component. [CodeOf] makes one of its bytes.
type Code struct {
	// Digest is its SHA-256 in hex.
	Digest string
	// Read returns its bytes. The store calls it if it does not have them yet.
	Read func(context.Context) ([]byte, error)
}

// CodeOf returns the code with these bytes, which must not change. It takes time to digest them: keep it, to start many runs of it.
func CodeOf(wasm []byte) Code {
	return Code{sha256hex.Of(wasm), func(context.Context) ([]byte, error) { return wasm, nil }}
}

// Modules are core modules, by their [host.ModuleName]. The store calls those that it does not have yet for their bytes.
type Modules map[string]func(context.Context) ([]byte, error)

// KeyError reports a key with which another run was started.
type KeyError struct{ Key, Run string }

func (e *KeyError) Error() string {
	return fmt.Sprintf("the key %q belongs to run %s, which has another tool or input; use another key", e.Key, e.Run)
}

// SpecError reports a run that cannot be started, because what [Spec] says is wrong.
type SpecError struct{ Reason string }

func (e *SpecError) Error() string { return e.Reason }

// CrowdedError reports a run that was not started, because whoever starts it has as many as they may have.
type CrowdedError struct{ Most int }

func (e *CrowdedError) Error() string {
	return fmt.Sprintf("limit reached: %d runs that have not ended; end some, or wait", e.Most)
}

// digestOf is what the file has of the name of somebody who starts runs.
func digestOf(whose string) string {
	if whose == "" {
		return ""
	}
	return sha256hex.Of([]byte(whose))
}

// maxKey is the longest key in bytes.
const maxKey = 256

// Start writes a run down. It goes on in whichever process works on the store. existed says that the key already names it. It fails with a *[SpecError], a
// *[KeyError] or a *[CrowdedError] if there can be no such run.
func (r *Runs) Start(ctx context.Context, s Spec) (info Info, existed bool, err error) {
	for _, own := range []string{"schedule:", childPrefix, startedPrefix} {
		if strings.HasPrefix(s.Key, own) {
			return Info{}, false, &SpecError{fmt.Sprintf("keys that begin with %q are those of the store itself; use another", own)}
		}
	}
	w, err := r.written(s)
	if err != nil {
		return Info{}, false, &SpecError{err.Error()}
	}
	var mine *seat
	if slices.Contains(r.functions, s.Function) {
		mine = r.reserve()
		defer mine.free()
	}
	var found row
	if err := r.updateWith(ctx, w, func(c *sqlite.Conn) (err error) {
		found, existed, err = r.insert(ctx, c, w, mine)
		return err
	}); err != nil {
		return Info{}, false, err
	}
	if mine != nil && !existed {
		found.parts = &parts{}
		r.adopt(found) //nolint:contextcheck // it ends with the store
	}
	if info, err = r.info(found); err != nil {
		return Info{}, existed, err
	}
	if existed && !w.is(info) {
		return info, true, &KeyError{s.Key, info.Name}
	}
	if mine == nil {
		r.wake()
	}
	return info, existed, nil
}

// seat is room for a run that this process starts or wakes, and takes in the same transaction.
type seat struct {
	runs *Runs
	run  int64 // once it is known
}

// reserve returns a seat, which must be freed. It is nil if there is none: then whichever process has room takes the run later.
func (r *Runs) reserve() *seat {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.working || r.only != nil || r.draining || r.ctx.Err() != nil || len(r.active)+len(r.seats) >= r.o.Live {
		return nil
	}
	s := &seat{runs: r}
	r.seats[s] = struct{}{}
	r.all.Add(1)
	return s
}

// is says whose the seat is. Call it in the transaction, so that nobody finds a run that belongs to this process and that nobody works on.
func (s *seat) is(run int64) {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	s.run = run
}

func (s *seat) free() {
	if s == nil {
		return
	}
	s.runs.mu.Lock()
	delete(s.runs.seats, s)
	s.runs.mu.Unlock()
	s.runs.tell("")
	s.runs.all.Done()
}

// writtenRun is a run that is about to be written down.
type writtenRun struct {
	spec     spec
	key      string
	code     string            // the component's digest
	bodies   []Code            // that and its modules
	packed   map[string][]byte // those that may not be in the file yet, by digest
	deadline time.Duration
	schedule string // that starts it
	whose    string // a digest, if not empty, of who may have so many at a time
	most     int
	started  bool // by code
	parent   *row // of a child
}

// is reports whether a run is of the same.
func (w writtenRun) is(i Info) bool {
	return i.Tool == w.spec.Tool && i.Function == w.spec.Function && i.Target == w.spec.Target && string(i.Input) == string(w.spec.Input)
}

// written checks what is to be started.
func (r *Runs) written(s Spec) (w writtenRun, err error) {
	if len(s.Input) == 0 {
		s.Input = []byte("{}")
	}
	switch {
	case len(s.Key) > maxKey:
		return w, fmt.Errorf("the key of a run has %d bytes; %d are allowed", len(s.Key), maxKey)
	case len(s.Function) > maxFunction:
		return w, fmt.Errorf("the name of a function has %d bytes; %d are allowed", len(s.Function), maxFunction)
	case s.Function != "" && (s.Component.Digest != "" || s.Modules != nil || s.Tool != ""):
		return w, errors.New("a run is of a component or of a function, not of both")
	case s.Function == "" && s.Component.Digest == "":
		return w, errors.New("a run is of a component or of a function; there is neither")
	case len(s.Input) > maxValue:
		return w, fmt.Errorf("the input of a run has %s; %s are allowed", printable.Size(int64(len(s.Input))), printable.Size(maxValue))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, s.Input); err != nil {
		return w, fmt.Errorf("the input of a run is not JSON: %w", err)
	}
	if err := s.Retry.Check(); err != nil {
		return w, fmt.Errorf("retry: %w", err)
	}
	w = writtenRun{
		spec: spec{Tool: s.Tool, Function: s.Function, Target: s.Target, Pinned: s.Pinned, Input: compact.Bytes(), Retry: s.Retry, Modules: map[string]string{}},
		key:  s.Key, packed: map[string][]byte{}, deadline: cmp.Or(s.Deadline, DefaultDeadline),
		whose: digestOf(s.Whose), most: s.Most,
	}
	if s.Function == "" {
		w.code = s.Component.Digest
		w.bodies = append(w.bodies, s.Component)
	}
	for name, read := range s.Modules {
		digest, ok := host.ModuleDigest(name)
		if !ok {
			return w, fmt.Errorf("%q is no name of a module", printable.Short(name, 100))
		}
		w.spec.Modules[name] = digest
		w.bodies = append(w.bodies, Code{digest, read})
	}
	return w, nil
}

// updateWith is a transaction that keeps the code of a run.
func (r *Runs) updateWith(ctx context.Context, w writtenRun, write func(*sqlite.Conn) error) (err error) {
	for err = errNoCode; errors.Is(err, errNoCode); { // another process may remove code meanwhile
		if err = r.packCode(ctx, w.bodies, w.packed); err == nil {
			err = r.db.Update(ctx, write)
		}
	}
	return err
}

// keep writes the code of a run down.
func (w writtenRun) keep(ctx context.Context, c *sqlite.Conn) error {
	return keepCode(ctx, c, w.code, w.spec.Modules, w.packed)
}

// room fails if whoever starts the run has as many as they may have.
func (w writtenRun) room(ctx context.Context, c *sqlite.Conn) error {
	if w.started {
		return w.roomStarted(ctx, c)
	}
	var n int
	const live = `SELECT count(*) FROM run WHERE whose = ? AND state IN ('ready', 'running', 'asleep')`
	if err := c.Row(ctx, live, w.whose).Scan(&n); err != nil {
		return err
	}
	if n >= w.most {
		return &CrowdedError{w.most}
	}
	return nil
}

// insert writes a run down, or finds the one of its key. With a seat, a new run belongs to this process.
func (r *Runs) insert(ctx context.Context, c *sqlite.Conn, w writtenRun, mine *seat) (found row, existed bool, err error) {
	if w.key != "" {
		err := c.Row(ctx, `SELECT `+rowColumns+` FROM run WHERE key = ?`, w.key).Scan(found.fields()...)
		if err == nil || !errors.Is(err, sql.ErrNoRows) {
			return found, err == nil, err
		}
	}
	if w.whose != "" {
		if err := w.room(ctx, c); err != nil {
			return found, false, err
		}
	}
	if err := w.keep(ctx, c); err != nil {
		return found, false, err
	}
	what := w.spec
	what.Lasts = w.deadline
	text, err := json.Marshal(what)
	if err != nil {
		return found, false, fmt.Errorf("write a run down: %w", err)
	}
	name, now := newName(), r.now()
	deadline := now.Add(w.deadline).UnixMilli()
	var parent, root sql.NullInt64
	if w.parent != nil {
		parent, root = sql.NullInt64{Int64: w.parent.id, Valid: true}, sql.NullInt64{Int64: w.parent.top(), Valid: true}
		deadline = w.parent.deadline
	}
	sealed := r.sealer.seal(place{run: name, kind: "spec"}, text)
	start := r.sealer.seal(place{run: name, kind: "head", after: tag(sealed)}, head{attempt: 1}.text())
	state, owner := Ready, ""
	if mine != nil {
		state, owner = Running, r.owner
		if err := r.alive(ctx, c); err != nil {
			return found, false, err
		}
	}
	const query = `INSERT INTO run (name, key, state, created, changed, deadline, owner, fence, code, function, schedule, spec, head, whose, parent, root) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING ` + rowColumns
	err = c.Row(ctx, query, name, nullable(w.key), state, now.UnixMilli(), now.UnixMilli(), deadline, nullable(owner), mine != nil, w.code, nullable(w.spec.Function), nullable(w.schedule),
		sealed, start, w.whose, parent, root).Scan(found.fields()...)
	if mine != nil {
		mine.is(found.id)
	}
	return found, false, err
}

func nullable(s string) sql.NullString { return sql.NullString{String: s, Valid: s != ""} }

// newName is the name of a run: 80 random bits.
func newName() string {
	b := make([]byte, 10)
	_, _ = rand.Read(b) // never fails
	return strings.ToLower(base32.StdEncoding.EncodeToString(b))
}

// wake has this process look for runs to work on.
func (r *Runs) wake() {
	select {
	case r.poke <- struct{}{}:
	default:
	}
}

// tell wakes those who wait for a run.
func (r *Runs) tell(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.changed)
	r.changed = make(chan struct{})
	if w := r.waits[name]; w != nil {
		close(w.changed)
		delete(r.waits, name)
	}
}

// wait is what callers wait for with the end of a run.
type wait struct {
	changed chan struct{} // closed when the run changes
	callers int
}

// waitFor returns what is closed when a run of this process changes. done must follow.
func (r *Runs) waitFor(name string) (changed <-chan struct{}, done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waits[name]
	if w == nil {
		w = &wait{changed: make(chan struct{})}
		r.waits[name] = w
	}
	w.callers++
	return w.changed, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if w.callers--; w.callers == 0 && r.waits[name] == w {
			delete(r.waits, name)
		}
	}
}

// info is what is known of a run, with what it was started with.
func (r *Runs) info(w row) (Info, error) {
	s, err := r.spec(w)
	return w.info(s), err
}

func (w row) info(s spec) Info {
	i := Info{
		Name: w.name, Key: w.key.String, State: w.state, Created: timeOf(w.created), Changed: timeOf(w.changed), Deadline: timeOf(w.deadline), Reason: w.reason, Component: w.code,
		Tool: s.Tool, Function: s.Function, Target: s.Target, Pinned: s.Pinned, Input: s.Input, Retry: s.Retry, Parent: s.Parent,
		Cancelled: w.cancel && !w.state.Final(), Blocked: w.blocked,
	}
	if strings.HasPrefix(i.Key, startedPrefix) { // which means nothing to anybody
		i.Key = ""
	}
	if w.ends.Valid && i.Cancelled {
		i.Ends = timeOf(w.ends.Int64)
	}
	if !slices.Contains([]State{Ready, Running, Asleep, Done, Failed, Cancelled, Parked}, w.state) {
		i.State = "unknown" // somebody changed the file, and people read this
	}
	if w.wake.Valid && w.state == Asleep && w.wake.Int64 <= w.deadline {
		i.Wake = timeOf(w.wake.Int64)
	}
	return i
}

func (r *Runs) spec(w row) (s spec, err error) {
	text, err := r.sealer.open(place{run: w.name, kind: "spec"}, w.spec)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read run %s: %w", w.name, err)
	}
	return s, nil
}

// Get returns what is known of a run. It fails with an *[UnknownError] if there is none of that name.
func (r *Runs) Get(ctx context.Context, name string) (Info, error) {
	var w row
	err := r.db.Read(ctx, func(c *sqlite.Conn) (err error) {
		if w, err = findRun(ctx, c, name); err == nil {
			err = w.block(ctx, c)
		}
		return err
	})
	if err != nil {
		return Info{}, err
	}
	return r.info(w)
}

// List returns runs that are no children, the newest first: at most limit, and those before a name if it is not empty.
func (r *Runs) List(ctx context.Context, before string, limit int) ([]Info, error) {
	return r.list(ctx, `parent IS NULL`, before, limit)
}

// ListAll is List with children.
func (r *Runs) ListAll(ctx context.Context, before string, limit int) ([]Info, error) {
	return r.list(ctx, `true`, before, limit)
}

// ListOf is List for the runs of whoever started them: see [Spec.Whose].
func (r *Runs) ListOf(ctx context.Context, whose, before string, limit int) ([]Info, error) {
	if whose == "" {
		return r.List(ctx, before, limit)
	}
	return r.list(ctx, `whose = ? AND whose <> ''`, before, limit, digestOf(whose))
}

func (r *Runs) list(ctx context.Context, which, before string, limit int, args ...any) ([]Info, error) {
	return r.listed(ctx, func(c *sqlite.Conn) (string, []any, error) {
		from := int64(1) << 62
		if before != "" {
			w, err := findRun(ctx, c, before)
			if err != nil {
				return "", nil, err
			}
			from = w.id
		}
		return `WHERE ` + which + ` AND id < ? ORDER BY id DESC LIMIT ?`, append(args, from, limit), nil
	})
}

// listed returns the runs that a part of a query selects.
func (r *Runs) listed(ctx context.Context, which func(*sqlite.Conn) (where string, args []any, err error)) ([]Info, error) {
	var rows []row
	err := r.db.Read(ctx, func(c *sqlite.Conn) error {
		where, args, err := which(c)
		if err != nil {
			return err
		}
		rows, err = runsWhere(ctx, c, where, args...)
		for i := 0; i < len(rows) && err == nil; i++ {
			err = rows[i].block(ctx, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	list := make([]Info, 0, len(rows))
	for _, w := range rows {
		i, err := r.info(w)
		if err != nil {
			i.Unreadable = err.Error()
		}
		list = append(list, i)
	}
	return list, nil
}

// Result is how a run ended.
type Result struct {
	Info
	// Output is JSON, if the state is [Done].
	Output json.RawMessage `json:"output,omitempty"`
	// Outcome says it otherwise.
	Outcome host.Outcome `json:"outcome"`
	Usage   host.Usage   `json:"usage,omitzero"`
	// Attempts are those that have failed before.
	Attempts []Attempt `json:"attempts,omitempty"`
	// Mailboxes are those from which a sleeping run waits for messages.
	Mailboxes []string `json:"mailboxes,omitempty"`
	// Awaited are the runs that a sleeping run has started and waits for.
	Awaited []string `json:"awaited,omitempty"`

	ended ended
}

// WaitsFor says for which signals and runs a sleeping run waits. It is empty if it waits for neither.
func (r Result) WaitsFor() string {
	var waits []string
	if len(r.Mailboxes) > 0 {
		waits = append(waits, "signals in "+printable.Short(strings.Join(r.Mailboxes, ", "), 500))
	}
	if len(r.Awaited) > 0 {
		waits = append(waits, "the end of "+printable.Short(strings.Join(r.Awaited, ", "), 500))
	}
	return strings.Join(waits, ", and for ")
}

// Wait returns how a run ended, once it has. The end of ctx does not end the run.
func (r *Runs) Wait(ctx context.Context, name string) (Result, error) {
	poll := time.NewTicker(pollTime) // another process may work on it
	defer poll.Stop()
	for {
		changed, done := r.waitFor(name)
		result, err := r.Result(ctx, name)
		for over := err != nil || result.State.Final(); !over; {
			select {
			case <-changed:
				over = true
			case <-poll.C:
				over, err = r.over(ctx, name)
			case <-ctx.Done():
				over, err = true, ctx.Err()
			}
		}
		done()
		if err != nil || result.State.Final() {
			return result, err
		}
	}
}

// over reports whether a run has ended. It costs less than its result.
func (r *Runs) over(ctx context.Context, name string) (over bool, err error) {
	err = r.db.Read(ctx, func(c *sqlite.Conn) error {
		var s State
		err := c.Row(ctx, `SELECT state FROM run WHERE name = ?`, name).Scan(&s)
		over = s.Final() || errors.Is(err, sql.ErrNoRows)
		if over {
			err = nil
		}
		return err
	})
	return over, err
}

// pollTime is how often a process looks for what others did.
const pollTime = 200 * time.Millisecond

// Result returns where a run is, and how it ended if it has.
func (r *Runs) Result(ctx context.Context, name string) (result Result, err error) {
	var w row
	var body []byte
	var lost error // the attempts
	err = r.db.View(ctx, func(c *sqlite.Conn) (err error) {
		if w, err = findRun(ctx, c, name); err != nil {
			return err
		}
		if err := w.block(ctx, c); err != nil {
			return err
		}
		result.Attempts, lost = r.attempts(ctx, c, w)
		result.Mailboxes, result.Awaited = nil, nil
		if w.state == Asleep {
			result.Mailboxes, result.Awaited, err = waitsOf(ctx, c, w.id)
			return err
		}
		err = c.Row(ctx, `SELECT body FROM outcome WHERE run = ?`, w.id).Scan(&body)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	result.Info, err = r.info(w)
	if err = cmp.Or(err, lost); err != nil || body == nil {
		return result, err
	}
	text, err := r.sealer.open(place{run: w.name, kind: "outcome"}, body)
	var e ended
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil {
		return result, fmt.Errorf("read the result of run %s: %w", name, err)
	}
	result.Output, result.Outcome, result.Usage, result.ended = e.Output, e.Outcome, e.Usage, e
	return result, nil
}

// Grace is how long a run goes on that listens for its cancellation, by default.
const Grace = 30 * time.Second

// Cancel is [Runs.CancelWithin] with [Grace].
func (r *Runs) Cancel(ctx context.Context, name string) (bool, error) {
	return r.CancelWithin(ctx, name, Grace)
}

// CancelWithin asks for the end of a run. A call that is running ends; a sleeping one goes on no more. A run that listens is told instead, and goes on for at
// most so long to clean up: asleep or awake, from when a process tells it, and anew if that process ends. To ask again can shorten that, and 0 ends the run at once. However it
// then ends, it was cancelled. It reports false if the run has already ended.
func (r *Runs) CancelWithin(ctx context.Context, name string, grace time.Duration) (bool, error) {
	return r.cancelAs(ctx, reach{}, name, grace)
}

func (r *Runs) cancelAs(ctx context.Context, by reach, name string, grace time.Duration) (bool, error) {
	asked, told := false, false
	var w row
	if err := r.db.Read(ctx, func(c *sqlite.Conn) (err error) {
		w, err = by.find(ctx, c, name)
		return err
	}); err != nil {
		return false, err
	}
	end := func(c *sqlite.Conn, k cuts) error {
		if w.state.Final() && w.state != Parked {
			return nil
		}
		asked = true
		if told = w.listens && grace > 0 && w.state != Parked; told {
			if _, err := r.deliver(ctx, c, w, abi.CancelMailbox, Message{Data: json.RawMessage("null"), Key: "cancel"}); err != nil {
				return err
			}
			const query = `UPDATE run SET cancel = 1, grace = min(ifnull(grace, ?1), ?1), ends = iif(state = 'running' OR ends IS NOT NULL, min(ifnull(ends, ?2), ?2), NULL),
				state = iif(state = 'asleep', 'ready', state), wake = NULL WHERE id = ?3`
			_, err := c.Exec(ctx, query, grace.Milliseconds(), r.now().Add(grace).UnixMilli(), w.id)
			return err
		}
		if w.state == Running {
			_, err := c.Exec(ctx, `UPDATE run SET cancel = 1, listens = 0 WHERE id = ?`, w.id)
			return err
		}
		return r.finish(ctx, c, w.name, Cancelled, ended{Outcome: host.Outcome{Kind: "cancelled", Message: ErrCancelled.Error()}}, k)
	}
	update := r.db.Update
	if by == (reach{}) { // a guest cannot use up what is reserved for people
		update = r.updateInsisting
	}
	write := func(c *sqlite.Conn, k cuts) (err error) {
		asked, told = false, false
		if w, err = by.find(ctx, c, name); err != nil {
			return err
		}
		did, err := by.once(ctx, c, func() (reached, error) {
			err := end(c, k)
			return reached{answer: asked}, err
		})
		asked = did.answer
		return err
	}
	err := update(ctx, func(c *sqlite.Conn) error { return write(c, nil) })
	if errors.Is(err, errGoneOn) { // it ends here, and there is a log to cut
		err = r.updateCut(ctx, update, w.id, nil, write)
	}
	if err == nil && told {
		r.announce(watched{name, abi.CancelMailbox})
	}
	r.tell(name)
	if asked && !told && w.state != Running {
		r.announceEnd(w)
	}
	r.wake()
	return asked, err
}

// announceEnd has this process see the messages about the end of a run.
func (r *Runs) announceEnd(w row) {
	if parent, mailbox, ok := parentOf(w.key.String); ok {
		r.announce(watched{parent, mailbox})
	}
	var waiting []watched
	r.mu.Lock()
	for at := range r.watches {
		if at.mailbox == abi.RunMailbox(w.name) {
			waiting = append(waiting, at)
		}
	}
	r.mu.Unlock()
	for _, at := range waiting {
		r.announce(at)
	}
}

// finish writes down how a run ended, and drops what it would have gone on with. See [Runs.updateCut].
func (r *Runs) finish(ctx context.Context, c *sqlite.Conn, name string, s State, e ended, k cuts) error {
	w, err := findRun(ctx, c, name)
	if err != nil {
		return err
	}
	if err := r.keepHistory(ctx, c, w.id, k); err != nil {
		return err
	}
	h := k[w.id].head
	if _, ok := k[w.id]; !ok {
		if h, _, err = r.headIn(ctx, c, w); err != nil {
			return err
		}
	}
	text, err := json.Marshal(e)
	if err == nil && w.parent.Valid {
		if s, e, err = bounded(ctx, c, w, s, e, len(text)); err != nil {
			return err
		}
		text, err = json.Marshal(e)
	}
	if err != nil {
		return fmt.Errorf("write down the result of run %s: %w", name, err)
	}
	body := r.sealer.seal(place{run: name, kind: "outcome"}, text)
	if _, err = c.Exec(ctx, `INSERT OR REPLACE INTO outcome VALUES (?, ?)`, w.id, body); err != nil {
		return err
	}
	end := r.sealer.seal(place{run: name, kind: "head", n: w.batches, after: tag(body)}, h.text())
	if _, err = c.Exec(ctx, `UPDATE run SET state = ?, wake = NULL, owner = NULL, changed = ?, reason = '', head = ? WHERE id = ?`, s, r.now().UnixMilli(), end, w.id); err != nil {
		return err
	}
	r.hasEnded()
	if err := clearLog(ctx, c, w.id); err != nil {
		return err
	}
	if err := forgetMessages(ctx, c, w.id); err != nil {
		return err
	}
	if s == Done { // others can be retried
		if err := forgetStash(ctx, c, w.id); err != nil {
			return err
		}
	}
	if _, err = c.Exec(ctx, `DELETE FROM snapshot WHERE run = ?`, w.id); err != nil {
		return err
	}
	if err := r.endChildren(ctx, c, w.id, w.parent.Valid, k); err != nil {
		return err
	}
	if err := r.tellWaiting(ctx, c, w); err != nil {
		return err
	}
	return r.tellParent(ctx, c, w)
}

func clearLog(ctx context.Context, c *sqlite.Conn, id int64) error {
	_, err := c.Exec(ctx, `DELETE FROM log WHERE run = ?`, id)
	return err
}

// Retry has a parked run go on where it was. A run that failed or was cancelled begins another attempt, from its start, with as much time as it had at
// first. It reports false if the run goes on or has a result. It fails with a *[RetryError] if there can be no other attempt.
func (r *Runs) Retry(ctx context.Context, name string) (bool, error) {
	retried := false
	err := r.db.Update(ctx, func(c *sqlite.Conn) error {
		w, err := findRun(ctx, c, name)
		if err != nil {
			return err
		}
		switch w.state {
		case Parked:
			_, err = c.Exec(ctx, `UPDATE run SET state = ?, crashes = 0, reason = '', changed = ? WHERE id = ?`, Ready, r.now().UnixMilli(), w.id)
		case Failed, Cancelled:
			if parent, _, child := parentOf(w.key.String); child {
				return &RetryError{w.name, "it is a call that run " + parent + " made, which was told"}
			}
			err = r.anew(ctx, c, w)
		default:
			return nil
		}
		retried = err == nil
		return err
	})
	r.tell(name)
	r.wake()
	return retried && err == nil, err
}

// Remove deletes a run that has ended or is parked, and its children. It reports false if it goes on. It fails with a *[ChildError] if it is a child.
func (r *Runs) Remove(ctx context.Context, name string) (bool, error) {
	removed := false
	var w row
	err := r.updateInsisting(ctx, func(c *sqlite.Conn) (err error) {
		removed = false
		if w, err = findRun(ctx, c, name); err != nil || !w.state.Final() {
			return err
		}
		if w.parent.Valid {
			parent, _, _ := parentOf(w.key.String)
			return &ChildError{w.name, parent}
		}
		removed = true
		if err := r.tellWaiting(ctx, c, w); err != nil { // it may be parked
			return err
		}
		if err := forget(ctx, c, w.id); err != nil {
			return err
		}
		return dropCode(ctx, c)
	})
	if err == nil && removed {
		r.announceEnd(w)
		r.wake()
		if err := r.insist(func() error { return r.shrink(ctx, insistPages) }); err != nil {
			r.log.Warn("the room of a run that was removed is not given back", "run", name, "error", err)
		}
	}
	return removed, err
}
