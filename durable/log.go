package durable

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/stilehost/stile/host"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sqlite"
)

const (
	// KeptOperations is how many of a run's operations are kept, as text, when its log is cut: when it sleeps, and when it ends.
	KeptOperations = 100
	// keptText bounds what these take, in bytes.
	keptText = 16 << 10
	// keptWords bounds the arguments and the answer of each, in bytes.
	keptWords = 120
	// tailBytes bounds how much of a log is read for them, in bytes as they are in the file, and unpacked.
	tailBytes = 1 << 20
	// pageBytes is how much of a log is read at once, apart from a part that is larger by itself.
	pageBytes = 1 << 20
)

// The states of an [Operation].
const (
	// Answered operations have an answer.
	Answered = "answered"
	// Refused operations failed in the tool, with [Operation.Code].
	Refused = "failed"
	// Uncertain operations may have happened: the process ended meanwhile. The tool was told so.
	Uncertain = "interrupted"
	// Pending operations have no answer. The run makes them now or waits, or will be told what became of them when it goes on.
	Pending = "pending"
)

// Operation is an operation of a run, as text for people: safe for a terminal, cut, and without the secrets that [host.Options.Redact] takes out, and without what nobody
// can guess of the addresses of mailboxes. Its arguments and its answer come from the tool and from outside.
type Operation struct {
	// Attempt and Number are counted from 1. Each attempt has numbers of its own.
	Attempt uint64 `json:"attempt"`
	Number  uint64 `json:"number"`
	// Time is when it was written down, some milliseconds after it began.
	Time time.Time `json:"time"`
	// Binding, Function and Arguments are as the tool called it. Of Go code, Function is "step", "sleep" or "receive".
	Binding   string `json:"binding,omitempty"`
	Function  string `json:"function"`
	Arguments string `json:"arguments,omitempty"`
	State     string `json:"state"`
	Answer    string `json:"answer,omitempty"`
	Code      string `json:"code,omitempty"`
}

// Call is what was called, in one line.
func (o Operation) Call() string {
	return host.LoggedOperation{Binding: o.Binding, Function: o.Function, Args: o.Arguments}.String()
}

// After reports whether the operation comes after another of the same run.
func (o Operation) After(other Operation) bool {
	return o.Attempt > other.Attempt || o.Attempt == other.Attempt && o.Number > other.Number
}

// head says where a run is: it is sealed behind the last part of its log.
type head struct {
	attempt uint64
	// operations are how many of the attempt are in the log, or were before it was cut.
	operations uint64
}

func (h head) text() []byte { return fmt.Appendf(nil, "[%d,%d]", h.attempt, h.operations) }

// readHead reads a head. Older ones are only the number of the attempt, or empty in the first.
func readHead(text []byte) (h head, err error) {
	var both [2]uint64
	switch {
	case len(text) == 0:
		both[0] = 1
	case text[0] == '[':
		err = json.Unmarshal(text, &both)
	default:
		err = json.Unmarshal(text, &both[0])
	}
	if h = (head{both[0], both[1]}); err != nil || h.attempt == 0 || h.attempt > MaxAttempts {
		return head{}, errors.New("it is malformed")
	}
	return h, nil
}

// headIn reads the head of a run. It reports false if the end of its log, or of one that has ended how it ended, was altered.
func (r *Runs) headIn(ctx context.Context, c *sqlite.Conn, w row) (h head, ok bool, err error) {
	var after []byte
	const last = `SELECT ifnull((SELECT substr(body, -?1) FROM log WHERE run = ?2 ORDER BY n DESC LIMIT 1), (SELECT substr(body, -?1) FROM snapshot WHERE run = ?2))`
	const outcome = `SELECT substr((SELECT body FROM outcome WHERE run = ?2), -?1)`
	query := last
	if w.state.Final() && w.state != Parked {
		query = outcome
	}
	if err := c.Row(ctx, query, tagSize, w.id).Scan(&after); err != nil {
		return h, false, err
	}
	if after == nil {
		after = tag(w.spec)
	}
	text, err := r.sealer.open(place{run: w.name, kind: "head", n: w.batches, after: after}, w.head)
	if err == nil {
		h, err = readHead(text)
	}
	return h, err == nil, nil
}

// scan reads a log, one batch after the other.
type scan struct {
	runs     *Runs
	function bool
	attempt  uint64
	number   uint64 // of the last operation
	skip     uint64 // operations that are not read
	short    bool   // texts
	cost     cost

	reader *host.LogReader
	list   []Operation
}

// cost is what it took to read a log: how many bytes were unpacked, how many operations read, and how many of these were in the list at once.
type cost struct{ unpacked, read, held int }

