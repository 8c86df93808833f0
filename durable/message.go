package durable

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/internal/printable"
	"github.com/stilehost/stile/internal/sha256hex"
	"github.com/stilehost/stile/internal/sqlite"
)

// The limits of messages.
const (
	// MaxMessage is the most bytes of [Message.Data].
	MaxMessage = 64 << 10
	// MaxMessages is how many messages may wait in one mailbox.
	MaxMessages = 100
	// MaxMailboxes is how many mailboxes of a run may have messages.
	MaxMailboxes = 64
	// MaxWaiting is the most bytes of messages that may wait for one run.
	MaxWaiting = 16 << 20
	// keptKeys is how many keys of messages that the run has taken a mailbox remembers.
	keptKeys = 1000
	// maxFrom is the longest [Message.From] in bytes.
	maxFrom = 200
)

// Message is a message for a mailbox of a run. What waits for a run, be it a signal, a decision of a person or the answer of a callback, is a message: a
// row of one table, which is there before the run looks for it, or wakes it.
type Message struct {
	// Data is JSON. The run must not trust it.
	Data json.RawMessage
	// Key, if not empty, makes the delivery idempotent: messages of a mailbox with the same key count once. A mailbox remembers the keys of all
	// messages that wait in it, and of the last 1,000 that the run has taken.
	Key string
	// From says where the message comes from, for people and the run. Whoever delivers it chooses that, not the sender.
	From string
}

// Received is a message that a mailbox has.
type Received struct {
	Mailbox  string          `json:"mailbox"`
	Data     json.RawMessage `json:"data"`
	From     string          `json:"from"`
	Key      string          `json:"key,omitempty"`
	Received time.Time       `json:"received"`
}

// letter is what is sealed of a message.
type letter struct {
	Data     json.RawMessage `json:"data"`
	From     string          `json:"from,omitempty"`
	Key      string          `json:"key,omitempty"`
	Received int64           `json:"received"`
}

func (l letter) in(mailbox string) Received {
	return Received{Mailbox: mailbox, Data: l.Data, From: l.From, Key: l.Key, Received: timeOf(l.Received)}
}

// EndedError reports a message for a run that has ended.
type EndedError struct {
	Run   string
	State State
}

func (e *EndedError) Error() string {
	return fmt.Sprintf("run %s has ended (%s), so it receives nothing", e.Run, e.State)
}

// FullError reports a message for which a run has no room until it takes others.
type FullError struct {
	Run, Mailbox string
	// What is what the run has too much of, such as "messages in the mailbox", and Limit how much of it there may be.
	What  string
	Limit int64
}

func (e *FullError) Error() string {
	return fmt.Sprintf("run %s has no room for a message in %q: limit %d %s; deliver it again once the run has taken others", e.Run, e.Mailbox, e.Limit, e.What)
}

// MessageError reports a message that no run could receive: it is too large, no JSON, or for a mailbox that cannot be.
type MessageError struct{ Reason string }

func (e *MessageError) Error() string { return e.Reason }

func errMailbox(name string) error {
	return &MessageError{fmt.Sprintf("%q cannot name a mailbox; use %s", printable.Short(name, 100), abi.MailboxNames)}
}

// ErrNotDurable reports that a call that is no run waits for messages, or keeps a value.
var ErrNotDurable = errors.New("only durable calls have mailboxes, and keep values")

// Signal delivers a message to a mailbox of a run, whether or not the run waits for it, and wakes the run if it does. It reports false if the mailbox
// has got a message with this key before. It fails with an *[UnknownError], an *[EndedError], a *[FullError] or a *[MessageError].
func (r *Runs) Signal(ctx context.Context, run, mailbox string, m Message) (delivered bool, err error) {
	return r.signal(ctx, reach{}, run, mailbox, m)
}

func (r *Runs) signal(ctx context.Context, by reach, run, mailbox string, m Message) (delivered bool, err error) {
	if !abi.IsMailbox(mailbox) {
		return false, errMailbox(mailbox)
	}
	seat := r.reserve()
	defer seat.free()
	var woken []row
	err = r.db.Update(ctx, func(c *sqlite.Conn) error {
		woken = nil
		w, err := by.find(ctx, c, run)
		if err != nil {
			return err
		}
		did, err := by.once(ctx, c, func() (reached, error) {
			delivered, err := r.deliver(ctx, c, w, mailbox, m)
			if err == nil && seat != nil && w.state == Asleep && slices.Contains(r.functions, w.function.String) {
				seat.is(w.id)
				woken, err = r.takeReady(ctx, c, []int64{w.id}, time.Time{})
			}
			return reached{answer: delivered}, err
		})
		delivered = did.answer
		return err
	})
	if err != nil {
		return false, err
	}
	for _, w := range woken {
		r.adopt(w) //nolint:contextcheck // it ends with the store
	}
	r.arrived(run, mailbox)
	return delivered, nil
}

