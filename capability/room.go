package capability

import (
	"strings"

	"github.com/stilehost/stile/abi"
)

// Room is how many bytes the stores of one owner, and all stores of a file, may take on disk. 0 means no limit.
type Room struct{ Owner, All int64 }

// StoreOwner returns who owns a store: its name up to the last dot. Stores of a scope have the same owner, and nobody else's has it. Those
// of everybody and of a command line have the owner "".
func StoreOwner(store string) string { return store[:strings.LastIndexByte(store, '.')+1] }

// Check returns [abi.ErrExhausted] if the stores take too much: those of an owner, and all, such as "workspaces".
func (r Room) Check(stores string, owner, all int64) error {
	switch {
	case r.Owner > 0 && owner > r.Owner:
		return abi.Errorf(abi.CodeExhausted, "bytes on disk of all %s in this scope: limit %d, needed %d", stores, r.Owner, owner)
	case r.All > 0 && all > r.All:
		return abi.Errorf(abi.CodeExhausted, "bytes on disk of all %s: limit %d, needed %d", stores, r.All, all)
	}
	return nil
}