// part is a batch that was opened.
type part struct {
	at      time.Time
	entries [][]byte
}

// unpack opens a batch.
func (s *scan) unpack(packed []byte) (part, error) {
	text, err := unpack(packed)
	if err != nil {
		return part{}, err
	}
	s.cost.unpacked += len(text)
	at, rest := batchTime(text)
	entries, err := readBatch(rest)
	return part{at, entries}, err
}

// part reads the entries of a batch.
func (s *scan) part(p part) error {
	for _, entry := range p.entries {
		if err := s.read(p.at, entry); err != nil {
			return err
		}
	}
	return nil
}

// read reads an entry of a batch that was written at this time.
func (s *scan) read(at time.Time, entry []byte) error {
	begins := beginsOperation(s.function, entry)
	switch {
	case s.skip > 0 && begins:
		s.skip--
		s.number++
		return nil
	case s.skip > 0: // of one that is skipped
		return nil
	case s.function:
		return s.step(at, entry)
	default:
		return s.entry(at, entry)
	}
}

// add begins an operation.
func (s *scan) add(o Operation) {
	s.list = append(s.list, o)
	s.cost.read++
	s.cost.held = max(s.cost.held, len(s.list))
}

// entry reads an entry of the log of a component.
func (s *scan) entry(at time.Time, e []byte) error {
	if s.runs.o.Host == nil {
		return errors.New("this process has no host, which knows its interfaces")
	}
	begins := host.BeginsOperation(e)
	if s.reader == nil {
		if !begins { // of an operation that is not read
			return nil
		}
		s.reader = s.runs.o.Host.NewLogReader()
	}
	l, ok, err := s.reader.Read(e)
	if err != nil || !ok {
		return err
	}
	o := Operation{Attempt: s.attempt, Time: at, Binding: l.Binding, Function: l.Function, Arguments: s.text(s.runs.hideIn(l.Args)), State: Answered, Answer: s.text(s.runs.hideIn(l.Answer)), Code: l.Code}
	switch {
	case l.Open:
		o.State = Pending
	case l.Code == "interrupted":
		o.State = Uncertain
	case l.Code != "":
		o.State = Refused
	}
	if begins {
		s.number++
		o.Number = s.number
		s.add(o)
		return nil
	}
	last := &s.list[len(s.list)-1]
	o.Number, o.Time = last.Number, last.Time
	*last = o
	return nil
}

// step reads an entry of the log of Go code.
func (s *scan) step(at time.Time, text []byte) error {
	var e stepEntry
	if json.Unmarshal(text, &e) != nil {
		return &host.StateError{Reason: "an entry of its log is malformed"}
	}
	if e.Kind != kindAnswer {
		o := Operation{Attempt: s.attempt, Number: e.N, Time: at, Function: printable.OneLine(printable.Short(e.Kind, 20)), State: Pending}
		switch e.Kind {
		case kindSleep:
			o.Arguments, o.State = "until "+e.At.UTC().Format(time.RFC3339), Answered
			if e.At.After(s.runs.now()) {
				o.State = Pending
			}
		default:
			o.Arguments = s.text(strconv.Quote(string(s.runs.redact([]byte(e.Name)))))
		}
		s.number = e.N
		s.add(o)
		return nil
	}
	for i := len(s.list) - 1; i >= 0; i-- {
		o := &s.list[i]
		if o.Number != e.N || o.State != Pending {
			continue
		}
		o.State, o.Answer = Answered, s.text(string(s.runs.redact(e.Value)))
		switch {
		case e.Interrupted:
			o.State, o.Code = Uncertain, "interrupted"
		case e.Error != nil:
			o.State, o.Code = Refused, "error"
		case e.Timeout:
			o.Answer = "nothing came in time"
		}
		if e.Error != nil {
			o.Answer = s.text(string(s.runs.redact([]byte(*e.Error))))
		}
		break
	}
	return nil
}

// text makes a text safe, and cuts it.
func (s *scan) text(text string) string {
	most := 200
	if s.short {
		most = keptWords
	}
	return printable.OneLine(printable.Short(text, most))
}

// redact takes secrets out of a text for people, and what nobody can guess of the addresses of mailboxes.
func (r *Runs) redact(text []byte) []byte {
	if r.o.Host != nil {
		text = r.o.Host.Redact(text)
	}
	return r.hide(text)
}

// Latest returns the last operations of a run, at most [KeptOperations], the oldest first. It fails with an *[UnknownError] if there is no such run. With
// another error, it returns what can be read.
func (r *Runs) Latest(ctx context.Context, run string) (list []Operation, err error) {
	_, list, err = r.latestOf(ctx, run)
	return list, err
}