// arrived has this process see what was delivered.
func (r *Runs) arrived(run, mailbox string) {
	r.announce(watched{run, mailbox})
	r.wake()
}

// deliver writes a message down for a run, and has the run go on if it sleeps and waits for it. Call [Runs.arrived] when the transaction is over. Mailboxes that are not
// for signals have names that are none to [abi.IsMailbox].
func (r *Runs) deliver(ctx context.Context, c *sqlite.Conn, w row, mailbox string, m Message) (delivered bool, err error) {
	switch {
	case w.state.Final() && w.state != Parked:
		return false, &EndedError{w.name, w.state}
	case len(m.Data) > MaxMessage:
		return false, &MessageError{fmt.Sprintf("the message has %d bytes; %d are allowed", len(m.Data), MaxMessage)}
	case !json.Valid(m.Data) || !utf8.Valid(m.Data):
		if nestedTooDeep(m.Data) {
			return false, &MessageError{"the message is nested too deep: more than 10000 lists and objects in one another"}
		}
		return false, &MessageError{"the message is not JSON"}
	case len(m.Key) > maxKey || !utf8.ValidString(m.Key):
		return false, &MessageError{fmt.Sprintf("the key of a message must be text of at most %d bytes", maxKey)}
	}
	key := sql.NullString{String: sha256hex.Of([]byte(m.Key)), Valid: m.Key != ""}
	if key.Valid {
		var known bool
		if err := c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM message WHERE run = ? AND mailbox = ? AND key = ?)`, w.id, mailbox, key).Scan(&known); err != nil || known {
			return false, err
		}
	}
	if abi.IsMailbox(mailbox) { // else nobody outside decides how many there are
		if err := room(ctx, c, w, mailbox, len(m.Data)); err != nil {
			return false, err
		}
	}
	var data bytes.Buffer
	if err := json.Compact(&data, m.Data); err != nil {
		return false, &MessageError{"the message is not JSON"}
	}
	err = r.post(ctx, c, w, mailbox, key, letter{Data: data.Bytes(), From: printable.Short(m.From, maxFrom), Key: m.Key, Received: r.now().UnixMilli()})
	return err == nil, err
}

// nestedTooDeep reports whether encoding/json refuses a text for its depth alone.
func nestedTooDeep(text []byte) bool {
	err := json.Compact(new(bytes.Buffer), text)
	return err != nil && strings.Contains(err.Error(), "exceeded max depth")
}

// post adds a message to a mailbox, and has the run go on if it sleeps and waits for it.
func (r *Runs) post(ctx context.Context, c *sqlite.Conn, w row, mailbox string, key sql.NullString, l letter) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("write a message down: %w", err)
	}
	var n int64 // the seal names the row
	if err := c.Row(ctx, `INSERT INTO message (run, mailbox, key, bytes, body) VALUES (?, ?, ?, ?, x'') RETURNING n`, w.id, mailbox, key, len(l.Data)).Scan(&n); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `UPDATE message SET body = ? WHERE n = ?`, r.sealer.seal(messagePlace(w.name, mailbox, n), text), n); err != nil {
		return err
	}
	_, err = c.Exec(ctx, `UPDATE run SET state = 'ready', wake = NULL WHERE id = ? AND state = 'asleep' AND EXISTS (SELECT 1 FROM waiting WHERE run = run.id AND mailbox = ?)`, w.id, mailbox)
	return err
}

func messagePlace(run, mailbox string, n int64) place {
	return place{run: run, kind: "message", n: n, after: []byte(mailbox)}
}

// room fails with a *FullError if a run has no room for a message.
func room(ctx context.Context, c *sqlite.Conn, w row, mailbox string, bytes int) error {
	var messages, waiting, others int64
	const query = `SELECT ifnull(sum(mailbox = ?), 0), ifnull(sum(bytes), 0), count(DISTINCT mailbox) FILTER (WHERE mailbox <> ?) FROM message WHERE run = ? AND taken IS NULL AND mailbox NOT GLOB 'child:*' AND mailbox NOT GLOB 'run:*'`
	if err := c.Row(ctx, query, mailbox, mailbox, w.id).Scan(&messages, &waiting, &others); err != nil {
		return err
	}
	full := func(what string, limit int64) error { return &FullError{w.name, mailbox, what, limit} }
	switch {
	case messages >= MaxMessages:
		return full("messages in the mailbox", MaxMessages)
	case others >= MaxMailboxes:
		return full("mailboxes with messages", MaxMailboxes)
	case waiting+int64(bytes) > MaxWaiting:
		return full("bytes of messages", MaxWaiting)
	}
	return nil
}

// Messages returns the messages of people and programs that wait for a run, the oldest first. It fails with an *[UnknownError] if there is no such run.
func (r *Runs) Messages(ctx context.Context, run string) ([]Received, error) {
	type one struct {
		n       int64
		mailbox string
		body    []byte
	}
	var all []one
	err := r.db.View(ctx, func(c *sqlite.Conn) error {
		w, err := findRun(ctx, c, run)
		if err != nil {
			return err
		}
		for found, err := range c.Rows(ctx, `SELECT n, mailbox, body FROM message WHERE run = ? AND taken IS NULL AND mailbox NOT GLOB 'child:*' AND mailbox NOT GLOB 'run:*' ORDER BY n`, w.id) {
			if err != nil {
				return err
			}
			var o one
			if err := found.Scan(&o.n, &o.mailbox, &o.body); err != nil {
				return err
			}
			if abi.IsMailbox(o.mailbox) {
				all = append(all, o)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	messages := make([]Received, 0, len(all))
	for _, o := range all {
		l, err := r.openLetter(run, o.mailbox, o.n, o.body)
		if err != nil {
			return nil, err
		}
		messages = append(messages, l.in(o.mailbox))
	}
	return messages, nil
}

func (r *Runs) openLetter(run, mailbox string, n int64, body []byte) (l letter, err error) {
	text, err := r.sealer.open(messagePlace(run, mailbox, n), body)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read a message of run %s: %w", run, err)
	}
	return l, nil
}

// mailboxes are those of an active run, for its capabilities.
type mailboxes struct{ *active }

// Take implements [abi.Mailboxes]. It fails with a *[LostError] if the run belongs to another process.
func (a mailboxes) Take(ctx context.Context, mailbox string) (m abi.Message, ok bool, err error) {
	r := a.runs
	once, named := abi.OnceOf(ctx)
	if !named {
		return m, false, errors.New("a message is taken by no operation of a run")
	}
	var n int64
	var body []byte
	// A loss of power may undo this, and everything after it: an effect or a result waits until all of it is on the disk.
	err = r.db.UpdateSoon(ctx, func(c *sqlite.Conn) error {
		ok = false
		var held, later bool
		const state = `SELECT EXISTS (SELECT 1 FROM run WHERE id = ? AND owner = ? AND fence = ?), EXISTS (SELECT 1 FROM message WHERE run = ? AND taken > ?)`
		if err := c.Row(ctx, state, a.id, r.owner, a.fence, a.id, int64(once.Sequence)).Scan(&held, &later); err != nil {
			return err
		}
		if !held || later {
			return &LostError{a.name}
		}
		const taken = `SELECT n, body FROM message WHERE run = ? AND mailbox = ? AND taken = ?`
		const oldest = `SELECT n, body FROM message WHERE run = ? AND mailbox = ? AND taken IS NULL ORDER BY n LIMIT 1`
		err := c.Row(ctx, taken, a.id, mailbox, int64(once.Sequence)).Scan(&n, &body)
		if ok = err == nil; ok || !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		switch err := c.Row(ctx, oldest, a.id, mailbox).Scan(&n, &body); {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		}
		ok = true
		for _, query := range []string{ // the log has the answers of what was taken before
			`DELETE FROM message WHERE run = ?1 AND taken < ?3 AND key IS NULL`,
			`UPDATE message SET body = x'' WHERE run = ?1 AND taken < ?3 AND body <> x''`,
			`DELETE FROM message WHERE run = ?1 AND mailbox = ?2 AND taken < ?3 AND
				n <= (SELECT n FROM message WHERE run = ?1 AND mailbox = ?2 AND taken < ?3 ORDER BY n DESC LIMIT 1 OFFSET ?5)`,
			`UPDATE message SET taken = ?3 WHERE n = ?4`,
		} {
			if _, err := c.Exec(ctx, query, a.id, mailbox, int64(once.Sequence), n, keptKeys); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || !ok {
		return m, false, a.failed(ctx, err)
	}
	l, err := r.openLetter(a.name, mailbox, n, body)
	if errors.Is(err, errDamaged) {
		err = a.failed(ctx, &parkError{err.Error()})
	}
	return abi.Message{Data: l.Data, From: l.From, Received: timeOf(l.Received)}, err == nil, err
}

// watched is a mailbox of a run of this process that somebody waits for.
type watched struct{ run, mailbox string }

// watch is one that waits.
type watch struct{ ready func() }

// Watch implements [abi.Mailboxes].
func (a mailboxes) Watch(ctx context.Context, mailbox string, ready func()) (stop func(), err error) {
	r := a.runs
	at, w := watched{a.name, mailbox}, &watch{ready}
	r.mu.Lock()
	if r.watches[at] == nil {
		r.watches[at] = map[*watch]struct{}{}
	}
	r.watches[at][w] = struct{}{}
	r.mu.Unlock()
	stop = func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.watches[at], w); len(r.watches[at]) == 0 {
			delete(r.watches, at)
		}
	}
	var has bool // what is delivered from now on is announced
	err = r.db.Read(ctx, func(c *sqlite.Conn) error {
		return c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM message WHERE run = ? AND mailbox = ? AND taken IS NULL)`, a.id, mailbox).Scan(&has)
	})
	if err != nil {
		stop()
		return nil, err
	}
	if has {
		r.announce(at)
	}
	return stop, nil
}

