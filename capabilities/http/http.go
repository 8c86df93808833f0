// Package http implements the interface stile:capability/http in Go: only requests that rules allow. It parses a URL once,
// and authorises, dials and sends that value. It authorises each redirect again, and checks the address of each connection
// when dialling. It adds secrets on the way out; they never reach the guest. It reads a response into the host, within
// limits, and gives it to the guest as text, as a blob, or in parts as they arrive.
package http

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	nethttp "net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capabilities/blob"
	"github.com/stilehost/stile/internal/turns"
)

// Interface is the WIT interface that this package implements, in wit/deps/capability/http.wit.
const Interface = "stile:capability/http@0.1.0"

// Options configures a [Grant]. Without rules, nothing is allowed. Every other field may be zero.
type Options struct {
	// Rules say what is allowed. At most 256.
	Rules []Rule
	// Within are sets of rules. Each set must also allow a request, with the credential that Rules add and to the addresses
	// that they may dial. They also bound the size of responses. A set without rules allows nothing. The operator sets them. Default
	// none.
	Within [][]Rule
	// Resolver finds addresses. Default net.DefaultResolver.
	Resolver Resolver
	// Credentials has the secrets that rules name. Default none; then no rule may name one.
	Credentials Credentials
	// Transport, if not nil, answers allowed requests in place of servers: no name is looked up and no connection is made. It is
	// meant for tests, and must be safe for concurrent use. Default none.
	Transport nethttp.RoundTripper
	// RootCAs are the authorities that must have signed servers' certificates. Default: the system's.
	RootCAs *x509.CertPool
	// Own are this program's listeners, which no rule makes reachable. Default none.
	Own *Listeners
	// Timeout bounds one exchange, including redirects and body. Default 60 s.
	Timeout time.Duration
	// Timeouts bound the steps of each hop.
	Timeouts Timeouts
	// Pending is how many exchanges of one call may be in progress at a time. Default 64.
	Pending int
	// Held is how many bytes the host holds for one call at a time: contents of requests, heads and bodies of responses, and rules
	// of narrowed clients. It also bounds a single response, unless that is read in parts. A body that is far ahead of who reads
	// it waits once a quarter of the bytes is left, so that others find room. Everything except bodies is in memory, and at most 8 MiB, and
	// 64 MiB for all calls of the process beyond the first 64 KiB of each, of which one user has at most half of what others leave.
	// Default 64 MiB, or as many as the largest response that a rule takes in, at most Received. Bindings of a call share the largest default.
	Held int64
	// Received is how many bytes of responses one call receives in total: heads count four times, and compressed bodies count once
	// as received and once decoded. It covers the cost of reading and decoding, which the host does outside the guest. Default 1
	// GiB.
	Received int64
	// TempDir is where response bodies are kept that are not in memory. Default os.TempDir.
	TempDir string
}

// Grant allows the requests of a rule set: it is an abi.Opener, and each
// call gets a [Client] of its own. Later calls reuse connections, but
// never for another grant or another rule. It is safe for concurrent use.
type Grant struct {
	options Options
	rules   []*compiled
	within  [][]*compiled
	largest int64 // response that can be held, if Held is the default
	// err is the error of Open.
	err error
}

// Allow returns a grant of these rules with default options. If a rule is not valid, every use of the grant fails; [New] reports
// that immediately.
func Allow(rules ...Rule) *Grant {
	g, err := New(Options{Rules: rules})
	if err != nil {
		return &Grant{err: err}
	}
	return g
}

