package http

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Listeners are the addresses at which this program listens itself: no rule makes them reachable, whatever it names. The
// zero value has none. It is safe for concurrent use, and each connection is checked against what is in it then.
type Listeners struct {
	mu sync.RWMutex
	at []netip.AddrPort
}

// Add adds an address, before it is listened at or right after. An unspecified one such as 0.0.0.0 stands for every
// address of this machine. What Add returns takes it away again.
func (l *Listeners) Add(at netip.AddrPort) (remove func()) {
	at = netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, at)
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		i := slices.Index(l.at, at)
		l.at = slices.Delete(l.at, i, i+1)
	})
}

// has reports whether one of the listeners is reached at an address.
func (l *Listeners) has(to netip.AddrPort) bool {
	if l == nil {
		return false
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.ContainsFunc(l.at, func(own netip.AddrPort) bool {
		return own == to || own.Port() == to.Port() && own.Addr().IsUnspecified() && isLocal(to.Addr())
	})
}

// isLocal reports whether addr is this machine. An unanswered question counts as yes.
func isLocal(addr netip.Addr) bool {
	if addr.IsLoopback() {
		return true
	}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return true
	}
	for _, i := range interfaces {
		if prefix, err := netip.ParsePrefix(i.String()); err == nil && prefix.Addr().Unmap().WithZone("") == addr {
			return true
		}
	}
	return false
}
