// Package stores has what the kinds of durable stores share: who owns a store, and how much the stores of an owner may take.
package stores

import (
	"context"
	"strings"

	"github.com/stilehost/stile/abi"
	"github.com/stilehost/stile/capability"
	"github.com/stilehost/stile/internal/sqlite"
)

// ErrNoLimit refuses a listing without entries.
var ErrNoLimit = abi.Errorf(abi.CodeInvalid, "limit: 0; a page has at least one entry")

// Exhausted returns an [abi.ErrExhausted] for what needs more than a limit.
func Exhausted(what string, limit, needed int64) *abi.Error {
	return abi.Errorf(abi.CodeExhausted, "%s: limit %d, needed %d", what, limit, needed)
}

// inPolicy adds to an error the field of policy.json that has its limit.
func inPolicy(err *abi.Error, field string) error {
	err.Detail += "; it is " + field + " in policy.json"
	return err
}

// Owner returns who owns a store: its name up to the last dot. Stores of a scope have the same owner, and nobody else's has it. Those
// of everybody and of a command line have the owner "".
func Owner(store string) string { return store[:strings.LastIndexByte(store, '.')+1] }

// CheckRoom returns an [abi.ErrExhausted] if the stores of this one's owner, or all in the file, take more than they may with so many
// bytes more, and how many bytes are too many. all names them, such as "workspaces". The table owned has what each owner's stores take.
func CheckRoom(ctx context.Context, c *sqlite.Conn, room capability.Room, all, store string, more int64) (over int64, err error) {
	var own, sum int64
	const query = `SELECT coalesce(sum(iif(owner = ?, bytes, 0)), 0), coalesce(sum(bytes), 0) FROM owned`
	if err := c.Row(ctx, query, Owner(store)).Scan(&own, &sum); err != nil {
		return 0, err
	}
	own, sum = own+more, sum+more
	if room.All > 0 && sum > room.All {
		over, err = sum-room.All, inPolicy(Exhausted("bytes on disk of all "+all, room.All, sum), "limits.kept")
	}
	if room.Owner > 0 && own > room.Owner {
		over, err = max(over, own-room.Owner), inPolicy(Exhausted("bytes on disk of all "+all+" in this scope", room.Owner, own), "limits.keptPerScope")
	}
	return over, err
}