// New returns a grant.
func New(o Options) (*Grant, error) {
	if len(o.Rules) > MaxRules {
		return nil, fmt.Errorf("http: more than %d rules", MaxRules)
	}
	if min(o.Timeout, o.Timeouts.Dial, o.Timeouts.TLS, o.Timeouts.Header, o.Timeouts.Stall) < 0 || o.Pending < 0 || o.Held < 0 || o.Received < 0 {
		return nil, errors.New("http: a limit is negative")
	}
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	o.Timeout = cmp.Or(o.Timeout, time.Minute)
	o.Pending = cmp.Or(o.Pending, 64)
	o.Timeouts = o.Timeouts.orDefaults()
	byRules := o.Held == 0
	o.Held = cmp.Or(o.Held, 64<<20)
	o.Received = cmp.Or(o.Received, 1<<30)
	config := &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	g := &Grant{options: o}
	var transports []*nethttp.Transport
	for i, rule := range o.Rules {
		c, err := rule.compile()
		if err != nil {
			return nil, fmt.Errorf("http: rule %d: %w", i+1, err)
		}
		if c.Credential != "" && o.Credentials == nil {
			return nil, fmt.Errorf("http: rule %d: Options.Credentials is required for the credential %s", i+1, c.Credential)
		}
		c.policy = c.addressPolicy(o.Own)
		c.transport = newTransport(&dialer{policy: c.policy, resolver: o.Resolver, timeouts: o.Timeouts}, config)
		transports = append(transports, c.transport)
		g.rules = append(g.rules, c)
	}
	for _, set := range o.Within {
		bound, err := compileBound(set)
		if err != nil {
			return nil, err
		}
		g.within = append(g.within, bound)
	}
	if byRules {
		g.largest = min(largest(g.rules), o.Received)
		for _, set := range g.within {
			g.largest = min(g.largest, largest(set))
		}
	}
	// A grant for one call is simply dropped; its connections need not wait for their time-out.
	runtime.AddCleanup(g, closeIdle, transports)
	return g, nil
}

// largest is the size of the largest response that rules take in.
func largest(rules []*compiled) (size int64) {
	for _, r := range rules {
		size = max(size, r.MaxResponse)
	}
	return size
}

func closeIdle(transports []*nethttp.Transport) {
	for _, t := range transports {
		t.CloseIdleConnections()
	}
}

// Interface implements abi.Capability.
func (g *Grant) Interface() string { return Interface }

// Quick implements [abi.Quick].
func (*Grant) Quick() []string { return []string{"get"} }

// Open implements abi.Opener: it returns a *[Client], whose exchanges end with ctx.
func (g *Grant) Open(ctx context.Context) (any, error) {
	if g.err != nil {
		return nil, g.err
	}
	sizes := sizes{g.options.Held, g.options.Received, g.options.Pending}
	budget := abi.OfCall(ctx, sizes, func() *budget { return sizes.budget(turns.User(ctx)) })
	budget.held.AtLeast(g.largest)
	return &Client{grant: g, call: &call{ctx, budget}}, nil
}

// used is what a call has used of its limits, for a call that goes on in another process.
type used struct {
	Requests int64 `json:"requests"`
	Received int64 `json:"received"`
}

// Save implements [abi.Lasting]: it returns what the call has used of its limits.
func (c *Client) Save() (state []byte, ok bool) {
	b := c.call.budget
	state, err := json.Marshal(used{b.requests.Load(), b.received.Limit() - b.received.Free()})
	return state, err == nil
}

// Reopen implements [abi.Reopener]: the limits of the call go on as they were.
func (g *Grant) Reopen(ctx context.Context, state []byte) (any, error) {
	var u used
	if err := json.Unmarshal(state, &u); err != nil {
		return nil, fmt.Errorf("read what a call has used of http: %w", err)
	}
	opened, err := g.Open(ctx)
	if err != nil {
		return nil, err
	}
	b := opened.(*Client).call.budget // shared by bindings, each of which comes here
	for n := b.requests.Load(); n < u.Requests && !b.requests.CompareAndSwap(n, u.Requests); n = b.requests.Load() {
	}
	if more := u.Received - (b.received.Limit() - b.received.Free()); more > 0 {
		_ = b.received.Reserve(min(more, b.received.Free())) // then nothing is left
	}
	return opened, nil
}

// CloseIdleConnections closes connections that no exchange is using. They also close after 30 s.
func (g *Grant) CloseIdleConnections() {
	for _, rule := range g.rules {
		rule.transport.CloseIdleConnections()
	}
}

// call is shared by the clients that one binding opens for one call.
type call struct {
	ctx context.Context // ends with the call
	*budget
}

// sizes are the sizes of a budget. Bindings of a call whose grants have equal sizes share one.
type sizes struct {
	held, received int64
	pending        int
}

