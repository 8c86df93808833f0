package http

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Listeners are the addresses at which this program itself listens. No rule can make them reachable. The zero value
// has none. It is safe for concurrent use, and each connection is checked against its current content.
type Listeners struct {
	mu sync.RWMutex
	at []netip.AddrPort
}

// Add adds an address. Call it before or right after listening there. An unspecified address such as 0.0.0.0 stands for every
// address of this machine. The returned function removes the address.
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

// has reports whether an address reaches one of the listeners.
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

// isLocal reports whether addr is this machine. If that is unknown, it returns true.
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
