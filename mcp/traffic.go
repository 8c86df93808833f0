package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

// Bounds on an agent's running requests: over HTTP in all its sessions, unless options say otherwise, and over a pair of pipes in
// its only session.
const (
	maxRequests = 256
	maxBodies   = 2 * maxLine // bytes of requests
	maxLarge    = 2           // requests of the methods in largeAnswers
)

// largeAnswers are the methods whose answers can have tens of megabytes. Making such an answer takes several times as much memory,
// and the answer is kept until the client has read it. Other answers have at most a few times MaxOutput.
var largeAnswers = map[string]bool{"resources/read": true, "tools/list": true}

// traffic counts an agent's running requests, their bytes, and those with large answers. Over HTTP, a body counts from its
// first byte until its request ends, even if it never arrives completely.
type traffic struct {
	answers *semaphore.Weighted // of large answers
	rooms   rooms

	mu       sync.Mutex
	requests int
	bytes    int64
	queued   map[string]int // messages under way, by the number of a session
}

func newTraffic() *traffic {
	return &traffic{answers: semaphore.NewWeighted(maxLarge), rooms: newRooms(), queued: map[string]int{}}
}

// taken is the share of one request.
type taken struct {
	*traffic
	counted bool
	asked   bool // the request wants a large answer
	large   bool // the answer may be made
	over    bool
	size    int64
	shared  body  // share of the process's bodies
	parsing int64 // of the agent's own rooms
	writing int64
	session string
	queued  int                        // messages of the session in this request
	stowed  map[string]json.RawMessage // arguments of calls, by the text in their place
}

func (t *taken) request(most int) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.requests >= most {
		return false
	}
	t.requests++
	t.counted = true
	return true
}

// queue counts messages of a session, unless it has too many under way.
func (t *taken) queue(session string, messages int) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.traffic.queued[session]+messages > maxQueued {
		return false
	}
	t.traffic.queued[session] += messages
	t.session, t.queued = session, messages
	return true
}

func (t *taken) body(n, most int64) (ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes+n > most {
		return false
	}
	t.bytes += n
	t.size += n
	return true
}

// answer waits until fewer than maxLarge of the agent's large answers are in progress. An HTTP request keeps its place until it ends,
// so a batch needs only one.
func (t *taken) answer(ctx context.Context) error {
	t.mu.Lock()
	again := t.asked
	t.asked = true
	t.mu.Unlock()
	if again {
		return invalid("a batch asks for more than one list of tools or resource; ask for one at a time")
	}
	if err := t.answers.Acquire(ctx, 1); err != nil {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		t.answers.Release(1)
		return errClientGone
	}
	t.large = true
	return nil
}

// tryAnswer is answer without waiting, for one request.
func (t *taken) tryAnswer() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.large = t.large || t.answers.TryAcquire(1)
	return t.large
}

// write waits until the process has room for a large answer of the request. The answer keeps its share until the request ends.
func (t *taken) write(ctx context.Context, bytes int64) error {
	if bytes <= freeWriting {
		return nil
	}
	bytes = min(bytes, maxWriting)
	own := min(bytes, maxWriting/2)
	if err := acquireBoth(ctx, t.rooms.writing, own, writing, bytes); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared.writing += bytes
	t.writing += own
	if t.over {
		t.release()
		return errClientGone
	}
	return nil
}

// parse waits until the request may be parsed.
func (t *taken) parse(ctx context.Context) error {
	own := min(t.shared.rest, maxParsing/2)
	if err := acquire(ctx, t.rooms.parsing, own); err != nil {
		return err
	}
	t.parsing = own
	return t.shared.parse(ctx)
}

// release gives back the shares of the process's room.
func (t *taken) release() {
	t.shared.giveBack()
	if t.parsing+t.writing > 0 {
		t.rooms.parsing.Release(t.parsing)
		t.rooms.writing.Release(t.writing)
	}
	t.parsing, t.writing = 0, 0
}

func (t *taken) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.release()
	t.bytes -= t.size
	if t.counted {
		t.requests--
	}
	if t.large {
		t.answers.Release(1)
	}
	if t.queued > 0 {
		if t.traffic.queued[t.session] -= t.queued; t.traffic.queued[t.session] == 0 {
			delete(t.traffic.queued, t.session)
		}
	}
	t.queued, t.size, t.counted, t.large, t.over, t.stowed = 0, 0, false, false, true, nil
}

// parsed says that the request has been parsed.
func (t *taken) parsed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shared.parsed()
	if t.parsing > 0 {
		t.rooms.parsing.Release(t.parsing)
		t.parsing = 0
	}
}

type takenKey struct{}

// takenBy returns the share of the HTTP request that contained a message. It is nil if there was no such request.
func takenBy(extra *sdk.RequestExtra) *taken {
	request := requestContext(extra)
	if request == nil {
		return nil
	}
	t, _ := request.Value(takenKey{}).(*taken)
	return t
}

var errBodies = errors.New("the bodies under way are too large together")