func (s sizes) budget(user string) *budget {
	held := blob.NewQuota("bytes held for http", s.held)
	return &budget{
		held:     held,
		memory:   blob.Quotas{held, allMemory.Part(user, "bytes of contents, heads and rules held for http", maxMemory, freeMemory)},
		received: blob.NewQuota("bytes received by http", s.received),
		pending:  make(chan struct{}, s.pending),
		decoding: make(chan struct{}, maxDecoding),
	}
}

// budget is shared by all http bindings of one call.
type budget struct {
	held     *blob.Quota
	bodies   sync.Map    // the *Exchange of each body that arrives
	dropping sync.Mutex  // held while room drops; taken before the mutex of an Exchange
	memory   blob.Quotas // for held bytes, except bodies
	received *blob.Quota
	requests atomic.Int64
	ahead    atomic.Int64  // time in ns for bytes that its exchanges may owe, up to maxAhead
	pending  chan struct{} // one element for each exchange in progress
	decoding chan struct{} // one element for each body that is being decompressed
	busy     bool          // an exchange has the call's own place in exchanges, whose mutex guards it
}

const (
	// maxMemory is how many bytes of contents of requests, heads of responses and rules are held for one call. Beyond the first
	// freeMemory of each, they also count toward maxAllMemory of all calls of the process, of which each user has a share.
	maxMemory    = 8 << 20
	freeMemory   = 64 << 10
	maxAllMemory = 64 << 20
)

var allMemory = blob.NewCommon("bytes of contents, heads and rules held for http in all calls", maxAllMemory)

const (
	// maxRequests is how many requests one call may send, including redirects, because the host works on each outside the guest.
	maxRequests = 8192
	// handshake is what a new TLS connection counts in addition.
	handshake = 4
	// headCost is how often the bytes of a response's head count as received: each is parsed, masked and kept.
	headCost = 4
)

// request counts requests, or fails with abi.ErrExhausted.
func (b *budget) request(n int64) error {
	if b.requests.Add(n) > maxRequests {
		return abi.Errorf(abi.CodeExhausted, "http requests of one call: %d, with redirects, and %d for each new connection with TLS", maxRequests, handshake)
	}
	return nil
}

// maxDecoding is how many bodies of a call are decompressed at a time.
// Each may need a window of 16 MiB, which is not counted elsewhere.
const maxDecoding = 4

// Client sends the requests of one call that a grant allows: the
// resource `client`. It is safe for concurrent use and needs no closing.
type Client struct {
	grant *Grant
	call  *call
	// narrowed are rule sets that must each also allow a request, the last one first.
	narrowed [][]*compiled
}

// WitRule is the record `rule`: the part of a [Rule] that a guest sees and can request. Empty fields mean the same as there.
type WitRule struct {
	Scheme  string
	Host    string
	Port    *uint16
	Methods []string
	Path    string
	Headers []string
}

// maxNarrowings is how often a client can be narrowed in a chain.
const maxNarrowings = 16

// Quick implements [abi.Quick].
func (*Client) Quick() []string { return []string{"client.start", "client.narrow", "client.rules"} }

// Repeat implements [abi.Repeatable]: requests that change nothing on the server, by their method, are made again, and so are those that have an
// idempotency key.
func (c *Client) Repeat(function string, args []abi.Value) abi.Repeat {
	switch function {
	case "client.rules":
		return abi.Reads
	case "client.narrow":
		return abi.Derives
	}
	if q := requestOf(args[0].([]abi.Value)); q != nil && (!q.changes() || c.authorise(q) == nil && q.rule.Idempotency != "") {
		return abi.Repeats
	}
	return abi.Interrupts
}

// requestOf returns what decides about a request, from a record of WIT, or nil if it is not valid.
func requestOf(record []abi.Value) *request {
	method, err := normalMethod(record[0].(string))
	if err != nil {
		return nil
	}
	to, err := parseTarget(record[1].(string))
	if err != nil {
		return nil
	}
	var headers []Header
	for _, h := range record[2].([]abi.Value) {
		pair := h.([]abi.Value)
		headers = append(headers, Header{pair[0].(string), pair[1].(string)})
	}
	header, err := requestHeader(headers)
	if err != nil {
		return nil
	}
	return &request{method: method, target: to, header: header}
}