// announce tells those who wait for a mailbox.
func (r *Runs) announce(at watched) {
	r.mu.Lock()
	watches := r.watches[at]
	delete(r.watches, at)
	r.mu.Unlock()
	for w := range watches {
		w.ready()
	}
}

// hear announces what other processes have delivered.
func (r *Runs) hear() error {
	r.mu.Lock()
	none := len(r.watches) == 0
	r.mu.Unlock()
	if none {
		return nil
	}
	var heard []watched
	err := r.db.Read(r.ctx, func(c *sqlite.Conn) error {
		const query = `SELECT DISTINCT run.name, message.mailbox FROM run JOIN message ON message.run = run.id WHERE run.owner = ? AND message.taken IS NULL`
		for one, err := range c.Rows(r.ctx, query, r.owner) {
			if err != nil {
				return err
			}
			var at watched
			if err := one.Scan(&at.run, &at.mailbox); err != nil {
				return err
			}
			heard = append(heard, at)
		}
		return nil
	})
	for _, at := range heard {
		r.announce(at)
	}
	return err
}

// await writes down which mailboxes a sleeping run waits for. It reports whether one has a message already.
func await(ctx context.Context, c *sqlite.Conn, id int64, waits []abi.Wait) (has bool, err error) {
	for _, w := range waits {
		if w.Event == "" {
			continue
		}
		if _, err := c.Exec(ctx, `INSERT OR IGNORE INTO waiting VALUES (?, ?)`, id, w.Event); err != nil {
			return false, err
		}
	}
	err = c.Row(ctx, `SELECT EXISTS (SELECT 1 FROM waiting JOIN message USING (run, mailbox) WHERE run = ? AND taken IS NULL)`, id).Scan(&has)
	return has, err
}