func (r *Runs) latestOf(ctx context.Context, run string) (took cost, list []Operation, err error) {
	var e ending
	if err := r.db.View(ctx, func(c *sqlite.Conn) error {
		w, err := findRun(ctx, c, run)
		if err == nil {
			e, err = r.ending(ctx, c, w, nil)
		}
		return err
	}); err != nil {
		return took, nil, err
	}
	took, h, damage := r.latest(e)
	if damage != nil {
		damage = fmt.Errorf("not all operations of run %s can be read: %w", run, damage)
	}
	return took, h.Operations, damage
}

// Operations returns the operations of a run that come after one, the oldest first; after the zero one, all that are kept. Those before the run last slept are not,
// except for the last [KeptOperations], so numbers can be missing. An operation that is [Pending] may be followed by others only if Go code makes several at
// once. An error ends the sequence, as if the log was altered. It reads the log in parts, also while another process writes it.
func (r *Runs) Operations(ctx context.Context, run string, after Operation) iter.Seq2[Operation, error] {
	return func(yield func(Operation, error) bool) {
		p := &pages{runs: r, run: run, at: -1, after: after, yield: yield}
		for more := true; more; {
			var err error
			more, err = p.read(ctx)
			if p.give(more); err != nil && !p.stopped {
				yield(Operation{}, err)
			}
		}
	}
}

// pages reads a log in parts, and gives the operations to a function. It holds none of them for longer than it must, and one batch: a log takes little room in the file if it
// says the same again and again.
type pages struct {
	runs *Runs
	run  string
	at   int64  // where the log began then, or -1
	n    int64  // the last batch that was read
	tag  []byte // of that
	scan scan

	after   Operation // the last that was given
	yield   func(Operation, error) bool
	stopped bool // by yield
}

// give gives the operations that were read. If there is more, it leaves those that may still get an answer, and what comes after them.
func (p *pages) give(more bool) {
	done := 0
	for _, o := range p.scan.list {
		if p.stopped || more && o.State == Pending && o.Attempt == p.scan.attempt {
			break
		}
		done++
		if o.After(p.after) {
			p.after, p.stopped = o, !p.yield(o, nil)
		}
	}
	p.scan.list = slices.Delete(p.scan.list, 0, done)
}

// from is the batch after which the next part begins: from the start, if the log was cut meanwhile.
func (p *pages) from(at int64, h head) int64 {
	if p.at != at || p.scan.attempt != h.attempt {
		return at
	}
	return p.n
}

// read reads the next part, and reports whether there is more.
func (p *pages) read(ctx context.Context) (more bool, err error) {
	r := p.runs
	var (
		w       row
		h       head
		whole   bool
		kept    []byte
		at      int64
		before  []byte
		batches []sealedBatch
	)
	if err := r.db.View(ctx, func(c *sqlite.Conn) (err error) {
		if w, err = findRun(ctx, c, p.run); err != nil {
			return err
		}
		if h, whole, err = r.headIn(ctx, c, w); err != nil {
			return err
		}
		var from sql.NullInt64
		const query = `SELECT (SELECT min(n) FROM log WHERE run = ?1), (SELECT body FROM history WHERE run = ?1),
			ifnull((SELECT substr(body, -?2) FROM snapshot WHERE run = ?1), (SELECT substr(spec, -?2) FROM run WHERE id = ?1))`
		if err := c.Row(ctx, query, w.id, tagSize).Scan(&from, &kept, &before); err != nil {
			return err
		}
		if at = w.batches; from.Valid {
			at = from.Int64 - 1
		}
		size := 0
		for one, err := range c.Rows(ctx, `SELECT n, body FROM log WHERE run = ? AND n > ? ORDER BY n`, w.id, p.from(at, h)) {
			if err != nil {
				return err
			}
			var b sealedBatch
			if err := one.Scan(&b.n, &b.body); err != nil {
				return err
			}
			batches = append(batches, b)
			if size += len(b.body); size > pageBytes {
				break
			}
		}
		return nil
	}); err != nil {
		return false, err
	}
	damaged := func(what string, err error) error {
		return fmt.Errorf("%s of run %s cannot be read: %w", what, w.name, err)
	}
	if p.at != at || p.scan.attempt != h.attempt { // see from
		earlier, err := r.openHistory(w.name, at, kept)
		if err != nil {
			return false, damaged("what was kept of the log", err)
		}
		p.at, p.n, p.tag = at, at, before
		p.scan = scan{runs: r, function: w.function.Valid, attempt: h.attempt, list: earlier.Operations}
		if earlier.Attempt == h.attempt {
			p.scan.number = earlier.Count
		}
	}
	for _, b := range batches {
		if b.n != p.n+1 {
			return false, damaged("the log", errDamaged)
		}
		packed, err := r.sealer.decrypt(place{run: w.name, kind: "log", n: b.n, after: p.tag}, b.body)
		var one part
		if err == nil {
			one, err = p.scan.unpack(packed)
		}
		for _, entry := range one.entries {
			if err == nil {
				err = p.scan.read(one.at, entry)
			}
			if p.give(true); p.stopped {
				return false, nil
			}
		}
		if err != nil {
			return false, damaged("the log", err)
		}
		p.n, p.tag = b.n, tag(b.body)
	}
	if more = p.n < w.batches; !more && !whole {
		return false, damaged("the end of the log", errDamaged)
	}
	if more && len(batches) == 0 {
		return false, damaged("the log", errDamaged)
	}
	return more, nil
}