// Lists implements [abi.Bounded].
func (*Client) Lists() map[string]int {
	return map[string]int{
		"client.start.request.headers":       100,
		"client.start.request.content.bytes": abi.MaxBytes,
		"client.narrow.rules":                MaxRules,
		"client.narrow.rules.methods":        maxMethods,
		"client.narrow.rules.headers":        maxHeaders,
		"client.rules.result":                MaxRules,
		"client.rules.result.methods":        maxMethods,
		"client.rules.result.headers":        maxHeaders,
	}
}

// Narrow returns a client that allows only what both c and rules allow; without rules it allows nothing. It fails with
// abi.ErrInvalid for a rule that is not valid, and with abi.ErrExhausted when c was narrowed 16 times over already or the
// rules are more than the host still holds for the call.
func (c *Client) Narrow(_ context.Context, rules []WitRule) (*Client, error) {
	if len(rules) > MaxRules {
		return nil, abi.Errorf(abi.CodeInvalid, "more than %d rules", MaxRules)
	}
	if len(c.narrowed) == maxNarrowings {
		return nil, abi.Errorf(abi.CodeExhausted, "a client narrowed %d times", maxNarrowings)
	}
	set, size := make([]*compiled, len(rules)), int64(0)
	for i, r := range rules {
		rule := Rule{Scheme: r.Scheme, Host: r.Host, Methods: r.Methods, Path: r.Path, Headers: r.Headers}
		if r.Port != nil {
			rule.Port = *r.Port
		}
		var err error
		if set[i], err = rule.compile(); err != nil {
			return nil, abi.Errorf(abi.CodeInvalid, "rule %d: %v", i+1, err)
		}
		size += set[i].size()
	}
	if err := c.call.reserve(size); err != nil {
		return nil, err
	}
	// The host does not know when the last client that needs the rules is gone, but none outlives the call.
	if size > 0 {
		context.AfterFunc(c.call.ctx, func() { c.call.memory.Release(size) }) //nolint:contextcheck // the client may outlive the operation
	}
	return &Client{grant: c.grant, call: c.call, narrowed: append([][]*compiled{set}, c.narrowed...)}, nil
}

// Rules returns the rules of c's last narrowing, or else the rules of
// the grant, with defaults filled in. For a narrowed client it is an
// upper bound: earlier narrowings and Options.Within may allow less.
func (c *Client) Rules(ctx context.Context) []WitRule {
	set := c.grant.rules
	if len(c.narrowed) > 0 {
		set = c.narrowed[0]
	}
	size := int64(0)
	for _, r := range set {
		size += perRecord + int64(len(r.Scheme)+len(r.Host)+len(r.Path))
		for _, text := range slices.Concat(r.Methods, r.Headers) {
			size += perText + int64(len(text))
		}
	}
	_ = abi.Room(ctx, size) // an error ends the call when the rules cross
	rules := make([]WitRule, len(set))
	for i, r := range set {
		rules[i] = WitRule{
			Scheme: r.Scheme, Host: r.Host, Port: new(r.Port),
			Methods: slices.Clone(r.Methods), Path: r.Path, Headers: slices.Clone(r.Headers),
		}
	}
	return rules
}

// Start authorises a request and begins it, without waiting for the network. Start returns
// a denial immediately, unless it depends on a resolver's answer or a redirect; then the
// exchange fails with it. The exchange ends with ctx. Start takes ownership of a blob in
// the request even if it fails. Errors: abi.ErrDenied, abi.ErrInvalid for a malformed request, abi.ErrExhausted if too many
// exchanges are in progress, too many bytes are held, or the path and the rules are too long to compare.
func (c *Client) Start(ctx context.Context, r Request) (_ *Exchange, err error) {
	defer func() {
		if err != nil {
			r.Content.close()
		}
	}()
	q, err := newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := c.authorise(q); err != nil {
		return nil, err
	}
	if once, durable := abi.OnceOf(ctx); durable {
		q.key = once.Key()
	} else {
		q.key = rand.Text()
	}
	return c.start(ctx, q, r.Timeout)
}
