package capability

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/stilehost/stile/abi"
)

// ErrUnbound is the error of an [Opener] whose capability only the embedding program can make.
var ErrUnbound = errors.New("a capability of the program that embeds the host")

// Level is the severity of a log line.
type Level uint8

// The levels, least important first.
const (
	Trace Level = iota
	Debug
	Info
	Warn
	Error
)

// String is the word for a level.
func (l Level) String() string {
	names := [...]string{"trace", "debug", "info", "warn", "error"}
	if int(l) >= len(names) {
		return fmt.Sprintf("level(%d)", uint8(l))
	}
	return names[l]
}

// Progress is how far a guest says it is. It is the guest's claim, in numbers that are finite and not negative, and a printable line.
type Progress struct {
	Done float64
	// Total is 0 if it is not known.
	Total   float64
	Message string
}

// Site turns grants into capabilities. It holds the resources that they
// share and those that must be released. It is safe for concurrent use. Its
// creator closes it, after the calls that use its capabilities.
type Site struct {
	// Dir is the folder for durable state. It must exist and be writable by its owner only.
	Dir string
	// Private are folders that no capability may reach, Dir among them.
	Private []string
	// Log receives what guests log. It must be safe for concurrent use.
	Log func(level Level, message string)
	// Progress receives how far guests say they are. It must be safe for concurrent use. Default: nobody is told.
	Progress func(Progress)

	mu      sync.Mutex
	hosts   map[string][]netip.Addr
	room    Room
	options map[*Kind]any
	held    map[abi.Capability]func() error // functions that release capabilities that hold more than memory
	opening sync.Mutex                      // locked while a store is opened
	stores  map[string]io.Closer            // by the names of their files
}

// NewSite returns a site in dir. private are folders that, like dir, no capability may reach.
func NewSite(dir string, log func(level Level, message string), private ...string) *Site {
	return &Site{
		Dir: dir, Log: log, Private: append([]string{dir}, private...),
		options: map[*Kind]any{}, held: map[abi.Capability]func() error{}, stores: map[string]io.Closer{},
	}
}

// Configure sets the options of a kind, of a type that the kind defines. Call it before the first capability of the kind is
// opened.
func (s *Site) Configure(k *Kind, options any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options[k] = options
}

// Options returns the options that Configure set, or nil.
func (s *Site) Options(k *Kind) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options[k]
}

// SetHosts sets the addresses of hosts, which are used instead of a resolver, and replaces earlier ones. In capabilities opened
// after this call, grants that name such a host exactly may dial its addresses, public or not.
func (s *Site) SetHosts(hosts map[string][]netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts = hosts
}

// Hosts returns the addresses that SetHosts set. The result must not be changed.
func (s *Site) Hosts() map[string][]netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts
}

// SetRoom sets how much stores may take on disk, for each kind of store, and replaces earlier limits, also for stores that are open. Default:
// no limit.
func (s *Site) SetRoom(r Room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room = r
}

// Room returns the limits that SetRoom set.
func (s *Site) Room() Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.room
}

// Hold registers letGo, which is called when c is released or the site is closed.
func (s *Site) Hold(c abi.Capability, letGo func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held[c] = letGo
}

// Held is the number of held capabilities.
func (s *Site) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// Store returns the store in a file of the site's folder. It opens the store on first use, and the site closes it.
func Store[T io.Closer](ctx context.Context, s *Site, file string, open func(ctx context.Context, path string) (T, error)) (T, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if store, ok := s.stores[file].(T); ok {
		return store, nil
	}
	store, err := open(ctx, filepath.Join(s.Dir, file))
	if err == nil {
		s.stores[file] = store
	}
	return store, err
}

// Release frees the connections and open directories that capabilities hold. Calls that still use them fail.
// Close does the same for all capabilities.
func (s *Site) Release(capabilities map[string]abi.Capability) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range capabilities {
		if c == nil || !reflect.ValueOf(c).Comparable() { // it cannot be a key of a map
			continue
		}
		if letGo := s.held[c]; letGo != nil {
			errs = append(errs, letGo())
			delete(s.held, c)
		}
	}
	return errors.Join(errs...)
}

// Close closes the stores and releases everything. It is idempotent.
func (s *Site) Close() error {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, file := range slices.Sorted(maps.Keys(s.stores)) {
		errs = append(errs, s.stores[file].Close())
	}
	for _, letGo := range s.held {
		errs = append(errs, letGo())
	}
	clear(s.stores)
	clear(s.held)
	return errors.Join(errs...)
}
