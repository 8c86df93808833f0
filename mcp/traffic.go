package mcp

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sync/semaphore"
)

// What an agent may have under way: over HTTP, where options say otherwise, in all its sessions; over a pair of pipes in its one.
const (
	maxRequests = 256
	maxBodies   = 32 << 20 // bytes of requests
	maxLarge    = 2        // requests that largeAnswers names
)

// largeAnswers are the methods whose answers can have tens of megabytes. Making one takes several times as much, and until the client has read it
// the answer is kept. The answers of others have at most some times MaxOutput.
var largeAnswers = map[string]bool{"resources/read": true, "tools/list": true}

// traffic is what an agent has under way: requests, the bytes of them, and those with large answers. Over HTTP a body counts from its first byte, so
// one that never comes whole counts too, until the request is over.
type traffic struct {
	answers *semaphore.Weighted // large ones

	mu       sync.Mutex
	requests int
	bytes    int64
}

func newTraffic() *traffic { return &traffic{answers: semaphore.NewWeighted(maxLarge)} }

// taken is the part of one request.
type taken struct {
	*traffic
	counted bool
	asked   bool // for a large answer
	large   bool // it may be made
	over    bool
	size    int64
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

// answer waits until the agent has few enough large answers under way. A request over HTTP has its place until it is over, so there is one for a batch.
func (t *taken) answer(ctx context.Context) error {
	t.mu.Lock()
	again := t.asked
	t.asked = true
	t.mu.Unlock()
	if again {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "a batch asks for more than one list of tools or resource; ask for one at a time"}
	}
	if err := t.answers.Acquire(ctx, 1); err != nil {
		return err
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

func (t *taken) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.bytes -= t.size
	if t.counted {
		t.requests--
	}
	if t.large {
		t.answers.Release(1)
	}
	t.size, t.counted, t.large, t.over = 0, false, false, true
}

type takenKey struct{}

// takenBy is what the HTTP request that brought a message has taken; nil when none did.
func takenBy(extra *sdk.RequestExtra) *taken {
	request := requestContext(extra)
	if request == nil {
		return nil
	}
	t, _ := request.Value(takenKey{}).(*taken)
	return t
}

var errBodies = errors.New("the bodies under way are too large together")

// bodyReader counts a body while it comes.
type bodyReader struct {
	body  io.Reader
	under *taken
	most  int64
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if !b.under.body(int64(n), b.most) {
		return n, errBodies
	}
	return n, err
}