// Shown is a run for people and their programs: its input, its result, what went wrong, and the messages that wait for it, as [Runs.Redact] leaves them. They are
// not safe for a terminal or a page.
type Shown struct {
	Result
	// Messages wait for the run. They come from outside. It is null, and Unread says why, if they cannot be read. So it is with the stash.
	Messages []Received `json:"messages"`
	Unread   string     `json:"unread,omitempty"`
	// Stash is what it keeps for later attempts.
	Stash json.RawMessage `json:"stash,omitempty"`
	// Refused are the posts to its addresses that were not signed as they had to be. It is nil if there were none.
	Refused *RefusedPosts `json:"refused,omitempty"`
	// Children are those of [Runs.Children].
	Children []Info `json:"children,omitempty"`
}

// Show returns a run for people, or what can be read of it. It fails with an *[UnknownError] if there is no such run.
func (r *Runs) Show(ctx context.Context, run string) (s Shown, err error) {
	if s.Result, err = r.Result(ctx, run); err != nil && s.Name == "" {
		return s, err
	} else if err != nil { // the rest is still of use
		s.Unreadable = err.Error()
	}
	messages, err := r.Messages(ctx, run)
	stash, lost := r.Stashed(ctx, run)
	if err = cmp.Or(err, lost); err != nil {
		s.Unread = string(r.redact([]byte(err.Error())))
	}
	s.Stash = r.redactJSON(stash)
	if s.Refused, err = r.refused(ctx, run); err != nil {
		return s, err
	}
	if s.Children, err = r.Children(ctx, run); err != nil {
		return s, err
	}
	for i, c := range s.Children {
		s.Children[i] = r.Redact(c)
	}
	s.Result = r.RedactResult(s.Result)
	for i := range messages {
		m := &messages[i]
		m.Data = r.redactJSON(m.Data)
		r.redactTexts(&m.Mailbox, &m.From, &m.Key)
	}
	s.Messages = messages
	return s, nil
}

// RedactResult is [Runs.Redact] for what is known of a run with its result. It changes what the slices of the argument have.
func (r *Runs) RedactResult(s Result) Result {
	s.Info, s.Output = r.Redact(s.Info), r.redactJSON(s.Output)
	for i := range s.Mailboxes {
		r.redactTexts(&s.Mailboxes[i])
	}
	r.redactOutcome(&s.Outcome)
	for i := range s.Attempts {
		r.redactOutcome(&s.Attempts[i].Outcome)
	}
	for i := range s.Usage.Denials {
		d := &s.Usage.Denials[i]
		r.redactTexts(&d.Operation, &d.Reason, &d.Remedy)
	}
	return s
}

// Redact returns what is known of a run without secrets that [host.Options.Redact] takes out, and without what nobody can guess of the addresses of mailboxes.
func (r *Runs) Redact(i Info) Info {
	i.Input = r.redactJSON(i.Input)
	r.redactTexts(&i.Reason, &i.Key, &i.Target)
	if i.Blocked != nil {
		i.Blocked = &Blocked{i.Blocked.Run, string(r.redact([]byte(i.Blocked.Reason)))}
	}
	return i
}

func (r *Runs) redactOutcome(o *host.Outcome) { r.redactTexts(&o.Message, &o.Stack, &o.Detail) }

func (r *Runs) redactTexts(texts ...*string) {
	for _, text := range texts {
		*text = string(r.redact([]byte(*text)))
	}
}

// redactJSON takes secrets out of JSON. What is no JSON without them becomes a text.
func (r *Runs) redactJSON(text json.RawMessage) json.RawMessage {
	if text == nil {
		return nil
	}
	if kept := r.redact(text); json.Valid(kept) {
		return kept
	} else if quoted, err := json.Marshal(string(kept)); err == nil {
		return quoted
	}
	return json.RawMessage("null")
}