// forgetMessages deletes what was delivered to a run, and what it waits for.
func forgetMessages(ctx context.Context, c *sqlite.Conn, id int64) error {
	if _, err := c.Exec(ctx, `DELETE FROM message WHERE run = ?`, id); err != nil {
		return err
	}
	if _, err := c.Exec(ctx, `DELETE FROM address WHERE run = ?`, id); err != nil {
		return err
	}
	for _, query := range []string{`DELETE FROM awaited WHERE waiter = ?`, `DELETE FROM reached WHERE run = ?`, `DELETE FROM waiting WHERE run = ?`} {
		if _, err := c.Exec(ctx, query, id); err != nil {
			return err
		}
	}
	return nil
}

// waitsOf are the mailboxes for signals that a sleeping run waits for, and the runs that it has started and waits for.
func waitsOf(ctx context.Context, c *sqlite.Conn, id int64) (names, runs []string, err error) {
	for one, err := range c.Rows(ctx, `SELECT mailbox FROM waiting WHERE run = ? ORDER BY mailbox`, id) {
		if err != nil {
			return nil, nil, err
		}
		var name string
		if err := one.Scan(&name); err != nil {
			return nil, nil, err
		}
		if run, ok := strings.CutPrefix(name, abi.RunMailbox("")); ok {
			runs = append(runs, run)
		} else if abi.IsMailbox(name) {
			names = append(names, name)
		}
	}
	return names, runs, nil
}
